"""Goal 8: agent turns with one tool call each go through a session, what a turn costs comes out, early and late."""

from __future__ import annotations

from collections.abc import Iterator

from ._agent import ready_turns
from ._stores import new_store
from .measure import Figure, at_most, cpu_microseconds, medians

__all__ = ["NAME", "run", "turn_microseconds"]

NAME = "agent"

FEW, MANY, ROUNDS = 50, 200, 5  # turns, as goal 8 names them


def run() -> Iterator[Figure]:
    """Every event durable, fsync out of the way (NORMAL); a turn is a model call, a tool call and what follows."""
    found = medians(
        {"few": lambda: turn_microseconds(FEW), "many": lambda: turn_microseconds(MANY)},
        rounds=ROUNDS,
    )
    yield at_most("agent.turn", found["few"], "us CPU/turn", must=800.0, aim=150.0)
    few = (f"{FEW} turns", found["few"])
    yield at_most(f"agent.turn.of_{MANY}", found["many"], "us CPU/turn", of=few, must=1.15, aim=1.05)


def turn_microseconds(turns: int) -> float:
    """CPU of one turn of a session of so many, from the session's beginning to its end."""
    with new_store("NORMAL") as store, ready_turns(store, turns) as play:
        return cpu_microseconds(play, turns)
