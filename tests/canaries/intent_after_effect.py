"""The intent of a tool call that is not waited for: it rides with what comes after the effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness_core.kernel.facts import Fact
from harness_core.shell.recorder import RoleCallRecorder

__all__ = ["plant"]

_right = RoleCallRecorder.intend


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(RoleCallRecorder, "intend", _intend)


def _intend(
    self: RoleCallRecorder, facts: Sequence[Fact], blobs: Mapping[str, bytes] | None = None, **more: Any
) -> None:
    if facts[-1].type != "harness.tool_call.started":
        return _right(self, facts, blobs, **more)
    self.check_open()
    return self.result(facts, blobs)
