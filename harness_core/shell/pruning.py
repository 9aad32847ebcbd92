"""A store in; sessions that ended long ago out of it, with all that only they name, and a record of each left there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harness_core.kernel.projections.event import payload_of
from harness_core.kernel.projections.tree import BEGINNING_EVENTS
from harness_core.kernel.pruning import RELATED, families, named_in, stay
from harness_hookspecs.errors import ConfigError, HarnessError, Locked, NotFound, StoreConflict, StoreCorrupt
from harness_hookspecs.events import EVENTS
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Draft, Head, Pruned, verify_chain

from .heads import copied_head, copy_head, forget_head
from .removed import MAIN, PRUNED, SESSION, heads_of_removed
from .replaying import fold_session
from .session import take_ownership
from .session_parts import LOGS
from .upkeep import NO_FACTS

if TYPE_CHECKING:
    from harness_hookspecs.host import Files, Ports
    from harness_hookspecs.store import Store

__all__ = ["Scope", "prune"]

_AT_ONCE: Final = 200
"""How many sessions one transaction removes: each is owned meanwhile, which takes a file descriptor."""

_RUNNING: Final = "running"


class Scope(NamedTuple):
    """Which sessions are to go: those that ended so long ago, of one project or of all."""

    older_seconds: float
    project: str | None


class _Look(NamedTuple):
    """What was seen of the sessions: those that may go with their heads, why others stay, and what cannot be read."""

    rows: dict[str, dict[str, Any]]
    heads: dict[str, Head]
    kept: dict[str, str]
    families: tuple[tuple[str, ...], ...]
    failed: list[dict[str, Any]]


def prune(
    store: Store,
    files: Files,
    ports: Ports,
    scope: Scope,
    *,
    removals: str = MAIN,
    dry_run: bool = False,
    asked: Callable[[Mapping[str, Any]], bool] | None = None,
) -> dict[str, Any]:
    """Remove sessions that have ended, whole, and leave a ``store.pruned`` of each: ``harness.sessions_gc/1``.

    A session stays that is not final, that ended later, that somebody owns, whose log does not verify, or that names,
    or is named by, one that stays.

    Args:
        store: The store.
        files: The data directory.
        ports: The doors.
        scope: Which sessions.
        removals: What the head of the store's own stream is copied out as: several stores may share the directory.
        dry_run: Whether only to say what would go.
        asked: Told what would go; nothing is removed unless it agrees. Not called where there is nothing to remove.

    Raises:
        ConfigError: ``sessions.older``: the age is none.
        StoreError: What was removed could not be written; what was removed before stays so.
    """
    before = _before(ports, scope.older_seconds)
    look = _look(store, files, before, scope.project)
    plan = _document(look, before, dry_run=dry_run)
    if dry_run or not look.families or (asked is not None and not asked(plan)):
        return plan
    gone: list[Pruned] = []
    for batch in _batches(look.families):
        gone += _removed(store, files, ports, batch, look)
    head = store.head(MAIN)
    copy_head(files, removals, head)
    for session_id in heads_of_removed(store):  # also what a crash left of those that were removed before
        if not store.head(SESSION + session_id).seq:
            forget_head(files, session_id)
            _clear(files, f"{LOGS}/{session_id}")
    return _document(look, before, dry_run=False, gone=gone)


def _before(ports: Ports, older_seconds: float) -> str:
    if not 0 <= older_seconds < inf:
        raise ConfigError(f"{older_seconds} is no age in seconds", code="sessions.older")
    now = ports.clock.now()
    age = min(older_seconds, (now - datetime.min.replace(tzinfo=UTC)).total_seconds() - 1)
    return (now - timedelta(seconds=age)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clear(files: Files, folder: str) -> None:
    """Remove what lies in a folder of a session: what its roles and tools have written beside the log."""
    with suppress(NotFound):
        for path in [path for path, facts in files.walk(folder) if facts.kind != "directory"]:
            files.remove(path)


# -- looking ---


def _look(store: Store, files: Files, before: str, project: str | None) -> _Look:
    names: dict[str, Collection[str]] = {}
    look = _Look({}, {}, {}, (), [])
    for stream in store.streams():
        if stream.startswith(SESSION):
            session_id = stream.removeprefix(SESSION)
            try:
                names[session_id] = _seen(store, files, session_id, before, project, look)
            except HarnessError as error:
                names[session_id] = _unread(look, session_id, error.code, error.message)
            except NO_FACTS as error:
                message = f"its events cannot be read: {type(error).__name__}: {error}"
                names[session_id] = _unread(look, session_id, "store.changed", message)
    going = []
    for family in families(names):
        stays = stay(family, look.kept)
        look.kept.update(stays)
        going += [] if stays else [family]
    return look._replace(families=tuple(going))


def _unread(look: _Look, session_id: str, code: str, message: str) -> frozenset[str]:
    look.kept[session_id] = "failed"
    look.failed.append({"session_id": session_id, "code": code, "message": message})
    return frozenset()


def _seen(
    store: Store, files: Files, session_id: str, before: str, project: str | None, look: _Look
) -> frozenset[str]:
    """Note why it stays, or what it is; gives the ids that its first events name. Most are told by a few events."""
    stream = SESSION + session_id
    head = store.head(stream)
    first, *beginning = store.read(stream, until=BEGINNING_EVENTS)
    [last] = store.read(stream, after=head.seq - 1, until=head.seq)
    created = payload_of(first)
    reason = None
    if project not in (None, created.get("project")):
        reason = "other_projects"
    elif last.timestamp >= before:
        reason = "younger"
    else:
        state = fold_session(store, session_id)
        reason = None if state.final else "not_final"
        row = {"id": session_id, "title": state.created.get("title", ""), "project": state.created.get("project", "")}
        look.rows[session_id] = {**row, "status": state.status, "ended_at": last.timestamp, "events": head.seq}
    if reason is None:
        _prove(store, files, session_id, head)
        look.heads[session_id] = head
    else:
        look.kept[session_id] = reason
    return frozenset().union(*(named_in(event.payload) for event in (first, *beginning))) - {session_id}


def _prove(store: Store, files: Files, session_id: str, head: Head) -> None:
    """What was tampered with stays, for somebody to look at: with it the proof would go.

    Raises:
        StoreCorrupt: It does not verify.
    """
    copy = copied_head(files, session_id)
    events = list(store.read(SESSION + session_id))
    verify_chain(events, head)
    if copy is not None and (len(events) < copy.seq or events[copy.seq - 1].hash != copy.hash):
        message = f"the head that was copied out at event {copy.seq} is not one of this log"
        raise StoreCorrupt(message, code="store.tail_missing", where=session_id)


# -- removing ---


def _batches(going: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Whole families, so many sessions at once; a larger family alone."""
    batch: list[tuple[str, ...]] = []
    for family in going:
        if batch and sum(map(len, batch)) + len(family) > _AT_ONCE:
            yield batch
            batch = []
        batch.append(family)
    if batch:
        yield batch


