"""Timers that a process keeps in, what of them it still knows out."""

from __future__ import annotations

from harness_core.kernel.state import OpenRequest, SessionState
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_core.shell.timers import Timers


def opened(state: SessionState, name: str, delay_ms: int, asked_at: str) -> OpenRequest:
    found = OpenRequest("timer", name, {"delay_ms": delay_ms}, 1, "e", asked_at=asked_at)
    state.open[name] = state.timers[name] = found
    return found


def test_of_a_timer_that_was_due_nothing_is_kept_once_it_has_ended() -> None:
    state, ports = SessionState(), SimulatedPorts(1)
    now = ports.clock.now().isoformat()
    timers = Timers(ports, lambda: state, 10)
    first = opened(state, "first", 0, now)
    timers.found([first])
    assert timers.take_due() == ("first",)
    timers.found([first])  # the session stopped before it was told, and looks at its log again
    assert timers.take_due() == ("first",)
    del state.open["first"], state.timers["first"]
    timers.found([opened(state, "second", 3_600_000, now)])
    assert [*timers._at] == ["second"]
