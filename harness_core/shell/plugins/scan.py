"""Distributions on a path: folders go in, each distribution that has entry points comes out, with the file's state.

Nothing is parsed here but names of folders. The first folder on the path that holds a distribution wins, as it does
for imports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .names import normalise

__all__ = ["ENTRY_POINTS", "FileState", "Found", "file_state", "folders_state", "scan"]

ENTRY_POINTS = "entry_points.txt"

FileState = tuple[str, int, int]
"""A path, its modification time in nanoseconds and its size; ``-1`` twice when there is nothing."""


class Found(NamedTuple):
    """A distribution's metadata folder and the state of its entry points file."""

    distribution: str
    folder: str
    modified_ns: int
    size_bytes: int

    @property
    def file(self) -> str:
        """The path of its entry points."""
        return os.path.join(self.folder, ENTRY_POINTS)


def scan(path: Sequence[str]) -> list[Found]:
    """List the distributions with entry points, by name; one that a former folder has too is left out."""
    found: dict[str, Found] = {}
    seen: set[str] = set()
    for folder in dict.fromkeys(path):
        here = sorted(_metadata_folders(folder))
        for distribution, metadata in here:
            if distribution not in seen:
                _, modified_ns, size_bytes = file_state(os.path.join(metadata, ENTRY_POINTS))
                if size_bytes >= 0:
                    found[distribution] = Found(distribution, metadata, modified_ns, size_bytes)
        seen.update(distribution for distribution, _ in here)
    return [found[name] for name in sorted(found)]


def _metadata_folders(folder: str) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(folder or os.curdir) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith((".dist-info", ".egg-info")):
                    yield _distribution(name), entry.path
    except OSError:  # not there, not a folder (an archive), not ours to read: imports skip it too
        return


def _distribution(name: str) -> str:
    """The name before the version: ``harness_tool_git-0.1.0.dist-info``, ``harness_tool_git.egg-info``."""
    stem, _, suffix = name.rpartition(".")
    # A version in dist-info holds no dash; an egg's name holds none, but its version may be followed by -py3.11.
    return normalise(stem.rpartition("-")[0] or stem if suffix == "dist-info" else stem.partition("-")[0])


def file_state(path: str) -> FileState:
    """Give a file's path, modification time in nanoseconds and size, ``-1`` twice when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return path, -1, -1
    return path, found.st_mtime_ns, found.st_size


def folders_state(path: Sequence[str]) -> list[int]:
    """Give the modification times of the folders: they change when anything is installed into or removed from them."""
    return [file_state(folder)[1] for folder in dict.fromkeys(path)]
