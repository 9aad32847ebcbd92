"""``harness run`` and ``resume`` in one process: outcomes and exits, flags, budgets, approvals and effects in doubt."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.difference import difference_lines
from harness_core.cli.main import main
from tests.reference import REFERENCE, Site, one_stage, says, trust, write_reference, write_site

Command = Callable[..., Any]
USAGE = {"input_tokens": 10, "output_tokens": 5}
REPORT = {"summary": "done", "modified_files": [], "commands_executed": [], "risks": [], "next_recommendation": ""}


def _stage(role: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "artifact": "implementation", **more}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One stage whose script ends it in every way, chosen by a word of the task."""
    invented = {**REPORT, "modified_files": ["never_written.py"]}
    replies: list[dict[str, Any]] = [
        {"when": {"contains": "W-GOOD"}, "json": REPORT, "usage": USAGE},
        {"when": {"contains": "W-INVENTED"}, "json": invented, "usage": USAGE},
        {"when": {"contains": "W-PROSE"}, "text": "I would rather not.", "usage": USAGE},
        {"when": {"contains": "W-GONE"}, "error": {"code": "provider.unavailable"}},
        {"when": {"contains": "W-ASKS", "turn": 1}, "tool_calls": [{"name": "effects_network", "args": {"note": "n"}}]},
        {"when": {"contains": "W-ASKS"}, "json": REPORT, "usage": USAGE},
    ]
    stage = _stage(
        "coder",
        allowed_tools=["effects"],
        retry={"strategy": "corrective", "max_attempts": 2},
        on_success="completed",
        on_failure="failed",
    )
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("outcomes")
        yield write_site(root, stages={"stages": {"build": stage}}, replies=replies).enter(patch)


