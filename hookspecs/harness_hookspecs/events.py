"""The closed vocabulary: every event type, its category, its version and the model of its payload.

Stores, loop and observers handle :class:`~harness_hookspecs.store.StoredEvent`; the models here check a payload on
append and decode it on demand. Kernel events are snake_case, seed A's are camelCase (domain.md, naming rule). Large
things stand in the blob store: a field that ends in ``_ref``, ``manifestHash`` and each entry of
``request.messages`` is the lower-case SHA-256 of the content there.
"""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from .errors import VocabularyError
from .messages import ArtifactRef, ErrorEnvelope, FinishReason, ToolCallRequest, ToolReference, Usage
from .offer import ExecutorRole
from .tool import EffectClass, Tier
from .validator import Finding, Level
from .value import Digest, Json, Value, WireModel

__all__ = ["ACTORS", "CATEGORIES", "EVENTS", "Category", "EventType", "category_of", "check_payload"]

Category = Literal["domain", "system", "inference", "tool", "approval", "compression", "lifecycle"]
CATEGORIES: tuple[Category, ...] = (
    "domain", "system", "inference", "tool", "approval", "compression", "lifecycle",
)  # fmt: skip
ACTORS = ("operator", "runner", "agent", "model", "system")

Attempt = Annotated[int, Field(ge=1)]


class _Requested(Value):
    """The intent of a kernel effect."""

    effect_id: str
    effect_class: EffectClass = "keyed"
    digest: Digest | None = None


class SessionCreated(Value):
    title: str
    text_ref: Digest
    project: str
    config_digest: Digest
    config_ref: Digest
    parent_id: str | None = None
    depth: int = Field(default=0, ge=0)  # how many parents there are above it
    workflow_ref: Digest | None = None  # what a child session plans or runs
    by: str | None = None
    plugins: tuple[Json, ...] = ()
    on_ask: Literal["auto", "ask", "suspend", "deny"]  # auto: begun without a terminal, and nobody said deny
    yolo: Literal["off", "on", "destructive"] = "off"
    budget: Json = None
    seed: int
    schema_version: int = 1


class SessionForked(Value):
    parent_id: str
    seq: Attempt  # of the parent's event that the fork goes on from
    asked_seq: Attempt  # of the event that was named; the one above is the last border at or before it
    hash: Digest  # of that event, and so of all before it
    target: str | None = None  # the stage that comes next; absent: the first one
    visits: Json  # stage -> how often the parent had entered it
    artifacts: tuple[Json, ...] = ()  # items of harness.artifacts/1, with the parent's seqs
    steering: tuple[str, ...] = ()  # instructions that no context held yet
    changes: tuple[Json, ...] = ()  # of the configuration, as in config.migrated


class SessionStarted(Value):
    pass


class SessionReason(Value):
    reason: str
    by: str | None = None


class SessionAwaiting(Value):
    approval_ids: tuple[str, ...]
    flaws: tuple[str, ...] = ()  # of approvers whose answer was none


class SessionFailed(Value):
    code: str
    message: str
    stage: str | None = None
    findings: tuple[Finding, ...] = ()
    hint: str | None = None


class SessionCompleted(Value):
    artifact_refs: tuple[str, ...] = ()


class CommandReceived(Value):
    command_id: str
    kind: str
    body: Json = None


class ConfigLoaded(Value):
    digest: Digest
    content_ref: Digest


class ConfigMigrated(Value):
    old_digest: Digest
    new_digest: Digest
    content_ref: Digest
    changes: tuple[Json, ...]


class PluginFailed(Value):
    plugin: str
    offer: str | None = None
    error: ErrorEnvelope


class StageEntered(Value):
    stage: str
    visit_id: str
    visit_index: int
    persona: str
    executor: str
    model: str
    max_attempts: Attempt


class StageLeft(Value):
    stage: str
    visit_id: str
    status: str
    attempts: int


class StageSkipped(Value):
    stage: str
    visit_id: str
    reason: str


class TransitionTaken(Value):
    visit_id: str
    source: str
    target: str
    rule: str
    rule_index: int
    values: Json


