"""A repair among other calls in, what of the log is read for it out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness_core.kernel.state import OpenRequest
from harness_core.shell.earlier_calls import earlier_results
from harness_hookspecs.executor import Outcome, Request, RoleCall, StageInput
from tests.playing import Play, definition

CALLS = {"a": ("a", 0), "b": ("b", 0), "a again": ("a", 1), "fix b": ("b", 0), "fix a again": ("a", 1)}


class InTurn:
    """Asks for the calls one after the other; the last ones are repairs."""

    def start(self, stage_input: StageInput) -> Any:
        return 0

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return state + 1

    def next(self, state: Any) -> tuple[Request, ...]:
        name, (path, visit) = [*CALLS.items()][state]
        role: Any = "fixer" if name.startswith("fix") else "worker.code-run"
        return (RoleCall(request_id=name, role=role, task={}, step_path=path, visit_index=visit),)


class Reads:
    """A store that only says what it is asked for."""

    def read(self, stream: str, *, after: int = 0, until: int | None = None) -> Iterator[Any]:
        self.asked = (after, until)
        return iter(())


@pytest.mark.parametrize(("repair", "of"), [("fix b", "b"), ("fix a again", "a again")])
def test_for_a_repair_only_what_happened_since_its_step_began_is_read(repair: str, of: str) -> None:
    play = Play(definition(executors={"agent": InTurn()})).to_role()
    seqs: dict[str, int] = {}
    request: Any = None
    while repair not in seqs:
        request = play.open_one("role")
        seqs[request.payload["request_id"]] = request.seq
        if repair not in seqs:
            play.role_fails("engine.runtime")
    assert isinstance(request, OpenRequest) and play.state.visit is not None
    assert request.place in play.state.visit.repaired
    store: Any = Reads()
    earlier_results(store, "stream", request, play.state.visit)
    assert store.asked == (seqs[of], seqs[repair])
