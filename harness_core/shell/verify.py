"""A session's log, its head and the head copied out of the store in, ``harness.verify/1`` out: whole, or where not."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import attrs

from harness_core.kernel.checking.check import check
from harness_core.kernel.checking.history import NOTHING, Broken, Checked, History
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.tree import BEGINNING_EVENTS, fork_of
from harness_hookspecs.errors import StoreCorrupt
from harness_hookspecs.host import Files
from harness_hookspecs.store import GENESIS_HASH, Head, Store, StoredEvent, verify_chain

from .anchor import Anchored
from .heads import copied_head
from .removed import MAIN, SESSION, heads_of_removed

__all__ = ["verify"]

_LOSSES = {"store.gap": "I-3", "store.tail_missing": "I-7"}
"""What a store says of a stream that lost events, and what that breaks."""


class _Copy(NamedTuple):
    """Where the head of the store's own stream was copied out to."""

    files: Files
    name: str


def verify(
    store: Store, session_id: str, files: Files, kept: Anchored = Anchored(), *, removals: str = MAIN
) -> dict[str, Any]:
    """Prove a session's log: each event against the chain, the end against the head, its copy and what the anchor
    keeps of it, each content against its digest, each question to a model against its promptHash, and the whole
    against every invariant that a log can show (:mod:`harness_core.kernel.checking`).

    Args:
        store: The store.
        session_id: The session; one without any event is checked against its heads.
        files: The data directory.
        kept: What the anchor keeps. One that has more of any session than the store says that the whole store was put
            back to an older copy; one that cannot be read proves nothing.
        removals: What the head of the store's own stream is copied out as: several stores may share the directory.

    Returns:
        ``harness.verify/1``: ``equal`` is true, or ``broken`` says what is wrong and ``bad`` what is wrong first.
    """
    head, copy, stream, own = NOTHING, NOTHING, f"session:{session_id}", kept.heads.get(session_id, ())
    try:
        copy = copied_head(files, session_id) or NOTHING  # first, for a session that ends here is ahead of its head
        head = store.head(stream)
        lost: list[Broken] = []
        checked = check(History(stream, _up_to_loss(_events(store, stream, head), lost), head, copy, store.blob, own))
        if lost:  # says more than that the events end there
            others = [one for one in checked.broken if one.code != "store.tail_missing"]
            checked = attrs.evolve(checked, broken=(*others, *lost))
        apart = None if checked.broken else _other_than_forked(store, stream)  # what it reads is proved
        if apart is not None:
            checked = attrs.evolve(checked, broken=(apart,))
    except StoreCorrupt as error:
        unread = Broken("I-14", error.facts.get("seq") or 1, error.message, error.code)
        checked = Checked((unread,), NOTHING, contents=0, prompts=0)
    if not checked.head.seq and not checked.broken:
        checked = attrs.evolve(checked, broken=(Broken("I-7", 1, "the log has no event of it", "store.tail_missing"),))
    found = (*checked.broken, *_of_the_store(store, session_id, checked.head, kept, _Copy(files, removals)))
    broken = [one._asdict() for one in sorted(found, key=attrgetter("seq"))]
    return {
        "schema": "harness.verify/1",
        "session_id": session_id,
        "equal": not broken,
        "events": checked.head.seq,
        "head": _head(head),
        "copied_head": _head(copy) if copy.seq else None,
        "contents": checked.contents,
        "prompts": checked.prompts,
        "unknown_seq": checked.unknown_seq,
        "anchor": None if kept.place is None else {"place": kept.place, "head": _head(own[-1]) if own else None},
        "bad": broken[0] if broken else None,
        "broken": broken,
    }


def _up_to_loss(events: Iterator[StoredEvent], lost: list[Broken]) -> Iterator[StoredEvent]:
    """The events before the first one that is missing, which goes to ``lost``."""
    try:
        yield from events
    except StoreCorrupt as error:
        if error.code not in _LOSSES:
            raise
        lost.append(Broken(_LOSSES[error.code], error.facts["seq"], error.message, error.code))


def _other_than_forked(store: Store, stream: str) -> Broken | None:
    """Of a fork, whether its parent still has the event that it is a fork from; one that was pruned says nothing."""
    forked = fork_of(map(decoded, store.read(stream, until=BEGINNING_EVENTS)))
    if forked is None:
        return None
    told = forked.payload
    seq, parent = told["seq"], f"session:{told['parent_id']}"
    found = [event.hash.hex() for event in store.read(parent, after=seq - 1, until=seq)]
    if found == [told["hash"]] or not store.head(parent).seq:
        return None
    message = f"event {seq} of session {told['parent_id'][-8:]} is not the one that this is a fork from"
    return Broken("I-7", forked.seq, message, "store.changed")


def _events(store: Store, stream: str, head: Head) -> Iterator[StoredEvent]:
    """Up to the head, for whoever owns the session may append meanwhile, and what stands behind a head that stays."""
    yield from store.read(stream, until=head.seq)
    behind = iter(store.read(stream, after=head.seq))
    first = next(behind, None)
    if first is not None and store.head(stream) == head:  # looked at after it, for an append moves the head with it
        yield first
        yield from behind


def _head(head: Head) -> dict[str, Any]:
    return {"seq": head.seq, "hash": head.hash.hex()}


def _of_the_store(store: Store, session_id: str, last: Head, kept: Anchored, copy: _Copy) -> Iterator[Broken]:
    """What the anchor says of the store as a whole: each other session had so many events when it ended, and no log
    ever became shorter, unless its whole session was removed and the store says so. It is no finding at an event; all
    of this log may be proved beside it."""
    if kept.problem is not None:
        yield Broken("I-7", last.seq + 1, kept.problem.message, kept.problem.code)
    wrong = _of_the_removals(store, kept, copy)
    if wrong is not None:
        yield Broken("I-6", last.seq + 1, f"the record of what was removed is not whole: {wrong}", "store.removals")
        return
    others = sorted(kept.heads.keys() - {session_id, MAIN})
    heads = {other: store.head(f"{SESSION}{other}").seq for other in others}  # first: one may be removed meanwhile
    removed = heads_of_removed(store)
    for other in others:
        ended = max(head.seq for head in kept.heads[other])
        there = max(heads[other], removed[other].seq if other in removed else 0)
        if there < ended:
            message = f"session {other[-8:]} ended with event {ended} by the anchor and has {there} here"
            yield Broken("I-7", last.seq + 1, f"the store was put back to an older copy: {message}", "store.put_back")
            return


def _of_the_removals(store: Store, kept: Anchored, copy: _Copy) -> str | None:
    """What is wrong with the stream that says what was removed: itself, its end, or that it once was another one."""
    try:
        copied = copied_head(*copy)  # first, for a removal meanwhile is ahead of the head
        head = store.head(MAIN)
        events = list(store.read(MAIN, until=head.seq))
        verify_chain(events, head)
    except StoreCorrupt as error:
        return error.message
    hashes = [GENESIS_HASH, *(event.hash for event in events)]
    for seq, known in (*kept.heads.get(MAIN, ()), *([] if copied is None else [copied])):
        if seq >= len(hashes):
            return f"it once had {seq} events and has {len(events)}"
        if hashes[seq] != known:
            return f"its event {seq} once was another one"
    return None