class ContextRequested(_Requested):
    visit_id: str
    attempt: Attempt


class ContextAssembled(Value):
    effect_id: str
    visit_id: str
    attempt: Attempt
    facts_ref: Digest
    pack_ref: Digest
    tokens: int
    budget_tokens: int
    counted_by: str
    items: int
    left_out: int


class Failed(Value):
    effect_id: str
    error: ErrorEnvelope


class RoleRequested(_Requested):
    role_call_id: str
    request_id: str
    role: ExecutorRole
    persona: str
    visit_id: str
    attempt: Attempt
    task_ref: Digest
    params: Json = None
    limit_ms: int | None = Field(default=None, ge=1)
    within: tuple[str, ...] = ()  # request ids of timers that end it
    max_tokens: int | None = Field(default=None, ge=1)  # of the attempt, since its plan was registered


class RoleResolved(Value):
    role_call_id: str
    plugin: str
    plugin_version: str
    offer: str
    default: bool


class RoleDelegated(Value):
    role_call_id: str
    source: str
    target: str


class RoleSuspended(Value):
    role_call_id: str
    kind: str
    wait_id: str


class RoleReturned(Value):
    role_call_id: str
    effect_id: str
    output_ref: Digest
    artifact_refs: tuple[ArtifactRef, ...] = ()


class RoleFailed(Value):
    role_call_id: str
    effect_id: str
    error: ErrorEnvelope


class RoleNote(Value):
    role_call_id: str
    text: str
    facts: Json = None
    remote: bool = False


class TimerRequested(_Requested):
    request_id: str
    visit_id: str
    attempt: Attempt
    delay_ms: int = Field(ge=0)


class TimerElapsed(Value):
    effect_id: str


class TimerCancelled(Value):
    effect_id: str
    reason: str


class ExternalRequested(_Requested):
    request_id: str
    visit_id: str
    attempt: Attempt
    name: str
    limit_ms: int | None = Field(default=None, ge=1)


class ExternalDelivered(Value):
    effect_id: str
    name: str
    delivery_id: str  # the command that brought it
    value_ref: Digest


class ExternalTimedOut(Value):
    effect_id: str


class ExternalCancelled(Value):
    effect_id: str
    reason: str


class CompileRequested(_Requested):
    request_id: str
    visit_id: str
    attempt: Attempt
    document_ref: Digest
    form: Literal["plan", "sketch"] = "plan"
    definition_ref: Digest | None = None


class VersionRegistered(Value):
    effect_id: str
    workflow_version_id: str
    plan_ref: Digest
    lock_ref: Digest  # what the plan was checked against
    findings: tuple[Json, ...] = ()  # warnings
    max_step_executions: int | None = None
    own_steps: bool = False  # whether the executor tells of the steps that it runs itself
    keeps_limits: bool = False  # whether it bounds the time and the tokens of its calls


class CompileFailed(Value):
    effect_id: str
    findings: tuple[Json, ...]


class TaskKind(WireModel):
    kind: Literal["plan", "orchestrate", "execute_step", "fix_step"]


class RoleSessionStarted(WireModel):
    run_id: str
    role: ExecutorRole
    task: TaskKind
    manifest_hash: Digest
    parent_run_id: str | None = None


class RoleSessionCompleted(WireModel):
    run_id: str
    output_ref: Digest | None = None
    usage: Usage


class RoleSessionFailed(WireModel):
    run_id: str
    error: ErrorEnvelope


class ModelIdentity(WireModel):
    provider: str
    model_id: str


class ModelRequestRecord(WireModel):
    model: ModelIdentity
    messages: tuple[Digest, ...]
    tools: tuple[ToolReference, ...] = ()
    params: Json = None


class ModelCalled(WireModel):
    turn: Attempt
    call_id: str
    scope: str = ""
    prompt_hash: Digest
    request: ModelRequestRecord
    reserved_tokens: int = 0


