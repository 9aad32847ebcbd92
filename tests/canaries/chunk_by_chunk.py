"""Chunks of a reply that are looked through one by one: a secret that is cut in two is shown."""

from __future__ import annotations

import pytest

from harness_core.shell.redaction import ChunkRedactor

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(ChunkRedactor, "feed", _feed)


def _feed(self: ChunkRedactor, text: str) -> str:
    return self._redactor.text(text)
