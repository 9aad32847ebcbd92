"""A decision by a person in, the row of the inbox that stands out: the first answer wins, from any process (D-8)."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_hookspecs.errors import ConfigError, IllegalMove, NotFound, Refused

from .posting import answer_place, delivery_id_of, inbox_row, settlement_place

if TYPE_CHECKING:
    from harness_core.kernel.state import Approval, SessionState
    from harness_hookspecs.store import Posted, Store

    from .posting import Asked
    from .redaction import Redactor

__all__ = [
    "AlreadyAnswered",
    "Answered",
    "Settlement",
    "answer_body",
    "find_approval",
    "find_doubt",
    "person",
    "post_answer",
    "post_asked",
    "post_settlement",
    "question",
    "recordable",
]

_SHORTEST_NAME = 4


class Answered(NamedTuple):
    """This answer stands."""

    by: str


class AlreadyAnswered(NamedTuple):
    """Somebody else was first; nothing was changed."""

    by: str


class Settlement(NamedTuple):
    """What stands of an effect that was in doubt, and whether it is what was said here; else nothing was changed."""

    body: Mapping[str, Any]
    mine: bool


def answer_body(
    approval_id: str, decision: Any, *, digest: Any, by: Any, kind: Any = "person", say: Any = None
) -> dict[str, Any]:
    """The body of the command that answers an approval; nothing of it is checked yet."""
    body = {"approval_id": approval_id, "decision": decision, "digest": digest, "by": by, "kind": kind}
    return body if say is None or say == "" else {**body, "say": say}


def question(approval: Approval, state: SessionState) -> dict[str, Any]:
    """What an answer must know of an approval, from the state; ``Host.approvals`` says it and more, from the log."""
    over = state.final and approval.status == "pending"
    return {
        "id": approval.approval_id,
        "session_id": state.session_id,
        "status": "closed" if over else approval.status,
        "digest": approval.payload["digest"],
        "answer": approval.ended,
    }


def find_approval(named: str, known: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The approval of that id or of either end of it.

    Raises:
        NotFound: There is none, or more than one.
    """
    matching = [item for item in known if _is_named(named, item["id"])]
    if len(matching) != 1:
        said = "no approval" if not matching else f"{len(matching)} approvals"
        raise NotFound(f"{said} of that name: {named}", code="approval.not_found", hint="harness approvals lists them")
    return matching[0]


def _is_named(said: Any, approval_id: str) -> bool:
    if not isinstance(said, str):
        return False
    long_enough = len(said) >= _SHORTEST_NAME
    return said == approval_id or (long_enough and (approval_id.startswith(said) or approval_id.endswith(said)))


def post_answer(
    found: Mapping[str, Any], body: Mapping[str, Any], store: Store, redactor: Redactor
) -> Answered | AlreadyAnswered:
    """Put an answer into the inbox, if nobody was first; every answer comes through here, whoever gives it.

    Args:
        found: The approval, as ``find_approval`` or ``question`` gives it.
        body: The answer, as ``answer_body`` makes it.
        store: The log.
        redactor: Knows the secrets of the session.

    Raises:
        Refused: ``approval.decision``: not a decision; ``approval.digest``: about something else than what is asked.
        IllegalMove: ``state.final``: its session has ended, nothing can be answered any more;
            ``command.malformed``: who answers, or what they say, is no text.
    """
    if body["decision"] not in ("approve", "deny", "auto_session"):
        raise Refused(f"{body['decision']!r} is not approve, deny or auto_session", code="approval.decision")
    if found["status"] == "closed":
        raise IllegalMove(f"the session of {found['id']} has ended; nothing can be answered", code="state.final")
    if found["status"] != "pending":
        return AlreadyAnswered(found["answer"]["by"])
    if found["digest"] != body["digest"]:
        raise Refused(
            "the answer is bound to other arguments than those that are asked about",
            code="approval.digest",
            hint=f"look at what is asked: harness approvals show {found['id'][-8:]}",
        )
    command = inbox_row("answer", body, redactor)
    place = answer_place(found["id"], found["digest"], found["session_id"], store)
    if place.stands is None:
        store.post(found["session_id"], place.command_id, command)
        place = answer_place(found["id"], found["digest"], found["session_id"], store)
    mine = place.stands is not None and place.stands.body == command
    return Answered(body["by"]) if mine else AlreadyAnswered(place.body()["by"])


