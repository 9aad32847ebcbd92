"""A log and what somebody saw outside of it in, acknowledged events that are lost and effects gone wrong out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness_core.kernel.evolve import evolve
from harness_core.kernel.facts import Event, effect_id
from harness_core.kernel.projections.session import state_hash
from harness_core.kernel.state import SessionState
from harness_hookspecs.store import StoredEvent

from .history import Broken, History

__all__ = ["Outside"]


class Outside:
    """Acknowledged means stored (I-1), what happened had an intent (I-15) and a bound (I-16), the state is the fold
    of the log (I-12).

    Args:
        history: With what lies outside.
        session_id: Whose log it is.
    """

    def __init__(self, history: History, session_id: str) -> None:
        self._history = history
        self._state = SessionState(session_id=session_id)
        self._missing = set(history.acknowledged)
        self._starts: dict[tuple[str, str], int] = {}
        self._classes: dict[str, str] = {}  # effect id -> effect class
        self._denied: set[str] = set()  # effects that are said to have never happened
        self._done: dict[str, str] = {}  # effect ids whose call succeeded -> tool
        self._last = 0

    def stored(self, stored: StoredEvent) -> None:
        """An event is proved, whatever it says."""
        self._missing.discard((stored.seq, stored.id))
        self._last = stored.seq

    def see(self, event: Event) -> Iterator[Broken]:
        if self._history.state_hash is not None:
            evolve(self._state, event)
        call = (str(event.refs.get("role_call_id")), str(event.payload.get("callId")))
        if event.type == "harness.tool_call.started":
            self._starts[call] = self._starts.get(call, 0) + 1
            self._classes[effect_id(*call, self._starts[call])] = event.payload["effectClass"]
        elif event.type == "harness.tool_call.succeeded" and call in self._starts:
            self._done[effect_id(*call, self._starts[call])] = event.payload["toolName"]
        elif event.type == "effect.settled" and event.payload["outcome"] == "never_happened":
            self._denied.add(event.payload["effect_id"])
        yield from ()

    def end(self, *, effects: bool) -> Iterator[Broken]:
        """What is missing.

        Args:
            effects: Whether all intents and results are known, so that what happened can be held against them.
        """
        for seq, event_id in sorted(self._missing):
            yield Broken("I-1", seq, f"event {event_id} was acknowledged at seq {seq} and is not there")
        wanted = self._history.state_hash
        if wanted is not None and state_hash(self._state) != wanted:
            yield Broken("I-12", self._last, "the log does not fold to the state that its owner had in mind")
        if effects and self._history.happened is not None:
            yield from self._effects(Counter(line.key for line in self._history.happened))

    def _effects(self, happened: Counter[str]) -> Iterator[Broken]:
        for key, count in happened.items():
            effect_class = self._classes.get(key)
            if effect_class is None:
                yield Broken("I-15", self._last, f"{key} happened, and no event says that it was about to")
            elif key in self._denied:
                yield Broken("I-16", self._last, f"{key} happened, and it was settled that it never did")
            elif effect_class == "unkeyed" and count > 1:
                yield Broken("I-16", self._last, f"{key} cannot be repeated and happened {count} times")
            elif count > 1 + self._history.crashes:
                yield Broken("I-16", self._last, f"{key} happened {count} times")
        for key, tool in self._done.items():
            if not happened[key] and tool in self._tools():
                yield Broken("I-16", self._last, f"{tool} succeeded under {key}, under which nothing happened")

    def _tools(self) -> set[str]:
        return {line.tool for line in self._history.happened or ()}