class ModelResponse(WireModel):
    text: str | None = None
    tool_calls: tuple[ToolCallRequest, ...] = ()
    finish_reason: FinishReason
    message_ref: Digest
    usage: Usage


class ModelResponded(WireModel):
    turn: Attempt
    call_id: str
    step_path: str | None = None
    model: ModelIdentity
    response: ModelResponse
    timing: Json = None


class ModelFailed(WireModel):
    turn: Attempt
    call_id: str
    error: ErrorEnvelope


class ToolCallBase(WireModel):
    call_id: str
    caller: Literal["model", "code"]
    tool_name: str
    args: Json
    turn: Attempt | None = None
    call_index: int | None = None
    scope: Json = None


class ToolCallStarted(ToolCallBase):
    effect_class: EffectClass
    args_digest: Digest
    tier: Tier


class ToolCallSucceeded(ToolCallBase):
    result: Json
    result_ref: Digest | None = None
    truncated: bool = False
    duration_ms: int | None = None


class ToolCallFailed(ToolCallBase):
    error: ErrorEnvelope
    duration_ms: int | None = None


class ExecuteStepStarted(WireModel):
    run_id: str
    step_id: str
    uses: Literal["ai.generate", "code.run", "tool.call", "decision", "parallel"]
    step_path: str
    visit_index: int
    # of a step that the runtime runs itself, without a role:
    attempt: Attempt | None = None
    request_id: str | None = None


class BranchesEnded(WireModel):
    failure_mode: Literal["fail_fast", "all_settled"]
    completed: int = Field(ge=0)
    failed: int = Field(ge=0)


class ExecuteStepSucceeded(ExecuteStepStarted):
    output_ref: Digest
    branches: BranchesEnded | None = None


class ValidationRequested(_Requested):
    visit_id: str
    attempt: Attempt
    level: Level
    validators: tuple[str, ...]


class ValidationEnded(Value):
    effect_id: str
    level: Level
    findings: tuple[Finding, ...] = ()
    body_ref: Digest | None = None
    body: Json = None  # where it is small; rules read it as artifact.body
    status: str | None = None


class ValidationErrored(Value):
    effect_id: str
    level: Level
    errors: tuple[Json, ...]


class ArtifactProposed(Value):
    artifact_id: str
    type: str
    visit_id: str
    attempt: Attempt
    output_ref: Digest


class ArtifactAccepted(Value):
    artifact_id: str
    type: str
    status: str
    body_ref: Digest
    warnings: tuple[Finding, ...] = ()


class ArtifactRejected(Value):
    artifact_id: str
    level: Level
    findings: tuple[Finding, ...] = ()


class ApprovalRequested(Value):
    approval_id: str
    subject: Literal["tool", "artifact", "inference"]
    name: str
    tier: Tier
    args: Json
    digest: Digest
    rule: str
    visit_id: str
    persona: str
    role_call_id: str | None = None
    call_id: str | None = None
    preview_ref: Digest | None = None


class ApprovalEnded(Value):
    approval_id: str
    digest: Digest
    by: str
    kind: Literal["person", "policy", "grant", "yolo", "on_ask", "system"]
    scope: Literal["once", "session"] = "once"
    say: str | None = None
    reason: str | None = None


class SteeringReceived(Value):
    text: str
    source: str
    approval_id: str | None = None


class EffectInDoubt(Value):
    effect_id: str
    role_call_id: str
    call_id: str
    tool_name: str
    args_digest: Digest


class EffectSettled(Value):
    effect_id: str
    outcome: Literal["happened", "never_happened"]
    by: str
    kind: Literal["probe", "policy", "person"]
    value: Json = None


class EffectIgnored(Value):
    effect_id: str
    reason: str


class BudgetEvent(Value):
    call_id: str
    tokens: int
    known: bool = True
    elapsed_ms: int = Field(default=0, ge=0)


class BudgetExhaustedEvent(Value):
    dimension: Literal["tokens", "calls", "seconds"]
    limit: float
    used: float
    wanted: float


class BudgetRaised(Value):
    limits: Json


