"""What the store says of sessions that were removed in, their heads out, and the error about one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from harness_core.kernel.projections.event import payload_of
from harness_core.kernel.projections.naming import LAST, resolve_session
from harness_hookspecs.errors import NotFound
from harness_hookspecs.store import Head, StoredEvent

if TYPE_CHECKING:
    from harness_hookspecs.store import Store

__all__ = ["MAIN", "PRUNED", "SESSION", "heads_of_removed", "removed_session"]

MAIN: Final = "store:main"
PRUNED: Final = "store.pruned"
SESSION: Final = "session:"


def _removals(events: Iterator[StoredEvent]) -> Iterator[tuple[str, Head, str]]:
    for event in events:
        if event.type == PRUNED:
            said = payload_of(event)
            head = Head(said["last_seq"], bytes.fromhex(said["last_hash"]))
            yield said["stream"].removeprefix(SESSION), head, event.timestamp


def heads_of_removed(store: Store) -> Mapping[str, Head]:
    """The last event of each session that was removed."""
    return {session_id: head for session_id, head, _ in _removals(store.read(MAIN))}


def removed_session(store: Store, reference: str) -> NotFound | None:
    """The error about a session that was removed, if one is named so; its facts are all that is left of it."""
    found = {session_id: (head, when) for session_id, head, when in _removals(store.read(MAIN))}
    with suppress(NotFound):
        session_id = LAST if reference == LAST else resolve_session(reference, sorted(found, reverse=True))
        if session_id in found:
            head, when = found[session_id]
            return NotFound(
                f"session {session_id[-8:]} was removed at {when[:16].replace('T', ' ')} (UTC), with {head.seq} events",
                code="session.removed",
                hint="a copy of the log that was made before still has it: harness db backup",
                session_id=session_id,
                removed_at=when,
                last_seq=head.seq,
                last_hash=head.hash.hex(),
            )
    return None
