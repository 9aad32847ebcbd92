"""A sum of tokens that adds the cached ones, which are a part of the input already."""

from __future__ import annotations

import pytest

from harness_hookspecs.messages import Usage

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(Usage, "total_tokens", property(_total_tokens))


def _total_tokens(self: Usage) -> int:
    return self.input_tokens + self.cached_input_tokens + self.output_tokens
