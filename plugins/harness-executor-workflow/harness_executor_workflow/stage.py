"""A stage's input goes in; the input of its plan's run, the prefix of its requests and the limits of it come out."""

from __future__ import annotations

from typing import Any, Final

from harness_hookspecs.executor import StageInput
from harness_hookspecs.workflow import Workflow

from .said import NO_JSON, said_as_json

__all__ = ["given_to", "identity_of", "limits_of"]

_LIMITS: Final = ("maxStepExecutions", "maxTokens", "timeoutMs")


def identity_of(stage_input: StageInput) -> str:
    """What the requests of one attempt of a stage begin with."""
    return f"{stage_input.stage}.visit[{stage_input.visit_index}].attempt[{stage_input.attempt}]:"


def limits_of(plan: Workflow, definition: Any) -> dict[str, int]:
    """How far a run may go: what the plan says, or the workflow that it was planned for, whichever is less."""
    said = [{} if plan.limits is None else plan.limits.to_wire(), (definition or {}).get("limits") or {}]
    found = {name: [one[name] for one in said if one.get(name) is not None] for name in _LIMITS}
    return {name: min(values) for name, values in found.items() if values}


def given_to(plan: Workflow, stage_input: StageInput) -> Any:
    """The input of the run: what the person said, where that is meant as it (``said_as_json``); else ``task``,
    ``context`` and ``feedback``.

    Of these three a plan that names its fields is given those that it names.
    """
    said = said_as_json(stage_input)
    if said is not NO_JSON:
        return said
    found = {"task": stage_input.prompt, "context": stage_input.context}
    if stage_input.feedback is not None:
        found["feedback"] = stage_input.feedback
    schema = plan.input.schema_
    named = schema.get("properties") if isinstance(schema, dict) else None
    return {name: text for name, text in found.items() if name in named} if isinstance(named, dict) else found
