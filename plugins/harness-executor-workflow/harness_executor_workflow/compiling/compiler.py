"""The compiler that a host calls: a document and what there is go in, a locked plan or its findings come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness_hookspecs.compiler import Compilation, Difference, Surroundings, VersionLock

from .authoring import plan_schema, sketch_schema
from .lock import differences
from .phases import compile_plan
from .sketch import expand

__all__ = ["WorkflowCompiler"]


class WorkflowCompiler:
    """Checks plans; see :class:`harness_hookspecs.compiler.Compiler`. It keeps nothing."""

    def compile(self, source: Any, surroundings: Surroundings) -> Compilation:
        """Check a plan."""
        return compile_plan(source, surroundings)

    def expand(self, sketch: Any, surroundings: Surroundings) -> Compilation:
        """Make a plan of a sketch and check it."""
        plan = expand(sketch, surroundings)
        return Compilation(findings=tuple(plan)) if isinstance(plan, list) else compile_plan(plan, surroundings)

    def drift(self, before: VersionLock, now: VersionLock) -> Sequence[Difference]:
        """What changed between two locks."""
        return differences(before, now)

    def plan_schema(self, surroundings: Surroundings) -> dict[str, Any]:
        """The JSON Schema of plans, for one request."""
        return plan_schema(surroundings)

    def sketch_schema(self, surroundings: Surroundings) -> dict[str, Any]:
        """The JSON Schema of sketches, for one request."""
        return sketch_schema(surroundings)
