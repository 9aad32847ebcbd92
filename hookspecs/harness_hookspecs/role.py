"""Kind ``role``: a task and a context in, a result out; every call to the world goes through the context."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import Field, field_validator

from .host import CancelToken, Ports
from .messages import ArtifactRef, ChatInput, ErrorEnvelope, OracleResponse, ToolCallRequest
from .mount import HarnessRuntimeMount, MemoryMount, ScratchMount, SkillDescriptor
from .offer import EXECUTOR_ROLES, ExecutorRole
from .provider import CallContext, Chunk, ModelRequest
from .role_prompt import DescribesPrompt, PromptPart, ShowsPrompt
from .value import Json, Maybe, WireModel
from .workflow import OuterLoopContext, Step, WorkflowBashCapabilities, WorkflowDefinitionSnapshot

__all__ = [
    "EXECUTOR_ROLES",
    "REMOTE_EVENTS",
    "BoundTool",
    "DelegateToDefault",
    "DescribesPrompt",
    "ExecuteStepResult",
    "ExecuteStepTask",
    "ExecutorRole",
    "FixAttempt",
    "FixStepResult",
    "FixStepTask",
    "ModelHandle",
    "OrchestrateResult",
    "OrchestrateTask",
    "PlanResult",
    "PlanTask",
    "PromptPart",
    "Recorder",
    "RoleContext",
    "RoleHarness",
    "RoleResult",
    "RoleTask",
    "Scope",
    "ShowsPrompt",
    "StepContext",
    "ToolOutcome",
    "parse_result",
    "parse_task",
    "role_of",
]


REMOTE_EVENTS = tuple(
    "role.note harness.model.called harness.model.responded harness.model.failed harness.tool_call.started "
    "harness.tool_call.succeeded harness.tool_call.failed".split()
)
"""What of somebody far away is taken down: notes, and what they say of their models and tools (K-28)."""


class StepContext(WireModel):
    """Where a step stands in its run."""

    step_path: str
    visit_index: int = Field(ge=0)


class PlanTask(WireModel):
    """Write a workflow for this definition and input; ``form`` says where it is to be the sketch of one."""

    kind: Literal["plan"] = "plan"
    workflow_snapshot: WorkflowDefinitionSnapshot
    input: Json
    outer_loop_context: OuterLoopContext | None = None
    form: Maybe[Literal["sketch"]] = None


class OrchestrateTask(WireModel):
    """Reach the goal by running workflows."""

    kind: Literal["orchestrate"] = "orchestrate"
    available: tuple[WorkflowDefinitionSnapshot, ...]
    input: Json

    @field_validator("available")
    @classmethod
    def _not_empty(cls, value: tuple[WorkflowDefinitionSnapshot, ...]) -> tuple[WorkflowDefinitionSnapshot, ...]:
        if not value:
            raise ValueError("role.nothing_available: an orchestrate task needs at least one workflow")
        return value


class ExecuteStepTask(WireModel):
    """Run one step."""

    kind: Literal["execute_step"] = "execute_step"
    step: Step
    step_input: Json
    step_context: StepContext


class FixAttempt(WireModel):
    """A repair that did not help, and why."""

    source: str
    error: ErrorEnvelope


class FixStepTask(WireModel):
    """Repair a code step that failed; ``prior_attempts`` are the repairs before that the executor tells of."""

    kind: Literal["fix_step"] = "fix_step"
    step: Step
    step_input: Json
    original_attempt_error: ErrorEnvelope
    prior_fix_attempts: int = Field(ge=0)
    prior_attempts: Maybe[tuple[FixAttempt, ...]] = None


RoleTask = Annotated[PlanTask | OrchestrateTask | ExecuteStepTask | FixStepTask, Field(discriminator="kind")]


class PlanResult(WireModel):
    """A plan; untrusted, the host validates and compiles it (A-10)."""

    kind: Literal["plan"] = "plan"
    lwir: Json


class OrchestrateResult(WireModel):
    """What came of the orchestration."""

    kind: Literal["orchestrate"] = "orchestrate"
    output: Json


class ExecuteStepResult(WireModel):
    """A step's output and the artifacts it stored; the list is required and may be empty (A-11)."""

    kind: Literal["execute_step"] = "execute_step"
    output: Json
    artifact_refs: tuple[ArtifactRef, ...]


