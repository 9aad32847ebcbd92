"""A journal that reads intents and passes over their results, so that what is done is done again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness_core.shell import journal
from harness_hookspecs.store import StoredEvent

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setitem(journal._HANDLERS, "harness.tool_call.succeeded", _ended)


def _ended(self: journal.Journal, event: StoredEvent, payload: Mapping[str, Any]) -> None:
    return None
