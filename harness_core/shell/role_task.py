"""A role call's task in, what the host itself must know of it out: who may run it, its tools, its manifest's fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from harness_core.kernel.state import OpenRequest
from harness_hookspecs.errors import HarnessError, RoleError
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.role import (
    ExecuteStepResult,
    ExecuteStepTask,
    FixStepTask,
    OrchestrateResult,
    OrchestrateTask,
    PlanTask,
    RoleResult,
    RoleTask,
    parse_task,
    role_of,
)
from harness_hookspecs.workflow import AiGenerateStep, CodeRunStep, DecisionStep, Fixer, ToolCallStep

from .child_tools import provided_tools
from .toolbox import Tool

__all__ = [
    "Place",
    "answer_schema",
    "asks_model",
    "exhausted",
    "fixer_of",
    "limits_of",
    "manifest_fields",
    "output_of",
    "place_of",
    "slot_of",
    "step_of",
    "task_of",
    "tools_of",
]

_ASKS_NO_MODEL: Final = (CodeRunStep, DecisionStep, ToolCallStep)


class Place(NamedTuple):
    """Where in its run a call stands; a plan and an orchestration stand at no step."""

    step_path: str | None
    visit_index: int

    def refs(self) -> dict[str, Any]:
        """What stands of it in the envelope of the call's events."""
        return {} if self.step_path is None else {"step_path": self.step_path, "visit_index": self.visit_index}


def task_of(wire: Any, role: str) -> RoleTask:
    """The task of a call; raises for one that nobody may run under that role.

    Raises:
        RoleError: ``role.invalid_task``: it is no task; ``role.parallel`` or ``role.wait``: its step is the runtime's;
            ``role.task_mismatch``: it runs under another role (A-20, A-57); ``fixer.not_opted_in``: its step is not to
            be repaired (A-44); ``fixer.exhausted``: not once more.
    """
    try:
        task = parse_task(wire)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"what the executor asks for is no task: {where + ': ' if where else ''}{first['msg']}"
        raise RoleError(message, code="role.invalid_task") from error
    try:
        of_task = role_of(task)
    except ValueError as error:  # a step of the runtime's own, parallel or wait
        assert isinstance(task, ExecuteStepTask)
        raise RoleError(f"{error}", code=f"role.{task.step.uses}") from error
    if of_task != role:
        message = f"a {task.kind} task of this kind runs under {of_task}, not {role}"
        raise RoleError(message, code="role.task_mismatch")
    if isinstance(task, FixStepTask) and (none_left := exhausted(task, task.prior_fix_attempts)):
        raise none_left
    return task


def fixer_of(task: FixStepTask) -> tuple[CodeRunStep, Fixer]:
    """The code step to repair and who may; raises ``fixer.not_opted_in`` where the step has said of nobody that he
    may."""
    step = task.step
    fixer = step.on_failure.fixer if isinstance(step, CodeRunStep) and step.on_failure is not None else None
    if fixer is None or not isinstance(step, CodeRunStep):
        message = f"step {step.id} has no fixer: only a code step with onFailure.fixer is repaired"
        raise RoleError(message, code="fixer.not_opted_in", step=step.id)
    return step, fixer


def exhausted(task: FixStepTask, attempts: int, last: HarnessError | None = None) -> RoleError | None:
    """The error of a repair when so many are all that its step allows (A-46)."""
    step, fixer = fixer_of(task)
    if attempts < fixer.max_attempts:
        return None
    said = "" if last is None else f"; the last one: {last.message}"
    message = f"{attempts} repairs of step {step.id} did not help{said}"
    return RoleError(message, code="fixer.exhausted", **({} if last is None else last.facts))


def place_of(task: RoleTask, request: OpenRequest) -> Place:
    """Where the call stands: what the step itself says, for a repair what the executor said."""
    if isinstance(task, ExecuteStepTask):
        return Place(task.step_context.step_path, task.step_context.visit_index)
    if isinstance(task, FixStepTask):
        return Place(request.step_path or task.step.id, request.visit_index)
    return Place(request.step_path, request.visit_index)


def step_of(task: ExecuteStepTask, run_id: str) -> dict[str, Any]:
    """What the events of a step have in common."""
    return {
        "runId": run_id,
        "stepId": task.step.id,
        "uses": task.step.uses,
        "stepPath": task.step_context.step_path,
        "visitIndex": task.step_context.visit_index,
    }


