"""An open host in, the approvals of its sessions, the effects in doubt and the one that a person names out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from harness_core.kernel.projections.approvals import doubt_items
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.naming import resolve_one
from harness_core.shell.posting import settlement_place
from harness_hookspecs.errors import HarnessError, NotFound, StoreCorrupt

from .output import complain
from .session_text import short

if TYPE_CHECKING:
    from harness_core.shell.host import Host

__all__ = ["below", "budget_reached", "doubts", "find_effect", "find_item", "waiting_items"]


def waiting_items(host: Host) -> list[Mapping[str, Any]]:
    """What waits for a person in any session, the longest waiting first: approvals and effects in doubt."""
    return sorted([*host.approvals(), *doubts(host)], key=lambda item: (item["requested_at"], item["id"]))


def doubts(host: Host) -> Iterator[Mapping[str, Any]]:
    """The effects in doubt of any session that nobody has settled."""
    for document in host.sessions(every_project=True):
        if any(wait["kind"] == "in_doubt" for wait in document["waiting"]):
            try:
                items = list(doubt_items(map(decoded, host.events(document["id"])), document["id"]))
            except StoreCorrupt as error:  # it keeps nobody from what others wait for
                complain(f"harness: session {short(document['id'])}: {error.message}")
                continue
            for item in items:
                if settlement_place(item["id"], document["id"], host.store).stands is None:
                    yield item


def find_item(host: Host, reference: str, *, in_doubt: bool = True) -> Mapping[str, Any]:
    """The approval, or with ``in_doubt`` the effect in doubt, of that id or unique end of one; waiting ones come first.

    Raises:
        NotFound: ``approval.not_found`` or ``approval.ambiguous``; of an effect in doubt, where none is looked for,
            with the command that settles it.
    """
    found = {item["id"]: item for item in (waiting_items(host) if in_doubt else host.approvals())}
    if not any(_names(reference, one) for one in found):
        found |= {item["id"]: item for item in host.approvals(history=True)}
    if not in_doubt and not any(_names(reference, one) for one in found):
        _refuse_doubts(host, reference)
    hint = "harness approvals lists those that wait, harness approvals history all"
    return found[resolve_one(reference, list(found), "approval", hint=hint)]


def _refuse_doubts(host: Host, reference: str) -> None:
    for item in doubts(host):
        if _names(reference, item["id"]):
            name = item["id"][-8:]
            said = f"{name} is an effect in doubt, which nobody can approve any more"
            hint = f"harness approvals settle {name} --happened | --never-happened"
            raise NotFound(said, code="approval.not_found", hint=hint)


def find_effect(host: Host, reference: str) -> Mapping[str, Any]:
    """The effect of that id or unique end of one: in doubt, or what stands of it (``outcome``) once it is settled.

    Raises:
        NotFound: ``effect.not_found`` or ``effect.ambiguous``.
    """
    found = {item["id"]: item for item in doubts(host)}
    if not any(_names(reference, one) for one in found):
        found |= {item["effect_id"]: item for item in _settled(host)}
    return found[resolve_one(reference, list(found), "effect", hint="harness approvals lists effects in doubt")]


def _settled(host: Host) -> Iterator[Mapping[str, Any]]:
    """What stands of each effect that was in doubt: recorded, or still to be taken from the inbox."""
    for document in host.sessions(every_project=True):
        for event in map(decoded, host.events(document["id"], types="effect.*")):
            said = event.payload
            if event.type == "effect.in_doubt":
                said = settlement_place(said["effect_id"], document["id"], host.store).body()
            if event.type in {"effect.in_doubt", "effect.settled"} and said:
                yield {"session_id": document["id"], **said}


def budget_reached(host: Host, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the log says of the budget that a session waits for more of: its limit, what is used and what is wanted."""
    if not any(wait["kind"] == "budget" for wait in document["waiting"]):
        return None
    *_, last = host.events(document["id"], types="budget.exhausted")
    return decoded(last).payload


def below(host: Host, document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The documents of the child sessions that a session waits for, each followed by those that it waits for itself."""
    found: list[Mapping[str, Any]] = []
    for wait in document["waiting"]:
        if wait["kind"] == "child":
            with suppress(HarnessError):  # it may not have begun; one that cannot be read is told of where it is shown
                child = host.session(wait["id"])
                found += [child, *below(host, child)]
    return found


def _names(reference: str, approval_id: str) -> bool:
    return len(reference) >= 4 and (approval_id.startswith(reference) or approval_id.endswith(reference))
