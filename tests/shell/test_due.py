"""What is due is begun at once by as few workers as it takes (D-3)."""

from __future__ import annotations

import pytest

from harness_core.shell.due import DueEffects

MANY = 40


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def due(calls: list[str]) -> DueEffects:
    return DueEffects(lambda: calls.append("called"))


def test_what_waits_longest_is_taken_first_and_by_one_only(due: DueEffects) -> None:
    due.put(["a", "b"])
    due.put(["c"])
    assert [due.take() for _ in range(4)] == ["a", "b", "c", None]


def test_one_worker_is_on_its_way_however_much_is_due(due: DueEffects, calls: list[str]) -> None:
    due.put(range(MANY))
    due.call_worker()
    due.call_worker()
    assert calls == ["called"] and due.is_served()
    due.arrived()
    assert not due.is_served()
    due.call_worker()
    assert len(calls) == 2


def test_nobody_is_called_for_nothing_or_for_what_the_caller_takes_itself(due: DueEffects, calls: list[str]) -> None:
    due.call_worker()
    due.put(["a"])
    due.call_worker(leave=1)
    assert not calls and not due.is_served()
    due.put(["b"])
    due.call_worker(leave=1)
    assert calls == ["called"]


def test_a_worker_that_cannot_come_is_told_and_another_may_be_called(calls: list[str]) -> None:
    def refuse() -> None:
        calls.append("called")
        raise RuntimeError("can't start new thread")

    due = DueEffects(refuse)
    due.put(["a"])
    for _ in range(2):
        with pytest.raises(RuntimeError, match="new thread"):
            due.call_worker()
    assert len(calls) == 2 and not due.is_served()