@pytest.fixture
def harness(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with --json; gives exit code, document and what went to stderr."""

    def run(*words: str) -> tuple[int, Any, str]:
        capsys.readouterr()
        code = main([*words, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out), err

    return run


@pytest.mark.parametrize(
    ("word", "code", "status", "failure"),
    [
        ("W-GOOD", 0, "completed", None),
        ("W-INVENTED", 14, "failed", "artifact.invalid_after_retries"),
        ("W-PROSE", 14, "failed", "artifact.invalid_after_retries"),
        ("W-GONE", 13, "failed", "provider.unavailable"),
        pytest.param("W-ASKS", 11, "failed", "approval.denied_unattended", marks=pytest.mark.req("B-82")),
        ("W-NOTHING", 1, "failed", "script.exhausted"),
    ],
)
def test_how_a_run_ends_is_its_exit_code_and_its_document(
    word: str, code: int, status: str, failure: str | None, outcomes: Site, harness: Command
) -> None:
    exit_code, document, err = harness("run", word)
    assert (document["schema"], document["status"]) == ("harness.session/1", status)
    assert (exit_code, (document["failure"] or {}).get("code")) == (code, failure)
    assert f"session {document['id']}" in err


def test_a_report_of_which_nothing_is_known_says_so(outcomes: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "W-GONE", "--json"]) == 13
    capsys.readouterr()
    assert main(["report", "@last"]) == 0
    said = capsys.readouterr().out
    assert "\ntokens       unknown\n" in said
    assert "+?" not in said and "at least" not in said


@pytest.mark.req("B-74")
def test_validation_results_are_events_with_code_severity_path_and_message(
    outcomes: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    harness("run", "W-INVENTED")
    assert main(["events", "@last", "--type", "validation.failed", "--json"]) == 0
    failed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(failed) == 2
    finding = failed[0]["payload"]["findings"][0]
    assert finding["severity"] == "error"
    assert finding["code"] and "never_written.py" in finding["message"] and "path" in finding


def test_people_read_progress_on_stderr_and_the_result_on_stdout(
    outcomes: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "W-INVENTED"]) == 14
    out, err = capsys.readouterr()
    assert "build: attempt 1 of 2 failed" in err
    assert "build: attempt 2 of 2, context" in err
    assert out.startswith("session ")
    assert "next  harness transitions" in out
    assert main(["run", "W-GOOD"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "build: implementation, status success"
    assert "  summary              done" in out.splitlines()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"W-GOOD", 0),
        (b"W-GOOD" + b"x" * 1_000_000, 0),
        (b"", 2),
        (b" \n", 2),
        (b"W-GOOD\xff", 2),
        ("W-GOOD \u202e\0".encode(), 0),
    ],
)
def test_the_text_may_come_from_stdin(
    data: bytes, code: int, outcomes: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["run", "-", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["status" if code == 0 else "code"] == ("completed" if code == 0 else "usage")


def test_a_listing_says_how_many_it_hides(
    outcomes: Site,
    harness: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    harness("run", "W-GOOD")
    _, here, _ = harness("sessions", "--status", "completed")
    assert here["hidden"]["other_status"] + len(here["items"]) == len(harness("sessions")[1]["items"])
    monkeypatch.chdir(tmp_path)
    _, elsewhere, _ = harness("sessions")
    assert (elsewhere["items"], elsewhere["hidden"]["other_projects"]) == (
        [],
        len(harness("sessions", "--all")[1]["items"]),
    )
    assert main(["sessions"]) == 0
    assert "hidden: other projects; --all)" in capsys.readouterr().out
    # What is named by its id is found from anywhere.
    assert harness("sessions", "show", here["items"][0]["id"][-8:])[1]["id"] == here["items"][0]["id"]


@pytest.mark.req("B-77", "B-81")
def test_an_approval_is_answered_from_elsewhere_once_and_the_session_goes_on(outcomes: Site, harness: Command) -> None:
    code, waiting, _ = harness("run", "W-ASKS", "--on-ask", "suspend")
    assert (code, waiting["status"]) == (10, "awaiting_approval")
    (item,) = harness("approvals")[1]["items"]
    assert (item["id"], item["tier"], item["args"]) == (waiting["waiting"][0]["id"], "T3", {"note": "n"})
    code, other, _ = harness("approvals", "answer", item["id"], "--approve", "--digest", "0" * 64)
    assert (code, other["hint"]) == (11, f"look at what is asked: harness approvals show {item['id'][-8:]}")
    code, answer, _ = harness("approvals", "answer", item["id"][-8:], "--approve", "--say", "go on")
    assert (code, answer["stands"]) == (0, True)
    assert harness("approvals")[1]["items"] == []
    assert harness("approvals", "show", item["id"])[1]["status"] == "answered"
    code, late, _ = harness("approvals", "answer", item["id"], "--deny")
    assert (code, late["stands"], late["by"]) == (1, False, answer["by"])
    before = len(outcomes.effects())
    code, done, _ = harness("resume", waiting["id"])
    assert (code, done["status"], len(outcomes.effects())) == (0, "completed", before + 1)
    (decided,) = harness("approvals", "history", waiting["id"])[1]["items"]
    assert (decided["status"], decided["answer"]["say"]) == ("granted", "go on")


def test_tables_say_times_alike_and_a_name_once(
    outcomes: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert harness("run", "W-ASKS", "--on-ask", "deny")[0] == 11
    waiting = harness("run", "W-ASKS", "--on-ask", "suspend")[1]
    tables = []
    for words in (["approvals", "history"], ["approvals"], ["sessions"]):
        assert main(words) == 0
        tables.append(capsys.readouterr().out)
    assert all(re.search(r"  \d{4}-\d\d-\d\d \d\d:\d\d  ", table) for table in tables)
    assert "  on_ask  " in tables[0]
    assert harness("cancel", waiting["id"])[0] == 0


@pytest.mark.parametrize(
    ("setting", "flag", "code"),
    [("suspend", [], 10), ("deny", [], 11), ("auto", [], 11), ("suspend", ["--on-ask", "deny"], 11)],
)
def test_what_an_approval_does_is_as_the_files_say_unless_the_flag_says_otherwise(
    outcomes: Site, harness: Command, setting: str, flag: list[str], code: int
) -> None:
    assert harness("run", "W-ASKS", "--set", f"run.on_ask={setting}", *flag)[:1] == (code,)


@pytest.mark.parametrize("begun", [["--set", "run.on_ask=suspend"], ["--on-ask", "suspend"]], ids=["set", "flag"])
@pytest.mark.parametrize(("flag", "code"), [([], 10), (["--on-ask", "deny"], 11), (["--on-ask"], 11)], ids=str)
def test_a_resume_asks_as_the_session_was_started_unless_it_says_otherwise(
    outcomes: Site, harness: Command, begun: list[str], flag: list[str], code: int
) -> None:
    exit_code, waiting, _ = harness("run", "W-ASKS", *begun)
    assert exit_code == 10
    assert harness("resume", waiting["id"], *flag)[:1] == (code,)


def test_a_session_that_asked_a_person_waits_where_it_is_resumed_without_a_terminal(
    outcomes: Site, harness: Command
) -> None:
    _, waiting, _ = harness("run", "W-ASKS", "--on-ask", "ask")
    assert harness("resume", waiting["id"])[:1] == (10,)


def test_a_budget_that_is_reached_can_be_raised(outcomes: Site, harness: Command) -> None:
    code, stopped, _ = harness("run", "W-ASKS", "--yolo", "--budget", "calls=1")
    assert (code, [wait["kind"] for wait in stopped["waiting"]]) == (12, ["budget"])
    assert harness("resume", stopped["id"], "--budget", "calls=9")[:1] == (0,)


def test_flags_of_a_run_still_hold_when_it_is_resumed(outcomes: Site, harness: Command) -> None:
    code, stopped, _ = harness(
        "run", "W-ASKS", "--on-ask", "suspend", "--set", "run.max_visits=7", "--model", "scripted"
    )
    assert code == 10
    harness("approvals", "answer", stopped["waiting"][0]["id"], "--approve")
    code, done, _ = harness("resume", stopped["id"])
    assert (code, done["config_hash"]) == (0, stopped["config_hash"])


def test_a_model_that_is_not_configured_is_said_to_be_none_of_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: Command
) -> None:
    write_site(tmp_path / "site", stages=one_stage(), replies=[says("done")]).enter(monkeypatch)
    for flags in ([], ["--set", "run.max_visits=7"]):
        code, error, err = harness("run", "Go.", "--model", "nix", *flags)
        assert (code, error["code"], error["where"]) == (3, "config.unknown_name", "--model")
        assert (error["message"], error["hint"]) == ('there is no model "nix"', "known: scripted")
        assert error["facts"]["problems"][0]["where"] == "--model"
        assert "--set default" not in err
    more = 'models.more={"provider": "scripted", "script": "script.yaml", "capabilities": [], "context_size": 9000}'
    assert harness("run", "Go.", "--model", "more", "--set", more)[0] == 0
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert harness("run", "Go.", "--model", "nix")[1]["hint"] == "models.yaml names no model; harness init"


def test_another_configuration_refuses_to_resume_and_says_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: Command
) -> None:
    site = write_reference(tmp_path).enter(monkeypatch)
    _, stopped, _ = harness("run", REFERENCE, "--on-ask", "suspend")
    harness("approvals", "answer", stopped["waiting"][0]["id"], "--approve")
    site.write("harness", {"run": {"max_visits": 9}})
    code, error, _ = harness("resume", stopped["id"])
    assert (code, error["code"], error["facts"]["changes"][0]["key"]) == (3, "config.drift", "harness.run.max_visits")
    assert harness("resume", stopped["id"], "--accept-drift")[:1] == (0,)


@pytest.mark.req("B-84")
def test_yolo_is_said_and_each_use_is_logged(
    outcomes: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = harness("run", "W-ASKS", "--yolo")
    assert code == 0
    assert err.startswith("YOLO: ")
    assert main(["events", "@last", "--type", "approval.bypassed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["payload"]["kind"] == "yolo"


@pytest.mark.req("B-98")
def test_a_session_is_shown_as_it_was_at_each_event(outcomes: Site, harness: Command) -> None:
    _, done, _ = harness("run", "W-GOOD")
    shown = [harness("sessions", "show", "@last", "--at", str(seq))[1] for seq in (1, 4, done["last_seq"])]
    assert [(one["status"], one["stage"]) for one in shown] == [
        ("created", None), ("active", "build"), ("completed", "build"),
    ]  # fmt: skip
    assert shown[-1] == done


def test_a_session_as_it_was_offers_nothing_to_type(
    outcomes: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    harness("run", "W-GOOD")
    assert main(["sessions", "show", "@last"]) == 0
    assert "\nnext  " in capsys.readouterr().out
    assert main(["sessions", "show", "@last", "--at", "4"]) == 0
    assert "\nnext  " not in capsys.readouterr().out


def test_who_was_denied_unattended_is_told_how_a_question_stays_open(
    outcomes: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "W-ASKS"]) == 11
    assert "\nnext  harness run TEXT --on-ask suspend" in capsys.readouterr().out


def test_a_filter_that_fits_no_event_says_so(
    outcomes: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    harness("run", "W-GOOD")
    assert main(["events", "@last", "--type", "nope.*"]) == 0
    out, err = capsys.readouterr()
    assert (out, "no event of this session fits" in err) == ("", True)


@pytest.mark.req("B-101")
def test_each_item_of_a_context_names_its_events_and_what_is_left_out_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [
        {"kind": "artifact", "stage": "first"},
        {"kind": "text", "text": "Be brief."},
        {"kind": "files", "glob": "*.md"},
    ]
    stages = {
        "initial": "first",
        "stages": {
            "first": {"role": "worker", "on_success": "second"},
            "second": {"role": "worker", "context": {"sources": sources, "max_tokens": 64}, "on_success": "completed"},
        },
    }
    site = write_site(tmp_path, stages=stages, replies=[{"json": {"text": "Made."}}]).enter(monkeypatch)
    (site.project / "long.md").write_text("word " * 500)
    assert harness("run", "x")[0] == 0
    (attempt,) = harness("context", "show", "@last", "second")[1]["attempts"]
    assert main(["events", "@last", "--json"]) == 0
    ids = {event["id"]: event["type"] for event in map(json.loads, capsys.readouterr().out.splitlines())}
    found = {item["kind"]: [ids[one] for one in item["source_events"]] for item in attempt["items"]}
    assert found == {"artifact": ["artifact.accepted"], "text": ["context.requested"]}
    (left,) = attempt["left_out"]
    assert (left["kind"], left["title"], [ids[one] for one in left["source_events"]]) == (
        "file", "long.md", ["context.requested"],
    )  # fmt: skip
    assert left["reason"].startswith("budget: ")


@pytest.mark.req("B-124")
def test_a_replay_against_other_rules_shows_the_first_difference_from_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    site = write_reference(tmp_path).enter(monkeypatch)
    assert harness("run", REFERENCE, "--yolo")[0] == 0
    assert harness("replay", "@last", "--against", ".")[0] == 0
    stages = json.loads((site.project / ".harness/stages.yaml").read_text())
    stages["stages"]["work"]["transitions"][0]["goto"] = "completed"
    site.write("stages", stages)
    code, document, _ = harness("replay", "@last", "--against", ".")
    found = document["diverged"]
    assert (code, document["equal"], document["model_calls"], document["tool_calls"]) == (15, False, 0, 0)
    assert (found["recorded"]["payload"]["target"], found["replayed"]["payload"]["target"]) == ("check", "completed")
    assert main(["replay", "@last", "--against", "."]) == 15
    assert capsys.readouterr().out.splitlines() == [
        f"diverged at event {found['seq']}: transition.taken",
        f"  recorded  work -> check (rule 1, {found['recorded_where']})",
        f"  replayed  work -> completed (rule 1, {found['replayed_where']})",
        "0 model and 0 tool calls were made",
    ]
    assert found["recorded_where"].startswith(".harness/stages.yaml:")
    assert harness("replay", "@last", "--mode", "skip-inference")[0] == 0


@pytest.mark.req("B-124")
@pytest.mark.parametrize(
    ("recorded", "replayed", "shown"),
    [
        (
            {"type": "retry.scheduled", "payload": {"visit_id": "v", "plan": {"code": "a", "keep": [1, 2]}, "left": 1}},
            {"type": "retry.scheduled", "payload": {"visit_id": "v", "plan": {"code": "b", "keep": [1, 3]}}},
            ("diverged at event 7: retry.scheduled", 'plan.code: "a"  plan.keep[1]: 2  left: 1',
             'plan.code: "b"  plan.keep[1]: 3  left: -'),
        ),
        (
            {"type": "stage.left", "payload": {"stage": "work", "attempts": 1, "why": {}}}, None,
            ("diverged at event 7", 'stage.left  stage: "work"  attempts: 1', "nothing"),
        ),
        (
            {"type": "harness.session.started", "payload": {}},
            {"error": "the role ends otherwise", "recorded": {"n": 1, "m": 2}, "replayed": {"n": 3, "m": 2}},
            ("diverged at event 7: the role ends otherwise", "n: 1", "n: 3"),
        ),
        (
            {"type": "role.returned", "payload": {}}, {"error": "o", "recorded": "sha256-1", "replayed": "sha256-2"},
            ("diverged at event 7: o", '"sha256-1"', '"sha256-2"'),
        ),
    ],
    ids=["the same event", "nothing", "a role", "an output"],
)  # fmt: skip
def test_what_a_replay_takes_otherwise_is_told_in_the_fields_that_differ(
    recorded: Any, replayed: Any, shown: tuple[str, str, str]
) -> None:
    head, left, right = shown
    sides = {"recorded": recorded, "replayed": replayed, "recorded_where": None, "replayed_where": None}
    assert difference_lines({"seq": 7, **sides}) == [head, f"  recorded  {left}", f"  replayed  {right}"]


@pytest.fixture
def doubtful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: Command) -> Site:
    """A project whose session waits for somebody who knows whether an effect happened."""
    site = write_reference(tmp_path, probes=False).enter(monkeypatch)
    monkeypatch.setenv("HARNESS_FAILPOINT", "effect.done@6:raise")
    code, _, _ = harness("run", REFERENCE, "--yolo")
    assert code != 0
    monkeypatch.delenv("HARNESS_FAILPOINT")
    code, stopped, _ = harness("resume", "@last")
    assert (code, [wait["kind"] for wait in stopped["waiting"]]) == (10, ["in_doubt"])
    return site


def test_an_effect_in_doubt_is_settled_by_a_person(doubtful: Site, harness: Command) -> None:
    site = doubtful
    (item,) = harness("approvals")[1]["items"]
    assert (item["kind"], item["name"]) == ("in_doubt", "effects_unkeyed")
    done = len(site.effects())
    code, said, _ = harness("approvals", "settle", item["id"][-8:], "--happened", "--value", '{"line": 1}')
    assert (code, said["outcome"], said["value"]) == (0, "happened", {"line": 1})
    assert harness("approvals")[1]["items"] == []
    assert harness("resume", "@last")[:1] == (0,)
    assert [line["tool"] for line in site.effects()[done:]] == ["effects_network"], "it did not run again"


def test_of_two_people_who_settle_an_effect_one_is_told_who_was_first(
    doubtful: Site, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    (item,) = harness("approvals")[1]["items"]
    name = item["id"][-8:]
    with Host.open(doubtful.project) as host:  # both look, then both say something
        first = host.settle(item["id"], "never_happened", by="Ann")
        late = host.settle(item["id"], "happened", value=1, by="Bob")
    assert (first["stands"], late["stands"]) == (True, False)
    assert (late["outcome"], late["by"]) == ("never_happened", "Ann")
    for taken_over in (False, True):
        if taken_over:
            assert harness("resume", "@last")[0] == 0
        code, said, _ = harness("approvals", "settle", name, "--happened")
        assert (code, said["stands"], said["outcome"], said["by"]) == (1, False, "never_happened", "Ann")
        assert main(["approvals", "settle", name, "--happened"]) == 1
        assert f"effect {name} was settled already, as never happened, by Ann; nothing" in capsys.readouterr().out


def test_who_approves_what_is_in_doubt_is_told_how_it_is_settled(doubtful: Site, harness: Command) -> None:
    (item,) = harness("approvals")[1]["items"]
    name = item["id"][-8:]
    code, error, _ = harness("approvals", "answer", name, "--approve")
    assert (code, error["code"]) == (4, "approval.not_found")
    assert "in doubt" in error["message"]
    assert error["hint"] == f"harness approvals settle {name} --happened | --never-happened"
    assert [one["id"] for one in harness("approvals")[1]["items"]] == [item["id"]]


@pytest.mark.parametrize("both", [["--deny", "--approve"], ["--approve", "--auto-session"], []], ids=str)
def test_an_answer_that_says_two_things_or_none_is_no_answer(
    outcomes: Site, harness: Command, both: list[str]
) -> None:
    _, waiting, _ = harness("run", "W-ASKS", "--on-ask", "suspend")
    approval = waiting["waiting"][0]["id"]
    assert harness("approvals", "answer", approval, *both)[0] == 2
    assert harness("approvals", "show", approval)[1]["status"] == "pending"
    assert harness("approvals", "answer", approval, "--deny", "--deny")[0] == 0


def test_a_settlement_that_says_two_things_is_none(outcomes: Site, harness: Command) -> None:
    code, error, _ = harness("approvals", "settle", "eff_1", "--happened", "--never-happened")
    assert (code, error["code"]) == (2, "usage")


def test_what_waits_is_listed_with_its_project_where_there_are_several(
    harness: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = write_reference(tmp_path).enter(monkeypatch)
    assert harness("run", REFERENCE, "--on-ask", "suspend")[0] == 10
    assert main(["approvals"]) == 0
    assert "project" not in capsys.readouterr().out
    other = tmp_path / "other"
    shutil.copytree(site.project, other)
    trust(site._replace(project=other))
    monkeypatch.chdir(other)
    assert harness("run", REFERENCE, "--on-ask", "suspend")[0] == 10
    assert [item["project"] for item in harness("approvals")[1]["items"]] == [str(site.project), str(other)]
    assert main(["approvals"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["id", "session", "project"]
    assert [row.split()[2] for row in rows] == ["project", "other"]
    mine = harness("approvals", "history")[1]["items"]
    assert {item["project"] for item in mine} == {str(other)}


def test_a_pause_of_what_nobody_runs_says_so(outcomes: Site, harness: Command) -> None:
    _, waiting, _ = harness("run", "W-ASKS", "--on-ask", "suspend")
    code, error, _ = harness("pause", waiting["id"])
    assert (code, error["code"]) == (1, "session.not_run")
