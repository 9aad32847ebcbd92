"""A history in, every invariant that a log shows to be broken out: pure, each event looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple, Protocol

from harness_core.kernel.facts import Event
from harness_hookspecs.errors import StoreCorrupt
from harness_hookspecs.store import Head, StoredEvent

from .approvals import Approvals
from .batches import Batches
from .calls import Calls
from .chain import Chain
from .content import Contents
from .history import Broken, Checked, History
from .lifecycle import Lifecycle
from .outside import Outside
from .requests import Requests
from .stages import Stages

__all__ = ["MAX_FINDINGS", "check"]

MAX_FINDINGS = 100
"""So many findings say that a log is not to be trusted; more would say it no better."""


class _Rules(Protocol):
    """The rules of one subject, told of each event in order."""

    def see(self, event: Event) -> Iterable[Broken]: ...


def check(history: History) -> Checked:
    """Find what is broken, for ``events verify``, and for every test that disturbs a session.

    Events of a type or version that this code does not know are proved and otherwise passed over (I-11); what the
    events from the first of them on say is not judged, for they may refer to it, and nobody here could tell.

    Args:
        history: The events and what lies outside. What a store raises while they are read is a finding, too.
    """
    chain, contents = Chain(history.stream), Contents(history.content)
    found: list[Broken] = []
    for broken in _findings(history, chain, contents):
        found.append(broken)
        if len(found) >= MAX_FINDINGS:
            break
    in_order = tuple(sorted(found, key=attrgetter("seq")))
    return Checked(in_order, chain.head, contents.count, contents.prompts, chain.unknown_seq)


def _findings(history: History, chain: Chain, contents: Contents) -> Iterator[Broken]:
    session_id, kept = history.stream.partition(":")[2], _kept(history)
    approvals, outside = Approvals(session_id), Outside(history, session_id)
    rules: tuple[_Rules, ...] = (Batches(), Lifecycle(), Stages(), Requests(), Calls(), approvals)
    try:
        for stored in history.events:
            broken = chain.prove(stored) or _other_than_kept(stored, kept)
            if broken is not None:  # nothing after it is proved
                yield broken
                return
            outside.stored(stored)
            event, flaws = chain.read(stored)
            yield from flaws
            if chain.unknown_seq is None:
                yield from _seen(event, rules)
            yield from _seen(event, (contents, outside))  # each for itself, or as a fold, which passes over others
    except StoreCorrupt as error:
        yield Broken("I-14", error.facts.get("seq") or chain.head.seq + 1, error.message, error.code)
        return
    cut = _cut_tail(history.head, kept, chain.head)
    if cut is not None:  # what is missing there may be what the rules would miss
        yield cut
        return
    if chain.unknown_seq is None:
        yield from approvals.end()
    yield from outside.end(effects=chain.unknown_seq is None)


def _seen(event: Event | None, rules: Iterable[_Rules]) -> Iterator[Broken]:
    if event is not None:
        for one in rules:
            yield from one.see(event)


class _Kept(NamedTuple):
    """A head that lies outside the store."""

    head: Head
    says: str
    other_than: str


def _kept(history: History) -> tuple[_Kept, ...]:
    copied = _Kept(
        history.copied_head, "the head copied out at the session's end says", "when its head was copied out"
    )
    anchored = (_Kept(head, "the anchor says", "the one that the anchor keeps") for head in history.anchored)
    return (*([copied] if copied.head.seq else []), *anchored)


def _other_than_kept(stored: StoredEvent, kept: Iterable[_Kept]) -> Broken | None:
    for one in kept:
        if stored.seq == one.head.seq and stored.hash != one.head.hash:
            message = f"event {stored.seq} is another one than {one.other_than}"
            return Broken("I-7", stored.seq, message, "store.changed")
    return None


def _cut_tail(head: Head | None, kept: Iterable[_Kept], last: Head) -> Broken | None:
    """A log may have grown since its head was copied out; it never became shorter."""
    if head is not None and last != head:
        message = f"the log ends at seq {last.seq}, its head says {head.seq}"
        return Broken("I-7", min(last.seq, head.seq) + 1, message, "store.tail_missing")
    for one in kept:
        if last.seq < one.head.seq:
            message = f"the log ends at seq {last.seq}; {one.says} {one.head.seq}"
            return Broken("I-7", last.seq + 1, message, "store.tail_missing")
    return None
