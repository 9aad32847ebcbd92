"""tools.yaml: which tools are there and how dangerous each is held to be, as a frozen model."""

from pydantic import Field

from harness_hookspecs.value import Table

from .base import NO, Choice, Name, Seconds, Settings, Tier, tighten

__all__ = ["ToolEntry", "ToolsSettings"]


class ToolEntry(Choice):
    """A set (``filesystem``) or one tool of it (``filesystem_read``); a set's own keys stand beside these."""

    enabled: bool = Field(
        True, description="Whether models and steps have it at all.", json_schema_extra=tighten("false")
    )
    tier: Tier | None = Field(
        None,
        description=(
            "How far its effects reach: T0 inference, T1 reading, T2 reversible change, T3 network, T4 "
            "destructive; absent: what the tool says. Lowering it needs policies.allow_tier_lowering."
        ),
        json_schema_extra=tighten("tier"),
    )
    timeout_sec: Seconds | None = Field(
        None,
        description="How long one call may take, in seconds; absent: run.tool_timeout_sec.",
        json_schema_extra=tighten("smaller"),
    )
    plugin: Name | None = Field(
        None,
        description="Whose offer answers under this name when several do, a plugin id or ID:NAME.",
        json_schema_extra=NO,
    )


class ToolsSettings(Settings):
    """The whole of tools.yaml."""

    tools: Table[ToolEntry] = Field(
        {}, description="Tool sets and single tools by name; one that is not listed is as its plugin offers it."
    )
