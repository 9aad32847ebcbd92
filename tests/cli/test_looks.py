"""Every command that looks at sessions: documents fit their schemas, text is safe, failures are documents too."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.kit.prompt import prompt_hash
from harness_hookspecs.role import EXECUTOR_ROLES
from harness_hookspecs.store import Draft, chain_hash
from tests.reference import Site

Command = Callable[..., Any]


@pytest.fixture
def harness(done: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with --json and gives its document."""

    def run(*words: str, exits: int = 0) -> Any:
        capsys.readouterr()
        assert main([*words, "--json"]) == exits
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def events(done: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    """Gives the documents that ``harness events`` prints, a line each."""

    def read(*words: str) -> list[Any]:
        capsys.readouterr()
        assert main(["events", "@last", *words, "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return read


def _only_ref(harness: Command) -> str:
    return str(harness("artifacts")["items"][0]["ref"])


LOOKS: dict[str, str] = {
    "sessions": "harness.sessions/1",
    "sessions list --all --status completed": "harness.sessions/1",
    "sessions --status failed": "harness.sessions/1",
    "sessions show": "harness.session/1",
    "sessions show @last": "harness.session/1",
    "sessions show @last --at 5": "harness.session/1",
    "sessions tree": "harness.tree/1",
    "sessions tree @last": "harness.tree/1",
    "events trace @last:20": "harness.trace/1",
    "events verify": "harness.verify/1",
    "events verify @last": "harness.verify/1",
    "events --json verify @last": "harness.verify/1",
    "replay": "harness.replay/1",
    "replay @last": "harness.replay/1",
    "replay @last --mode skip-inference": "harness.replay/1",
    "replay @last --against .": "harness.replay/1",
    "replay @last --until 20 --category tool": "harness.replay/1",
    "replay @last --mode cursor --from 20": "harness.replay/1",
    "approvals": "harness.approvals/1",
    "approvals list": "harness.approvals/1",
    "approvals history": "harness.approvals/1",
    "approvals history @last": "harness.approvals/1",
    "approvals grants": "harness.grants/1",
    "artifacts": "harness.artifacts/1",
    "artifacts @last": "harness.artifacts/1",
    "artifacts get REF": "harness.artifact/1",
    "context show @last work": "harness.context/1",
    "context show @last check#0": "harness.context/1",
    "prompt show": "harness.prompt/1",
    "prompt show @last": "harness.prompt/1",
    "prompt show @last --role checker": "harness.prompt/1",
    "prompt show --role orchestrator": "harness.role_prompt/1",
    "prompt show --role worker": "harness.role_prompt/1",
    "stages": "harness.stages/1",
    "stages explain": "harness.stages/1",
    "graph": "harness.graph/1",
    "graph @last --format dot": "harness.graph/1",
    "graph @last --format json": "harness.graph/1",
    "transitions": "harness.transitions/1",
    "transitions @last": "harness.transitions/1",
    "report": "harness.report/1",
    "report @last": "harness.report/1",
}


@pytest.mark.parametrize("words", LOOKS)
def test_each_look_prints_one_document_that_fits_its_schema_and_text_that_is_safe(
    words: str, harness: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    said = words.replace("REF", _only_ref(harness)).split()
    document = harness(*said)
    assert document["schema"] == LOOKS[words]
    Draft202012Validator(published_schema(LOOKS[words])).validate(document)
    assert main([word for word in said if word != "--json"]) == 0
    text = capsys.readouterr().out
    assert text.strip()
    assert re.fullmatch(r"[\x20-\x7e\n]*", text), "only what is plain text"


FAILURES: dict[str, tuple[int, str]] = {
    "sessions show nope": (4, "session.not_found"),
    "sessions show nop": (4, "session.not_found"),
    "sessions show EMPTY": (4, "session.not_found"),
    "sessions show @last --at 9999": (4, "event.not_found"),
    f"sessions show @last --at {2**70}": (4, "event.not_found"),
    "sessions show @last --at 0": (2, "usage"),
    "sessions --status done": (2, "usage"),
    "events nope": (4, "session.not_found"),
    "events @last --from 5 --until 3": (2, "usage"),
    "events @last --category things": (2, "usage"),
    "events trace nope": (4, "event.not_found"),
    "events trace @last:9999": (4, "event.not_found"),
    "events trace @last:0": (4, "event.not_found"),
    f"events trace @last:{2**70}": (4, "event.not_found"),
    f"events trace @last:{'9' * 5000}": (4, "event.not_found"),
    "events trace @last:\N{SUPERSCRIPT TWO}": (4, "event.not_found"),
    f"events @last --from {'9' * 5000}": (2, "usage"),
    "events verify nope": (4, "session.not_found"),
    "replay nope": (4, "session.not_found"),
    "replay @last --mode cursor": (2, "usage"),
    "replay @last --mode partial": (2, "usage"),
    "replay @last --mode full --against .": (2, "usage"),
    "replay @last --against . --until 3": (2, "usage"),
    "replay @last --from 5 --until 3": (2, "usage"),
    "replay @last --until 9999": (4, "event.not_found"),
    f"replay @last --from {2**70}": (4, "event.not_found"),
    "replay @last --against ./nowhere": (4, "project.not_found"),
    "replay @last --against ./nowhere/.harness": (4, "project.not_found"),
    "approvals show nope": (4, "approval.not_found"),
    "approvals answer nope --approve": (4, "approval.not_found"),
    "approvals answer nope": (2, "usage"),
    "approvals settle nope --happened": (4, "effect.not_found"),
    "approvals settle nope": (2, "usage"),
    "approvals settle nope --never-happened --value 1": (2, "usage"),
    "approvals settle nope --happened --value {": (2, "usage"),
    "approvals history nope": (4, "session.not_found"),
    "artifacts nope": (4, "session.not_found"),
    "artifacts get nope": (4, "artifact.not_found"),
    f"artifacts get artifact://sha256-{'0' * 64}": (4, "artifact.not_found"),
    "artifacts get artifact://sha256-../../etc": (4, "artifact.not_found"),
    "context show": (2, "usage"),
    "context show @last": (2, "usage"),
    "pause": (2, "usage"),
    "cancel": (2, "usage"),
    "context show @last nope": (4, "visit.not_found"),
    "context show nope work": (4, "session.not_found"),
    "prompt show --seq 3": (4, "prompt.not_found"),
    "prompt show @last --seq 1": (4, "prompt.not_found"),
    f"prompt show @last --seq {2**70}": (4, "prompt.not_found"),
    "prompt show @last --seq 3 --role worker": (2, "usage"),
    "prompt show @last --role nobody": (4, "prompt.not_found"),
    "prompt show --role nobody": (4, "role.not_found"),
    "graph nope": (4, "session.not_found"),
    "graph --format gif": (2, "usage"),
    "transitions nope": (4, "session.not_found"),
    "report nope": (4, "session.not_found"),
    "plugins why nope": (4, "role.not_found"),
    "resume nope": (4, "session.not_found"),
    "resume EMPTY": (4, "session.not_found"),
    "resume @last": (1, "state.final"),
    "pause @last": (1, "state.final"),
    "cancel @last": (1, "state.final"),
    "pause nope": (4, "session.not_found"),
    "cancel nope": (4, "session.not_found"),
    "run": (2, "usage"),
    "run EMPTY": (2, "usage"),
    "run x --budget money=1": (2, "usage"),
    "run x --budget tokens=0": (2, "usage"),
    "run x --budget calls=1.5": (2, "usage"),
    "run x --budget tokens=1,tokens=2": (2, "usage"),
    "run x --set nothing": (2, "usage"),
    "run x --set run.max_visits=1 --set run.max_visits=2": (2, "usage"),
    "run x --set no.such=1": (3, "config.unknown_key"),
    "run x --model nobody": (3, "config.unknown_name"),
    "run x --yolo-destructive": (2, "usage"),
    "run x --on-ask maybe": (2, "usage"),
    "run x --seed many": (2, "usage"),
    "run x y": (2, "usage"),
}


@pytest.mark.parametrize("words", FAILURES)
def test_each_failure_is_one_document_with_a_code_and_says_what_to_do(
    words: str, done: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    code, name = FAILURES[words]
    capsys.readouterr()
    assert main([*("" if word == "EMPTY" else word for word in words.split()), "--json"]) == code
    out, err = capsys.readouterr()
    document = json.loads(out)
    Draft202012Validator(published_schema("harness.error/1")).validate(document)
    assert (document["schema"], document["code"]) == ("harness.error/1", name)
    assert document["message"]
    assert "Traceback" not in err
    assert err.startswith("harness: ")
    main(["sessions", "--json"])
    assert len(json.loads(capsys.readouterr().out)["items"]) == 1, "nothing was started in its place"


# -- what the looks say ---


@pytest.mark.req("A-82", "B-87")
@pytest.mark.inv("I-7")
def test_events_show_the_whole_envelope_and_their_chain_can_be_computed(events: Command) -> None:
    found = events()
    validator = Draft202012Validator(published_schema("harness.event/1"))
    previous = bytes(32)
    for number, event in enumerate(found, start=1):
        validator.validate(event)
        assert (event["seq"], event["prev_hash"]) == (number, previous.hex())
        refs = {name: event[name] for name in _REFS if event[name] is not None}
        # The stored bytes keep their own order of fields, so only the form without references is made again here.
        if set(refs) <= {"causation_id"} and event["payload"] == {}:
            draft = Draft(
                event["id"], event["type"], event["version"], event["actor"], event["timestamp"], dumps(refs), b"{}"
            )
            assert chain_hash(previous, event["stream"], number, draft).hex() == event["hash"]
        previous = bytes.fromhex(event["hash"])
    assert len({event["id"] for event in found}) == len(found)
    assert {event["session_id"] for event in found} == {found[0]["stream"].removeprefix("session:")}


_REFS = ("causation_id", "role_call_id", "stage_visit_id", "step_path", "visit_index")


@pytest.mark.req("B-86")
def test_each_event_is_in_one_category_and_the_filter_finds_it(events: Command) -> None:
    found = events()
    by_category = {category: events("--category", category) for category in {event["category"] for event in found}}
    assert len(by_category) == 7
    assert sorted((event for some in by_category.values() for event in some), key=lambda event: event["seq"]) == found


def test_a_filter_changes_no_line_that_people_read(
    done: Site, events: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines(*words: str) -> list[str]:
        capsys.readouterr()
        assert main(["events", "@last", *words]) == 0
        return capsys.readouterr().out.splitlines()

    whole = lines()
    approvals = lines("--type", "approval.*")
    assert approvals == [whole[0], *(line for line in whole if " approval." in line[:30])]
    bypassed = [line for line in approvals if "approval.bypassed" in line]
    assert bypassed and all("effects_" in line and "  : " not in line for line in bypassed)
    assert lines("--from", "40") == [whole[0], *whole[40:]]
    called = [f"{event['seq']:>5}" for event in events("--category", "inference") if 40 <= event["seq"] <= 45]
    assert called
    assert lines("--from", "40", "--until", "45", "--category", "inference") == [
        whole[0], *(line for line in whole[40:46] if line[:5] in called)
    ]  # fmt: skip


HINTS = {
    "resume @last": ("harness report", "harness replay"),
    "cancel @last": ("harness report", "harness replay"),
    "pause @last": ("harness report", "harness replay"),
    "report @lastt": ("@last ",),
    "config explain run.nope": ("run has max_depth, ",),
}


@pytest.mark.parametrize("words", HINTS)
def test_a_mistake_is_answered_with_what_there_is(words: str, harness: Command) -> None:
    exits = 1 if words.partition(" ")[0] in ("resume", "cancel", "pause") else 4
    hint = harness(*words.split(), exits=exits)["hint"]
    assert all(part in hint for part in HINTS[words]), hint


def test_a_context_without_a_visit_is_answered_with_the_visits(harness: Command) -> None:
    assert "its visits: work#0, check#0" in harness("context", "show", "@last", exits=2)["message"]


def test_a_text_without_quotes_is_answered_with_the_quotes(harness: Command) -> None:
    assert harness("run", "What", "is", "new", exits=2)["message"].endswith("harness run 'What is new'")


def test_events_are_cut_by_seq_and_keep_their_hashes(events: Command) -> None:
    found = events()
    assert events("--from", "5", "--until", "9") == found[4:9]
    assert events("--from", "9999") == []
    assert events("--type", "artifact.*,stage.l*") == [
        e for e in found if e["type"].startswith(("artifact.", "stage.l"))
    ]


@pytest.mark.req("B-90")
def test_each_event_goes_back_to_the_command(harness: Command, events: Command) -> None:
    found = events()
    for event in (found[-1], found[len(found) // 2], found[0]):
        traced = harness("events", "trace", event["id"])
        assert traced["items"][0]["id"] == event["id"]
        assert traced["items"][-1]["type"] == "session.created"
        assert traced["correlation_id"] == found[0]["id"]
        for effect, cause in zip(traced["items"], traced["items"][1:], strict=False):
            assert effect["causation_id"] == cause["id"]


@pytest.mark.req("A-55")
@pytest.mark.inv("I-40")
def test_what_a_model_was_shown_is_shown_for_each_call_and_hashes_to_its_prompt_hash(
    harness: Command, events: Command
) -> None:
    called = events("--type", "harness.model.called", "--expand")
    assert len(called) >= 5
    for event in called:
        shown = harness("prompt", "show", "@last", "--seq", str(event["seq"]))
        messages = [entry["message"] for entry in shown["messages"]]
        assert messages == event["payload"]["request"]["messages"]
        tools = {tool["name"]: tool["schema_hash"] for tool in shown["tools"]}
        model = {"provider": shown["model"]["provider"], "model_id": shown["model"]["model_id"]}
        hashed = prompt_hash(**model, params=shown["params"], tools=tools, messages=messages)
        assert (shown["equal"], hashed) == (True, event["payload"]["promptHash"])
        assert all(tool["schema"]["name"] == tool["name"] for tool in shown["tools"])
        assert shown["response_schema"] is not None
        assert "\n\n".join(part["text"] for part in shown["parts"]) == messages[0]["content"][0]["text"]


@pytest.mark.req("A-49")
@pytest.mark.parametrize("role", EXECUTOR_ROLES)
def test_each_role_s_prompt_is_shown_in_its_fixed_order(role: str, harness: Command, done: Site) -> None:
    parts = harness("prompt", "show", "--role", role)["parts"]
    labels = [part["label"] for part in parts]
    assert labels == [label for label in _ORDER if label in labels]
    addendum = next(part for part in parts if part["label"] == "role addendum")
    assert addendum["id"].startswith(f"{role}/")
    assert len(addendum["digest"]) == 64


_ORDER = ("developer system", "role addendum", "skills", "mounts", "tools")


@pytest.mark.req("A-62")
def test_the_report_knows_no_price_and_names_the_provider_and_the_model_of_each_call(harness: Command) -> None:
    report = harness("report")
    assert (report["cost_usd"], report["unpriced_calls"]) == (None, len(report["model_calls"]))
    named = {(one["provider"], one["model_id"]) for one in report["models"]}
    assert {(call["provider"], call["model_id"]) for call in report["model_calls"]} == named != set()


@pytest.mark.req("A-63", "B-122")
def test_the_report_is_the_sum_of_the_calls_and_roll_ups_are_not_added(harness: Command, events: Command) -> None:
    report = harness("report")
    responded = [event["payload"]["response"]["usage"] for event in events("--type", "harness.model.responded")]
    assert report["usage"]["input_tokens"] == sum(usage["inputTokens"] for usage in responded) > 0
    assert report["roll_ups"] == {"role_calls": 2, "equal": True}
    failed = len(events("--type", "harness.model.failed"))
    assert (report["calls"], report["failed_calls"], report["unknown_calls"]) == (
        len(responded) + failed,
        failed,
        failed,
    )
    for group in ("stages", "roles", "personas", "models"):
        assert sum(row["usage"]["total_tokens"] for row in report[group]) == report["usage"]["total_tokens"]
    check = next(stage for stage in report["stages"] if stage["stage"] == "check")
    assert [attempt["failed"] for attempt in check["visits"][0]["attempts"]] == [True, False]


@pytest.mark.req("B-121")
def test_the_report_has_the_times_of_each_call(harness: Command) -> None:
    calls = [call for call in harness("report")["model_calls"] if call["outcome"] != "failed"]
    wrote = [call for call in calls if call["outcome"] == "stop"]
    assert len(wrote) == 2
    assert all(0 <= call["queue_ms"] <= call["first_token_ms"] <= call["total_ms"] for call in wrote)
    assert all(0 <= call["queue_ms"] <= call["total_ms"] for call in calls)
    assert all(call["first_token_ms"] is None and call["total_ms"] >= 0 for call in calls if call not in wrote)


def test_the_task_and_the_reason_of_a_retry_name_their_events(harness: Command, events: Command) -> None:
    ids = {event["id"]: event["type"] for event in events()}
    first, second = harness("context", "show", "@last", "check")["attempts"]
    assert [ids[one] for one in first["task"]["source_events"]] == ["session.created"]
    assert [ids[one] for one in second["feedback"]["source_events"]] == ["retry.scheduled"]


@pytest.mark.req("B-120")
def test_transitions_show_the_rule_its_values_and_why_an_attempt_was_repeated(harness: Command) -> None:
    moves = harness("transitions")["items"]
    assert [(move["kind"], move["from"], move["to"]) for move in moves] == [
        ("transition", "work", "check"), ("retry", "check", "check"), ("transition", "check", "completed"),
    ]  # fmt: skip
    assert moves[0]["rule"] == 'artifact.status == "success"'
    assert moves[0]["values"]["artifact"]["status"] == "success"
    assert moves[1]["code"] == "provider.unavailable"


@pytest.mark.req("B-123")
def test_tool_calls_are_logged_with_arguments_result_and_duration(events: Command) -> None:
    ended = {one["payload"]["callId"]: one["payload"] for one in events("--type", "harness.tool_call.succeeded")}
    started = {one["payload"]["callId"]: one["payload"] for one in events("--type", "harness.tool_call.started")}
    assert len(ended) == 5
    assert ended.keys() == started.keys()
    for call, payload in ended.items():
        assert payload["args"] == started[call]["args"]
        assert payload["durationMs"] >= 0
        assert payload["result"] is not None


@pytest.mark.req("B-125")
def test_the_graph_is_drawn_as_mermaid(done: Site, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["graph", "@last", "--format", "mermaid"]) == 0
    drawn = capsys.readouterr().out.splitlines()
    assert drawn[0] == "flowchart TD"
    assert any("provider.unavailable (1x)" in line for line in drawn)
    assert any(line.strip().startswith("n0 ==>") for line in drawn)


@pytest.mark.req("B-127")
def test_the_history_says_who_answered_and_how(harness: Command) -> None:
    items = harness("approvals", "history")["items"]
    said = {item["name"]: (item["tier"], item["status"], item["answer"]["via"]) for item in items}
    assert said["effects_network"] == ("T3", "bypassed", "yolo")
    assert said["effects_unkeyed"] == ("T2", "granted", "policy")
    by = {item["name"]: item["answer"]["by"] for item in items}
    assert by["effects_unkeyed"].startswith(".harness/policies.yaml:")
    assert all(item["answer"]["digest"] == item["digest"] for item in items)


@pytest.mark.req("A-101")
def test_an_artifact_is_read_by_its_reference(done: Site, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    capsysbinary.readouterr()
    assert main(["artifacts", "--json"]) == 0
    first = json.loads(capsysbinary.readouterr().out)["items"][0]
    assert main(["artifacts", "get", first["ref"]]) == 0
    assert json.loads(capsysbinary.readouterr().out) == {"text": "The report."}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", None)  # a process that was started without
        assert main(["artifacts", "get", first["ref"]]) == 0


def test_help_names_how_each_look_is_called(done: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for words in ({"events"}, {"artifacts"}, {"approvals"}, {"sessions"}, {"stages"}):
        assert main([*words, "--help"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("Usage: harness ")
        assert "--json" in out
