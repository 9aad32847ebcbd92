"""A call that runs under the first grant its tool was given, whether that was used before or not."""

from __future__ import annotations

import pytest

from harness_core.shell.dispatcher import Dispatcher

__all__ = ["plant"]

_right = Dispatcher._decision


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(Dispatcher, "_decision", _decision)


def _decision(self: Dispatcher, approval_id: str) -> str:
    granted = _right(self, approval_id)
    first: dict[str, str] = self.__dict__.setdefault("first", {})
    return first.setdefault(self._loop.state.approvals[approval_id].payload["name"], granted)
