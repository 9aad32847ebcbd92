"""One step of the state: the state before goes in, and what is changed of it is copied once, everything else shared.

The state is plain JSON. A move writes only into what it owns: ``own`` copies a part the first time it is asked for.
What one outcome changes lies on one way from the top, so it costs the same beside ten branches or ten thousand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from harness_executor_workflow.plan.paths import Segment

from .program import Level, Program

__all__ = ["Frame", "Move", "new_level", "put", "step_state", "taken"]

_BITS: Final = 5
_WIDTH: Final = 1 << _BITS


class Frame(NamedTuple):
    """A level that is under way: its part of the state, owned, and where it stands.

    ``turn`` tells attempts of the ``parallel`` steps around it apart, ``number`` is the branch's place in the input.
    """

    level: Level
    state: dict[str, Any]
    roots: Mapping[str, Any]
    way: tuple[Segment, ...] = ()
    turn: str = ""
    outer: Frame | None = None
    within: str = ""
    number: int = 0


class Move:
    """The new state while it is made.

    ``agenda`` holds what is still to be done, by name, level and step, ``ending`` the levels that may be over when all
    of it is done: nothing of a run calls itself.
    """

    def __init__(self, program: Program, state: Mapping[str, Any]) -> None:
        self.program = program
        self.state: dict[str, Any] = dict(state)
        self.agenda: deque[tuple[str, Frame, str]] = deque()
        self.ending: deque[Frame] = deque()
        self._mine: dict[int, Any] = {id(self.state): self.state}

    def own(self, parent: Any, key: Any) -> Any:
        """The part under a key of a part that is owned, for writing."""
        part = parent[key]
        if id(part) not in self._mine:
            part = parent[key] = self.new(part.copy())
        return part

    def new(self, part: Any) -> Any:
        """A part that was made in this move, which nobody else has."""
        self._mine[id(part)] = part
        return part

    def made(self, part: Any) -> bool:
        """Whether the part was made or copied in this move; what is not is as it was before."""
        return id(part) in self._mine


def new_level(move: Move, level: Level) -> dict[str, Any]:
    """The state of a level of which nothing has begun; ``left`` is how many steps have not settled."""
    state = {"steps": {}, "running": {}, "left": len(level.steps), "failed": None, "over": False}
    made: dict[str, Any] = move.new(state)
    return made


def step_state(move: Move, frame: Frame, step: str) -> dict[str, Any]:
    """The state of a step, for writing."""
    steps = move.own(frame.state, "steps")
    if step not in steps:
        steps[step] = move.new({"visit": 0, "status": ""})
    found: dict[str, Any] = move.own(steps, step)
    return found


def put(move: Move, parent: dict[str, Any], key: str, size: int, index: int, value: Any) -> None:
    """Write one place of a table of ``size`` places, kept as lists within lists so that little of it is copied."""
    holder: Any = parent
    place: Any = key
    for shift in reversed(range(0, _height(size) * _BITS, _BITS)):
        if holder[place] is None:
            holder[place] = move.new([None] * _WIDTH)
        holder, place = move.own(holder, place), (index >> shift) & (_WIDTH - 1)
    holder[place] = value


def taken(table: Any, size: int) -> list[Any]:
    """Every place of the table, in order."""
    found = [table]
    for _ in range(_height(size)):
        found = [part for node in found for part in ([None] * _WIDTH if node is None else node)]
    return found[:size]


def _height(size: int) -> int:
    return max(1, -(-max(size - 1, 1).bit_length() // _BITS))
