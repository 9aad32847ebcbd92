"""A buffer of results that is written and not emptied."""

from __future__ import annotations

import pytest

from harness_core.kernel.facts import Fact
from harness_core.shell.recorder import RoleCallRecorder

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(RoleCallRecorder, "_drain", _drain)


def _drain(self: RoleCallRecorder) -> tuple[tuple[Fact, ...], dict[str, bytes]]:
    return tuple(self._results), dict(self._blobs)