def find_doubt(effect_id: str, documents: Iterable[Mapping[str, Any]]) -> str:
    """The session that has that effect in doubt.

    Raises:
        NotFound: None has.
    """
    for document in documents:
        if any(wait["kind"] == "in_doubt" and wait["id"] == effect_id for wait in document["waiting"]):
            return str(document["id"])
    raise NotFound(f"no effect {effect_id} is in doubt", code="effect.not_found")


def post_settlement(session_id: str, body: Mapping[str, Any], store: Store, redactor: Redactor) -> Settlement:
    """Put the settlement of an effect in doubt into its session's inbox, if nobody was first; returns what stands.

    Raises:
        Refused: ``effect.outcome``: neither ``happened`` nor ``never_happened``.
        IllegalMove: ``command.malformed``: its value is no JSON, or who settles it is no text.
    """
    if body["outcome"] not in ("happened", "never_happened"):
        raise Refused(f"{body['outcome']!r} is not happened or never_happened", code="effect.outcome")
    command = inbox_row("settle", body, redactor)
    place = settlement_place(body["effect_id"], session_id, store)
    if place.stands is None:
        store.post(session_id, place.command_id, command)
        place = settlement_place(body["effect_id"], session_id, store)
    return Settlement(place.body(), place.stands is not None and place.stands.body == command)


def post_asked(asked: Asked, state: SessionState, store: Store, redactor: Redactor) -> Posted:
    """Post what a surface asks of a session, an answer and a settlement as from anywhere else; returns what stands.

    Raises:
        NotFound: The session has no such approval, or no such effect in doubt.
        Refused: ``approval.digest``: the answer is about something else than what is asked.
        IllegalMove: ``state.final``, or ``approval.answered``: it was decided without an answer;
            ``command.malformed``: the id of a delivery is that of another session.
    """
    if asked.kind == "answer":
        return _posted_answer(asked.body, state, store, redactor)
    if asked.kind == "settle":
        return _posted_settlement(asked.body, state, store, redactor)
    if asked.kind == "event":
        return _posted_delivery(asked, state, store, redactor)
    return store.post(state.session_id, asked.command_id, inbox_row(asked.kind, asked.body, redactor))


def _posted_answer(body: Mapping[str, Any], state: SessionState, store: Store, redactor: Redactor) -> Posted:
    approval = state.approvals.get(body["approval_id"])
    if approval is None:
        raise NotFound(f"this session has no approval {body['approval_id']}", code="approval.not_found")
    found = question(approval, state)
    answered = post_answer(found, body, store, redactor)
    stands = answer_place(found["id"], found["digest"], found["session_id"], store).stands
    if stands is None:
        raise IllegalMove(f"approval {found['id']} is decided already, by {answered.by}", code="approval.answered")
    return stands


def _posted_settlement(body: Mapping[str, Any], state: SessionState, store: Store, redactor: Redactor) -> Posted:
    effect_id = body["effect_id"]
    if effect_id in state.in_doubt:
        post_settlement(state.session_id, body, store, redactor)
    stands = settlement_place(effect_id, state.session_id, store).stands
    if stands is None:
        raise NotFound(f"no effect {effect_id} is in doubt", code="effect.not_found")
    return stands


def _posted_delivery(asked: Asked, state: SessionState, store: Store, redactor: Redactor) -> Posted:
    """A delivery as from anywhere else; its id says the session, too, since an id stands for one command of all."""
    from .awaited import awaited_in
    from .delivering import delivered, post_delivery

    before = delivery_id_of(state.session_id, "")
    if not asked.command_id.startswith(before):
        raise IllegalMove(f"the id of a delivery to this session is {before}ID", code="command.malformed")
    body = asked.body
    one = delivered(body["name"], body.get("payload"), body["by"], asked.command_id.removeprefix(before))
    return post_delivery(one, state, awaited_in(state, store), store, redactor)


def recordable(said: object, name: str, *, code: str) -> str:
    """A text that somebody handed in.

    Raises:
        ConfigError: With the code given: it is none, or no Unicode.
    """
    if not isinstance(said, str):
        raise ConfigError(f"{name} is a text, not {said!r}", code=code)
    try:
        said.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{name} is no Unicode at character {error.start}", code=code) from error
    return said


def person(by: str | None = None) -> str:
    """Who acts: as they say, else as the operating system knows them, by no variable that anybody can set.

    Raises:
        ConfigError: ``config.by``: what they say is no text that can be recorded.
    """
    if by is not None and recordable(by, "by", code="config.by"):
        return by
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have no name
        name = f"user {os.getuid()}"
    return f"{name} (pid {os.getpid()})"
