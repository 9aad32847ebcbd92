"""The policies, and what a stage asks for beyond them, in, the rules that its calls of tools are judged by out."""

from __future__ import annotations

from harness_core.kernel.approvals import PolicyRule, ToolPolicy
from harness_core.settings.stages import Stage

from .config.effective import EffectiveConfig

__all__ = ["tool_policy"]


def tool_policy(stage: Stage, config: EffectiveConfig) -> ToolPolicy:
    """What the stage denies, the written rules in their order, and below them the mode of each tier."""
    policies = config.policies
    rules = tuple(
        PolicyRule(
            mode=rule.mode,
            origin=config.origin(("rules", index)).text(),
            tool=rule.tool or "*",
            tier=rule.tier or "*",
            stage=rule.stage or "*",
        )
        for index, rule in enumerate(policies.rules)
    )
    tiers = {
        tier: PolicyRule(policies.tiers.mode(tier), config.origin(("tiers", tier)).text())
        for tier in ("T0", "T1", "T2", "T3", "T4")
    }
    said = {f"T{tier}": getattr(stage.approvals, f"tool_tier_{tier}") for tier in range(5)}
    denied = tuple(
        PolicyRule("deny", "stages.yaml: approvals", tier=tier) for tier, word in said.items() if word == "deny"
    )
    required = frozenset(tier for tier, word in said.items() if word == "required")
    return ToolPolicy((*denied, *rules), tiers, required)