class FixStepResult(WireModel):
    """A repaired source. The host runs it, so output and attempts are claims that it replaces by what comes of that."""

    kind: Literal["fix_step"] = "fix_step"
    output: Json
    fixed_source: str
    attempts: int = Field(ge=1)


class DelegateToDefault(WireModel):
    """ "I was chosen, use the default" (K-27): the host runs the default role with the same context."""

    kind: Literal["delegate_to_default"] = "delegate_to_default"


RoleResult = Annotated[
    PlanResult | OrchestrateResult | ExecuteStepResult | FixStepResult | DelegateToDefault,
    Field(discriminator="kind"),
]


def parse_task(value: Any) -> RoleTask:
    """Parse the wire form of a task; raises pydantic's ``ValidationError`` naming the four kinds."""
    from .role_kinds import TASK

    task: RoleTask = TASK.validate_python(value)
    return task


def parse_result(value: Any) -> RoleResult:
    """Parse the wire form of a result; raises pydantic's ``ValidationError`` for anything else."""
    from .role_kinds import RESULT

    result: RoleResult = RESULT.validate_python(value)
    return result


def role_of(task: RoleTask) -> ExecutorRole:
    """The executor role a task runs under; a ``decision`` runs under ``worker.code-run`` (K-13).

    Raises:
        ValueError: For a ``parallel`` or ``wait`` step, which belongs to the runtime.
    """
    if isinstance(task, PlanTask):
        return "planner"
    if isinstance(task, OrchestrateTask):
        return "orchestrator"
    if isinstance(task, FixStepTask):
        return "fixer"
    workers: dict[str, ExecutorRole] = {
        "ai.generate": "worker.ai-generate",
        "code.run": "worker.code-run",
        "decision": "worker.code-run",
        "tool.call": "worker.tool-call",
    }
    if task.step.uses not in workers:
        raise ValueError(f"a {task.step.uses} step has no role: fan-out and waiting belong to the runtime")
    return workers[task.step.uses]


class Scope(WireModel):
    """Who a role call is (A-18)."""

    run_id: str
    log_dir: str
    role: ExecutorRole
    parent_run_id: str | None = None


class ToolOutcome(NamedTuple):
    """How a tool call asked for by the model ended; ``value`` is what the model is shown."""

    call_id: str
    ok: bool
    value: Any


class ModelHandle(Protocol):
    """The model of this role call, resolved; every call is recorded before and after."""

    @property
    def slot_id(self) -> str: ...

    @property
    def provider(self) -> str: ...

    @property
    def model_id(self) -> str: ...

    @property
    def capabilities(self) -> Sequence[str]: ...

    @property
    def context_tokens(self) -> int: ...

    @property
    def params(self) -> Mapping[str, Any]:
        """Sampling parameters the kernel decided for this attempt (temperature backoff included)."""

    def complete(
        self, chat: ChatInput, *, scope: str = "", on_chunk: Callable[[Chunk], None] | None = None
    ) -> OracleResponse:
        """Ask the model; a call already recorded answers at once.

        Args:
            chat: The question. Tools named in it must be tools of the context.
            scope: Tells apart calls that one role call makes in parallel.
            on_chunk: Told of provisional text.

        Raises:
            ProviderError: As the provider raised it.
            Suspend: A budget must be raised first.
            Diverged: The recorded call asked something else.
        """

    def elsewhere(
        self, answer: Callable[[ModelRequest, CallContext], OracleResponse], *, provider: str, model_id: str
    ) -> "ModelHandle":
        """A handle whose questions are answered by ``answer``, for a role that asks somewhere else than its model.

        Its calls are recorded, reserved, counted and found again as the model's own, under ``provider`` and
        ``model_id`` and without the model's parameters. ``answer`` is called once a question, as a provider's
        ``complete`` is, with the secrets taken out of what is asked; for a recorded call, and in a replay, it is not
        called. Usage that nobody reported is ``Usage.unknown()``.
        """


