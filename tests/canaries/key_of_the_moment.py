"""An idempotency key that is another one whenever the call is met."""

from __future__ import annotations

from itertools import count

import pytest

from harness_core.kernel.facts import derive
from harness_core.shell import dispatcher

__all__ = ["plant"]

_met = count()


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(dispatcher, "effect_id", _effect_id)


def _effect_id(role_call_id: str, call_id: str, start: int = 1) -> str:
    return derive("eff", role_call_id, call_id, start, next(_met))
