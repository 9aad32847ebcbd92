"""The kinds of a task and of a result as pydantic tells them apart; imported where the first of them is parsed.

To build them takes ten milliseconds. pydantic guards the building of a model against threads but not that of an
adapter, so side by side each thread would build its own; an import is done once, and whoever comes meanwhile waits.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from .role import RoleResult, RoleTask

__all__ = ["RESULT", "TASK"]

TASK: TypeAdapter[Any] = TypeAdapter(RoleTask)
RESULT: TypeAdapter[Any] = TypeAdapter(RoleResult)
