"""A step that begins goes in; its templates filled, what it asks for, under an id of its own, comes out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness_executor_workflow.plan.paths import Segment, format_path
from harness_executor_workflow.plan.templates import filled
from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit.canonical import canonical

from .expressions import Meter, Reader, Scope, values_for
from .move import Frame
from .program import StepPlan

__all__ = ["ROLES", "ask_id", "delay_of", "evaluate", "fix_task", "path_of", "scope_of", "step_task", "with_feedback"]

ROLES: Final = {
    "ai.generate": "worker.ai-generate",
    "code.run": "worker.code-run",
    "decision": "worker.code-run",
    "tool.call": "worker.tool-call",
}
_BITS: Final = 53


def segment(plan: StepPlan, visit: int, key: str | None = None) -> Segment:
    """The step on the way; a visit is told where there may be several."""
    return Segment(plan.id, key, visit if plan.max_visits > 1 else None)


def path_of(frame: Frame, plan: StepPlan, visit: int) -> str:
    """Where the step stands."""
    return format_path([*frame.way, segment(plan, visit)])


def ask_id(frame: Frame, plan: StepPlan, state: Mapping[str, Any], tail: str = "") -> str:
    """What the step asks for now, the same for the same path and attempt."""
    return f"{path_of(frame, plan, state['visit'])}#{frame.turn}{state['attempt']}{tail}"


def scope_of(frame: Frame, visit: int | None = None, item: Any = ...) -> Scope:
    """What an expression of a step may read: its own level before those around it."""
    roots = dict(frame.roots)
    if visit is not None:
        roots["visit"] = {"index": visit}
    if item is not ...:
        roots["item"] = item
    return Scope(roots, lambda: _names(frame), lambda name: _look(frame, name))


def evaluate(readers: Mapping[str, Reader], scope: Scope, value: Any, meter: Meter | None = None) -> Any:
    """Fill every template of a value.

    Args:
        readers: Its expressions, compiled.
        scope: What they may read.
        value: Any JSON.
        meter: Bounds what several values cost together; else this one is bounded alone.

    Raises:
        RuleError: As the engine raised it; ``step.too_large`` where its expressions read or give too much together.
    """
    bound = meter or Meter()

    def one(text: str) -> Any:
        reader = readers[text]
        read = values_for([reader], scope)
        found = reader.compiled.evaluate(read)
        bound.count(read, found)
        return found

    return filled(value, one)


def step_task(frame: Frame, plan: StepPlan, visit: int) -> dict[str, Any]:
    """The wire form of the ``execute_step`` task; a decision's input is what its expressions read.

    Raises:
        RuleError: An expression cannot be evaluated, or a prompt has come out empty (``step.empty_prompt``).
    """
    scope = scope_of(frame, visit)
    found = evaluate(plan.readers, scope, plan.templated)
    given = found.pop("input", None)
    if plan.uses == "ai.generate":
        found = {name: _text(plan, name, item) for name, item in found.items()}
    wire: dict[str, Any] = {**plan.wire, "with": {**plan.wire["with"], **found}}
    if given is not None:
        wire["input"] = given
    if plan.uses == "decision":
        given = values_for(plan.readers.values(), scope)
    where = {"stepPath": path_of(frame, plan, visit), "visitIndex": visit}
    return {"kind": "execute_step", "step": wire, "stepInput": given or {}, "stepContext": where}


def with_feedback(task: Mapping[str, Any], message: str) -> dict[str, Any]:
    """The task again, told why it failed."""
    return {**task, "stepInput": {**task["stepInput"], "feedback": message}}


def fix_task(task: Mapping[str, Any], fix: Mapping[str, Any]) -> dict[str, Any]:
    """The wire form of the ``fix_step`` task: always the step as it was planned, its own error, and what was tried."""
    found = {
        "kind": "fix_step",
        "step": task["step"],
        "stepInput": task["stepInput"],
        "originalAttemptError": fix["error"],
        "priorFixAttempts": fix["prior"] - 1,
    }
    return {**found, "priorAttempts": fix["tried"]} if "tried" in fix else found


def delay_of(retry: Mapping[str, Any], attempt: int, chance: str) -> int:
    """Milliseconds before an attempt, the second being the first that waits; ``chance`` decides the jitter."""
    base = retry.get("delayMs", 0)
    growth = {"linear": attempt - 1, "exponential": 2 ** (attempt - 2)}.get(retry.get("backoff", ""), 1)
    share = int.from_bytes(hashlib.sha256(chance.encode()).digest()[:8]) >> (64 - _BITS)
    return int(base * growth * (1 - retry.get("jitter", 0) * share / 2**_BITS))


def _text(plan: StepPlan, name: str, value: Any) -> str:
    text = value if isinstance(value, str) else canonical(value).decode()
    if name == "prompt" and not text:
        raise RuleError(f"The prompt of {plan.id} has come out empty.", code="step.empty_prompt")
    return text


def _names(frame: Frame) -> Iterable[str]:
    found: dict[str, None] = {}
    place: Frame | None = frame
    while place is not None:
        found |= dict.fromkeys(place.level.steps)
        place = place.outer
    return found


def _look(frame: Frame, name: str) -> dict[str, Any]:
    """What ``steps.<name>`` is: ``output`` after one visit, ``last`` and ``all`` where there may be more, ``error``."""
    place: Frame | None = frame
    while place is not None and name not in place.level.steps:
        place = place.outer
    state = {} if place is None else place.state["steps"].get(name, {})
    found = {key: state[key] for key in ("output", "all", "error") if key in state}
    return {**found, "last": found["all"][-1]} if "all" in found else found
