"""Pydantic's look for plugins of its own: whether any is installed goes in, and where none is, nothing is looked for.

Pydantic looks when it builds its first model, by ``importlib.metadata``; that takes longer than a bare Python's start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from harness_core.shell.plugins.scan import scan
from harness_core.shell.ports_startup import read_file

__all__ = ["look_for_none_where_none_is"]

_LOOK = "pydantic.plugin._loader"
_GROUP = b"[pydantic]"


def look_for_none_where_none_is() -> None:
    """Spare this process the look; called once, before the first model is built, by who owns the process."""
    sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds the module that looks, and hands out one that has nothing to find."""

    def find_spec(self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _LOOK:
            return None
        sys.meta_path.remove(self)
        spec = None if _any_is_installed() else PathFinder.find_spec(name, path)
        return spec and ModuleSpec(name, _Loader(spec), origin=spec.origin)  # type: ignore[arg-type]  # the protocol


class _Loader:
    """Makes the module that finds nothing; asked for anything but that, it becomes the true one."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = spec

    def create_module(self, _spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(get_plugins=tuple, __getattr__=lambda name: self._true(module, name))

    def _true(self, module: ModuleType, name: str) -> Any:
        if name.startswith("__") or self._spec.loader is None:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        vars(module).pop("__getattr__", None)
        self._spec.loader.exec_module(module)
        return getattr(module, name)


def _any_is_installed() -> bool:
    return any(_GROUP in (read_file(found.file) or b"") for found in scan(sys.path))
