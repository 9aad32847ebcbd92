"""A decision by a person in, the row of the inbox that stands out: the first answer wins, from any process (D-8)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_hookspecs.errors import ConfigError, IllegalMove, NotFound, Refused
from harness_hookspecs.kit.codec import loads_trusted

from .redaction import inbox_row

if TYPE_CHECKING:
    from harness_hookspecs.store import Store

    from .redaction import Redactor

__all__ = [
    "AlreadyAnswered",
    "Answered",
    "answer_command_id",
    "find_approval",
    "person",
    "post_answer",
    "post_settlement",
    "recordable",
]

_SHORTEST_NAME = 4


class Answered(NamedTuple):
    """This answer stands."""

    by: str


class AlreadyAnswered(NamedTuple):
    """Somebody else was first; nothing was changed."""

    by: str


def answer_command_id(approval_id: str) -> str:
    """The one id under which an approval may be answered: the first row of the inbox stands (contract.md, Host)."""
    return f"answer:{approval_id}"


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


def _is_named(said: str, approval_id: str) -> bool:
    long_enough = len(said) >= _SHORTEST_NAME
    return said == approval_id or (long_enough and (approval_id.startswith(said) or approval_id.endswith(said)))


def post_answer(
    found: Mapping[str, Any], decision: str, store: Store, redactor: Redactor, *, digest: str, say: str | None, by: str
) -> Answered | AlreadyAnswered:
    """Put an answer into the inbox, if nobody was first.

    Raises:
        ConfigError: ``config.say``: what is said is no text.
        Refused: ``approval.decision``: not a decision; ``approval.digest``: about something else than what is asked.
        IllegalMove: ``state.final``: its session has ended, nothing can be answered any more.
    """
    if say is not None:
        recordable(say, "what is said", code="config.say")
    if decision not in ("approve", "deny", "auto_session"):
        raise Refused(f"{decision!r} is not approve, deny or auto_session", code="approval.decision")
    if found["status"] == "closed":
        raise IllegalMove(f"the session of {found['id']} has ended; nothing can be answered", code="state.final")
    if found["status"] != "pending":
        return AlreadyAnswered(found["answer"]["by"])
    if found["digest"] != digest:
        raise Refused("the answer is bound to other arguments than those that are asked about", code="approval.digest")
    body: dict[str, Any] = {"approval_id": found["id"], "decision": decision, "digest": digest}
    body |= {"by": by, "kind": "person"}
    if say:
        body["say"] = say
    command = inbox_row("answer", body, redactor)
    stands = store.post(found["session_id"], answer_command_id(found["id"]), command)
    return Answered(by) if stands.body == command else AlreadyAnswered(loads_trusted(stands.body)["body"]["by"])


def post_settlement(
    effect_id: str,
    outcome: str,
    documents: Iterable[Mapping[str, Any]],
    store: Store,
    redactor: Redactor,
    *,
    value: Any,
    by: str,
) -> tuple[str, dict[str, Any]]:
    """Put the settlement of an effect in doubt into its session's inbox; returns the session and what stands.

    Raises:
        NotFound: No session has such an effect in doubt.
        Refused: ``effect.outcome``: neither ``happened`` nor ``never_happened``.
    """
    if outcome not in ("happened", "never_happened"):
        raise Refused(f"{outcome!r} is not happened or never_happened", code="effect.outcome")
    for document in documents:
        if any(wait["kind"] == "in_doubt" and wait["id"] == effect_id for wait in document["waiting"]):
            body = {"effect_id": effect_id, "outcome": outcome, "by": by, "kind": "person"}
            if value is not None:
                body["value"] = value
            stands = store.post(document["id"], f"settle:{effect_id}", inbox_row("settle", body, redactor))
            return str(document["id"]), loads_trusted(stands.body)["body"]
    raise NotFound(f"no effect {effect_id} is in doubt", code="effect.not_found")


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
    """Who acts: as they say, else as the system knows them.

    Raises:
        ConfigError: ``config.by``: what they say is no text that can be recorded.
    """
    if by is not None and recordable(by, "by", code="config.by"):
        return by
    return f"{os.environ.get('USER') or os.environ.get('LOGNAME') or 'operator'} (pid {os.getpid()})"
