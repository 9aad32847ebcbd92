"""A behaviour's name in, a role harness that behaves so out: a plain class with one operation and no base."""

from __future__ import annotations

import os
from typing import Any

from harness_hookspecs.role import RoleContext, RoleTask

from .behaviours import BEHAVIOURS

__all__ = ["Probe", "witness"]


class Probe:
    """Does what its name says."""

    def __init__(self, name: str) -> None:
        self._behave = BEHAVIOURS[name]

    def run(self, task: RoleTask, ctx: RoleContext) -> Any:
        """Run the behaviour; it may return and raise anything."""
        return self._behave(task, ctx)


def witness(file: str, line: str) -> None:
    """Append a line; ``!`` as the file's name fails."""
    if file == "!":
        raise RuntimeError("the listener fails, as it was told to")
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)
