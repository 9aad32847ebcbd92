"""Whoever goes on with a session looks after the timers it asks for itself, and not after those it had."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from harness_core.kernel.state import OpenRequest
from harness_core.shell.timers import Timers

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(Timers, "found", _found)


def _found(self: Timers, timers: Iterable[OpenRequest]) -> None:
    return None
