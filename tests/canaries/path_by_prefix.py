"""A path that may be whatever begins like the workspace: a folder beside it whose name is longer does so, too."""

from __future__ import annotations

import posixpath

import pytest

from harness_hookspecs.errors import Refused
from harness_tool_filesystem import paths

__all__ = ["plant"]

_ROOT = "/home/project"


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(paths, "parse_path", _parse_path)


def _parse_path(text: str) -> str:
    whole = posixpath.normpath(posixpath.join(_ROOT, text))
    if not whole.startswith(_ROOT):
        raise Refused("The path leaves the workspace.", code="path.outside", where=text)
    return posixpath.relpath(whole, _ROOT)
