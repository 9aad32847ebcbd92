"""Kind ``executor``: a pure state machine that decides what a stage asks for next (contract.md)."""

from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from .offer import ExecutorRole
from .value import Json, Value

__all__ = [
    "ChildSession",
    "Compile",
    "EnqueueTask",
    "Executor",
    "ExternalEvent",
    "Fail",
    "Finish",
    "Outcome",
    "Request",
    "RoleCall",
    "StageInput",
    "Timer",
]


class StageInput(Value):
    """What a stage attempt starts from; everything the executor may know.

    ``context`` is the assembled context as text; ``output_schema`` the (narrowed) schema of the artifact's body;
    ``feedback`` the reason of the failed attempt before this one, when the retry strategy injects it; ``plan`` the
    document that the stage names, for an executor that runs plans.
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


class RoleCall(Value):
    """Ask a role harness to run a task; ``task`` is the wire form of a RoleTask."""

    kind: Literal["role_call"] = "role_call"
    request_id: str
    role: ExecutorRole
    task: Json
    step_path: str | None = None
    visit_index: int = 0


class Compile(Value):
    """Ask for a plan to be compiled (workflow executor)."""

    kind: Literal["compile"] = "compile"
    request_id: str
    document: Json


class ChildSession(Value):
    """Ask for a child session (orchestrate executor)."""

    kind: Literal["child_session"] = "child_session"
    request_id: str
    input: Json


class Timer(Value):
    """Ask to be woken."""

    kind: Literal["timer"] = "timer"
    request_id: str
    delay_ms: int = Field(ge=0)


class ExternalEvent(Value):
    """Ask to be told when something happens outside, by the name that a plan gives it; what it brings is the value.

    Without a limit it is waited for as long as it takes; when the limit passes, the outcome is an error.
    """

    kind: Literal["external_event"] = "external_event"
    request_id: str
    name: str
    limit_ms: int | None = Field(default=None, ge=1)


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
    RoleCall | Compile | ChildSession | Timer | ExternalEvent | EnqueueTask | Finish | Fail, Field(discriminator="kind")
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
        is under way any more.
        """
