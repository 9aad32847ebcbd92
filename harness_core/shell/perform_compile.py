"""A request for a plan to be checked in, the version it is registered as or what is wrong with it out (A-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from harness_core.kernel.commands import Compiled
from harness_core.kernel.definition import StagePlan
from harness_core.kernel.state import OpenRequest, SessionState, Visit
from harness_hookspecs.errors import Drift, HarnessError, PluginError
from harness_hookspecs.executor import Compiles
from harness_hookspecs.host import Ports
from harness_hookspecs.kit.canonical import canonical, digest, read_canonical

from .perform_attempt import Attempt, attempt
from .surroundings import surroundings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness_hookspecs.compiler import Compilation, Difference, VersionLock

    from .redaction import Redactor
    from .session_parts import SessionParts

__all__ = ["CompileSite", "compile_plan", "lock_drift", "schema_of_plans", "version_drift"]


@attrs.frozen
class CompileSite:
    """What a plan is checked with."""

    parts: SessionParts
    ports: Ports
    redactor: Redactor
    read_blob: Callable[[str], bytes]


def compile_plan(request: OpenRequest, visit: Visit, stage: StagePlan, site: CompileSite) -> Compiled:
    """Have the executor's compiler check the document; what it raises, and that it takes too long, are findings."""
    asked = request.payload
    definition = None if asked.get("definition_ref") is None else _read(asked["definition_ref"], site)
    done = _checked(visit.executor, stage, _read(asked["document_ref"], site), asked["form"], definition, site)
    if done.value is not None and done.value.ok:
        return _registered(request.effect_id, done.value, site)
    findings = [_finding(done.error)] if done.error is not None else _wires(done.value)
    payload = {"effect_id": request.effect_id, "findings": site.redactor.value(findings)}
    return Compiled(request.effect_id, False, payload, {})


def _read(ref: str, site: CompileSite) -> Any:
    return read_canonical(site.read_blob(ref))


def _wires(compilation: Compilation | None) -> list[dict[str, Any]]:
    found = [] if compilation is None else [dict(one.to_wire()) for one in compilation.findings]
    return found or [_finding(PluginError("the compiler says neither what is wrong nor that nothing is"))]


def _finding(error: HarnessError) -> dict[str, Any]:
    found = {"severity": "error", "code": error.code, "path": "", "message": error.message}
    return {**found, "hint": error.hint} if error.hint else found


def _registered(effect_id: str, done: Compilation, site: CompileSite) -> Compiled:
    assert done.plan is not None
    if done.workflow_version_id is None or done.lock is None:
        error = PluginError("the compiler gives a plan without its id or its lock", code="plugin.bound_broken")
        return Compiled(effect_id, False, {"effect_id": effect_id, "findings": [_finding(error)]}, {})
    plan, lock = dict(done.plan.to_wire()), dict(done.lock.to_wire())
    payload: dict[str, Any] = {
        "effect_id": effect_id,
        "workflow_version_id": done.workflow_version_id,
        "plan_ref": digest(plan),
        "lock_ref": digest(lock),
        "findings": site.redactor.value([dict(one.to_wire()) for one in done.findings]),
        "own_steps": True,
        "keeps_limits": True,
    }
    if done.max_step_executions is not None:
        payload["max_step_executions"] = done.max_step_executions
    blobs = {payload["plan_ref"]: canonical(plan), payload["lock_ref"]: canonical(lock)}
    return Compiled(effect_id, True, payload, blobs)


def _checked(
    name: str, stage: StagePlan, document: Any, form: str, definition: Any, site: CompileSite
) -> Attempt[Compilation]:
    executor = site.parts.definition.executors.get(name)
    if not isinstance(executor, Compiles):
        said = f"executor {name} has no compiler"
        return Attempt(None, PluginError(said, code="executor.no_compiler"))
    results: list[Attempt[Compilation]] = []
    seconds, ports = site.parts.validator_timeout_seconds, site.ports

    def work() -> None:
        what = f"the compiler of executor {name}"
        results.append(attempt(_compile, executor, stage, (document, form, definition), site, what=what))

    if getattr(ports, "concurrent", True):  # in a thread of its own: who takes longer goes on, and nobody listens
        ports.spawn(work, name="compile").join(seconds)
    else:
        work()
    message = f"the plan was not checked within {seconds:g} s"
    hint = "run.validator_timeout_sec sets the time"
    return results[0] if results else Attempt(None, PluginError(message, code="compile.timeout", hint=hint))


def _compile(executor: Compiles, stage: StagePlan, asked: tuple[Any, str, Any], site: CompileSite) -> Compilation:
    from harness_hookspecs.compiler import Compilation

    document, form, definition = asked
    compiler = executor.compiler()
    around = surroundings_of(document, stage, site.parts, site.ports.processes, definition=definition)
    done = compiler.expand(document, around) if form == "sketch" else compiler.compile(document, around)
    if not isinstance(done, Compilation):
        raise PluginError("the compiler gives what is no compilation", code="plugin.bound_broken")
    return Compilation.from_wire(done.to_wire())  # made past the checks of its type, it cannot be recorded


