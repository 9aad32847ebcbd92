"""LWIR, the workflow a model may write, and the definition it is written for, as camelCase wire values.

The models accept what ``urn:harness:lwir:v1`` accepts; what a schema cannot say (graph, references, bounds) is the
compiler's. A whole number written as 3.0 is read as 3, which is the same canonical document.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from .messages import ToolReference
from .mount import MemoryMount
from .tool import Tier
from .value import Count, Digest, Flag, Json, JsonObject, Maybe, Name, PositiveCount, Table, Text, WireModel

__all__ = [
    "AiGenerateStep",
    "AiGenerateWith",
    "BashNetwork",
    "Case",
    "CodeRunStep",
    "CodeRunWith",
    "Cycle",
    "DecisionStep",
    "DecisionWith",
    "FanIn",
    "Fixer",
    "InputContract",
    "Limits",
    "Metadata",
    "ModelSlot",
    "OnFailure",
    "OuterLoopContext",
    "OutputContract",
    "ParallelStep",
    "ParallelWith",
    "Permissions",
    "PlanFinding",
    "PlannerSettings",
    "Retry",
    "Step",
    "StepOutput",
    "ToolCallStep",
    "ToolCallWith",
    "WaitStep",
    "WaitWith",
    "WorkerSettings",
    "Workflow",
    "WorkflowBashCapabilities",
    "WorkflowDefinitionSnapshot",
]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("list.unique", "The entries should be different from each other")
    return values


def _not_reserved(value: str) -> str:
    if value in ("end", "fail"):
        raise PydanticCustomError("step.reserved_id", "The ids end and fail are reserved")
    return value


NonEmpty = Annotated[str, StringConstraints(strict=True, min_length=1)]
Whole = Annotated[PositiveCount, BeforeValidator(_whole)]
Attempts = Annotated[int, Field(strict=True, ge=1, le=10), BeforeValidator(_whole)]
UpToHundred = Annotated[int, Field(strict=True, ge=1, le=100), BeforeValidator(_whole)]
Branches = Annotated[int, Field(strict=True, ge=1, le=10_000), BeforeValidator(_whole)]
Executions = Annotated[int, Field(strict=True, ge=1, le=1_000_000), BeforeValidator(_whole)]
UpToDayMs = Annotated[int, Field(strict=True, ge=1, le=86_400_000), BeforeValidator(_whole)]
UpToYearMs = Annotated[int, Field(strict=True, ge=1, le=31_536_000_000), BeforeValidator(_whole)]
Share = Annotated[int, Field(strict=True, ge=0, le=1)] | Annotated[float, Field(strict=True, ge=0, le=1)]
Names = Annotated[tuple[NonEmpty, ...], AfterValidator(_unique)]
Target = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_]{0,63}$")]
StepId = Annotated[Target, AfterValidator(_not_reserved)]
DottedName = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9._-]{0,99}$")]
DataSchema = Flag | JsonObject
"""A JSON Schema of the small subset that plans may use; true allows anything."""


class Metadata(WireModel):
    """The workflow's name."""

    name: DottedName
    description: Maybe[Annotated[str, StringConstraints(strict=True, max_length=2000)]] = None


class InputContract(WireModel):
    """What the run is given."""

    schema_: DataSchema


class OutputContract(WireModel):
    """What the run gives back; ``value`` is a template."""

    schema_: DataSchema
    value: Json


class Permissions(WireModel):
    """The plan's own ceiling."""

    models: Names
    tools: Names
    secrets: Maybe[Names] = None
    network: Maybe[Names] = None
    max_tier: Maybe[Tier] = None


class Limits(WireModel):
    """The plan's own bounds per run."""

    max_step_executions: Maybe[Executions] = None
    max_tokens: Maybe[Whole] = None
    timeout_ms: Maybe[Whole] = None


class StepOutput(WireModel):
    """A step's output contract: ``object`` and ``array`` need a schema, ``choice`` needs values."""

    mode: Literal["text", "object", "array", "choice", "json"]
    schema_: Maybe[DataSchema] = None
    values: Maybe[Annotated[tuple[Text, ...], Field(min_length=2), AfterValidator(_unique)]] = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.mode in ("object", "array") and self.schema_ is None:
            raise PydanticCustomError("output.schema", "Output of mode {mode} needs a schema", {"mode": self.mode})
        if self.mode == "choice" and self.values is None:
            raise PydanticCustomError("output.values", "Output of mode choice needs values")
        return self


