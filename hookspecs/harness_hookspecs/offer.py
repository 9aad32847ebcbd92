"""One frozen value for everything a plugin can bring: its name, its settings and how it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["EXECUTOR_ROLES", "KINDS", "WORKFLOW_NAME", "ExecutorRole", "Kind", "Offer"]

Kind = Literal[
    "provider",
    "tool",
    "role",
    "compression",
    "validator",
    "artifact",
    "executor",
    "engine",
    "rules",
    "store",
    "sandbox",
    "mount",
    "approver",
    "broker",
    "surface",
    "observer",
    "workflow",
]

KINDS: tuple[str, ...] = get_args(Kind)

ExecutorRole = Literal["planner", "orchestrator", "worker.ai-generate", "worker.code-run", "worker.tool-call", "fixer"]
EXECUTOR_ROLES: tuple[ExecutorRole, ...] = get_args(ExecutorRole)
"""The six executor roles and no other (A-19); they stand here because naming them must cost no import of types."""

WORKFLOW_NAME: Final = r"(?!wfv_)[a-z][a-z0-9._-]{0,99}"
"""How a workflow may be called, in a file or as an offer: its plans have the same name."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer(Generic[T]):
    """What a ``harness_provide_<kinds>`` hook returns, once per thing offered.

    Attributes:
        kind: One of :data:`KINDS`; it must be the kind of the hook that returned it.
        name: The name configuration chooses it by, ``[A-Za-z][A-Za-z0-9_.-]{0,63}``.
        build: Called at most once per session and configuration entry with the checked settings and the
            kind's host protocol; returns the thing. What it raises is a ``plugin.failed`` event, or the error
            ``plugin.bound_broken`` of who needs the thing; so is a thing that lacks a method of its kind's protocol.
        settings: Returns the pydantic class that checks the YAML of this name; ``None`` means it takes no
            settings. A callable, so that listing offers imports no pydantic.
        roles: For kind ``role``: the executor roles it serves. Empty for every other kind.
        version: Version of the offered thing where it differs from its distribution's, for manifests.
        look: Called by ``harness doctor`` with what ``build`` would be given. Says in one line what is there, or
            raises what ``build`` would, and changes nothing: no file is made, mended or written to. ``None`` means
            that only building it tells.
    """

    kind: Kind
    name: str
    build: Callable[[Any, Any], T]
    settings: Callable[[], type[BaseModel]] | None = None
    roles: tuple[str, ...] = field(default=())
    version: str | None = None
    look: Callable[[Any, Any], str] | None = None
