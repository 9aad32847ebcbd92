"""``harness sessions diff``: what two sessions did differently, and nothing that only looks different."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from tests.reference import Site, calls, says, write_site

Diff = Callable[..., Any]
LISTS = ("stages", "transitions", "artifacts", "tool_calls")

STAGES = {
    "initial": "work",
    "stages": {
        "work": {
            "role": "worker",
            "task": "Do it.",
            "allowed_tools": ["effects"],
            "transitions": [
                {"when": 'artifact.body.text == "short"', "goto": "completed"},
                {"when": 'artifact.status == "success"', "goto": "check"},
            ],
        },
        "check": {"role": "checker", "task": "Check it.", "on_success": "completed"},
    },
}
TWICE = calls(("pure", {"note": "a"}), ("pure", {"note": "only here"}))
REPLIES: list[dict[str, Any]] = [
    {"when": {"contains": "Check it"}, **says("good")},
    {"when": {"contains": "W-SHORT", "turn": 1}, **TWICE},
    {"when": {"contains": "W-TWICE", "turn": 1}, **TWICE},
    {"when": {"contains": "W-SHORT"}, **says("short")},
    {"when": {"contains": "Do it", "turn": 1}, **calls(("pure", {"note": "a"}))},
    {"when": {"contains": "Do it"}, **says("long")},
]


@pytest.fixture(scope="module")
def ids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Sessions by name: two that are the same, two of another text, one under another setting."""
    with pytest.MonkeyPatch.context() as patch:
        site: Site = write_site(tmp_path_factory.mktemp("diff"), stages=STAGES, replies=REPLIES).enter(patch)
        for words in (["long"], ["long"], ["W-SHORT"], ["W-TWICE"], ["long", "--set", "run.max_visits=7"]):
            assert main(["run", *words, "--seed", "1", "--json"]) == 0
        yield dict(zip(("limited", "twice", "short", "again", "long"), _listed(site), strict=True))


def _listed(site: Site) -> list[str]:
    from harness_core import Host

    with Host.open(site.project) as host:
        return [one["id"] for one in host.sessions()]


@pytest.fixture
def diff(ids: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Diff:
    """Compares two sessions; gives the document, which fits its schema."""

    def run(a: str, b: str) -> Any:
        capsys.readouterr()
        assert main(["sessions", "diff", ids[a], ids[b], "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        Draft202012Validator(published_schema("harness.session_diff/1")).validate(document)
        assert (document["a"]["id"], document["b"]["id"]) == (ids[a], ids[b])
        return document

    return run


def test_sessions_that_did_the_same_are_equal_whatever_their_ids_and_times(diff: Diff) -> None:
    found = diff("long", "again")
    assert found["equal"] is True
    assert [found[name] for name in ("asked", "settings", "usage")] == [[], [], []]
    assert [found[name] for name in LISTS] == [{"same": same, "differ": []} for same in (2, 2, 2, 1)]


def test_what_only_one_session_did_stands_beside_nothing(diff: Diff) -> None:
    found = diff("long", "short")
    assert found["equal"] is False
    assert [one["key"] for one in found["asked"]] == ["text_ref", "title"]
    assert (found["asked"][1]["a"], found["asked"][1]["b"]) == ("long", "W-SHORT")
    assert found["settings"] == []
    [visit] = found["stages"]["differ"]
    assert (visit["a"]["stage"], visit["b"], found["stages"]["same"]) == ("check", None, 1)
    [call] = found["tool_calls"]["differ"]
    assert (call["a"], call["b"]["args"], found["tool_calls"]["same"]) == (None, {"note": "only here"}, 1)
    assert {one["key"]: (one["a"], one["b"]) for one in found["usage"]}["calls"] == (3, 2)


def test_what_comes_later_in_one_log_than_in_the_other_is_the_same(diff: Diff) -> None:
    found = diff("long", "twice")
    assert len(found["tool_calls"]["differ"]) == 1
    assert [found[name] for name in LISTS[:3]] == [{"same": 2, "differ": []}] * 3


def test_a_rule_and_an_artifact_that_differ_stand_beside_each_other(diff: Diff) -> None:
    found = diff("short", "long")
    moves = [(pair["a"] and pair["a"]["to"], pair["b"]["to"]) for pair in found["transitions"]["differ"]]
    assert moves == [("completed", "check"), (None, "completed")]
    rules = [found["transitions"]["differ"][0][side]["rule_index"] for side in "ab"]
    assert rules == [0, 1]
    made, other = found["artifacts"]["differ"][0]["a"], found["artifacts"]["differ"][0]["b"]
    assert (made["stage"], other["stage"], made["ref"] == other["ref"]) == ("work", "work", False)


def test_a_setting_that_a_session_is_pinned_to_is_named_with_both_values(diff: Diff) -> None:
    found = diff("long", "limited")
    assert found["settings"] == [{"key": "harness.run.max_visits", "a": 50, "b": 7}]
    assert found["equal"] is False
    assert all(found[name]["differ"] == [] for name in LISTS)


def test_people_read_two_columns_that_fit_the_terminal(
    ids: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    assert main(["sessions", "diff", ids["long"], ids["short"]]) == 0
    text = capsys.readouterr().out
    assert "stages: 1 the same" in text
    assert re.search(r'work: effects_pure {"note": "only here"} succeeded', text)
    assert main(["sessions", "diff", ids["long"], ids["again"]]) == 0
    assert "both did the same" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["sessions", "diff", ids["long"], ids["short"]]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_a_session_that_is_none_is_not_found_on_either_side(
    ids: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for words in (["nope", "@last"], ["@last", "nope"]):
        capsys.readouterr()
        assert main(["sessions", "diff", *words, "--json"]) == 4
        assert json.loads(capsys.readouterr().out)["code"] == "session.not_found"
