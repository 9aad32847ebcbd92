"""What a role says for debugging in, the embedder told out: apart from the log, and never a reason to fail (A-30)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .ports.interruption import is_interruption

__all__ = ["TraceSink", "guarded_sink"]

TraceSink = Callable[[str, Mapping[str, Any]], object]
"""Told a name and facts; what it returns is dropped."""


def guarded_sink(sink: TraceSink | None) -> TraceSink | None:
    """A sink that swallows what goes wrong with it: a trace that fails may not fail what it traces."""
    if sink is None:
        return None

    def trace(name: str, facts: Mapping[str, Any]) -> None:
        try:
            sink(name, facts)
        except BaseException as error:  # contract.md names this place
            if is_interruption(error):
                raise

    return trace
