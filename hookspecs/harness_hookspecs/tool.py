"""Kind ``tool``: a named set of tools, each with a tier, an effect class and two schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from .host import CancelToken, Ports

__all__ = [
    "TIERS",
    "EffectClass",
    "Previews",
    "Probes",
    "Settled",
    "Tier",
    "ToolContext",
    "ToolResult",
    "ToolSet",
    "ToolSpec",
]

Tier = Literal["T0", "T1", "T2", "T3", "T4"]
TIERS: tuple[Tier, ...] = ("T0", "T1", "T2", "T3", "T4")
"""Inference only, read-only, reversible change, external or network, destructive (B-75)."""

EffectClass = Literal["pure", "keyed", "unkeyed"]
"""pure and keyed repeat with the same key after a crash; unkeyed becomes ``in_doubt`` (architecture D-6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool as the host knows it.

    Attributes:
        name: ``set_tool``, for example ``filesystem_read``; ``[a-z0-9_]{1,64}``.
        description: What the model reads, one or two sentences.
        input_schema: JSON Schema 2020-12 of the arguments, an object with ``additionalProperties: false``.
        tier: How much it may do; there is no default, a tool without one is a load error (K-25).
        effect: What a crash in mid-call means; a tool that says nothing is unkeyed.
        output_schema: JSON Schema of the result, ``None`` for any JSON.
        requires: Model capabilities without which the model is not shown this tool.
        timeout_seconds: Upper bound of one call, ``None`` for the configured default.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    tier: Tier
    effect: EffectClass = "unkeyed"
    output_schema: Mapping[str, Any] | None = None
    requires: tuple[str, ...] = ()
    timeout_seconds: float | None = None


class ToolContext(NamedTuple):
    """What goes with one call."""

    cancel: CancelToken
    ports: Ports
    key: str  # the idempotency key, the same when the call is repeated after a crash
    timeout_seconds: float


class ToolResult(NamedTuple):
    """What a tool gives back: strict JSON, and whether something that was asked for is missing from it."""

    value: Any
    truncated: bool = False


class Settled(NamedTuple):
    """What a probe found out about an effect whose result was lost."""

    outcome: Literal["happened", "never_happened", "unknown"]
    value: Any = None


class ToolSet(Protocol):
    """What an offer of kind ``tool`` builds."""

    def specs(self) -> Sequence[ToolSpec]:
        """The tools of the set; the same ones for the life of the set."""

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Run one call whose arguments satisfy the schema and which is allowed to run.

        Raises:
            ToolError: It could not be done; the model reads the message and the hint.
            Refused: The set's own confinement said no.
            Cancelled: The token was set.
        """


@runtime_checkable
class Probes(Protocol):
    """A tool set that can find out whether a call happened."""

    def probe(self, name: str, args: Mapping[str, Any], key: str) -> Settled:
        """Look, without changing anything, whether the call with this key took effect."""


@runtime_checkable
class Previews(Protocol):
    """A tool set that can show what a call would do."""

    def preview(self, name: str, args: Mapping[str, Any]) -> str | None:
        """Text for the approver, usually a unified diff; ``None`` when there is nothing to show."""
