"""What a loop is made of: the pure callbacks it is given, whom it tells, a submitted command, an undecided batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from harness_core.kernel.facts import Decision, Event, Fact
from harness_hookspecs.errors import IllegalMove, InternalError
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.kit.failure import headline
from harness_hookspecs.store import Draft, StoredEvent

from .ports.interruption import is_interruption

__all__ = [
    "Batch", "LoopHooks", "Machine", "Ticket", "drained", "not_run", "reason_of", "texts_of", "wake_those",
    "with_cause",
]  # fmt: skip

T = TypeVar("T")


class Machine(Protocol):
    """The specific part of a loop: pure callbacks over a state the loop owns.

    Attributes:
        waiting_types: Events that, with all before them, must be on the disk before anything else happens.
    """

    waiting_types: frozenset[str]

    def new_state(self) -> Any:
        """An empty state."""

    def decide(self, command: Any, state: Any) -> Decision:
        """What a command means."""

    def advance(self, state: Any, running: Collection[str]) -> Decision:
        """What follows by itself."""

    def evolve(self, state: Any, event: Event) -> None:
        """Fold one event."""

    def react(self, state: Any) -> Sequence[Any]:
        """Effects that should be under way; each has a ``key``. What was given before may be left out."""

    def check(self, decision: Decision) -> None:
        """Refuse facts that may not be appended, before any of them is folded."""

    def cause(self, fact: Fact, state: Any) -> str | None:
        """The id of the event that caused a fact, which is not folded yet; ``None`` for the first event."""

    def version(self, event_type: str) -> int:
        """The schema version to write."""

    def blob(self, digest: str) -> bytes:
        """Content by digest, decided or stored."""

    def summary(self, state: Any, events: Sequence[Any]) -> bytes | None:
        """The document for listings when it changed enough to be written."""


class LoopHooks(NamedTuple):
    """What the loop tells and asks; each is called outside the store's transaction."""

    perform: Callable[[Any], Any]  # effect -> command or None
    committing: Callable[[Sequence[Event]], None] = lambda events: None
    committed: Callable[[Sequence[StoredEvent]], None] = lambda events: None
    turned: Callable[[Any], None] = lambda state: None  # after each turn, with the state
    folded: Callable[[], tuple[Any, int] | None] = lambda: None  # a state of the log and its seq, to fold on from


class Ticket:
    """One submitted command, the gate of whoever waits for it, and what came of it; nobody waits for an outcome."""

    __slots__ = ("command", "durable", "effect_key", "error", "gate", "reply")

    def __init__(self, command: Any, gate: Any, *, durable: bool, effect_key: str | None = None) -> None:
        self.command = command
        self.gate = gate
        self.durable = durable
        self.effect_key = effect_key
        self.reply: Any = None
        self.error: BaseException | None = None


class Batch:
    """What a round decided and has not appended yet; it may ride with the next round."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.blobs: dict[str, bytes] = {}
        self.taken: dict[str, int] = {}
        self.waits = False
        self.events: list[Event] = []


def drained(waiting: deque[T]) -> list[T]:
    """All that waits, taken out; others may put more in or take some out meanwhile, and each has one taker."""
    taken: list[T] = []
    with suppress(IndexError):
        while waiting:
            taken.append(waiting.popleft())
    return taken


def wake_those(watchers: Sequence[tuple[Callable[[Any], bool], Any]], state: Any, *, everybody: bool) -> None:
    """Set the flag of each whose condition holds in the state. Whoever ended a turn looks for the others: a waiter that
    is woken in vain costs two switches between threads."""
    for holds, flag in list(watchers):
        try:
            due = everybody or holds(state)
        except Exception:  # the waiter's own mistake: he meets it himself when he looks
            due = True
        if due:
            flag.set()


def texts_of(facts: Iterable[Fact]) -> list[tuple[dict[str, Any], bytes, bytes]]:
    """Of each fact the references that name something, its own to add to, and these and its payload as they are stored.

    Facts that are decided together mostly name the same, which is written once then.
    """
    texts = []
    last, named, refs_text = None, dict[str, Any](), b""
    for fact in facts:
        if fact.refs != last:
            last = fact.refs
            named = {name: value for name, value in last.items() if value is not None}
            refs_text = dumps(named)
        texts.append((named.copy(), refs_text, dumps(fact.payload)))
    return texts


def with_cause(refs: bytes, event_id: str) -> bytes:
    """Stored references and with them the cause, which is known only when everything before it is folded."""
    comma = "," if len(refs) > len(b"{}") else ""
    return refs[:-1] + f'{comma}"causation_id":"{event_id}"}}'.encode()


def not_run() -> IllegalMove:
    """What whoever asks or waits is told of a session that its host has given back."""
    return IllegalMove("the session was given back; it is not run here now", code="session.not_run")


def reason_of(error: BaseException) -> BaseException:
    """Why the loop ended, for everyone who waits: what only means to end the thread it came in ends none of theirs."""
    if isinstance(error, Exception) or is_interruption(error):
        return error
    reason = InternalError(f"the loop was ended by {headline(error)}", code="loop.ended")
    reason.__cause__ = error
    return reason