class Retry(WireModel):
    """How often a failed step is tried, first attempt included, and how long before each further attempt.

    The delay before attempt n is ``delayMs``, times n - 1 under ``linear``, doubled each time under ``exponential``;
    ``jitter`` is the share of it, 0 to 1, that may be taken off at random.
    """

    max_attempts: Attempts
    strategy: Maybe[Literal["retry", "corrective"]] = None
    delay_ms: Maybe[UpToDayMs] = None
    backoff: Maybe[Literal["constant", "linear", "exponential"]] = None
    jitter: Maybe[Share] = None

    @model_validator(mode="after")
    def _delayed(self) -> Self:
        if self.delay_ms is None and (self.backoff is not None or self.jitter is not None):
            raise PydanticCustomError("retry.no_delay", "backoff and jitter need delayMs")
        return self


class Fixer(WireModel):
    """A model that may repair the step's source, this execution only."""

    model: Text
    max_attempts: Attempts
    system: Maybe[NonEmpty] = None


class OnFailure(WireModel):
    """What follows a failure: a fixer, a target, or first one and then the other."""

    fixer: Maybe[Fixer] = None
    to: Maybe[Target] = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.fixer is None and self.to is None:
            raise PydanticCustomError("on_failure.empty", "onFailure needs a fixer or a target")
        return self


class _StepBase(WireModel):
    id: StepId
    needs: Maybe[Annotated[tuple[StepId, ...], AfterValidator(_unique)]] = None
    input: Maybe[JsonObject] = None
    max_visits: Maybe[UpToHundred] = None
    sensitive: Maybe[Flag] = None


class _Timed(_StepBase):
    timeout_ms: Maybe[Whole] = None


class _Executable(_Timed):
    retry: Maybe[Retry] = None
    on_failure: Maybe[OnFailure] = None


class AiGenerateWith(WireModel):
    """A model slot, a prompt, and the tools the model may call."""

    model: Text
    prompt: NonEmpty
    system: Maybe[Text] = None
    tools: Maybe[Names] = None
    max_turns: Maybe[UpToHundred] = None


class AiGenerateStep(_Executable):
    """An agent loop until the output contract is met."""

    uses: Literal["ai.generate"] = "ai.generate"
    with_: AiGenerateWith
    output: StepOutput


class CodeRunWith(WireModel):
    """Source with an entry ``async def main(input, tools)``."""

    language: Literal["python"]
    source: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=65_536)]
    tools: Maybe[Names] = None
    engine: Maybe[Text] = None


class CodeRunStep(_Executable):
    """Code run by an engine, without a model."""

    uses: Literal["code.run"] = "code.run"
    with_: CodeRunWith
    output: StepOutput


class ToolCallWith(WireModel):
    """A tool and its arguments, which may hold templates."""

    tool: Text
    args: Maybe[JsonObject] = None


class ToolCallStep(_Executable):
    """One tool call, without a model."""

    uses: Literal["tool.call"] = "tool.call"
    with_: ToolCallWith
    output: StepOutput


class Case(WireModel):
    """A bare boolean expression and the step it leads to."""

    when: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1024)]
    to: Target


class DecisionWith(WireModel):
    """Cases in order; the first that holds is taken."""

    cases: Annotated[tuple[Case, ...], Field(min_length=1, max_length=20)]
    default: Target


class DecisionStep(_Timed):
    """A choice of the next step; it has no output, no retry and no failure route."""

    uses: Literal["decision"] = "decision"
    with_: DecisionWith


class FanIn(WireModel):
    """How the branches' outputs are put together."""

    order: Maybe[Literal["input", "itemKey"]] = None
    output_step: Maybe[Text] = None


class ParallelWith(WireModel):
    """A known array, one branch an item."""

    items: Text
    item_key: Text
    max_branches: Branches
    max_concurrency: UpToHundred
    failure_mode: Literal["fail_fast", "all_settled"]
    fan_in: Maybe[FanIn] = None


