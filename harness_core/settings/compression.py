"""compression.yaml: when context is made smaller and how, for each kind of content, as a frozen model."""

from __future__ import annotations

from pydantic import Field

from .base import OK, Name, Settings, Share, Tokens

__all__ = ["CompressionSettings", "Layers", "Strategies", "Threshold"]


class Strategies(Settings):
    """The way each kind of content is made smaller, by the name of a mode; plugins offer more modes."""

    tool_logs: Name = Field("summarize", description="Output of tools.", json_schema_extra=OK)
    artifacts: Name = Field("latest_only", description="Results of earlier stages.", json_schema_extra=OK)
    events: Name = Field("deduplicate", description="What happened so far.", json_schema_extra=OK)
    conversations: Name = Field("semantic_summary", description="Talk with the person.", json_schema_extra=OK)


class Threshold(Settings):
    """When compression begins; whichever is reached first."""

    percent: Share = Field(70, description="Share of the context that is filled, in percent.", json_schema_extra=OK)
    tokens: Tokens | None = Field(
        None, description="Tokens in the context; absent: only percent counts.", json_schema_extra=OK
    )


class Layers(Settings):
    """The share of the context that each layer may take, in percent; L0 and L1 are never displaced by the others."""

    L2: Share = Field(30, description="Compressed memory of the session.", json_schema_extra=OK)
    L3: Share = Field(20, description="Memory of the project.", json_schema_extra=OK)
    L4: Share = Field(10, description="Archive; dropped first.", json_schema_extra=OK)


class CompressionSettings(Settings):
    """The whole of compression.yaml."""

    strategies: Strategies = Field(Strategies(), description="How each kind of content is made smaller.")
    threshold: Threshold = Field(Threshold(), description="When compression begins.")
    layers: Layers = Field(Layers(), description="The share of the context that each layer may take.")
    reserve_tokens: Tokens = Field(
        256, description="Tokens of the context kept free beside the reply.", json_schema_extra=OK
    )
    keep: tuple[Name, ...] = Field(
        ("steering", "risks"),
        description="Kinds of items that no compression may drop or reword.",
        json_schema_extra=OK,
    )
