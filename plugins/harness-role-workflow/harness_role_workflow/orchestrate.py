"""A goal and the workflows there are for it go in, what a model came to by running them comes out (A-89).

The workflows are run by the tools that the host has put into the context; which, how often and on what is the model's
to say, call by call. Its final answer is the output, and nothing is guessed from what stands around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness_hookspecs.kit import codec
from harness_hookspecs.messages import Message
from harness_hookspecs.role import OrchestrateTask, RoleContext
from harness_hookspecs.workflow import StepOutput, WorkflowDefinitionSnapshot

from .answer import asked_for
from .conversation import opening
from .prompt import prompt_parts, prompt_text, system_texts
from .settings import WorkflowRoleSettings
from .turns import Bounds, answered

__all__ = ["orchestrate"]

_ASKED: Final = frozenset({"prompt", "context", "feedback", "maxTurns", "outputSchema"})
"""What the input of a stage's orchestration has; any other input is told the model as it is."""

_MODES: Final = {"object": "object", "array": "array"}
_LIMIT: Final = "max_turns of the stage where it sets one, else run.max_turns"


def orchestrate(task: OrchestrateTask, ctx: RoleContext, settings: WorkflowRoleSettings) -> Any:
    """Have the model plan and run workflows until its answer satisfies the schema of the context.

    Returns:
        The output: a text where the context has no schema.

    Raises:
        RoleError: As :func:`.turns.answered` says.
        Suspend: A child session, a person or a budget must be waited for.
    """
    given = task.input if isinstance(task.input, Mapping) and _ASKED.issuperset(task.input) else {}
    schema = ctx.response_schema
    output = _output(schema)
    turns = given.get("maxTurns")
    bounds = Bounds(
        turns or settings.max_turns,
        settings.equal_failures,
        "plugins.settings.workflow.max_turns" if turns is None else _LIMIT,
    )
    return answered(_opening(task, given, ctx, asked_for(output, schema)), output, schema, ctx, bounds)


def _output(schema: Mapping[str, Any] | None) -> StepOutput:
    if schema is None:
        return StepOutput(mode="text")
    wire = {"mode": _MODES.get(str(schema.get("type")), "json"), "schema": dict(schema)}
    return StepOutput.from_wire(wire)


def _opening(
    task: OrchestrateTask, given: Mapping[str, Any], ctx: RoleContext, asked: str | None
) -> tuple[Message, Message]:
    parts = prompt_parts(
        "orchestrator",
        system=system_texts(ctx, None),
        skills=ctx.skills,
        memory=ctx.memory_mounts,
        scratch=ctx.scratch_mounts,
        tools=ctx.tools,
    )
    workflows = "\n".join(_described(task.available))
    if not given:
        step_input: Mapping[str, Any] = {"workflows": workflows, "input": task.input}
        return opening(prompt_text(parts), "Reach what the input asks for.", step_input, asked)
    step_input = {name: given[name] for name in ("context", "feedback") if given.get(name)}
    prompt = f"{given['prompt']}\n\nWorkflows:\n{workflows}"
    return opening(prompt_text(parts), prompt, step_input, asked)


def _described(available: tuple[WorkflowDefinitionSnapshot, ...]) -> Iterator[str]:
    for one in available:
        said = " ".join(one.description.split()) if one.description else "no description"
        schema = codec.dumps(one.to_wire()["inputSchema"]).decode()
        yield f"- {one.workflow_id}: {said} Input: {schema}"