class ChildSpent(Value):
    tokens: int = Field(ge=0)
    calls: int = Field(ge=0)


class ChildVersion(Value):
    workflow_version_id: str
    plan_ref: Digest
    definition_ref: Digest  # of the definition that it was planned for


class ChildRequested(_Requested):
    child_id: str  # of the session, reserved
    visit_id: str
    attempt: Attempt
    role_call_id: str
    call_id: str
    goal: Literal["plan", "run", "start"]
    workflow_id: str
    workflow_version_id: str | None = None
    depth: Attempt
    spec_ref: Digest  # what the child is begun with
    elapsed_ms: int = Field(default=0, ge=0)


class ChildGranted(Value):
    effect_id: str
    child_id: str
    tokens: int = Field(ge=1)
    calls: int = Field(ge=1)
    seconds: float = Field(gt=0)


class ChildExhausted(BudgetExhaustedEvent):
    effect_id: str
    child_id: str
    elapsed_ms: int = Field(default=0, ge=0)


class ChildCompleted(Value):
    effect_id: str
    child_id: str
    output_ref: Digest
    summary: str
    version: ChildVersion | None = None  # that it registered
    usage: Usage  # its own; never part of the parent's
    spent: ChildSpent  # of what it was granted, with what its own children spent
    elapsed_ms: int = Field(default=0, ge=0)  # that the parent has been run since it last told


class ChildFailed(Value):
    effect_id: str
    child_id: str
    status: Literal["failed", "cancelled"]
    error: ErrorEnvelope
    version: ChildVersion | None = None  # that it registered before it failed
    usage: Usage | None = None  # nobody knows where it was abandoned
    spent: ChildSpent
    elapsed_ms: int = Field(default=0, ge=0)


class RetryScheduled(Value):
    visit_id: str
    attempt: Attempt
    strategy: Literal["retry", "fail_safe", "fail_fast", "corrective"]
    code: str
    reason: str
    inject: bool
    temperature: float | None = None


class StorePruned(Value):
    stream: str
    last_seq: int
    last_hash: str


class EventType(NamedTuple):
    """One entry of the vocabulary.

    ``version`` is that of the payload's form: it is raised when the form changes, and an upcaster reads the old one.
    """

    category: Category
    version: int
    payload: type[Value]


_PREFIXES: tuple[tuple[str, Category], ...] = (
    ("harness.session.", "lifecycle"),
    ("harness.execute_step.", "lifecycle"),
    ("harness.model.", "inference"),
    ("harness.tool_call.", "tool"),
    ("inference.", "inference"),
    ("provider.", "inference"),
    ("tool.", "tool"),
    ("bash.", "tool"),
    ("network.", "tool"),
    ("sandbox.", "tool"),
    ("effect.", "tool"),
    ("approval.", "approval"),
    ("context.", "compression"),
    ("compression.", "compression"),
    ("session.", "lifecycle"),
    ("child.", "lifecycle"),
    ("command.", "lifecycle"),
    ("run.", "lifecycle"),
    ("task.", "lifecycle"),
    ("attempt.", "lifecycle"),
    ("lease.", "lifecycle"),
    ("runner.", "lifecycle"),
    ("config.", "system"),
    ("plugin.", "system"),
    ("store.", "system"),
    ("budget.", "system"),
    ("secret.", "system"),
    ("replay.", "system"),
)


def category_of(event_type: str) -> Category:
    """The one category of a type; a type nobody knows is ``domain`` unless its prefix says otherwise."""
    return next((category for prefix, category in _PREFIXES if event_type.startswith(prefix)), "domain")


