"""policies.yaml: what runs by itself, what asks and what never runs, as a frozen model."""

from typing import Any, Final

from pydantic import Field, model_validator

from .base import NO, Glob, Mode, Name, Settings, Tier, tighten

__all__ = ["PoliciesSettings", "PolicyRule", "ProviderPolicy", "TierModes"]

_CONDITIONS: Final = ("tool", "tier", "stage")


class TierModes(Settings):
    """What an effect of each tier does when no rule says otherwise."""

    T0: Mode = Field("auto", description="Inference itself.", json_schema_extra=tighten("mode"))
    T1: Mode = Field("auto", description="Reading.", json_schema_extra=tighten("mode"))
    T2: Mode = Field("prompt", description="Reversible changes.", json_schema_extra=tighten("mode"))
    T3: Mode = Field("prompt", description="Network and other outside effects.", json_schema_extra=tighten("mode"))
    T4: Mode = Field("deny", description="Destructive changes.", json_schema_extra=tighten("mode"))

    def mode(self, tier: Tier) -> Mode:
        """Give the mode of a tier."""
        found: Mode = getattr(self, tier)
        return found


class PolicyRule(Settings):
    """One rule; it applies when all that it names fits, and the first that applies decides."""

    tool: Glob | None = Field(None, description="Tool or tool set, with * and ?.")
    tier: Tier | None = Field(None, description="The tier of the effect.")
    stage: Glob | None = Field(None, description="Stage, with * and ?.")
    mode: Mode = Field(description="auto runs it, prompt asks, deny refuses.")

    @model_validator(mode="before")
    @classmethod
    def _it_names_something(cls, value: Any) -> Any:
        if isinstance(value, dict) and not any(value.get(name) for name in _CONDITIONS):
            raise ValueError(f"a rule names at least one of {', '.join(_CONDITIONS)}; for everything, set tiers")
        return value


class ProviderPolicy(Settings):
    """Which providers may be used."""

    deny: tuple[Name, ...] = Field(
        (), description="Providers that no stage may use here, by offer name.", json_schema_extra=tighten("superset")
    )


class PoliciesSettings(Settings):
    """The whole of policies.yaml."""

    tiers: TierModes = Field(TierModes(), description="What an effect of each tier does when no rule applies.")
    rules: tuple[PolicyRule, ...] = Field(
        (), description="Rules from top to bottom; the first that applies decides.", json_schema_extra=tighten("rules")
    )
    providers: ProviderPolicy = Field(ProviderPolicy(), description="Which providers may be used.")
    approver: tuple[Name, ...] = Field(
        ("policy", "terminal"), description="Who is asked, in this order, by offer name.", json_schema_extra=NO
    )
    allow_tier_lowering: bool = Field(
        False,
        description="Whether tools.yaml may give a tool a lower tier than it claims itself; each such case is logged.",
        json_schema_extra=tighten("false"),
    )
