"""Kind ``executor``: a pure state machine that decides what a stage asks for next (contract.md)."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import Field

from .offer import ExecutorRole
from .value import Json, Value

if TYPE_CHECKING:  # with all models of a plan, which no other executor needs
    from .compiler import Compiler

__all__ = [
    "MAX_DELAY_MS",
    "MAX_EVENT_BYTES",
    "ChildSession",
    "Compile",
    "Compiles",
    "EnqueueTask",
    "Executor",
    "ExternalEvent",
    "Fail",
    "Finish",
    "Opens",
    "Outcome",
    "OwnStep",
    "Request",
    "RoleCall",
    "StageInput",
    "Timer",
]


class StageInput(Value):
    """What a stage attempt starts from; everything the executor may know.

    ``context`` is the assembled context as text; ``output_schema`` the (narrowed) schema of the artifact's body;
    ``feedback`` the reason of the failed attempt before this one, when the retry strategy injects it; ``plan`` the
    document that the stage names, for an executor that runs plans; ``definition`` the wire form of the
    ``WorkflowDefinitionSnapshot`` that a plan is to be written for where there is none, ``plan_form`` whether it is
    written out or as a sketch, ``prior`` the wire form of a ``Cycle`` for each attempt before this one, and ``goal``
    whether it is then run or its id is the output; ``workflows`` the wire forms of the definitions that an
    orchestration of the stage may use.
    """

    stage: str
    visit_index: int
    attempt: int
    persona: str
    system: str | None = None
    prompt: str
    context: str
    output_schema: Json = None
    tools: tuple[str, ...] = ()
    model: str
    max_turns: int
    params: Json = None
    feedback: str | None = None
    plan: Json = None
    definition: Json = None
    goal: Literal["run", "plan"] = "run"
    plan_form: Literal["plan", "sketch"] = "plan"
    prior: tuple[Json, ...] = ()
    workflows: tuple[Json, ...] = ()


class RoleCall(Value):
    """Ask a role harness to run a task; ``task`` is the wire form of a RoleTask.

    A call that takes longer than ``limit_ms`` is ended with the error ``step.timeout``; one that goes on when a timer
    of ``within``, named by its request id, is due, with ``limits.timeout``, whose ``details.timer`` is that id. A model
    call is refused with ``limits.max_tokens`` that would lead beyond ``max_tokens``, counted with all that the attempt
    has used since its plan was registered; what nobody reported counts with all that was reserved for it.
    """

    kind: Literal["role_call"] = "role_call"
    request_id: str
    role: ExecutorRole
    task: Json
    step_path: str | None = None
    visit_index: int = 0
    limit_ms: int | None = Field(default=None, ge=1)
    within: tuple[str, ...] = ()
    max_tokens: int | None = Field(default=None, ge=1)


class Compile(Value):
    """Ask for a plan to be compiled by the executor's own compiler (:class:`Compiles`), outside ``decide``.

    ``document`` is what a model wrote, ``form`` what it wrote: a plan or a sketch of one; ``definition`` the wire form
    of the ``WorkflowDefinitionSnapshot`` that it is written for. The outcome of a plan that is registered is ``ok``
    with ``{workflowVersionId, plan, lock, findings, maxStepExecutions?, ownSteps?, keepsLimits?}``: ``ownSteps`` says
    that steps of its own may be told of (:class:`OwnStep`), ``keepsLimits`` that calls are bounded. Of one that is not,
    the error's code is ``workflow.rejected``, and its ``details.findings`` are the compiler's.
    """

    kind: Literal["compile"] = "compile"
    request_id: str
    document: Json
    form: Literal["plan", "sketch"] = "plan"
    definition: Json = None


class ChildSession(Value):
    """Ask for a child session (orchestrate executor)."""

    kind: Literal["child_session"] = "child_session"
    request_id: str
    input: Json


MAX_DELAY_MS = 100 * 365 * 24 * 3_600_000
"""A century: longer is no time to wait for, and would lead out of the calendar."""


class Timer(Value):
    """Ask to be woken, ``delay_ms`` after the request is recorded; the outcome is ``ok`` with the value ``None``.

    Nothing is kept busy meanwhile: a session that waits for nothing else may be given back and gone on with later. An
    end (``Finish``, ``Fail``, an error) waits for no timer.
    """

    kind: Literal["timer"] = "timer"
    request_id: str
    delay_ms: int = Field(ge=0, le=MAX_DELAY_MS)


MAX_EVENT_BYTES = 262_144
"""As JSON a delivery brings at most so much, as the arguments of a tool."""


class ExternalEvent(Value):
    """Ask to be told when something happens outside, by the name that a plan gives it; what it brings is the value.

    What was delivered under the name before is taken at once. Each delivery is given once: to the request that was open
    first. Without a limit it is waited for as long as it takes; when the limit passes, the outcome is an error with the
    code ``wait.timed_out``. As with a timer nothing is kept busy meanwhile, and no end waits for it.
    """

    kind: Literal["external_event"] = "external_event"
    request_id: str
    name: str = Field(min_length=1)
    limit_ms: int | None = Field(default=None, ge=1, le=MAX_DELAY_MS)


class OwnStep(Value):
    """Tell of a step that is the executor's own (``parallel``): no role runs it, and what is told is recorded at once.

    The outcome is ``ok`` with the value ``None``. ``output`` is what a step gives that has succeeded, and ``branches``
    how its branches ended: ``{failureMode, completed, failed}``. Of one that failed nothing more is told (A-77).
    """

    kind: Literal["own_step"] = "own_step"
    request_id: str
    event: Literal["started", "succeeded"]
    step_id: str
    uses: Literal["parallel"] = "parallel"
    step_path: str
    visit_index: int = 0
    attempt: int = 1
    output: Json = None
    branches: Json = None


class EnqueueTask(Value):
    """Ask for a coding task on the runner plane."""

    kind: Literal["enqueue_task"] = "enqueue_task"
    request_id: str
    task: Json


class Finish(Value):
    """The stage attempt has an output."""

    kind: Literal["finish"] = "finish"
    output: Json


class Fail(Value):
    """The stage attempt has failed; ``code`` and ``message`` go into the retry decision."""

    kind: Literal["fail"] = "fail"
    code: str
    message: str


Request = Annotated[
    RoleCall | Compile | ChildSession | Timer | ExternalEvent | OwnStep | EnqueueTask | Finish | Fail,
    Field(discriminator="kind"),
]


class Outcome(Value):
    """How a request ended: never an envelope, a time or an id beside the request's own."""

    request_id: str
    ok: bool
    value: Json = None
    error: Json = None