_PAYLOADS: dict[str, type[Value]] = {
    "session.created": SessionCreated,
    "session.forked": SessionForked,
    "session.started": SessionStarted,
    "session.paused": SessionReason,
    "session.resumed": SessionReason,
    "session.awaiting": SessionAwaiting,
    "session.cancelled": SessionReason,
    "session.failed": SessionFailed,
    "session.completed": SessionCompleted,
    "command.received": CommandReceived,
    "config.loaded": ConfigLoaded,
    "config.migrated": ConfigMigrated,
    "plugin.failed": PluginFailed,
    "stage.entered": StageEntered,
    "stage.left": StageLeft,
    "stage.skipped": StageSkipped,
    "transition.taken": TransitionTaken,
    "context.requested": ContextRequested,
    "context.assembled": ContextAssembled,
    "context.failed": Failed,
    "role.requested": RoleRequested,
    "role.resolved": RoleResolved,
    "role.delegated": RoleDelegated,
    "role.suspended": RoleSuspended,
    "role.returned": RoleReturned,
    "role.failed": RoleFailed,
    "role.note": RoleNote,
    "compile.requested": CompileRequested,
    "compile.failed": CompileFailed,
    "workflow.version_registered": VersionRegistered,
    "timer.requested": TimerRequested,
    "timer.elapsed": TimerElapsed,
    "timer.cancelled": TimerCancelled,
    "external.requested": ExternalRequested,
    "external.delivered": ExternalDelivered,
    "external.timed_out": ExternalTimedOut,
    "external.cancelled": ExternalCancelled,
    "child.requested": ChildRequested,
    "child.granted": ChildGranted,
    "child.exhausted": ChildExhausted,
    "child.completed": ChildCompleted,
    "child.failed": ChildFailed,
    "harness.session.started": RoleSessionStarted,
    "harness.session.completed": RoleSessionCompleted,
    "harness.session.failed": RoleSessionFailed,
    "harness.model.called": ModelCalled,
    "harness.model.responded": ModelResponded,
    "harness.model.failed": ModelFailed,
    "harness.tool_call.started": ToolCallStarted,
    "harness.tool_call.succeeded": ToolCallSucceeded,
    "harness.tool_call.failed": ToolCallFailed,
    "harness.execute_step.started": ExecuteStepStarted,
    "harness.execute_step.succeeded": ExecuteStepSucceeded,
    "validation.requested": ValidationRequested,
    "validation.passed": ValidationEnded,
    "validation.failed": ValidationEnded,
    "validation.errored": ValidationErrored,
    "artifact.proposed": ArtifactProposed,
    "artifact.accepted": ArtifactAccepted,
    "artifact.rejected": ArtifactRejected,
    "approval.requested": ApprovalRequested,
    "approval.granted": ApprovalEnded,
    "approval.denied": ApprovalEnded,
    "approval.expired": ApprovalEnded,
    "approval.bypassed": ApprovalEnded,
    "approval.superseded": ApprovalEnded,
    "steering.received": SteeringReceived,
    "effect.in_doubt": EffectInDoubt,
    "effect.settled": EffectSettled,
    "effect.ignored": EffectIgnored,
    "budget.reserved": BudgetEvent,
    "budget.settled": BudgetEvent,
    "budget.exhausted": BudgetExhaustedEvent,
    "budget.raised": BudgetRaised,
    "retry.scheduled": RetryScheduled,
    "store.pruned": StorePruned,
}

EVENTS: dict[str, EventType] = {name: EventType(category_of(name), 1, payload) for name, payload in _PAYLOADS.items()}


def check_payload(event_type: str, payload: dict[str, Any]) -> None:
    """Check a payload before its append.

    Args:
        event_type: A type of the vocabulary.
        payload: Plain JSON in wire spelling, optional fields absent rather than null.

    Raises:
        VocabularyError: ``vocabulary.unknown`` for a type nobody declared, ``vocabulary.payload`` for a payload that
            does not fit, naming every field that is wrong (a cost among a usage's fields is one).
    """
    known = EVENTS.get(event_type)
    if known is None:
        raise VocabularyError(f"{event_type} is not an event type", code="vocabulary.unknown", type=event_type)
    try:
        known.payload.__pydantic_validator__.validate_python(payload)  # model_validate without its own checks
    except ValueError as error:  # pydantic's ValidationError is one; importing it here costs as much as some checks
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())  # type: ignore[attr-defined]
        raise VocabularyError(f"{event_type}: {problems}", code="vocabulary.payload", type=event_type) from error
