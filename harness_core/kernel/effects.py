"""What ``react`` asks the shell to do: frozen values, performed at the edge."""

from __future__ import annotations

import attrs

__all__ = ["Ask", "CompilePlan", "Effect", "GatherContext", "RunChild", "RunRole", "Validate"]


@attrs.frozen
class GatherContext:
    """Gather the facts of a stage attempt and assemble its context."""

    effect_id: str
    key: str


@attrs.frozen
class RunRole:
    """Run a role call, from its start; recorded calls answer at once."""

    effect_id: str
    key: str


@attrs.frozen
class Validate:
    """Let every validator of a level judge."""

    effect_id: str
    key: str


@attrs.frozen
class CompilePlan:
    """Have a plan checked by its executor's compiler."""

    effect_id: str
    key: str


@attrs.frozen
class RunChild:
    """Begin a child session or go on with it, and wait until it rests."""

    effect_id: str
    key: str


@attrs.frozen
class Ask:
    """Ask the approvers about a pending approval."""

    approval_id: str
    key: str


Effect = GatherContext | RunRole | Validate | CompilePlan | RunChild | Ask