class ParallelStep(_Executable):
    """The same steps for every item; run by the runtime, never by a role."""

    uses: Literal["parallel"] = "parallel"
    with_: ParallelWith
    output: Maybe[StepOutput] = None
    steps: Annotated[tuple["Step", ...], Field(min_length=1, max_length=50)]


class WaitWith(WireModel):
    """What is waited for: a time, or an event from outside by its name."""

    duration_ms: Maybe[UpToYearMs] = None
    event: Maybe[DottedName] = None
    limit_ms: Maybe[UpToYearMs] = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.duration_ms is None) == (self.event is None):
            raise PydanticCustomError("wait.one_of_two", "A wait needs either durationMs or event")
        if self.limit_ms is not None and self.event is None:
            raise PydanticCustomError("wait.limit", "limitMs is how long an event is waited for; this wait has none")
        return self


class WaitStep(_StepBase):
    """A pause, run by the runtime, never by a role; its output is what the event brought, null after a duration."""

    uses: Literal["wait"] = "wait"
    with_: WaitWith
    output: Maybe[StepOutput] = None
    on_failure: Maybe[OnFailure] = None


Step = Annotated[
    AiGenerateStep | CodeRunStep | ToolCallStep | DecisionStep | ParallelStep | WaitStep, Field(discriminator="uses")
]
"""One step of a plan."""


class Workflow(WireModel):
    """A plan: immutable once registered, its id a hash of every byte of its canonical form.

    ``finally`` names the step that runs once at the end, however the run ended; nothing else leads to it.
    """

    api_version: Literal["harness.lwir/v1"]
    kind: Literal["Workflow"]
    metadata: Metadata
    input: InputContract
    output: OutputContract
    permissions: Permissions
    limits: Maybe[Limits] = None
    steps: Annotated[tuple["Step", ...], Field(min_length=1, max_length=200)]
    finally_: Maybe[StepId] = None


class PlanFinding(WireModel):
    """One thing wrong with a plan, by JSON pointer and step."""

    severity: Literal["error", "warning"]
    code: Name
    path: Text
    step: Maybe[Text] = None
    message: Text
    hint: Maybe[Text] = None


class BashNetwork(WireModel):
    """What bash may reach: URL prefixes and methods; private address ranges stay closed unless said otherwise."""

    allow: tuple[NonEmpty, ...]
    methods: tuple[NonEmpty, ...]
    deny_private_ranges: Flag = True


class WorkflowBashCapabilities(WireModel):
    """What bash may do; without ``network`` it reaches nothing."""

    network: Maybe[BashNetwork] = None
    languages: Maybe[tuple[NonEmpty, ...]] = None
    timeout_ms: Maybe[PositiveCount] = None


class ModelSlot(WireModel):
    """A named place for a model, and what the model must be able to do."""

    capabilities: tuple[NonEmpty, ...]
    description: Maybe[Text] = None


class PlannerSettings(WireModel):
    """The planner's developer text, and how often it may repair a plan."""

    system: Maybe[Text] = None
    max_repairs: Count


class WorkerSettings(WireModel):
    """The workers' developer text."""

    system: Maybe[Text] = None


class WorkflowDefinitionSnapshot(WireModel):
    """What a planner is given: the contract a plan must keep, frozen at the start of the run."""

    workflow_id: Name
    name: Name
    description: Maybe[Text] = None
    definition_hash: Digest
    input_schema: DataSchema
    output_schema: DataSchema
    model_slots: Table[ModelSlot]
    tools: tuple[ToolReference, ...]
    permissions: Permissions
    planner: PlannerSettings
    workers: WorkerSettings
    bash: Maybe[WorkflowBashCapabilities] = None
    memory: tuple[MemoryMount, ...]
    limits: Limits


class Cycle(WireModel):
    """One finished round of the outer loop."""

    cycle_number: Count
    status: Name
    output: Json
    summary: Maybe[Text] = None


class OuterLoopContext(WireModel):
    """What a planner is told when it plans again: the rounds so far, the findings, the plan they are about."""

    cycle_number: Count
    max_cycles: PositiveCount
    is_final_cycle: Flag
    prior_cycles: tuple[Cycle, ...]
    findings: Maybe[tuple[PlanFinding, ...]] = None
    prior_lwir: Maybe[JsonObject] = None
