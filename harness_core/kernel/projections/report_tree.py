"""The reports of a session and of all its child sessions in, each with its own use and the sum of its tree out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Member", "report_tree"]

_COUNTS = ("calls", "failed_calls", "unknown_calls")
_TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "total_tokens")


class Member(NamedTuple):
    """A session of the tree: its report, its parent (of the uppermost one none) and how deep it lies."""

    report: Mapping[str, Any]
    title: str
    parent_id: str | None
    depth: int


def report_tree(members: Sequence[Member]) -> dict[str, Any]:
    """What ``harness report S --tree --json`` prints.

    Args:
        members: Parents before their children; the first one is the session that was asked about.
    """
    sums = {member.report["session_id"]: _use(member.report) for member in members}
    for member in reversed(members):
        if member.parent_id is not None:
            sums[member.parent_id] = _added(sums[member.parent_id], sums[member.report["session_id"]])
    items = [
        {
            "id": member.report["session_id"],
            "parent_id": member.parent_id,
            "depth": member.depth,
            "status": member.report["status"],
            "title": member.title,
            "own": _use(member.report),
            "tree": sums[member.report["session_id"]],
        }
        for member in members
    ]
    return {"schema": "harness.report_tree/1", "session_id": items[0]["id"], "items": items}


def _use(report: Mapping[str, Any]) -> dict[str, Any]:
    return {"usage": dict(report["usage"]), **{name: report[name] for name in _COUNTS}}


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of two; one part that is not known makes it a lower bound."""
    usage = {name: one["usage"][name] + other["usage"][name] for name in _TOKENS}
    known = one["usage"]["known"] and other["usage"]["known"]
    return {"usage": {**usage, "known": known}, **{name: one[name] + other[name] for name in _COUNTS}}
