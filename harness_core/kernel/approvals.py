"""Tier, policy, grants and mode in, a verdict with the rule that gave it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import attrs

from harness_hookspecs.kit.canonical import digest as canonical_digest

__all__ = ["PolicyRule", "ToolPolicy", "Verdict", "approval_digest", "judge"]

Mode = Literal["auto", "prompt", "deny"]


@attrs.frozen
class PolicyRule:
    """One line of ``policies.yaml``: what it is about, the mode, and the place."""

    mode: Mode
    origin: str
    tool: str = "*"
    tier: str = "*"
    stage: str = "*"

    def covers(self, tool: str, tier: str, stage: str) -> bool:
        """Whether the rule is about this call."""
        return all(
            fnmatchcase(value, pattern)
            for value, pattern in ((tool, self.tool), (tier, self.tier), (stage, self.stage))
        )


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
    call: tuple[str, str, str],
    *,
    grants: Sequence[Mapping[str, Any]],
    yolo: str,
) -> Verdict:
    """Judge one call before it runs.

    Args:
        policy: The rules that hold in this stage.
        call: Tool name, tier, stage.
        grants: The session's grants, each for one tool and tier (B-79).
        yolo: ``off``, ``on`` or ``destructive``; ``on`` leaves T4 to the policy.

    Returns:
        ``run`` needs no approval event (T0 and T1 by policy); ``granted`` and ``bypassed`` are recorded as such.
    """
    tool, tier, stage = call
    rule = next((r for r in policy.rules if r.covers(tool, tier, stage)), policy.tiers.get(tier))
    if rule is None:
        return Verdict("denied", "no policy names this tier")
    mode, origin = rule.mode, rule.origin
    if mode != "deny" and tier in policy.required_tiers:
        mode, origin = "prompt", f"{policy.stage_origin}: {stage}.approvals"
    if mode == "deny":
        return _denied_or_yolo(tier, yolo, origin)
    if mode == "auto":
        return Verdict("run" if tier in ("T0", "T1") else "granted", origin)
    if any(grant["name"] == tool and grant["tier"] == tier for grant in grants):
        return Verdict("granted", origin, "grant")
    if yolo == "destructive" or (yolo == "on" and tier != "T4"):
        return Verdict("bypassed", origin, "yolo")
    return Verdict("ask", origin)


def _denied_or_yolo(tier: str, yolo: str, origin: str) -> Verdict:
    # The default policy denies T4; only the explicit second flag lifts that (contract.md, States).
    if tier == "T4" and yolo == "destructive":
        return Verdict("bypassed", origin, "yolo")
    return Verdict("denied", origin)


def approval_digest(tool: str, args: Any, *, session_id: str, place: str, generation: int = 1) -> str:
    """What an approval binds to: tool, canonical arguments, run, step and generation (I-23)."""
    return canonical_digest([tool, args, session_id, place, generation])
