"""What a check is given and what it gives: a session's events with what lies outside, and findings; frozen values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from harness_hookspecs.store import GENESIS_HASH, Head, StoredEvent

__all__ = ["BROKEN", "NOTHING", "Broken", "Checked", "Happened", "History"]

NOTHING = Head(0, GENESIS_HASH)
"""The head of an empty log."""

BROKEN = "store.invariant"
"""Code of what is wrong with what the events say; what is wrong with their bytes has codes of the store."""


class Broken(NamedTuple):
    """One invariant that does not hold."""

    invariant: str  # I-1 to I-40, as reliability counts them
    seq: int  # the event that breaks it; where something is missing, the seq it would have
    message: str  # one sentence
    code: str = BROKEN


class Happened(NamedTuple):
    """A line that a tool left outside, in a file of its own: what really happened."""

    tool: str
    key: str  # the idempotency key it was called with


@attrs.frozen
class History:
    """The events of one session, and as much of what lies outside as somebody has seen.

    Attributes:
        stream: ``session:<uuid>``.
        events: From the first one on, in the order of the store; read once, never held.
        head: The head row of the store; ``None`` leaves the end of the log unproved.
        copied_head: The head as it was copied out of the store.
        content: Content by digest, raising as ``Store.blob`` does; ``None`` leaves contents alone.
        anchored: Heads that an anchor keeps, one for each time that the session ended.
        acknowledged: ``(seq, id)`` of events that somebody was told are committed.
        happened: All that the tools have done, in order; ``None`` where nobody watched.
        crashes: How often an owner died or was stopped amid its work: so often an effect may have been repeated.
        state_hash: Of the state that the last owner had in mind; folding the events must lead to it.
    """

    stream: str
    events: Iterable[StoredEvent]
    head: Head | None = None
    copied_head: Head = NOTHING
    content: Callable[[str], bytes] | None = None
    anchored: Sequence[Head] = ()
    acknowledged: Sequence[tuple[int, str]] = ()
    happened: Sequence[Happened] | None = None
    crashes: int = 0
    state_hash: str | None = None


@attrs.frozen
class Checked:
    """What a check found.

    Attributes:
        broken: Findings in the order of their events, at most :data:`~.check.MAX_FINDINGS`; what follows from a broken
            chain is not among them, since nothing behind it is proved.
        head: The last event that is proved.
        contents: How many contents hash to their digest.
        prompts: How many questions to models were hashed again.
        unknown_seq: The first event of a type or version that this code does not know: from there on bytes and
            contents are proved, and what the events say is not judged; ``None`` where all are known.
    """

    broken: tuple[Broken, ...]
    head: Head
    contents: int
    prompts: int
    unknown_seq: int | None = None


Payload = Mapping[str, Any]
