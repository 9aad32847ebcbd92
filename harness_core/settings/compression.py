"""compression.yaml: what of a model's context the assembled items may take, as a frozen model."""

from pydantic import Field

from .base import OK, Settings, Tokens

__all__ = ["CompressionSettings"]


class CompressionSettings(Settings):
    """The whole of compression.yaml. Ways to make content smaller come with the plugins that offer them."""

    reserve_tokens: Tokens = Field(
        256,
        description="Tokens of the context kept free for the role's own words, beside the reply.",
        json_schema_extra=OK,
    )