def _removed(
    store: Store, files: Files, ports: Ports, batch: Sequence[tuple[str, ...]], look: _Look
) -> Iterator[Pruned]:
    """Own the sessions, remove them; of those that somebody else owns, or that went on, none."""
    with ExitStack() as held:
        free = [family for family in batch if _owned(held, files, family, look)]
        ids = [session_id for family in free for session_id in family]
        if not ids:
            return
        ended = {SESSION + session_id: look.heads[session_id] for session_id in ids}
        try:
            yield store.prune(ended, [_said(ports, stream, head) for stream, head in ended.items()])
        except StoreConflict:
            look.kept.update(dict.fromkeys(ids, _RUNNING))


def _owned(held: ExitStack, files: Files, family: tuple[str, ...], look: _Look) -> bool:
    with ExitStack() as own:
        for session_id in family:
            try:
                own.callback(take_ownership(session_id, files).release)
            except Locked:
                look.kept.update({**dict.fromkeys(family, RELATED), session_id: _RUNNING})
                return False
        held.push(own.pop_all())
    return True


def _said(ports: Ports, stream: str, head: Head) -> Draft:
    payload = {"stream": stream, "last_seq": head.seq, "last_hash": head.hash.hex()}
    version = EVENTS[PRUNED].version
    return Draft(ports.ids.uuid7(), PRUNED, version, "operator", ports.clock.timestamp(), b"{}", dumps(payload))


def _document(look: _Look, before: str, *, dry_run: bool, gone: Sequence[Pruned] | None = None) -> dict[str, Any]:
    rows = [look.rows[one] for family in look.families for one in family if one not in look.kept]
    counts = Counter(look.kept.values())
    return {
        "schema": "harness.sessions_gc/1",
        "before": before,
        "dry_run": dry_run,
        "removed": gone is not None,
        "sessions": rows,
        "events": sum(row["events"] for row in rows),
        "contents": None if gone is None else sum(one.blobs for one in gone),
        "content_bytes": None if gone is None else sum(one.content_bytes for one in gone),
        "commands": None if gone is None else sum(one.commands for one in gone),
        "kept": {why: counts[why] for why in ("not_final", "younger", "other_projects", RELATED, _RUNNING)},
        "failed": look.failed,
    }
