"""Kind ``observer``: told of every committed event and of provisional chunks; its errors are never fatal."""

from __future__ import annotations

from typing import Protocol

from .store import StoredEvent

__all__ = ["Observer"]


class Observer(Protocol):
    """What an offer of kind ``observer`` builds; switched off after three errors."""

    def on_event(self, event: StoredEvent) -> None:
        """Called once per event, in order, after its commit."""

    def close(self) -> None:
        """Called once at the end; export what is left."""
