"""Kind ``role``: what a harness may say of its prompt beside running tasks; reached as names of ``role``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from .offer import ExecutorRole

if TYPE_CHECKING:
    from .role import BoundTool

__all__ = ["DescribesPrompt", "PromptPart", "ShowsPrompt"]


@runtime_checkable
class DescribesPrompt(Protocol):
    """A role whose prompt has a version and an addendum of its own, which then stand in the manifest."""

    def prompt_facts(self, role: ExecutorRole) -> Mapping[str, str]:
        """``prompt_template_version`` and ``addendum_hash`` (lower-case SHA-256 hex) for calls under ``role``."""


class PromptPart(NamedTuple):
    """One part of a prompt as people are shown it. The label is never sent; ``id`` names a text of the role's own."""

    label: str
    text: str
    id: str | None = None


@runtime_checkable
class ShowsPrompt(Protocol):
    """A role that can take its prompt apart for people; it is not called for that."""

    def show_prompt(
        self, role: ExecutorRole, system: Sequence[str], tools: Mapping[str, BoundTool]
    ) -> Sequence[PromptPart]:
        """The parts of the system message in their order, as a call under ``role`` with these texts and tools would
        send it."""

    def label_prompt(self, role: ExecutorRole, text: str) -> Sequence[PromptPart] | None:
        """The parts of a system message that was sent under ``role``; ``None`` for a text that is not this role's."""
