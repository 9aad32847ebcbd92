"""A reader that takes every event as it was stored, in whatever form an older version gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness_core.kernel.projections import event

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(event, "upcast", _upcast)


def _upcast(event_type: str, version: int, payload: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    return version, payload
