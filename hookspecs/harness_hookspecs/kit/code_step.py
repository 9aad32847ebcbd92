"""A code step, its input and an engine in, the output of its source out, held to the step's contract.

Roles run a step's own source by this, and the host what a fixer proposes, so that both mean the same by a run: the same
tools, limits, clock and randomness. The clock stands at the start of the session and the randomness is drawn from where
the step stands, so equal runs give equal outputs, in a replay too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from harness_hookspecs.engine import Engine, EngineError, EngineLimits
from harness_hookspecs.errors import Cancelled, RoleError, Suspend
from harness_hookspecs.host import CancelToken
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.kit.step_output import held
from harness_hookspecs.role import BoundTool
from harness_hookspecs.workflow import CodeRunStep

__all__ = ["LIMITS", "CodePlace", "run_code", "tool_of"]

LIMITS: Final = EngineLimits(timeout_seconds=60.0, memory_bytes=268_435_456, output_bytes=1_048_576)
"""Bounds of a run where the step has none of its own; an engine may be stricter."""

_MAX_TRACEBACK_CHARACTERS: Final = 4_000


class CodePlace(NamedTuple):
    """Where code runs: all that its clock and its randomness depend on."""

    run_id: str
    step_path: str
    visit_index: int

    @property
    def seed(self) -> int:
        """What randomness is drawn from; the same for every attempt."""
        said = f"{self.run_id}\x1f{self.step_path}\x1f{self.visit_index}"
        return int.from_bytes(hashlib.sha256(said.encode()).digest()[:4])

    @property
    def epoch_ms(self) -> int:
        """When the session began, which its id says (a UUIDv7); 0 where the id says nothing of the kind."""
        head = self.run_id.replace("-", "")[:12]
        try:
            return int(head, 16)
        except ValueError:
            return 0


def run_code(
    engine: Engine,
    step: CodeRunStep,
    step_input: Any,
    *,
    tools: Mapping[str, BoundTool],
    place: CodePlace,
    cancel: CancelToken,
    source: str | None = None,
) -> Any:
    """Run the step's source, or another one in its place.

    Args:
        engine: What runs it.
        step: Says which tools it may call, how long it may take and what it must give.
        step_input: What ``main`` is given.
        tools: The tools of the call; each of the step's must be among them.
        place: Where it runs.
        cancel: Ends it.
        source: Another source than the step's own.

    Returns:
        The value ``main`` returned, which meets the output contract.

    Raises:
        RoleError: ``engine.KIND`` with the traceback: the code gave no output; ``engine.output_invalid`` with the
            findings: it gave another one than was promised; ``tool.unknown``.
        Suspend: A tool call must wait, whatever the code made of that.
        Cancelled: The session is over.
    """
    stops: list[BaseException] = []
    named = {name: _Watched(tool_of(tools, name), stops) for name in step.with_.tools or ()}
    limits = LIMITS if step.timeout_ms is None else LIMITS._replace(timeout_seconds=step.timeout_ms / 1000)
    done = engine.run(
        step.with_.source if source is None else source,
        thaw(step_input),
        tools=named,
        limits=limits,
        seed=place.seed,
        epoch_ms=place.epoch_ms,
        cancel=cancel,
    )
    if stops:  # the code may have caught it, and an engine may have made an error of it
        raise stops.pop(0)
    cancel.raise_if_cancelled()
    if isinstance(done, EngineError):
        raise _failed(done)
    return held(step.output, done, code="engine.output_invalid")


def tool_of(tools: Mapping[str, BoundTool], name: str) -> BoundTool:
    """The tool that a plan names, where dots stand for underscores.

    Raises:
        RoleError: ``tool.unknown``, naming those that there are.
    """
    found = tools.get(name) or tools.get(name.replace(".", "_"))
    if found is None:
        known = ", ".join(sorted(tools)) or "none"
        raise RoleError(f"there is no tool {name!r} here; tools: {known}", code="tool.unknown", tool=name)
    return found


def _failed(error: EngineError) -> RoleError:
    trace = error.traceback_text
    if len(trace) > _MAX_TRACEBACK_CHARACTERS:
        trace = "(cut) ..." + trace[-_MAX_TRACEBACK_CHARACTERS:]
    return RoleError(error.message, code=f"engine.{error.kind}", **({"traceback": trace} if trace else {}))


class _Watched:
    """A tool as code calls it; what must end the whole call is kept, whatever happens to it on the way up."""

    def __init__(self, tool: BoundTool, stops: list[BaseException]) -> None:
        self._tool, self._stops = tool, stops
        self.description, self.input_schema = tool.description, tool.input_schema

    def execute(self, args: Mapping[str, Any], *, scope: str = "") -> Any:
        """Call it, unless another call has ended everything."""
        if self._stops:
            raise self._stops[0]
        try:
            return self._tool.execute(args, scope=scope)
        except (Suspend, Cancelled) as stop:
            self._stops.append(stop)
            raise