# -- what a planner is held to ---


def schema_of_plans(
    executor: Any, stage: StagePlan, parts: SessionParts, definition: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The JSON Schema of what a planner of that stage may write for a definition, in the form that is asked of it.

    ``None`` where the executor has no compiler, or one that breaks: whatever is written is checked nevertheless.
    """
    if not isinstance(executor, Compiles):
        return None

    def made() -> Mapping[str, Any]:
        compiler, around = executor.compiler(), surroundings_of(None, stage, parts, None, definition=definition)
        return compiler.sketch_schema(around) if stage.plan_form == "sketch" else compiler.plan_schema(around)

    found = attempt(made, what="the compiler").value
    return found if isinstance(found, Mapping) else None


# -- what a session is gone on with ---


def lock_drift(state: SessionState, site: CompileSite) -> None:
    """Check again what the open attempt has registered: a plan runs where it was checked, or where somebody accepts it.

    Raises:
        Drift: ``workflow.drift``: what a plan was checked against is another one here (lwir.md, Version and lock).
    """
    visit = state.visit
    stage = None if visit is None else site.parts.definition.stages.get(visit.stage)
    if state.final or visit is None or stage is None or visit.artifact_id is not None:
        return
    versions = [outcome["version"] for outcome in visit.outcomes if "version" in outcome]
    changes = [one for version in versions for one in _further(version, _changed(version, visit.executor, stage, site))]
    if changes:
        raise _drift(changes)


def version_drift(version: Mapping[str, Any], site: CompileSite) -> None:
    """Check again a version that is to run once more, in the one stage of the session that would run it.

    Raises:
        Drift: ``workflow.drift``: what it was checked against, when it was registered last, is another one here.
    """
    [stage] = site.parts.definition.stages.values()
    changes = _changed(version, stage.executor, stage, site)
    if changes:
        of = version["workflow_version_id"]
        told = [_change(one["field"], one["recorded"], one["now"], of) for one in changes]
        raise _drift(told, "undo the change, or run it with --accept-drift")


def _further(version: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of what is another one than it was, that which nobody has accepted as it is now."""
    now = {one["field"]: (one["recorded"], one["now"]) for one in changes}
    accepted: Mapping[str, Sequence[Any]] = version.get("accepted", {})
    found = []
    for what in dict.fromkeys([*now, *accepted]):  # what was accepted and is not among them is again what it was
        first, last = accepted[what] if what in accepted else (now[what][0], now[what][0])
        current = now[what][1] if what in now else first
        if current != last:
            found.append(_change(what, last, current, version["workflow_version_id"]))
    return found


def _changed(
    version: Mapping[str, Any], name: str, stage: StagePlan, site: CompileSite
) -> Sequence[Mapping[str, Any]]:
    """What is another one than it was when the plan was registered, or keeps it from being registered now."""
    from harness_hookspecs.compiler import VersionLock

    executor = site.parts.definition.executors[name]
    before = VersionLock.from_wire(_read(version["lock_ref"], site))
    definition = None if version.get("definition_ref") is None else _read(version["definition_ref"], site)
    done = _checked(name, stage, _read(version["plan_ref"], site), "plan", definition, site)
    if done.error is not None:
        raise done.error
    assert done.value is not None and isinstance(executor, Compiles)
    now = done.value.lock
    if now is None:
        errors = [one for one in done.value.findings if one.severity == "error"]
        return [_change(f"{one.code} {one.path}".strip(), None, one.message) for one in errors]
    found = attempt(_drifted, executor, before, now, what="the compiler")
    if found.error is not None:
        raise found.error
    return [_change(one.what, one.before, one.now) for one in found.value or ()]


def _drifted(executor: Compiles, before: VersionLock, now: VersionLock) -> Sequence[Difference]:
    return executor.compiler().drift(before, now)


def _change(field: str, recorded: Any, now: Any, *of: str) -> dict[str, Any]:
    change = {"field": field, "recorded": recorded or None, "now": now or None}
    return {**change, "workflow_version_id": of[0]} if of else change


def _drift(
    changes: Sequence[Mapping[str, Any]], hint: str = "undo the change, or resume with --accept-drift"
) -> Drift:
    plans = ", ".join(dict.fromkeys(str(one["workflow_version_id"]) for one in changes))
    said = "; ".join(f"{one['field']}: {one['recorded'] or 'new'} -> {one['now'] or 'gone'}" for one in changes)
    return Drift(
        f"plan {plans} was checked against something else: {said}",
        code="workflow.drift",
        hint=hint,
        changes=list(changes),
    )
