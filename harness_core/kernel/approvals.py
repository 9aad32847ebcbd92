"""Tier, policy, grants and mode in, a verdict with the rule that gave it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import attrs

from harness_hookspecs.kit.canonical import digest as canonical_digest

__all__ = ["Call", "PolicyRule", "ToolPolicy", "Verdict", "approval_digest", "artifact_digest", "find_grant", "judge"]

Mode = Literal["auto", "prompt", "deny"]


class Call(NamedTuple):
    """What a policy may know of a call."""

    tool: str
    tier: str
    stage: str
    tool_set: str = ""


@attrs.frozen
class PolicyRule:
    """One line of ``policies.yaml``: what it is about, the mode, and the place."""

    mode: Mode
    origin: str
    tool: str = "*"
    tier: str = "*"
    stage: str = "*"

    def covers(self, call: Call) -> bool:
        """Whether the rule is about this call; it may name the tool or its set."""
        named = fnmatchcase(call.tool, self.tool) or fnmatchcase(call.tool_set, self.tool)
        return named and fnmatchcase(call.tier, self.tier) and fnmatchcase(call.stage, self.stage)


@attrs.frozen
class ToolPolicy:
    """Rules in order, the mode of each tier below them, and the stage's own requirements."""

    rules: tuple[PolicyRule, ...]
    tiers: Mapping[str, PolicyRule]
    required_tiers: frozenset[str] = frozenset()
    stage_origin: str = "stages.yaml"


@attrs.frozen
class Verdict:
    """What is to happen with a call before anyone is asked."""

    kind: Literal["run", "ask", "granted", "bypassed", "denied"]
    rule: str
    by: Literal["policy", "grant", "yolo"] = "policy"


def judge(
    policy: ToolPolicy,
    call: Call,
    *,
    grants: Sequence[Mapping[str, Any]],
    yolo: str,
) -> Verdict:
    """Judge one call before it runs.

    Args:
        policy: The rules that hold in this stage.
        call: The call.
        grants: The session's grants, each for one tool and tier (B-79).
        yolo: ``off``, ``on`` or ``destructive``; ``on`` leaves T4 to the policy.

    Returns:
        ``run`` needs no approval event (T0 and T1 by policy); ``granted`` and ``bypassed`` are recorded as such.
    """
    written = next((rule for rule in policy.rules if rule.covers(call)), None)
    rule = written or policy.tiers.get(call.tier)
    if rule is None:
        return Verdict("denied", "no policy names this tier")
    mode, origin = rule.mode, rule.origin
    if mode == "deny":
        # What is written down to be denied stays so; only the default of T4 gives way, to the explicit second flag.
        lifted = written is None and call.tier == "T4" and yolo == "destructive"
        return Verdict("bypassed", origin, "yolo") if lifted else Verdict("denied", origin)
    if call.tier in policy.required_tiers:
        mode, origin = "prompt", f"{policy.stage_origin}: {call.stage}.approvals"
    if mode == "auto":
        return Verdict("run" if call.tier in ("T0", "T1") else "granted", origin)
    if find_grant(grants, call.tool, call.tier) is not None:
        return Verdict("granted", origin, "grant")
    if yolo == "destructive" or (yolo == "on" and call.tier != "T4"):
        return Verdict("bypassed", origin, "yolo")
    return Verdict("ask", origin)


def find_grant(grants: Iterable[Mapping[str, Any]], tool: str, tier: str) -> Mapping[str, Any] | None:
    """The session's grant for exactly this tool at exactly this tier, the first one given; ``None`` without one."""
    return next((grant for grant in grants if (grant["name"], grant["tier"]) == (tool, tier)), None)


def approval_digest(tool: str, args: Any, *, session_id: str, place: str, generation: int) -> str:
    """What an approval binds to: tool, canonical arguments, run, step and generation (I-23).

    The generation counts the questions of one call from 1: an answer to an earlier one fits no later one, also when
    the arguments are those of before again.
    """
    return canonical_digest([tool, args, session_id, place, generation])


def artifact_digest(artifact_type: str, body_ref: str | None, *, session_id: str, visit_id: str, attempt: int) -> str:
    """What the approval of an artifact binds to: its type and body, and the attempt that made it (I-23)."""
    return canonical_digest([artifact_type, body_ref, session_id, visit_id, attempt])
