"""A session, one of its events and what is asked for in, the command that begins a fork of it out; it is only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from harness_core.kernel.forking import border, inheritance
from harness_core.kernel.projections.artifacts import artifact_items, digest_of_ref
from harness_core.kernel.projections.event import decoded, proved
from harness_hookspecs.errors import ConfigError
from harness_hookspecs.kit.paths import decode_path, encode_path

from .beginning import checked_request, config_changes, plugin_changes, start_command
from .replaying import fold_session, no_event, recorded_config
from .snapshots import newer_events

if TYPE_CHECKING:
    from harness_core.kernel.commands import Start
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.store import Store

    from .beginning import RunRequest
    from .opening import Opened

__all__ = ["ForkPoint", "fork_command", "fork_point", "fork_request"]


@attrs.frozen
class ForkPoint:
    """Where a fork begins.

    Attributes:
        asked_seq: The event that was named.
        state: The parent's after the last border at or before it.
        hash: Of the event at the border, and so of all before it.
    """

    asked_seq: int
    state: SessionState
    hash: bytes


def fork_point(store: Store, parent_id: str, at: int, opened: Opened) -> ForkPoint:
    """The last event at or before ``at`` after which no stage is open; a fork cannot begin amid one.

    Raises:
        NotFound: ``event.not_found``: the session has no event of that seq.
        ConfigError: ``session.other_project``: it is of another project than the one that is open.
        StoreError: ``store.newer_events``: a newer version wrote in it.
    """
    stream = f"session:{parent_id}"
    last = store.head(stream).seq
    if type(at) is not int or not 1 <= at <= last:
        raise no_event(parent_id, at, last)
    seq = border(map(decoded, proved(store.read(stream, until=at))))
    state = fold_session(store, parent_id, until=seq)
    if state.unknown_types:
        raise newer_events(state, "fork it where it was run last")
    project = state.created["project"]
    if project != encode_path(opened.project):
        message = f"session {parent_id[-8:]} is of another project: {decode_path(project)}"
        hint = f"harness --project {decode_path(project)} sessions fork {parent_id[-8:]} --at {at}"
        raise ConfigError(message, code="session.other_project", hint=hint)
    [stands_at] = store.read(stream, after=seq - 1, until=seq)
    return ForkPoint(at, state, stands_at.hash)


def fork_request(
    point: ForkPoint, store: Store, *, on_ask: str | None, budget: Mapping[str, float] | None, yolo: str, by: str
) -> RunRequest:
    """What the parent was asked for; how it asks and its limits too, unless others are given. A yolo is never taken
    over: it is given to one session.

    Raises:
        ConfigError: ``config.on_ask``, ``config.budget`` or ``config.yolo``.
    """
    state = point.state
    created = state.created
    text = store.blob(created["text_ref"]).decode()
    asking = created["on_ask"] if on_ask is None else on_ask
    limits = (dict(state.budget) or None) if budget is None else budget
    return checked_request(text, asking, limits, yolo, created["seed"], by)


def fork_command(session_id: str, point: ForkPoint, request: RunRequest, opened: Opened, store: Store) -> Start:
    """The command that begins the fork, with all content that it will read: it stands by itself."""
    state = point.state
    stream = f"session:{state.session_id}"
    artifacts = artifact_items(map(decoded, store.read(stream, until=state.seq)))  # proved by who found the point
    changes = config_changes(_config_at(point, store), opened.config)
    forked = {
        "parent_id": state.session_id,
        "seq": state.seq,
        "asked_seq": point.asked_seq,
        "hash": point.hash.hex(),
        **inheritance(state, artifacts),
        "changes": [*changes, *plugin_changes(state, opened)],
    }
    start = start_command(session_id, request, opened)
    workflow = state.created.get("workflow_ref")
    if workflow is not None:  # it was begun for one, and so is the fork
        created = {**start.created, "workflow_ref": workflow}
        start = attrs.evolve(start, created=created, blobs={**start.blobs, workflow: store.blob(workflow)})
    digests = {digest for one in artifacts if (digest := digest_of_ref(one["ref"])) is not None}
    bodies = {digest: store.blob(digest) for digest in digests}
    return attrs.evolve(start, blobs={**bodies, **start.blobs}, forked=forked)


def _config_at(point: ForkPoint, store: Store) -> Any:
    """The configuration that the parent ran under; right after its first event, the one that was about to be loaded."""
    session_id, seq = point.state.session_id, point.state.seq
    told = [one for one in store.read(f"session:{session_id}") if one.type in ("config.loaded", "config.migrated")]
    return recorded_config(store, session_id, [one for one in told if one.seq <= seq] or told[:1])
