"""What a child session is to be begun or gone on with in, the session and the command that does so out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from harness_core.kernel.commands import Resume
from harness_core.kernel.state import SessionState
from harness_hookspecs.kit.canonical import canonical, digest

from .beginning import RunRequest, migration, plugin_changes, start_command
from .children import ChildOrder
from .posting import inbox_row
from .replaying import fold_session, prove_log
from .session import OwnedSession, SessionWorld
from .workflow_parts import workflow_parts
from .workflow_start import begun_with

if TYPE_CHECKING:
    from harness_hookspecs.store import Store

    from .opening import Opened
    from .session_parts import SessionParts

__all__ = ["Begun", "going_on", "grant_id", "new_child"]

_LEAST_SECONDS: Final = 0.001  # a limit is above nothing


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
    command = begun_with(start_command(order.session_id, request, opened), order.spec)
    created = {**command.created, "parent_id": order.parent_id, "depth": order.depth}
    session = OwnedSession(
        order.session_id,
        workflow_parts(parts(), order.spec),
        world,
        on_ask=order.on_ask,
        terminal=order.terminal,
    )
    return Begun(session, attrs.evolve(command, created=created))


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
    budget = _budget_now(order, state)
    if state.budget != budget:
        row = inbox_row("raise_budget", {"limits": budget}, world.redactor)
        store.post(order.session_id, grant_id(order.session_id, budget), row)
    return Begun(session, Resume("parent"), migrate)


def _budget_now(order: ChildOrder, state: SessionState) -> dict[str, float]:
    """What it was granted; of time no more than is left of its parent's, which went on while this one waited."""
    seconds = min(order.budget["seconds"], state.active_ms / 1000 + max(order.seconds_left, _LEAST_SECONDS))
    return {**order.budget, "seconds": seconds}


def grant_id(session_id: str, budget: Mapping[str, float]) -> str:
    """What a grant is posted under: ids are those of the whole inbox, and of two equal ones the second is dropped."""
    return f"grant:{session_id}:{digest(dict(budget))}"
