"""An open host in, the approvals of its sessions, the effects in doubt and the one that a person names out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from harness_core.kernel.projections.approvals import approval_items, doubt_items
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.naming import resolve_one
from harness_hookspecs.kit.codec import loads

if TYPE_CHECKING:
    from harness_core.shell.host import Host

__all__ = ["every_item", "find_item", "waiting_items"]

_FINAL = ("completed", "failed", "cancelled")


def waiting_items(host: Host) -> list[dict[str, Any]]:
    """What waits for a person in any session, the longest waiting first: approvals and effects in doubt."""
    waiting = [one["id"] for one in host.sessions(every_project=True) if one["status"] not in _FINAL]
    return _sorted(item for one in waiting for item in _open_items(host, one))


def _open_items(host: Host, session_id: str) -> Iterator[dict[str, Any]]:
    events = list(map(decoded, host.events(session_id)))
    pending = (_with_posted(host, item) for item in approval_items(events, session_id))
    yield from (item for item in pending if item["status"] == "pending")
    yield from (item for item in doubt_items(events, session_id) if host.store.posted(f"settle:{item['id']}") is None)


def _with_posted(host: Host, item: dict[str, Any]) -> dict[str, Any]:
    """An answer that lies in the inbox stands already; it counts as soon as its session goes on."""
    posted = host.store.posted(f"answer:{item['id']}") if item["status"] == "pending" else None
    if posted is None:
        return item
    body = loads(posted.body)["body"]
    answer = {
        "by": body["by"],
        "via": body["kind"],
        "scope": "session" if body["decision"] == "auto_session" else "once",
        "say": body.get("say"),
        "reason": f"{body['decision']}; takes effect when the session goes on",
        "digest": body["digest"],
        "at": None,
        "seq": None,
    }
    return {**item, "status": "answered", "answer": answer}


def every_item(host: Host, sessions: Iterable[str]) -> list[dict[str, Any]]:
    """Every approval of these sessions, the oldest first."""
    return _sorted(
        _with_posted(host, item)
        for one in sessions
        for item in approval_items(map(decoded, host.events(one)), one, history=True)
    )


def _sorted(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: (item["requested_at"], item["id"]))


def find_item(host: Host, reference: str, *, doubts: bool = True) -> dict[str, Any]:
    """The approval, or with ``doubts`` the effect in doubt, of that id or unique end of one; waiting ones come first.

    Raises:
        NotFound: ``approval.not_found`` or ``approval.ambiguous``.
    """
    found = {item["id"]: item for item in waiting_items(host) if doubts or item["kind"] == "approval"}
    if not any(_names(reference, one) for one in found):
        every = [document["id"] for document in host.sessions(every_project=True)]
        found |= {item["id"]: item for item in every_item(host, every)}
    hint = "harness approvals lists those that wait, harness approvals history all"
    return found[resolve_one(reference, list(found), "approval", hint=hint)]


def _names(reference: str, approval_id: str) -> bool:
    return len(reference) >= 4 and (approval_id.startswith(reference) or approval_id.endswith(reference))
