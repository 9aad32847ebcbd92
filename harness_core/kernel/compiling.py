"""Plans that an executor has had checked: their events in, folded into the state, and what it is told of them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from harness_hookspecs.kit.canonical import read_canonical

from .facts import Event
from .spending import tokens_used
from .state import OpenRequest, SessionState

__all__ = [
    "COMPILING",
    "PLAN_KEY",
    "REJECTED",
    "changes_accepted",
    "compiled_value",
]

REJECTED: Final = "workflow.rejected"
"""The code of a plan that was not registered."""

PLAN_KEY: Final = "plan: "
"""What a change of ``config.migrated`` begins with that a plan met, and not the configuration."""


def _requested(state: SessionState, event: Event) -> None:
    """Fold the intent."""
    payload, visit = dict(event.payload), state.visit
    assert visit is not None, "a plan outside of a visit"
    effect_id = payload["effect_id"]
    state.open[effect_id] = OpenRequest("compile", effect_id, payload, event.seq, event.id)
    visit.requested[payload["request_id"]] = effect_id


def _registered(state: SessionState, event: Event) -> None:
    """Fold what it was registered as."""
    request = state.open.get(event.payload["effect_id"])
    if state.visit is not None:
        state.visit.tokens_before = tokens_used(state)
    definition = {} if request is None else {"definition_ref": request.payload.get("definition_ref")}
    version = {**event.payload, **{name: ref for name, ref in definition.items() if ref is not None}}
    _ended(state, event, {"ok": True, "version": version, "seq": event.seq})


def changes_accepted(state: SessionState, changes: Iterable[Mapping[str, Any]]) -> None:
    """Fold what of that which a plan was checked against is another one now, and may be.

    A version keeps of each what it was when it was registered, and what was accepted last.
    """
    outcomes = () if state.visit is None else state.visit.outcomes
    versions = [outcome["version"] for outcome in outcomes if "version" in outcome]
    for change in changes:
        if change["key"].startswith(PLAN_KEY):
            what, of = change["key"].removeprefix(PLAN_KEY), change.get("workflow_version_id")
            for version in versions:
                if of in (None, version["workflow_version_id"]):
                    accepted = version.setdefault("accepted", {})
                    accepted[what] = [accepted.get(what, [change["old"]])[0], change["new"]]


def _failed(state: SessionState, event: Event) -> None:
    """Fold why it was not."""
    findings = list(event.payload["findings"])
    errors = [str(one.get("message", "")) for one in findings if one.get("severity") == "error"]
    message = f"the plan was not registered: {errors[0] if errors else 'nobody says why'}"
    error = {"name": "CompileFailed", "code": REJECTED, "message": message, "details": {"findings": findings}}
    _ended(state, event, {"ok": False, "error": error})


def _ended(state: SessionState, event: Event, outcome: Mapping[str, Any]) -> None:
    request = state.open.pop(event.payload["effect_id"], None)
    if request is not None and state.visit is not None:
        state.visit.outcomes.append({"request_id": request.payload["request_id"], **outcome})


COMPILING: Final[dict[str, Callable[[SessionState, Event], None]]] = {
    "compile.requested": _requested,
    "compile.failed": _failed,
    "workflow.version_registered": _registered,
}
"""By type of the event."""


def compiled_value(version: Mapping[str, Any], read_blob: Callable[[str], bytes]) -> dict[str, Any]:
    """What an executor is told of a version that was registered."""
    value = {
        "workflowVersionId": version["workflow_version_id"],
        "plan": read_canonical(read_blob(version["plan_ref"])),
        "lock": read_canonical(read_blob(version["lock_ref"])),
        "findings": list(version.get("findings", ())),
    }
    if "max_step_executions" in version:
        value["maxStepExecutions"] = version["max_step_executions"]
    if version.get("own_steps"):
        value["ownSteps"] = True
    if version.get("keeps_limits"):
        value["keepsLimits"] = True
    return value
