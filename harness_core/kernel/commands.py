"""Everything that may be asked of a session: what people say, and how effects ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from .facts import Fact

if TYPE_CHECKING:  # the models of every task and message come with an executor's protocol
    from harness_hookspecs.executor import Request

__all__ = [
    "Advance",
    "AskApproval",
    "CancelNow",
    "ChildEnded",
    "ChildShort",
    "Command",
    "Compiled",
    "ContextReady",
    "EffectFailed",
    "Migrate",
    "PauseNow",
    "PluginsFailed",
    "Received",
    "Record",
    "Refusal",
    "Resume",
    "RoleFailed",
    "RoleReturned",
    "RoleSuspended",
    "Start",
    "TimersElapsed",
    "Unanswered",
    "Validated",
]


@attrs.frozen
class Start:
    """Begin: the payloads of ``session.created`` and ``config.loaded``, of a fork that of ``session.forked``, and
    their content."""

    session_id: str
    created: Mapping[str, Any]
    blobs: Mapping[str, bytes]
    forked: Mapping[str, Any] | None = None


@attrs.frozen
class Resume:
    """Go on, if there is anything to go on with; may change nothing."""

    reason: str


@attrs.frozen
class Migrate:
    """The person accepted another configuration (``--accept-drift``)."""

    payload: Mapping[str, Any]
    blobs: Mapping[str, bytes]


@attrs.frozen
class Received:
    """A command of the durable inbox, from this process or another one; kind and body are as they were posted.

    Kinds that do something: pause, cancel, answer, steer, raise_budget, settle, event.
    """

    command_id: str
    kind: str
    body: Any


@attrs.frozen
class PauseNow:
    """Pause without waiting for what is in flight (a signal's grace is over)."""

    reason: str


@attrs.frozen
class CancelNow:
    """Cancel without waiting for what is in flight (``cancel_grace`` is over)."""

    reason: str


@attrs.frozen
class PluginsFailed:
    """Plugins that could not be built for this session."""

    failures: tuple[Mapping[str, Any], ...]


@attrs.frozen
class ContextReady:
    """The context is gathered and assembled; ``payload`` is that of ``context.assembled``."""

    effect_id: str
    payload: Mapping[str, Any]
    blobs: Mapping[str, bytes]


@attrs.frozen
class EffectFailed:
    """A context could not be made."""

    effect_id: str
    error: Mapping[str, Any]


@attrs.frozen
class Validated:
    """A level was judged; ``outcome`` is the ending of the event's name."""

    effect_id: str
    outcome: Literal["passed", "failed", "errored"]
    payload: Mapping[str, Any]
    blobs: Mapping[str, bytes]


@attrs.frozen
class RoleReturned:
    """A role call has its result; ``closing`` are the host's last events of the call."""

    role_call_id: str
    output_ref: str
    artifact_refs: tuple[Any, ...]
    blobs: Mapping[str, bytes]
    closing: tuple[Fact, ...] = ()


@attrs.frozen
class RoleFailed:
    """A role call failed; ``closing`` are the host's last events of the call."""

    role_call_id: str
    error: Mapping[str, Any]
    closing: tuple[Fact, ...] = ()
    blobs: Mapping[str, bytes] = attrs.field(factory=dict)


@attrs.frozen
class RoleSuspended:
    """A role call waits without a thread; ``closing`` are results that were still in the buffer."""

    role_call_id: str
    kind: str
    wait_id: str
    closing: tuple[Fact, ...] = ()
    blobs: Mapping[str, bytes] = attrs.field(factory=dict)


@attrs.frozen
class Compiled:
    """A plan was checked; ``payload`` is that of ``workflow.version_registered``, or of ``compile.failed``."""

    effect_id: str
    ok: bool
    payload: Mapping[str, Any]
    blobs: Mapping[str, bytes]


@attrs.frozen
class ChildEnded:
    """A child session has come to its end; ``payload`` is that of ``child.completed``, or of ``child.failed``."""

    effect_id: str
    ok: bool
    payload: Mapping[str, Any]
    blobs: Mapping[str, bytes] = attrs.field(factory=dict)


@attrs.frozen
class ChildShort:
    """A child session has used up what it was granted; ``exhausted`` says of what, as its ``budget.exhausted`` does."""

    effect_id: str
    exhausted: Mapping[str, Any]


@attrs.frozen
class TimersElapsed:
    """These timers are due, or limits of waiting for an event, the longest due first."""

    effect_ids: tuple[str, ...]


@attrs.frozen
class Record:
    """Events of an open role call.

    ``results`` are of calls that ended and are recorded in any case; ``intent`` is of the call about to start and is
    refused when the session may not go on; ``reserve_tokens`` asks the budget for a model call.
    """

    role_call_id: str
    results: tuple[Fact, ...] = ()
    intent: tuple[Fact, ...] = ()
    blobs: Mapping[str, bytes] = attrs.field(factory=dict)
    reserve_tokens: int | None = None
    elapsed_seconds: float = 0.0


@attrs.frozen
class AskApproval:
    """A call or an artifact needs an approval; ``verdict`` is what policy, grants or yolo say already."""

    payload: Mapping[str, Any]  # approval.requested without its id and digest
    verdict: Literal["ask", "granted", "bypassed", "denied"]
    kind: Literal["policy", "grant", "yolo"] = "policy"
    results: tuple[Fact, ...] = ()
    blobs: Mapping[str, bytes] = attrs.field(factory=dict)


@attrs.frozen
class Unanswered:
    """No approver answered; a person must, later or elsewhere. ``deny`` ends it, and ``why`` says what demands that.

    ``flaws`` are of approvers that said something which is no answer, a sentence each.
    """

    approval_id: str
    deny: bool
    flaws: tuple[str, ...] = ()
    why: str = "on_ask is deny"


@attrs.frozen
class Advance:
    """Do what follows from the state.

    Attributes:
        running: The effects under way in this process.
        asked: Whether the executor was asked since a call of its attempt ended last: it is pure, and says the same.
        opened: What the outcomes since then have opened, of an executor that says so; ``None``: it is asked for all.
    """

    running: Collection[str] = ()
    asked: bool = False
    opened: Sequence[Request] | None = None


@attrs.frozen
class Refusal:
    """The reply to an intent that may not start: ``pause``, ``cancelled``, ``closed``, ``budget`` or ``limit``."""

    kind: str
    wait_id: str = ""


Command = (
    Start
    | Resume
    | Migrate
    | Received
    | PauseNow
    | CancelNow
    | PluginsFailed
    | ContextReady
    | EffectFailed
    | Validated
    | RoleReturned
    | RoleFailed
    | RoleSuspended
    | Compiled
    | ChildEnded
    | ChildShort
    | TimersElapsed
    | Record
    | AskApproval
    | Unanswered
    | Advance
)
