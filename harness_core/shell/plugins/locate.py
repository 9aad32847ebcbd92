"""Where a module's code lies: its dotted name goes in, its folder or file comes out, and nothing of it is executed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["code_of", "code_state", "package_folders"]


def package_folders(package: str, path: Sequence[str]) -> list[str]:
    """List the folders of a package; only its top level is asked for, the rest is joined.

    Args:
        package: A dotted name.
        path: Where to look, like ``sys.path``; on the running interpreter's own path its finders for editable
            installations are asked too.
    """
    top, *rest = package.split(".")
    return [os.path.join(folder, *rest) for folder in _locations(top, path)[0]]


def code_of(module: str, path: Sequence[str]) -> str | None:
    """Give the folder of a package or the file of a plain module, ``None`` when neither is there."""
    top, *rest = module.split(".")
    folders, file = _locations(top, path)
    if not rest:
        return folders[0] if folders else file
    for folder in folders:
        place = os.path.join(folder, *rest)
        for candidate in (place, f"{place}.py"):
            if os.path.exists(candidate):
                return candidate
    return None


def _locations(top: str, path: Sequence[str]) -> tuple[list[str], str | None]:
    for spec in _specs(top, path):
        if spec.submodule_search_locations is not None:
            return list(spec.submodule_search_locations), None
        if spec.origin and os.path.isfile(spec.origin):
            return [], spec.origin
    return [], None


def _specs(top: str, path: Sequence[str]) -> Iterator[ModuleSpec]:
    from importlib import invalidate_caches
    from importlib.machinery import PathFinder

    invalidate_caches()
    finders = sys.meta_path if set(path) >= set(filter(None, sys.path)) else []
    for finder in [PathFinder, *(finder for finder in finders if finder is not PathFinder)]:
        find = getattr(finder, "find_spec", None)
        spec = find(top, list(path) if finder is PathFinder else None) if find else None
        if spec is not None:
            yield spec


def code_state(code: str | None) -> str:
    """Give a text that changes when the code beside the module's file changes; empty when there is no code."""
    from binascii import crc32

    try:
        if code is None or not os.path.isdir(code):
            found = os.stat(code or "")
            return f"{found.st_mtime_ns}:{found.st_size}"
        with os.scandir(code) as entries:
            files = sorted((entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py"))
    except OSError:
        return ""
    states = [(name, found.st_mtime_ns, found.st_size) for name, found in files]
    return f"{len(states)}:{crc32(repr(states).encode()):08x}"
