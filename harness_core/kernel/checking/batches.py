"""Events in, those out that were decided together with the one before them and are not stored with it (I-2)."""

from __future__ import annotations

from collections.abc import Iterator

from harness_core.kernel.facts import Event

from .history import Broken

__all__ = ["Batches"]

_FOLLOWED: dict[str, frozenset[str]] = {
    "budget.reserved": frozenset({"harness.model.called"}),
    "harness.model.responded": frozenset({"budget.settled"}),
    "harness.model.failed": frozenset({"budget.settled"}),
    "transition.taken": frozenset({"stage.left", "retry.scheduled"}),
}
"""What always comes right after, in the same decision: nobody else's event can stand between them."""


class Batches:
    """A batch is stored whole or not at all, and nothing is stored in its middle."""

    def __init__(self) -> None:
        self._before = ""
        self._call = ""  # the one that was reserved for right before

    def see(self, event: Event) -> Iterator[Broken]:
        before, self._before = self._before, event.type
        call, self._call = self._call, str(event.payload.get("call_id")) if event.type == "budget.reserved" else ""
        wanted = _FOLLOWED.get(before)
        if wanted is not None and event.type not in wanted:
            yield Broken("I-2", event.seq, f"{event.type} stands in the middle of a batch, right after {before}")
        elif call and event.payload.get("callId") != call:
            yield Broken("I-2", event.seq, f"the reservation for {call} was stored without its call")
