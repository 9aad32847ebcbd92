"""A command in, its row of the durable inbox out: checked before it is posted, since a row stays as it was posted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_hookspecs.errors import CodecError, IllegalMove
from harness_hookspecs.kit.codec import dumps, loads_trusted
from harness_hookspecs.kit.frozen import MAX_VALUE_DEPTH, freeze

if TYPE_CHECKING:
    from harness_hookspecs.store import Posted, Store

    from .redaction import Redactor

__all__ = ["Asked", "Place", "answer_place", "asked_for", "delivery_id_of", "inbox_row", "said", "settlement_place"]

_SUBJECTS = {"answer": "approval_id", "settle": "effect_id"}
"""Kinds of which one command counts for each thing it is about; it has the id ``KIND:THING``."""


class Asked(NamedTuple):
    """A command as a surface gives it, complete and of the right types."""

    session: str
    command_id: str
    kind: str
    body: Mapping[str, Any]


class Place(NamedTuple):
    """Where the one command about a thing lies: the id that it has or will have, and the row once there is one."""

    command_id: str
    stands: Posted | None

    def body(self) -> Mapping[str, Any]:
        """What stands there; nothing when it is free."""
        return {} if self.stands is None else loads_trusted(self.stands.body)["body"]


def asked_for(command: Any) -> Asked:
    """A command ``{session, id, kind, body}``, as far as it can be told without its session.

    Raises:
        IllegalMove: ``command.malformed``: something is missing, of another type than its kind says or no JSON, or the
            id is the one of another command.
    """
    if not isinstance(command, Mapping) or not {"session", "id", "kind"} <= set(command):
        raise _malformed("a command has session, id, kind and body")
    session, command_id, kind, body = (command.get(name) for name in ("session", "id", "kind", "body"))
    body = {} if body is None else body
    if not isinstance(session, str):
        raise _malformed(f"the session of a command is a text, it is no {type(session).__name__}")
    if not isinstance(command_id, str) or not command_id.strip() or not command_id.isprintable():
        raise _malformed("the id of a command is a text of one line")
    _check(kind, body)
    kind = str(kind)
    own, about = command_id.partition(":")[0], _SUBJECTS.get(kind)
    if about is None and own in (*_SUBJECTS, "event") and own != kind:
        raise _malformed(f"an id that begins with {own}: is the one of a command of kind {own}, not {kind}")
    if about is not None and command_id != f"{kind}:{body[about]}":
        raise _malformed(f"the id of a command of kind {kind} is {kind}:{body[about]}")
    return Asked(session, command_id, kind, body)


def delivery_id_of(session_id: str, delivery_id: str) -> str:
    """The id of the command that is a delivery: one for each session and each id that its sender gives."""
    return f"event:{session_id}:{delivery_id}"


def inbox_row(kind: str, body: Mapping[str, Any], redactor: Redactor) -> bytes:
    """A command as it is posted to a durable inbox; made nowhere else (I-29).

    Raises:
        IllegalMove: ``command.malformed``: it would be written and do nothing.
    """
    _check(kind, body)
    return dumps({"kind": kind, "body": redactor.value(body)})


def _check(kind: Any, body: Any) -> None:
    from harness_core.kernel.inbox import flaw  # with all of the kernel, which an open door does without

    wrong = flaw(kind, body)
    if wrong is not None:
        raise _malformed(wrong)
    try:
        freeze(body, max_depth=MAX_VALUE_DEPTH - 1)
    except CodecError as error:
        at = f" at {error.where}" if error.where else ""
        raise _malformed(f"the body of {kind} is no JSON{at}: {error.message}") from error


def _malformed(message: str) -> IllegalMove:
    return IllegalMove(message, code="command.malformed")


def answer_place(approval_id: str, digest: str, session_id: str, store: Store) -> Place:
    """Where the answer to an approval lies or will lie: the first one stands (contract.md, Host)."""
    from harness_core.kernel.inbox import fits_answer

    return _place(
        f"answer:{approval_id}", session_id, store, lambda kind, body: fits_answer(kind, body, approval_id, digest)
    )


def settlement_place(effect_id: str, session_id: str, store: Store) -> Place:
    """Where the settlement of an effect in doubt lies or will lie."""
    from harness_core.kernel.inbox import is_command

    return _place(
        f"settle:{effect_id}",
        session_id,
        store,
        lambda kind, body: kind == "settle" and is_command(kind, body) and body["effect_id"] == effect_id,
    )


def _place(command_id: str, session_id: str, store: Store, fits: Callable[[Any, Any], bool]) -> Place:
    """The place of that id or, while a row lies there that is no such command, the next one.

    A row can neither be changed nor taken away, and everyone who looks passes over the same ones: what spoiled one
    place does not hold the thing for ever.
    """
    for number in count(1):
        one = command_id if number == 1 else f"{command_id}:{number}"
        stands = store.posted(one)
        if stands is None or (stands.session_id == session_id and fits(*said(stands))):
            return Place(one, stands)
    raise AssertionError("there is always a next number")


def said(posted: Posted) -> tuple[Any, Any]:
    """Kind and body of a row; ``None`` for both where it is no command at all, since anything may have been posted.

    That it is also where no log could hold it: what cannot be recorded would stop its session at each start.
    """
    try:
        row = freeze(loads_trusted(posted.body))
    except CodecError:
        return None, None
    return (row.get("kind"), row.get("body")) if isinstance(row, Mapping) else (None, None)
