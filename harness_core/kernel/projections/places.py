"""Events in their order in, for each the stage visit, the attempt and the role it belongs to out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from harness_core.kernel.facts import Event

__all__ = ["NOWHERE", "Place", "Places", "placed"]


@attrs.frozen
class Place:
    """Where in a session something happened; empty texts before the first stage."""

    stage: str
    visit_id: str
    visit_index: int
    attempt: int
    persona: str
    model: str
    max_attempts: int


NOWHERE = Place("", "", 0, 0, "", "", 0)


class Places:
    """Follows a stream. One visit is open at a time, so the last one entered is where things happen."""

    def __init__(self) -> None:
        self.now = NOWHERE
        self.visits = 0
        self._roles: dict[str, str] = {}

    def see(self, event: Event) -> Place:
        """Take the next event; gives its place."""
        payload = event.payload
        if event.type == "stage.entered":
            self.visits += 1
            self.now = Place(
                payload["stage"],
                payload["visit_id"],
                payload["visit_index"],
                1,
                payload["persona"],
                payload["model"],
                payload["max_attempts"],
            )
        elif event.type == "retry.scheduled":
            # The request for a further attempt still belongs to the one that failed.
            before, self.now = self.now, attrs.evolve(self.now, attempt=payload["attempt"])
            return before
        elif event.type == "role.requested":
            self._roles[payload["role_call_id"]] = payload["role"]
        return self.now

    def role_of(self, event: Event) -> str:
        """The executor role behind an event of a role call; empty for any other."""
        return self._roles.get(str(event.refs.get("role_call_id", "")), "")


def placed(events: Iterable[Event]) -> Iterator[tuple[Event, Place]]:
    """Each event with its place."""
    places = Places()
    for event in events:
        yield event, places.see(event)
