"""What a child session is to be begun or gone on with in, the session and the command that does so out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from harness_core.kernel.commands import Resume
from harness_hookspecs.kit.canonical import canonical, digest

from .beginning import RunRequest, migration, plugin_changes, start_command
from .children import ChildOrder
from .posting import inbox_row
from .replaying import fold_session, prove_log
from .session import OwnedSession, SessionWorld
from .workflow_parts import workflow_parts

if TYPE_CHECKING:
    from harness_hookspecs.store import Store

    from .opening import Opened
    from .session_parts import SessionParts

__all__ = ["Begun", "going_on", "new_child"]


@attrs.frozen
class Begun:
    """A session that is owned, and what it is begun or gone on with."""

    session: OwnedSession
    command: Any
    first: Any = None


def new_child(
    order: ChildOrder, opened: Opened, store: Store, world: SessionWorld, parts: Callable[[], SessionParts]
) -> Begun:
    """A child that is begun now, under the id that was reserved for it."""
    request = RunRequest(_text(order), order.by, order.on_ask, order.budget, order.yolo, order.seed)
    command = start_command(order.session_id, request, opened)
    spec = canonical(order.spec)
    created = {**command.created, "parent_id": order.parent_id, "depth": order.depth, "workflow_ref": order.spec_ref}
    session = OwnedSession(
        order.session_id,
        workflow_parts(parts(), order.spec),
        world,
        on_ask=order.on_ask,
        terminal=order.terminal,
    )
    return Begun(session, attrs.evolve(command, created=created, blobs={**command.blobs, order.spec_ref: spec}))


def _text(order: ChildOrder) -> str:
    """What the child is asked: its input, which its stage reads as JSON."""
    return canonical(order.spec["input"]).decode()


def going_on(
    order: ChildOrder, opened: Opened, store: Store, world: SessionWorld, parts: Callable[[], SessionParts]
) -> Begun | None:
    """A child that was begun before, with what it has been granted since; ``None`` where it has ended."""
    state = fold_session(store, order.session_id)
    if state.final:
        return None
    prove_log(store, order.session_id)  # what was changed in it would be done
    migrate = migration(state, opened, store, plugin_changes(state, opened), accept_drift=order.accept_drift)
    session = OwnedSession(
        order.session_id,
        workflow_parts(parts(), order.spec),
        world,
        on_ask=order.on_ask,
        terminal=order.terminal,
        accept_drift=order.accept_drift,
    )
    if state.budget != order.budget:
        row = inbox_row("raise_budget", {"limits": dict(order.budget)}, world.redactor)
        store.post(order.session_id, f"grant:{order.session_id}:{digest(dict(order.budget))}", row)
    return Begun(session, Resume("parent"), migrate)
