"""Harness: an event-sourced orchestration kernel whose concrete parts are all plugins. Start at ``Host``."""

from __future__ import annotations

from typing import Any

__all__ = ["HarnessError", "Host", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Host":
        from .shell.host import Host

        return Host
    if name == "HarnessError":
        from harness_hookspecs.errors import HarnessError

        return HarnessError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
