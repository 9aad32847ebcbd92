"""The time a session was active, taken from the time of day instead of the clock that only goes on."""

from __future__ import annotations

import pytest

from harness_core.shell.services import ActiveTime

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(ActiveTime, "lap_ms", _lap_ms)


def _lap_ms(self: ActiveTime) -> int:
    before, now = self.__dict__.get("before"), self._clock.now()
    self.__dict__["before"] = now
    return 0 if before is None else int((now - before).total_seconds() * 1000)
