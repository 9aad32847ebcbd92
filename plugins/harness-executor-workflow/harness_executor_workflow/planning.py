"""A stage's definition and what came of the rounds before go in, what the planner is asked next comes out (A-10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from harness_hookspecs.executor import Compile, Outcome, RoleCall, StageInput
from harness_hookspecs.value import thaw

from .said import NO_JSON, said_as_json

__all__ = ["asked", "begun", "checked", "is_of_planning", "proposed"]

Form = Literal["plan", "sketch"]

_OF_FINDING: Final = ("severity", "code", "path", "step", "message", "hint")


def begun(stage_input: StageInput) -> dict[str, Any]:
    """The first round: nothing is written yet."""
    cycles = thaw(stage_input.prior)
    return {"round": 1, "findings": [], "prior": None, "cycles": cycles, "input": _input(stage_input)}


def _input(stage_input: StageInput) -> Any:
    """What the plan is to be written for: what was said, read as JSON where its run is given that."""
    said = said_as_json(stage_input)
    return said if said is not NO_JSON else {"task": stage_input.prompt, "context": stage_input.context}


def is_of_planning(name: str) -> bool:
    """Whether a request, without the prefix of its attempt, is one of these."""
    return name.startswith(("plan.", "check."))


def asked(prefix: str, planning: Mapping[str, Any], definition: Any, form: Form = "plan") -> RoleCall | Compile:
    """The planner's next round, or the check of what it wrote."""
    number = planning["round"]
    if "document" in planning:
        name, document = f"{prefix}check.{number}", planning["document"]
        return Compile(request_id=name, document=document, form=form, definition=definition)
    task = {"kind": "plan", "workflowSnapshot": thaw(definition), "input": planning["input"]}
    if form == "sketch":
        task["form"] = form
    if number > 1 or planning["cycles"]:
        task["outerLoopContext"] = _outer(planning, definition)
    return RoleCall(request_id=f"{prefix}plan.{number}", role="planner", task=task)


def _outer(planning: Mapping[str, Any], definition: Any) -> dict[str, Any]:
    number, most = planning["round"], 1 + definition["planner"]["maxRepairs"]
    found = {} if number == 1 else _wrong(planning)
    return {
        "cycleNumber": number,
        "maxCycles": most,
        "isFinalCycle": number >= most,
        "priorCycles": planning["cycles"],
        **found,
    }


def _wrong(planning: Mapping[str, Any]) -> dict[str, Any]:
    """What is wrong with the last document."""
    findings = [{name: one[name] for name in _OF_FINDING if name in one} for one in planning["findings"]]
    return {"findings": findings, "priorLwir": planning["prior"]}


def proposed(planning: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """What the planner wrote is to be checked; or the end, where it wrote nothing."""
    if not outcome.ok:
        return {"end": _told(outcome.error, "role.failed", "The planner failed.")}
    value = thaw(outcome.value)
    document = value.get("lwir") if isinstance(value, dict) else None
    return {**planning, "document": document}


def checked(planning: Mapping[str, Any], outcome: Outcome, definition: Any) -> dict[str, Any]:
    """The next round with what is wrong; or the end, after the last one."""
    error = thaw(outcome.error)
    findings = (error.get("details") or {}).get("findings") or []
    if planning["round"] > definition["planner"]["maxRepairs"]:
        told = _told(error, "workflow.rejected", "The plan was refused.")
        message = f"No plan was registered after {planning['round']} rounds: {told['message']}"
        return {"end": {"code": "workflow.not_planned", "message": message}}
    prior = planning["document"] if isinstance(planning["document"], dict) else None
    kept = {name: value for name, value in planning.items() if name != "document"}
    return {**kept, "round": planning["round"] + 1, "findings": findings, "prior": prior}


def _told(error: Any, code: str, message: str) -> dict[str, str]:
    known = error if isinstance(error, Mapping) else {}
    return {"code": str(known.get("code") or code), "message": str(known.get("message") or message)}