def asks_model(task: RoleTask) -> bool:
    """Whether there is a model in the call: a step of code, a tool call and a decision have none (A-42)."""
    return not (isinstance(task, ExecuteStepTask) and isinstance(task.step, _ASKS_NO_MODEL))


def slot_of(task: RoleTask) -> str | None:
    """The model that a task names; ``None`` where it names none, and its stage's is asked."""
    step = task.step if isinstance(task, ExecuteStepTask | FixStepTask) else None
    if isinstance(task, FixStepTask) and isinstance(step, CodeRunStep) and step.on_failure is not None:
        return None if step.on_failure.fixer is None else step.on_failure.fixer.model
    return step.with_.model if isinstance(step, AiGenerateStep) else None


def tools_of(task: RoleTask, tools: Mapping[str, Tool], capabilities: Collection[str]) -> Mapping[str, Tool]:
    """The tools of a call, of all that its stage allows: those that its task names, and no others.

    What a tool requires of a model binds a model that is to call it; code calls whatever it names.
    """
    orchestrates = isinstance(task, OrchestrateTask)  # with all that its stage has
    named = tools.keys() if isinstance(task, OrchestrateTask) else {one.replace(".", "_") for one in _named(task)}
    by_model = orchestrates or (isinstance(task, ExecuteStepTask) and isinstance(task.step, AiGenerateStep))
    found = {
        name: tool
        for name, tool in tools.items()
        if name in named and not (by_model and set(tool.spec.requires).difference(capabilities))
    }
    return tools if len(found) == len(tools) else found


def _named(task: PlanTask | ExecuteStepTask | FixStepTask) -> Collection[str]:
    if isinstance(task, PlanTask):
        return [tool.name for tool in task.workflow_snapshot.tools]
    step = task.step
    if isinstance(step, ToolCallStep):
        return (step.with_.tool,)
    return step.with_.tools or () if isinstance(step, AiGenerateStep | CodeRunStep) else ()


def answer_schema(task: RoleTask) -> Mapping[str, Any] | None:
    """The schema of what a model answers: the step's own, as its executor has it for this visit; of an orchestration
    that which its input says."""
    if isinstance(task, OrchestrateTask):
        said = task.input.get("outputSchema") if isinstance(task.input, Mapping) else None
        return said if isinstance(said, Mapping) else None
    if not isinstance(task, ExecuteStepTask) or not isinstance(task.step, AiGenerateStep):
        return None
    schema = task.step.output.schema_
    return schema if isinstance(schema, Mapping) else None


def limits_of(task: RoleTask) -> dict[str, Any]:
    """The bounds of a call as its manifest has them; 0 turns: the role's own setting."""
    if isinstance(task, ExecuteStepTask) and isinstance(task.step, AiGenerateStep):
        return {"maxTurns": task.step.with_.max_turns or 0}
    return {}


def output_of(result: RoleResult) -> Any:
    """What an executor is told of a result: a step's and an orchestration's output, all of a plan and of a repair."""
    if isinstance(result, ExecuteStepResult | OrchestrateResult):
        return thaw(result.output)
    return thaw(result.to_wire())


def manifest_fields(task: RoleTask, wire: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """What the manifest of the task's shape has beside what is common to all four (A-57)."""
    if isinstance(task, PlanTask):
        outer = wire.get("outerLoopContext")
        found = {"definitionHash": task.workflow_snapshot.definition_hash}
        return found if outer is None else {**found, "outerLoopHash": digest(outer)}
    if isinstance(task, OrchestrateTask):
        hashes = [one.definition_hash for one in task.available]
        return {"availableHashes": hashes, "toolsProvided": provided_tools(task)}
    where = {"stepPath": place.step_path}
    if isinstance(task, FixStepTask):
        step, fixer = fixer_of(task)
        return {
            **where,
            "sourceHash": digest(step.with_.source),
            "errorDigest": digest(wire["originalAttemptError"]),
            "priorFixAttempts": task.prior_fix_attempts,
            "maxAttempts": fixer.max_attempts,
        }
    return {
        **where,
        "visitIndex": place.visit_index,
        "uses": task.step.uses,
        "stepHash": digest(wire["step"]),
    }
