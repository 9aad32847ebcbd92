"""An approval that is bound to the tool, and not to what it is called with."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel import approvals, decide

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(decide, "approval_digest", _digest)


def _digest(tool: str, args: Any, **where: Any) -> str:
    return approvals.approval_digest(tool, {}, **where)
