"""What a step has given goes in; whether a run holds more of it than it may comes out.

Outputs are kept as long as an expression may read them: until the run ends, or the branch in which they were given.
"""

from __future__ import annotations

from typing import Any, Final

from harness_hookspecs.kit.codec import dumps

from .move import Frame, Move

__all__ = ["MOST_HELD_BYTES", "hold", "let_go"]

MOST_HELD_BYTES: Final = 256 * 1024 * 1024
"""Of JSON, all outputs that a run has at one time; ten thousand branches may give 26 kB each."""


def hold(move: Move, frame: Frame, output: Any) -> dict[str, Any] | None:
    """Count an output to its level; the error that ends the run, where it is one too many."""
    size = len(dumps(output))
    for state in (frame.state, move.state):
        state["held"] = state.get("held", 0) + size
    if move.state["held"] <= MOST_HELD_BYTES or move.state["result"] is not None:  # the last step of all is let be
        return None
    message = f"The outputs of the steps of this run have more than {MOST_HELD_BYTES} bytes together."
    return {"code": "run.too_large", "message": message}


def let_go(move: Move, branch: Frame) -> None:
    """What a branch has given to itself is gone with it."""
    move.state["held"] = move.state.get("held", 0) - branch.state.get("held", 0)
