"""Who takes part: every word about a plugin counts, names are compared in normal form, nobody wins by being there."""

from __future__ import annotations

import pytest

from harness_core.shell.plugins.policy import Named, Selection, judge, unknown_names, with_flags
from harness_core.shell.plugins.records import Record
from harness_hookspecs.manifest import Flaw, Provided


def record(name: str, *offers: str, **more: object) -> Record:
    named = [offer.split(":") for offer in offers or (f"tool:{name}",)]
    provides = tuple(Provided(kind, offered) for kind, offered in named)
    facts = {"id": name, "distribution": name, "version": "1", "module": name.replace("-", "_"), "capabilities": {}}
    return Record(**{**facts, "provides": provides, **more})  # type: ignore[arg-type]


def statuses(selection: Selection, *records: Record) -> dict[str, str]:
    return {row.record.distribution: row.status for row in judge(records, selection)}


def named(*names: str, where: str = "harness.yaml:3:5") -> tuple[Named, ...]:
    return tuple(Named(name, where) for name in names)


@pytest.mark.parametrize("name", ["acme-tool", "ACME.Tool", "acme_tool", "acme-dist", "acme_module"])
def test_id_distribution_and_module_in_any_spelling_disable(name: str) -> None:
    one = record("acme-tool", distribution="acme-dist", module="acme_module")
    [row] = judge([one], Selection(disable=named(name)))
    assert (row.status, row.reason) == ("disabled", "disabled by harness.yaml:3:5")


def test_explicit_takes_only_who_is_allowed_and_declares() -> None:
    selection = Selection(mode="explicit", allow=named("a", "b"))
    assert statuses(selection, record("a"), record("b", capabilities=None), record("c")) == {
        "a": "ok",
        "b": "skipped",
        "c": "disabled",
    }


def test_disabled_beats_allowed() -> None:
    assert statuses(Selection(mode="explicit", allow=named("a"), disable=named("a")), record("a")) == {"a": "disabled"}


def test_flags_come_before_files_and_may_leave_everything_out() -> None:
    said = with_flags(Selection(disable=named("a")), [("b", "--no-plugin")])
    rows = judge([record("a"), record("b"), record("c")], said)
    assert [row.reason for row in rows] == ["disabled by harness.yaml:3:5", "disabled by --no-plugin", None]
    nothing = with_flags(Selection(), [], nothing="--no-plugins")
    assert [row.reason for row in judge([record("a")], nothing)] == ["disabled by --no-plugins"]


def test_names_that_nobody_has_are_errors_with_their_place() -> None:
    said = Selection(disable=named("acme-tol"), allow=named("a"), require=named("gone"))
    said = with_flags(said, [("nobody", "HARNESS_DISABLE_PLUGINS")])
    errors = unknown_names([record("acme-tool"), record("a")], said)
    assert [(error.code, error.where, error.message) for error in errors] == [
        ("plugin.unknown", "HARNESS_DISABLE_PLUGINS", "no installed plugin is called \"nobody\""),
        ("plugin.unknown", "harness.yaml:3:5", "plugins.disable: no installed plugin is called \"acme-tol\""),
        ("plugin.unknown", "harness.yaml:3:5", "plugins.require: no installed plugin is called \"gone\""),
    ]
    assert errors[1].hint == "did you mean acme-tool?"


def test_a_flaw_breaks_and_another_contract_only_skips() -> None:
    flawed, other = record("a", flaw=Flaw("HP001", "no manifest")), record("b", flaw=Flaw("HP011", "made for 9"))
    assert statuses(Selection(), flawed, other) == {"a": "broken", "b": "skipped"}


def test_a_bad_first_import_breaks() -> None:
    [row] = judge([record("a")], Selection(), lambda _: Flaw("HP030", "its import raises"))
    assert (row.status, row.reason, row.code) == ("broken", "its import raises", "HP030")


# ------------------------------------------------------------------------------------------------ doubled


def test_one_id_in_two_distributions_breaks_both_and_names_both() -> None:
    two = record("acme", distribution="acme-one"), record("acme", distribution="acme-two")
    rows = judge(two, Selection())
    assert {row.status for row in rows} == {"broken"}
    assert all("acme-one and acme-two" in str(row.reason) and row.code == "HP020" for row in rows)
    assert statuses(Selection(disable=named("acme-two")), *two) == {"acme-one": "ok", "acme-two": "disabled"}


def test_one_offer_from_two_plugins_is_doubled_and_says_which_line_settles_it() -> None:
    rows = judge([record("a", "tool:git"), record("b", "tool:git", "tool:b"), record("c")], Selection())
    assert [row.status for row in rows] == ["doubled", "doubled", "ok"]
    assert rows[0].reason == "tool:git is offered by a and b"
    assert rows[0].hint == "write a:git where tool git is chosen, or plugins: {disable: [b]} in harness.yaml"
    assert rows[1].doubled == (("tool", "git"),)


@pytest.mark.parametrize(
    "selection",
    [
        Selection(chosen=(("tool", "b:git", "tools.yaml:2:5"),)),
        Selection(disable=named("a")),
        Selection(bind={"planner": Named("b:git", "harness.yaml:1:1")}),
    ],
)
def test_a_line_settles_a_doubled_name(selection: Selection) -> None:
    kind = "role" if selection.bind else "tool"
    found = statuses(selection, record("a", f"{kind}:git"), record("b", f"{kind}:git"))
    assert found["b"] == "ok"


def test_the_same_name_of_two_kinds_is_not_doubled() -> None:
    assert statuses(Selection(), record("a", "tool:git"), record("b", "role:git")) == {"a": "ok", "b": "ok"}


def test_a_conflict_stops_the_one_that_declares_it() -> None:
    """Otherwise a stranger could switch off the store by being installed."""
    rude = record("rude", conflicts={"store": "I want to be alone"})
    assert statuses(Selection(), rude, record("store")) == {"rude": "skipped", "store": "ok"}
    assert statuses(Selection(disable=named("store")), rude, record("store"))["rude"] == "ok"


def test_the_order_of_records_decides_nothing() -> None:
    records = [record("a", "tool:git"), record("b", "tool:git"), record("c", conflicts={"a": "why"}), record("d")]
    forward = statuses(Selection(), *records)
    assert forward == statuses(Selection(), *reversed(records))
