"""A loop that takes the new head after a conflict and keeps the state it had decided on."""

from __future__ import annotations

import pytest

from harness_core.shell.loop import SessionLoop

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(SessionLoop, "_fold_again", _fold_again)


def _fold_again(self: SessionLoop) -> None:
    self._seq = self._store.head(self.stream).seq
