"""A plan that a model or a person wrote and a stage in, what is wrong with it out, or its id and its lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from harness_hookspecs.compiler import Compilation, Surroundings
from harness_hookspecs.errors import CodecError, NotFound, PluginError, ValidationFailed
from harness_hookspecs.executor import Compiles
from harness_hookspecs.kit.codec import loads

from .parts import Need, Part
from .perform_attempt import attempt
from .surroundings import surroundings_of

if TYPE_CHECKING:
    from .opening import Opened
    from .session_parts import SessionParts

__all__ = ["check_plan", "refuse_unsound"]

COMPILER: Final = Need("executor", "workflow")
"""The executor that runs plans; it is the one that checks them, also for a stage that another one runs."""


def check_plan(
    source: bytes, opened: Opened, parts: SessionParts, *, stage: str | None, sketch: bool
) -> dict[str, Any]:
    """Check a plan, or the sketch of one, against the models, tools and rules of a stage; nothing is run or written.

    Args:
        source: What was written.
        opened: The project.
        parts: What its sessions run with.
        stage: Where the plan is to run; ``None``: in the first stage that runs plans, else in the first one.
        sketch: Whether it is the short form.

    Returns:
        The document ``harness.plan_check/1``.

    Raises:
        NotFound: There is no such stage.
        PluginError: Nobody checks plans here, or who does broke.
    """
    part = opened.parts.part(COMPILER)
    if not isinstance(part.thing, Compiles):
        raise _no_compiler(part, "checks no plans")
    name = _named(stage, parts)
    around = surroundings_of(_read(source), parts.definition.stages[name], parts, opened.ports.processes)
    said = attempt(_checked, part.thing, source, around, what=f"the compiler of {part.plugin_id}", sketch=sketch)
    if said.error is not None:
        raise said.error
    if not isinstance(said.value, Compilation):
        raise _no_compiler(part, f"gave {type(said.value).__name__} where a Compilation belongs")
    return _document(said.value, name)


def refuse_unsound(document: Mapping[str, Any]) -> None:
    """Raise for a plan that its check refuses.

    Raises:
        ValidationFailed: ``workflow.rejected``, with all findings.
    """
    if not document["ok"]:
        first = next(one["message"] for one in document["findings"] if one["severity"] == "error")
        message = f"the plan is not sound, and nothing was registered: {first}"
        hint = "harness workflows check FILE says all that is wrong"
        raise ValidationFailed(message, code="workflow.rejected", hint=hint, findings=document["findings"])


def _read(source: bytes) -> Any:
    """What was written, for the names in it; what it is that is none, the compiler says."""
    try:
        return loads(source)
    except CodecError:
        return None


def _named(stage: str | None, parts: SessionParts) -> str:
    definition = parts.definition
    if stage is None:
        running = (one.name for one in definition.stages.values() if one.executor == COMPILER.name)
        return next(running, definition.initial)
    if stage not in definition.stages:
        known = ", ".join(definition.stages)
        raise NotFound(f"there is no stage {stage}; stages: {known}", code="stage.not_found")
    return stage


def _checked(executor: Compiles, source: bytes, around: Surroundings, *, sketch: bool) -> Compilation:
    compiler = executor.compiler()
    return compiler.expand(source, around) if sketch else compiler.compile(source, around)


def _no_compiler(part: Part, said: str) -> PluginError:
    hint = f"harness plugins info {part.plugin_id}"
    message = f"the executor {part.need.name} of the plugin {part.plugin_id} {said}"
    return PluginError(message, code="plugin.bound_broken", hint=hint, plugin=part.plugin_id)


def _document(found: Compilation, stage: str) -> dict[str, Any]:
    return {
        "schema": "harness.plan_check/1",
        "stage": stage,
        "ok": found.ok,
        "workflow_version_id": found.workflow_version_id,
        "lwir_hash": found.lwir_hash,
        "max_step_executions": found.max_step_executions,
        "findings": [_finding(one.to_wire()) for one in found.findings],
        "lock": None if found.lock is None else found.lock.to_wire(),
        "plan": None if found.plan is None else found.plan.to_wire(),
    }


def _finding(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {"step": None, "hint": None, **wire}