class BoundTool(Protocol):
    """One tool the role may call (A-23)."""

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> Mapping[str, Any]: ...

    def execute(self, args: Mapping[str, Any], *, scope: str = "") -> Any:
        """Call it from code (caller ``code``): through tier, approval and log, memoised.

        Raises:
            ToolError: The call failed or was denied.
            Suspend: A person must decide first.
        """


class Recorder(Protocol):
    """Optional convenience: what this role call has recorded so far, and notes (A-33)."""

    def prior_events(self) -> Sequence[Mapping[str, Any]]:
        """View A, {type, payload}, of this role call's events."""

    def note(self, text: str, **facts: Any) -> None:
        """Record ``role.note``; any other event is the host's to write (K-28)."""

    def remote(self, event: Mapping[str, Any]) -> None:
        """Record what somebody far away says that they did, {type, payload} as in view A: it becomes a ``role.note``
        flagged ``remote``, with the type as its text and the payload as its facts, and counts for nothing.

        Raises:
            VocabularyError: The type is none of :data:`REMOTE_EVENTS`, or the payload is no object or holds money.
        """


class RoleContext(Protocol):
    """Everything a role may touch. Building one without a durability sink fails (A-29)."""

    @property
    def scope(self) -> Scope: ...

    @property
    def model(self) -> ModelHandle: ...

    @property
    def system(self) -> str | None: ...

    @property
    def tools(self) -> Mapping[str, BoundTool]: ...

    @property
    def memory_mounts(self) -> Sequence[MemoryMount]: ...

    @property
    def scratch_mounts(self) -> Sequence[ScratchMount]: ...

    @property
    def skills(self) -> Sequence[SkillDescriptor]: ...

    @property
    def mounts(self) -> Sequence[HarnessRuntimeMount]: ...

    @property
    def bash_capabilities(self) -> WorkflowBashCapabilities | None: ...

    @property
    def durability(self) -> Recorder: ...

    @property
    def recorder(self) -> Recorder | None: ...

    @property
    def trace(self) -> Callable[[str, Mapping[str, Any]], object] | None:
        """A lossy sink for debugging, separate from the log; it may fail without consequence (A-30)."""

    @property
    def abort_signal(self) -> CancelToken: ...

    @property
    def ports(self) -> Ports: ...

    @property
    def response_schema(self) -> Mapping[str, Any] | None:
        """The schema the output must satisfy, narrowed for this visit."""

    @property
    def log_dir(self) -> Path: ...

    def call_tools(self, calls: Sequence[ToolCallRequest]) -> Sequence[ToolOutcome]:
        """Run the calls of one model turn (caller ``model``), concurrently where the host likes; results in the
        order of the calls. A call that is unknown, invalid, denied or failed has ``ok=False`` and a value that
        tells the model why.

        Raises:
            Suspend: At least one of them waits for a person; the others are finished and recorded.
        """


class RoleHarness(Protocol):
    """Any object with this one operation; no base class is needed (A-01)."""

    def run(self, task: RoleTask, ctx: RoleContext) -> RoleResult:
        """Run one task to its end. Called again from its start after a suspension or a crash: recorded calls answer
        at once, so everything it does must go through ``ctx`` and be the same for the same answers.

        Returns:
            The result of the task's own kind, or :class:`DelegateToDefault` (the default role may not).

        Raises:
            Anything: becomes ``harness.session.failed`` and ``role.failed``. ``Suspend`` must pass.
        """
