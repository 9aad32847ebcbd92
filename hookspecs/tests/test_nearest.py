"""The nearest name: capitals count least, the order of the known names nothing, and what is far is not guessed."""

from __future__ import annotations

import pytest

from harness_hookspecs.kit.nearest import nearest


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("statuz", ["stage", "status"], "status"),
        ("STATUS", ["statuse", "Status"], "Status"),
        ("status", ["status"], "status"),
        ("a", ["A", "a"], "A"),
        ("nothing", ["status", "stage"], None),
        ("x", [], None),
        ("nope", ["Scope"], None),
        ("modl", ["model"], "model"),
        ("", ["status"], None),
    ],
)
def test_the_name_that_was_most_likely_meant_is_found(name: str, known: list[str], meant: str | None) -> None:
    assert nearest(name, known) == nearest(name, reversed(known)) == nearest(name, set(known)) == meant
