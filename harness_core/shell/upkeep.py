"""A store in, what it holds, a proved copy of it, or its caches made again from the events out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_core.kernel.projections.session import session_document
from harness_hookspecs.errors import HarnessError, StoreError
from harness_hookspecs.kit.codec import dumps, loads_trusted

from .heads import copied_head, copy_head
from .machine import SessionMachine
from .removed import PRUNED
from .snapshots import fold_on

if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.host import Files
    from harness_hookspecs.store import Store

__all__ = ["NO_FACTS", "back_up", "rebuild", "store_stats"]

_SESSION: Final = "session:"
_TRIES: Final = 10
"""How often what goes on meanwhile is looked at again."""

NO_FACTS: Final = (AttributeError, LookupError, TypeError, ValueError)
"""What a fold does with bytes that are not those that were written."""
_COUNTED: Final = {
    "artifacts": "artifact.accepted",
    "approvals": "approval.requested",
    "transitions": "transition.taken",
    "summaries": "compression.",
}
"""What is counted by the events that make it: a type, or the beginning of several."""


def _sessions(streams: Iterable[str]) -> Iterator[str]:
    return (stream.removeprefix(_SESSION) for stream in streams if stream.startswith(_SESSION))


def store_stats(store: Store, name: str) -> dict[str, Any]:
    """What it holds and what room it takes: ``harness.db_stats/1``; ``name`` is the offer's."""
    found = store.stats()
    events = sum(found.events.values())
    counted = {
        what: sum(count for one, count in found.events.items() if one.startswith(begin))
        for what, begin in _COUNTED.items()
    }
    return {
        "schema": "harness.db_stats/1",
        "store": name,
        "file": found.place,
        "format": found.format,
        "size_bytes": found.size_bytes,
        "wal_bytes": found.wal_bytes,
        "free_bytes": found.free_bytes,
        "sessions": sum(1 for _ in _sessions(store.streams())),
        "removed": found.events.get(PRUNED, 0),
        "event_bytes": found.event_bytes,
        "bytes_per_event": None if found.size_bytes is None or not events else round(found.size_bytes / events, 1),
        "blobs": found.blobs,
        "content_bytes": found.content_bytes,
        "blob_bytes": found.blob_bytes,
        "commands": found.commands,
        "snapshots": found.snapshots,
        "persisted": {"events": events, "projections": found.summaries, **counted},
    }


# -- a copy ---


def back_up(store: Store, target: Path, files: Files) -> dict[str, Any]:
    """Make a proved copy, and copy each session's head out of the store: ``harness.db_backup/1``.

    A head that was copied out before must be on the way to the one that stands now; else the log was cut or put back
    since, which the copy shows like its original. Then ``bad`` names the session, and its older head stays.

    Args:
        store: The store.
        target: The new file.
        files: The data directory.

    Raises:
        StoreError: As for ``Store.backup``.
    """
    made = store.backup(target)
    bad = []
    for session_id in _sessions(made.heads):
        stream = _SESSION + session_id
        try:
            before = copied_head(files, session_id)
            if before is None or _stood(store, stream, before.seq) == before.hash:
                _copy_out(store, session_id, files)
                continue
            message = f"the head that was copied out at event {before.seq} is not one of this log"
            bad.append({"session_id": session_id, "code": "store.tail_missing", "message": message})
        except StoreError as error:
            bad.append({"session_id": session_id, "code": error.code, "message": error.message})
    return {
        "schema": "harness.db_backup/1",
        "file": str(target),
        "size_bytes": made.size_bytes,
        "sessions": sum(1 for _ in _sessions(made.heads)),
        "events": sum(head.seq for head in made.heads.values()),
        "contents": made.contents,
        "equal": not bad,
        "bad": bad,
    }


def _copy_out(store: Store, session_id: str, files: Files) -> None:
    """Copy out the head as it is now; if the session ends at this moment, its owner's newer one is not replaced."""
    for _ in range(_TRIES):
        head = store.head(_SESSION + session_id)
        copy_head(files, session_id, head)
        if store.head(_SESSION + session_id) == head:
            return


def _stood(store: Store, stream: str, seq: int) -> bytes | None:
    found = next(store.read(stream, after=seq - 1, until=seq), None)
    return None if found is None else found.hash


# -- the caches ---


def rebuild(store: Store) -> dict[str, Any]:
    """Drop what is made of the events and make it again: ``harness.db_rebuild/1`` says what was not as it should be.

    Sessions may be run meanwhile: what their owners write is newer and stays.
    """
    before = store.stats().snapshots
    kept = {stream: _read(summary) for stream, summary in store.summaries()}
    store.drop_snapshots()
    changed, busy, failed = [], [], []
    sessions = list(_sessions(store.streams()))
    for session_id in sessions:
        try:
            difference = _made_again(store, session_id, kept.pop(_SESSION + session_id, None))
            if difference is None:
                busy.append(session_id)
            elif difference:
                changed.append({"session_id": session_id, "keys": difference})
        except HarnessError as error:
            failed.append({"session_id": session_id, "code": error.code, "message": error.message})
        except NO_FACTS as error:
            message = f"its events cannot be read: {type(error).__name__}: {error}"
            failed.append({"session_id": session_id, "code": "store.changed", "message": message})
    removed = [stream for stream in kept if store.put_summary(stream, store.head(stream).seq, None)]
    return {
        "schema": "harness.db_rebuild/1",
        "sessions": len(sessions),
        "same": len(sessions) - len(changed) - len(busy) - len(failed),
        "changed": changed,
        "removed": removed,
        "busy": busy,
        "failed": failed,
        "snapshots": {"dropped": before, "made": store.stats().snapshots},
    }


def _read(summary: bytes) -> Mapping[str, Any]:
    """A document as it was kept; nothing of what is none."""
    with suppress(HarnessError, *NO_FACTS):
        return dict(loads_trusted(summary))
    return {}


def _made_again(store: Store, session_id: str, kept: Mapping[str, Any] | None) -> list[str] | None:
    """The keys of its document that were wrong, all of them where there was none; ``None`` while it goes on.

    What was kept is judged by the event that it says it was made at: while a session goes on it is not made at each.
    """
    machine: Any = SessionMachine(session_id, None, store.blob)  # type: ignore[arg-type]  # it decides nothing
    for _ in range(_TRIES):
        state = fold_on(store, machine)
        if state.unknown_types:
            types = ", ".join(state.unknown_types)
            raise StoreError(f"it has events this version does not know: {types}", code="store.newer_events")
        if store.put_summary(_SESSION + session_id, state.seq, _summary(state)):
            return _wrong_keys(store, machine, kept, state)
    return None


def _wrong_keys(
    store: Store, machine: SessionMachine, kept: Mapping[str, Any] | None, state: SessionState
) -> list[str]:
    found, seq = kept or {}, (kept or {}).get("last_seq")
    if isinstance(seq, int) and 0 < seq < state.seq:
        state = fold_on(store, machine, until=seq)
    right = loads_trusted(_summary(state))
    return sorted(key for key in {*right, *found} if right.get(key) != found.get(key) or key not in found)


def _summary(state: SessionState) -> bytes:
    return dumps(session_document(state))
