from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness_hookspecs.contracts.rules import Contract, complaints, failing_rules, rule, rules_of


class DoorContract(Contract):
    @rule("door.opens")
    def test_opens(self) -> None:
        assert self.subject().startswith("open")

    @rule("door.closes")
    def test_closes(self) -> None:
        assert self.subject().endswith("close")

    @rule("door.closes")
    def test_closes_in_a_house(self) -> None:
        if not self.host.project_dir.is_dir():
            pytest.fail("no house")


def test_a_broken_subject_is_named_by_the_rule_it_breaks() -> None:
    assert rules_of(DoorContract) == {
        "door.opens": ("test_opens",),
        "door.closes": ("test_closes", "test_closes_in_a_house"),
    }
    assert failing_rules(DoorContract, lambda _: "open close") == set()
    assert failing_rules(DoorContract, lambda _: "shut close") == {"door.opens"}
    assert failing_rules(DoorContract, lambda _: "", only=["door.closes"]) == {"door.closes"}


def test_outcomes_that_are_no_exceptions_count_as_failures_and_skips_do_not() -> None:
    def leaving(_: Contract) -> str:
        raise SystemExit(3)

    assert failing_rules(DoorContract, leaving) == {"door.opens", "door.closes"}
    assert failing_rules(DoorContract, lambda _: pytest.skip("no door")) == set()


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"door.opens": "close", "door.closes": "open"}, []),
        ({"door.opens": "close"}, ["no broken subject for door.closes"]),
        ({"door.opens": "close", "door.closes": "open", "door.sings": ""}, ["no such rule: door.sings"]),
        ({"door.opens": "close", "door.closes": "close"}, ["door.closes is not noticed, only ['door.opens']"]),
        (
            {"door.opens": "", "door.closes": "open"},
            ["the subject for door.opens breaks too much: ['door.closes', 'door.opens']"],
        ),
    ],
)
def test_a_suite_is_proved_only_when_each_rule_has_a_subject_that_breaks_it(
    broken: dict[str, str], complaint: list[str]
) -> None:
    table = {name: (lambda _, text=text: text) for name, text in broken.items()}
    assert complaints(DoorContract, good=lambda _: "open close", broken=table, at_most=1) == complaint


def test_a_rule_that_restates_all_others_is_proved_apart() -> None:
    class Whole(DoorContract):
        @rule("door.whole")
        def test_whole(self) -> None:
            assert self.subject() == "open close"

    table: dict[str, Callable[[Any], str]] = {
        "door.opens": lambda _: "close",
        "door.closes": lambda _: "open",
        "door.whole": lambda _: "open and close",
    }
    assert complaints(Whole, good=lambda _: "open close", broken=table, at_most=1, overall=["door.whole"]) == []
    assert len(complaints(Whole, good=lambda _: "open close", broken=table, at_most=1)) == 2


def test_a_test_that_bears_no_rule_or_wants_a_fixture_is_refused() -> None:
    class Unnamed(Contract):
        def test_something(self) -> None: ...

    class Wanting(Contract):
        def test_something(self, tmp_path: object) -> None: ...

    for suite in (Unnamed, Wanting):
        with pytest.raises(TypeError, match="test_something"):
            rules_of(suite)
