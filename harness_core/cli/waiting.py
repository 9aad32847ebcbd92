"""An open host in, the approvals of its sessions, the effects in doubt and the one that a person names out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness_core.kernel.projections.approvals import doubt_items
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.naming import resolve_one
from harness_core.shell.posting import settlement_place

if TYPE_CHECKING:
    from harness_core.shell.host import Host

__all__ = ["budget_reached", "doubts", "find_item", "waiting_items"]


def waiting_items(host: Host) -> list[Mapping[str, Any]]:
    """What waits for a person in any session, the longest waiting first: approvals and effects in doubt."""
    return sorted([*host.approvals(), *doubts(host)], key=lambda item: (item["requested_at"], item["id"]))


def doubts(host: Host) -> Iterator[Mapping[str, Any]]:
    """The effects in doubt of any session that nobody has settled."""
    for document in host.sessions(every_project=True):
        if any(wait["kind"] == "in_doubt" for wait in document["waiting"]):
            for item in doubt_items(map(decoded, host.events(document["id"])), document["id"]):
                if settlement_place(item["id"], document["id"], host.store).stands is None:
                    yield item


def find_item(host: Host, reference: str, *, in_doubt: bool = True) -> Mapping[str, Any]:
    """The approval, or with ``in_doubt`` the effect in doubt, of that id or unique end of one; waiting ones come first.

    Raises:
        NotFound: ``approval.not_found`` or ``approval.ambiguous``.
    """
    found = {item["id"]: item for item in (waiting_items(host) if in_doubt else host.approvals())}
    if not any(_names(reference, one) for one in found):
        found |= {item["id"]: item for item in host.approvals(history=True)}
    hint = "harness approvals lists those that wait, harness approvals history all"
    return found[resolve_one(reference, list(found), "approval", hint=hint)]


def budget_reached(host: Host, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the log says of the budget that a session waits for more of: its limit, what is used and what is wanted."""
    if not any(wait["kind"] == "budget" for wait in document["waiting"]):
        return None
    *_, last = host.events(document["id"], types="budget.exhausted")
    return decoded(last).payload


def _names(reference: str, approval_id: str) -> bool:
    return len(reference) >= 4 and (approval_id.startswith(reference) or approval_id.endswith(reference))