class Executor(Protocol):
    """What an offer of kind ``executor`` builds. Three pure functions over a plain JSON state ``S``.

    They are called inside ``decide``; what they raise is a failed decision, never a dead loop. Request ids derive
    from ``S`` alone, so asking twice names the same request.
    """

    def start(self, stage_input: StageInput) -> Any:
        """The state before anything was asked."""

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """The state after one outcome; a new value, the old one is not touched.

        Outcomes come as they are recorded, in any order of the branches: whoever joins them orders them itself.
        """

    def next(self, state: Any) -> tuple[Request, ...]:
        """Every request that is open in this state, ``Finish`` or ``Fail`` at its end.

        Asked again after each outcome, while other requests are still under way: what is new is begun at once, so that
        a fast branch never waits for a slow one. An end, an error and what would be too many calls are met when nothing
        is under way any more; timers that are open then, and waits for what comes from outside, are cancelled.
        """


@runtime_checkable
class Compiles(Protocol):
    """An executor that may ask for ``Compile``."""

    def compiler(self) -> "Compiler":
        """Who checks its plans; it keeps nothing, may take its time, and is called in a thread of its own."""


@runtime_checkable
class Opens(Protocol):
    """An executor that says what each outcome opens: with thousands of branches open, ``next`` names them all again."""

    def opened(self, state: Any) -> tuple[Request, ...]:
        """Of ``next(state)`` what the outcome that was applied last has opened, ``Finish`` or ``Fail`` at its end.

        Asked once after each ``apply`` in place of ``next``, while other requests are under way. ``next`` is asked when
        there are none, first of all in each process, and before something is handed over that came from outside.
        """
