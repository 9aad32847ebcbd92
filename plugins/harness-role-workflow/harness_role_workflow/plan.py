"""A definition, an input and what earlier rounds came to go in, the workflow that a model writes for them comes out.

The document is untrusted: it is JSON and an object, and nothing else is held to it here. The host compiles it, and what
it finds comes back with the next task, one role call a round (A-10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from harness_hookspecs.errors import CodecError, RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import ChatInput, Message
from harness_hookspecs.role import PlanTask, RoleContext
from harness_hookspecs.workflow import OuterLoopContext, PlanFinding, WorkflowDefinitionSnapshot

from .asking import asked_once, said
from .prompt import prompt_parts, prompt_text, system_texts
from .settings import WorkflowRoleSettings

__all__ = ["plan"]

_NOT_FOR_THE_MODEL: Final = frozenset({"definitionHash", "planner", "workers", "memory", "tools", "bash"})

_SKETCH: Final = """A sketch is {"steps": [...]}, the steps in their order:
- {"id": "fetch", "uses": "tool.call", "tool": NAME, "inputs": {ARGUMENT: SOURCE}}
- {"id": "tell", "uses": "ai.generate", "prompt": WORDS, "inputs": [SOURCE, ...]}
A SOURCE is "input.FIELD" of the workflow's input, "previous" for what the step before gave, or the id of an earlier \
step. Each id is a short word in lower case, different from all others. The last step gives the workflow's output."""


def plan(task: PlanTask, ctx: RoleContext, settings: WorkflowRoleSettings) -> dict[str, Any]:
    """Ask for a workflow, once more when what is answered is no JSON object.

    The answer is constrained by the schema of the context, which is the host's; without one, by none.

    Returns:
        The document.

    Raises:
        RoleError: ``planner.no_document``, or as :func:`~harness_role_workflow.asking.asked_once` says.
        Suspend: As a call of the context raised it.
    """
    snapshot = task.workflow_snapshot
    parts = prompt_parts("planner", system=system_texts(ctx, snapshot.planner.system), tools=ctx.tools)
    question = "\n\n".join(f"{heading}\n{body}" for heading, body in _blocks(task, snapshot))
    messages: list[Message] = [said("system", prompt_text(parts)), said("user", question)]
    schema = None if ctx.response_schema is None else dict(ctx.response_schema)
    error = None
    for _ in range(settings.equal_failures):
        answer = asked_once(ChatInput(messages=tuple(messages), response_schema=schema), ctx)
        try:
            document, stripped = codec.lenient_object(answer.text)
        except CodecError as broken:
            error = broken
            again = f"This is no JSON document: {broken.message} Answer again with the whole document alone."
            messages += [said("assistant", answer.text or "(nothing)"), said("user", again)]
            continue
        if stripped:
            text = f"The document stood inside {' and '.join(stripped)}, which was taken away."
            ctx.durability.note(text, stripped=list(stripped))
        return document
    raise RoleError("The model gave no JSON document.", code="planner.no_document") from error


def _blocks(task: PlanTask, snapshot: WorkflowDefinitionSnapshot) -> Iterator[tuple[str, str]]:
    """What the model is told, what stays the same between rounds first."""
    wire = snapshot.to_wire()
    yield "Definition:", _json({name: value for name, value in wire.items() if name not in _NOT_FOR_THE_MODEL})
    yield "Input of this run:", _json(task.input)
    outer = task.outer_loop_context
    if outer is not None:
        yield from _rounds(outer)
    if task.form == "sketch":
        yield "Form:", _SKETCH
    what = "a sketch of the workflow" if task.form == "sketch" else "the workflow"
    yield "Task:", f"Write {what} as one JSON document and nothing else."


def _rounds(outer: OuterLoopContext) -> Iterator[tuple[str, str]]:
    for cycle in outer.prior_cycles:
        summary = f"\n{cycle.summary}" if cycle.summary else ""
        yield f"Round {cycle.cycle_number} ended {cycle.status}:", f"{_json(cycle.output)}{summary}"
    if outer.prior_lwir is not None:
        yield "The last document:", _json(outer.prior_lwir)
    if outer.findings:
        yield "What is wrong with it:", "\n".join(_finding(one) for one in outer.findings)
    last = ", the last one" if outer.is_final_cycle else ""
    yield "Round:", f"This is round {outer.cycle_number} of {outer.max_cycles}{last}."


def _finding(found: PlanFinding) -> str:
    hint = f" ({found.hint})" if found.hint else ""
    return f"- {found.severity} {found.code} at {found.path or '/'}: {found.message}{hint}"


def _json(value: Any) -> str:
    return codec.dumps(value.to_wire() if hasattr(value, "to_wire") else value).decode()
