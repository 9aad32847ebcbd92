"""An owner that goes on with a log in which a newer version wrote what this one does not know."""

from __future__ import annotations

import pytest

from harness_core.shell.session import OwnedSession

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(OwnedSession, "_load", _load)


def _load(self: OwnedSession) -> None:
    self.loop.load()
