"""A resume that starts an effect anew whose result was lost, as if it were known that it never happened."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.shell.dispatcher import Dispatcher

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(Dispatcher, "_settle", _settle)


def _settle(self: Dispatcher, call: Any, tool: Any, start: int) -> None:
    return None
