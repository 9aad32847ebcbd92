"""Where a fork begins, what it takes along, and what a log of one may not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness_core.kernel.checking.lifecycle import Lifecycle
from harness_core.kernel.checking.stages import Stages
from harness_core.kernel.evolve import evolve
from harness_core.kernel.forking import border, inheritance
from harness_core.kernel.projections.tree import family, fork_of
from harness_core.kernel.state import SessionState
from tests.kernel.handmade import SHA, Log


def begun() -> Log:
    return Log().add("session.created", config_digest=SHA).add("config.loaded", digest=SHA).add("session.started")


def forked(target: str | None = "b", **visits: int) -> Log:
    """A log that begins as a fork."""
    payload: dict[str, Any] = {"parent_id": "parent", "visits": visits, "artifacts": [], "steering": ["slowly"]}
    if target is not None:
        payload["target"] = target
    log = Log().add("session.created", config_digest=SHA).add("config.loaded", digest=SHA)
    return log.add("session.forked", **payload).add("session.started")


def borders(log: Log) -> list[int]:
    return [border(log.events[:until]) for until in range(1, len(log.events) + 1)]


def test_a_border_is_where_no_stage_is_open_and_one_is_about_to_be_entered() -> None:
    log = begun().visit("a").retried(2).taken("a", "retry").taken("a", "b").left("a").visit("b")
    log.taken("b", "completed").left("b").add("session.completed")
    assert borders(log) == [1, 2, 3, 3, 3, 3, 7, 8, 8, 8, 8, 8]


def test_what_is_said_between_two_stages_is_before_the_fork_and_an_end_is_not() -> None:
    log = begun().visit("a").taken("a", "nowhere").left("a").add("steering.received", text="slowly")
    assert borders(log)[-1] == 7
    assert borders(log.add("session.failed"))[-1] == 7


def test_a_fork_inherits_where_its_parent_was_going_and_how_often_it_was_where() -> None:
    artifact = {"ref": f"artifact://sha256-{SHA}", "artifact_id": "art_1", "type": "text", "status": "success"}
    item = {**artifact, "stage": "a", "visit": 0, "visit_id": "stg_a0", "attempt": 2, "warnings": [], "seq": 9}
    parent = SessionState("parent", target="b", visits_of={"a": 2, "b": 1}, steering=["slowly"])
    payload = inheritance(parent, [item])
    log = Log().add("session.forked", parent_id="parent", **payload)
    state = SessionState("fork")
    evolve(state, log.events[0])
    assert (state.forked_from, state.target, state.visits) == ("parent", "b", 3)
    assert (state.visits_of, state.steering) == (parent.visits_of, parent.steering)
    assert state.artifacts == [{**artifact, "stage": "a", "visit_id": "stg_a0"}]
    assert (state.approvals, state.grants, state.in_doubt, state.spent_tokens) == ({}, [], {}, 0)


def found(log: Log) -> list[tuple[str, int]]:
    rules = (Stages(), Lifecycle())
    return [(one.invariant, one.seq) for event in log.events for rule in rules for one in rule.see(event)]


WRONG: dict[str, tuple[Callable[[], Log], list[tuple[str, int]]]] = {
    "the first stage is not the one its parent went to": (lambda: forked(b=1).visit("c"), [("I-24", 5)]),
    "its stage is numbered as if it were the first": (lambda: forked(b=1).visit("b"), [("I-20", 5)]),
    "it begins anew, and its parent did not": (lambda: forked(None, a=1), [("I-24", 3)]),
    "it forks amid its own work": (
        lambda: begun().add("session.forked", parent_id="p", visits={}, artifacts=[], steering=[]), [("I-20", 4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_a_fork_may_not_say_is_found(name: str) -> None:
    log, wrong = WRONG[name]
    assert found(log()) == wrong


def test_a_fork_that_goes_on_where_its_parent_was_going_is_whole() -> None:
    assert found(forked(b=1).visit("b", 1)) == []
    assert found(forked(a=1).visit("b")) == []
    assert found(forked(None).visit("a")) == []


def test_a_family_is_the_same_from_any_member_and_ends_where_a_parent_is_gone() -> None:
    parents = {"1": "gone", "2": "1", "3": "1", "4": "2", "5": None, "6": "5"}
    documents = [{"id": name, "parent_id": parent} for name, parent in parents.items()]
    for member in "1234":
        assert [(one["id"], depth) for one, depth in family(documents, member)] == [
            ("1", 0), ("2", 1), ("4", 2), ("3", 1),
        ]  # fmt: skip
    assert [one["id"] for one, _ in family(documents, "6")] == ["5", "6"]


def test_a_chain_of_forks_may_be_long() -> None:
    documents = [{"id": f"{n:05}", "parent_id": f"{n - 1:05}" if n else None} for n in range(5000)]
    assert [depth for _, depth in family(documents, "02500")] == list(range(5000))


def test_only_a_fork_says_that_it_is_one() -> None:
    assert fork_of(begun().events) is None
    event = fork_of(forked().events)
    assert event is not None and event.payload["parent_id"] == "parent"
