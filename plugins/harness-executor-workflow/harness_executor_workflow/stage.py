"""A stage's input goes in; the input of its plan's run, the prefix of its requests and what cannot be kept come out."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.errors import Refused
from harness_hookspecs.executor import StageInput
from harness_hookspecs.workflow import Workflow

from .said import NO_JSON, said_as_json

__all__ = ["check_kept", "given_to", "identity_of"]


def identity_of(stage_input: StageInput) -> str:
    """What the requests of one attempt of a stage begin with."""
    return f"{stage_input.stage}.visit[{stage_input.visit_index}].attempt[{stage_input.attempt}]:"


def check_kept(plan: Workflow) -> None:
    """Refuse what a plan asks for and nothing here keeps, before it is relied on.

    Raises:
        Refused: ``workflow.not_available``; its message names what it is and what to do instead.
    """
    limits = plan.limits
    if limits is not None and limits.max_tokens is not None:
        message = "limits.maxTokens is not counted for one run of a plan; bound the session with run.budget instead."
        raise Refused(message, code="workflow.not_available")
    if limits is not None and limits.timeout_ms is not None:
        message = "limits.timeoutMs is not watched for one run of a plan; bound the session with run.budget instead."
        raise Refused(message, code="workflow.not_available")


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
