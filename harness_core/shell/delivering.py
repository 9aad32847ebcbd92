"""What somebody delivers to a session in, its row of the inbox out: what no wait there could take is refused before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harness_hookspecs.errors import (
    CodecError,
    ConfigError,
    IllegalMove,
    NotFound,
    RoleError,
    ValidationFailed,
)
from harness_hookspecs.executor import MAX_EVENT_BYTES
from harness_hookspecs.kit.canonical import canonical
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.kit.nearest import nearest

from .posting import delivery_id_of, inbox_row, said
from .replaying import fold_session

if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.store import Posted, Store

    from .awaited import Awaited
    from .redaction import Redactor

__all__ = ["Delivery", "delivered", "delivery_document", "is_waited_for", "post_delivery"]

_NAME: Final = re.compile(r"[a-z][a-z0-9._-]{0,99}")
_ID: Final = re.compile(r"[!-~]{1,200}")
_NAMED: Final = 20
"""Of more events a plan's are not listed in a message."""


class Delivery(NamedTuple):
    """What is delivered: the name that plans wait for, what it brings, who brings it, and its own id."""

    name: str
    payload: Any
    by: str
    delivery_id: str


def delivered(name: Any, payload: Any, by: str, delivery_id: Any) -> Delivery:
    """A delivery as far as it can be judged without its session.

    Raises:
        ConfigError: ``config.event``: no name that a plan could wait for; ``config.delivery_id``: no id.
        ValidationFailed: ``validation.event``: the payload is no JSON; ``validation.event_size``: there is too much.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "a lower-case letter, then up to 99 lower-case letters, digits, dots, dashes and underscores"
        raise ConfigError(f"{name!r} is no name of an event", code="config.event", hint=hint)
    if not isinstance(delivery_id, str) or not _ID.fullmatch(delivery_id):
        hint = "one word of at most 200 characters of ASCII, such as the id that the sender gives it"
        raise ConfigError(f"{delivery_id!r} is no id of a delivery", code="config.delivery_id", hint=hint)
    try:
        size_bytes = len(canonical(payload))
    except CodecError as error:
        at = f" at {error.where}" if error.where else ""
        message = f"what is delivered as {name} is no JSON{at}: {error.message}"
        raise ValidationFailed(message, code="validation.event") from error
    if size_bytes > MAX_EVENT_BYTES:
        message = f"what is delivered as {name} has {size_bytes} bytes as JSON; the limit is {MAX_EVENT_BYTES}"
        hint = "deliver where it lies, and have a step read it there"
        raise ValidationFailed(message, code="validation.event_size", hint=hint)
    return Delivery(name, payload, by, delivery_id)


def post_delivery(one: Delivery, state: SessionState, awaited: Awaited, store: Store, redactor: Redactor) -> Posted:
    """Put it into the session's inbox; who brings the same once more is told what stands, also when all is over.

    Raises:
        IllegalMove: ``event.other_delivery``: that id brought something else; ``state.final``: the session has ended.
        NotFound: ``event.not_awaited``: no step of its plans waits for it.
        ValidationFailed: ``validation.event``: no step that waits for it could take it.
    """
    command_id = delivery_id_of(state.session_id, one.delivery_id)
    row = inbox_row("event", {"name": one.name, "payload": one.payload, "by": one.by}, redactor)
    stands = store.posted(command_id)
    if stands is None:
        _check(one, state, awaited, store)
        store.post(state.session_id, command_id, row)
        stands = store.posted(command_id)
    assert stands is not None, "a row that was posted"
    if _said(stands.body) != _said(row):
        message = f"the delivery {one.delivery_id} brought something else to this session"
        raise IllegalMove(message, code="event.other_delivery", hint="another event needs an id of its own")
    return stands


def _said(row: bytes) -> Any:
    """What a delivery is, whoever brings it."""
    body = loads_trusted(row).get("body")
    return (body.get("name"), body.get("payload")) if isinstance(body, Mapping) else None


def _check(one: Delivery, state: SessionState, awaited: Awaited, store: Store) -> None:
    name = state.session_id[-8:]
    if state.final:
        raise IllegalMove(f"session {name} is {state.status}; nothing can be delivered to it", code="state.final")
    if awaited.knows_all and one.name not in awaited.contracts:
        hint = _elsewhere(one.name, state, store) or _other_name(one.name, awaited)
        raise NotFound(f"no step of session {name} waits for the event {one.name}", code="event.not_awaited", hint=hint)
    from harness_hookspecs.kit.step_output import held

    faults = []
    for contract in awaited.contracts.get(one.name, (None,)):
        try:
            if contract is not None:
                held(contract, one.payload)
            return
        except RoleError as error:
            faults.append(error)
    first = faults[0]
    message = f"what is delivered as {one.name} is not what the step that waits for it promises: {first.message}"
    raise ValidationFailed(message, code="validation.event", findings=first.facts["findings"])


def _elsewhere(name: str, state: SessionState, store: Store) -> str | None:
    """Which sessions below wait for it: who asked the upper one for a thing may not know that it has any."""
    found = [child_id[-8:] for child_id in _waiting_below(name, state, store)]
    return f"deliver it to who waits for it below: {', '.join(found)}" if found else None


def _waiting_below(name: str, state: SessionState, store: Store) -> Iterator[str]:
    for child in state.children.values():
        child_id = child.payload["child_id"]
        if store.head(f"session:{child_id}").seq:  # else it has not begun
            below = fold_session(store, child_id)
            if any(one.payload["name"] == name for one in below.externals.values()):
                yield child_id
            yield from _waiting_below(name, below, store)


def _other_name(name: str, awaited: Awaited) -> str:
    near = nearest(name, awaited.contracts)
    return f'did you mean "{near}"?' if near else f"events that its plans wait for: {_some(awaited.contracts)}"


def _some(names: Collection[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join([*names][:_NAMED]) + more if names else "none"


def is_waited_for(one: Delivery, state: SessionState, store: Store) -> bool:
    """Whether a step waits that has it: those that are open get what was delivered before it first."""
    own_id = delivery_id_of(state.session_id, one.delivery_id)
    rows = store.take(state.session_id)
    before = [*takewhile(lambda row: row.command_id != own_id, rows)]
    on_their_way = sum(_is_of(row, one.name) for row in before) if len(before) < len(rows) else 0
    waiting = sum(open_one.payload["name"] == one.name for open_one in state.externals.values())
    return bool(waiting > on_their_way + len(state.kept.get(one.name, ())))


def _is_of(row: Posted, name: str) -> bool:
    kind, body = said(row)
    return kind == "event" and isinstance(body, Mapping) and body.get("name") == name


def delivery_document(one: Delivery, session_id: str, *, repeated: bool, waits: bool) -> dict[str, Any]:
    """The document ``harness.delivery/1``."""
    return {
        "schema": "harness.delivery/1",
        "session_id": session_id,
        "name": one.name,
        "delivery_id": one.delivery_id,
        "repeated": repeated,
        "waited_for": waits,
    }
