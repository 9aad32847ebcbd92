"""Whatever is fed to it, the command says what is wrong and where, exits as promised and loses nothing."""

from __future__ import annotations

import io
import json
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.main import main
from harness_hookspecs.errors import ConfigError, IllegalMove
from harness_hookspecs.kit.codec import dumps
from tests.reference import HARNESS, Site, calls, cases, notes, one_stage, says, write_site

CASES = cases("runtime")
MILLION = "x" * 1_000_000
Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Site]:
    """Writes a project and enters it."""

    def write(*replies: Mapping[str, Any], **files: Any) -> Site:
        return write_site(tmp_path, replies=replies, **{"stages": one_stage(), **files}).enter(monkeypatch)

    return write


@pytest.fixture
def harness(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with ``--json``; gives its exit code and its one document."""

    def run(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = main([*words, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def log_file(site: Site) -> Path:
    return Path(site.env["XDG_DATA_HOME"]) / "harness" / "harness.db"


def sessions(harness: Command) -> list[str]:
    code, document = harness("sessions")
    assert code == 0
    return [item["status"] for item in document["items"]]


# ------------------------------------------------------------------------------------------------ configuration

STAGES = json.dumps(one_stage())
LEVELS = [f"k{level}" for level in range(24)]
INNER = ["1", *(f"*{level}" for level in LEVELS[:-1])]
BOMB = "".join(f"{key}: &{key} {{x: {inner}, y: {inner}}}, " for inner, key in zip(INNER, LEVELS, strict=True))
WRONG: dict[str, tuple[str, bytes, str]] = {
    "an unknown key": ("harness", b"run: {max_turn: 3}\n", "max_turn"),
    "a key of no file": ("policies", b"approvals_required: true\n", "approvals_required"),
    "a key given twice": ("policies", b"tiers: {T2: auto}\ntiers: {T2: deny}\n", "twice"),
    "a bomb of aliases": ("harness", f"plugins: {{settings: {{{BOMB}}}}}".encode(), "alias"),
    "bytes that are no text": ("harness", b"project: \xff\xfe\n", "UTF-8"),
    "a wrong type": ("harness", b"run: {max_turns: many}\n", "max_turns"),
    "a tier that is none": ("policies", b"tiers: {T9: auto}\n", "T9"),
    "what is no YAML": ("harness", b"run: [1,\n", "harness.yaml"),
    "a stage that leads nowhere": ("stages", STAGES.replace('"completed"', '"nowhere"').encode(), "nowhere"),
    "a role that is none": ("harness", b"bind: {worker.sing: workflow}\n", "worker.sing"),
    "no limit": ("harness", b"run: {budget: {tokens: -1}}\n", "tokens"),
}


@pytest.mark.inv("I-35")
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_configuration_is_named_and_nothing_is_begun(place: Any, harness: Command, what: str) -> None:
    name, data, said = WRONG[what]
    site = place(says("done"))
    (site.project / ".harness" / f"{name}.yaml").write_bytes(data)
    code, document = harness("run", "Go.")
    assert (code, document["schema"]) == (3, "harness.error/1")
    assert said in f"{document['message']} {document['where']}"
    assert f"{name}.yaml" in str(document["where"] or document["message"])
    assert not log_file(site).exists()
    assert site.effects() == []


@pytest.mark.inv("I-35")
def test_a_project_that_nobody_trusts_cannot_loosen_a_tier(place: Any, harness: Command) -> None:
    site = place(calls(("network", {"note": "a"})), says("done"))
    own = Path(site.env["XDG_CONFIG_HOME"]) / "harness"
    shutil.move(site.project / ".harness", own)
    (site.project / ".harness").mkdir()
    (site.project / ".harness" / "policies.yaml").write_text("tiers: {T3: auto}\n")
    code, document = harness("run", "Go.")
    assert (code, document["code"]) == (3, "config.untrusted")
    assert "tiers.T3" in document["message"] and "harness trust" in document["hint"]
    assert not log_file(site).exists()
    assert harness("trust")[0] == 0
    assert harness("run", "Go.")[0] == 0
    assert notes(site) == ["a"]


def test_a_script_that_is_missing_or_broken_is_a_fault_of_the_configuration(place: Any, harness: Command) -> None:
    site = place(says("done"))
    for text in (None, "replies: [", "schema: harness.script/1\nreplies: [{sings: true}]"):
        (site.project / "script.yaml").unlink(missing_ok=True)
        if text is not None:
            (site.project / "script.yaml").write_text(text)
        code, document = harness("run", "Go.")
        assert code == 3
        assert "script.yaml" in document["where"]
        assert sessions(harness) == []


# ------------------------------------------------------------------------------------------------------ models


@pytest.mark.parametrize(
    "weights", [None, b"", b"GGUF\x03\x00\x00\x00truncated", b"<html>404 not found</html>"],
    ids=["missing", "empty", "truncated", "a page"],
)  # fmt: skip
def test_weights_that_cannot_be_loaded_end_the_session_and_name_the_file(
    place: Any, harness: Command, weights: bytes | None
) -> None:
    assert "naming the file" in CASES["BR-107"]["right"]
    entry = {"provider": "local", "path": "weights.gguf", "capabilities": ["tool_calling"]}
    site = place(says("unused"), models={"models": {"tiny": entry}}, stages=one_stage(allowed_tools=[]))
    if weights is not None:
        (site.project / "weights.gguf").write_bytes(weights)
    code, document = harness("run", "Go.")
    assert code == 13
    said = document["message"] if document["schema"] == "harness.error/1" else document["failure"]["message"]
    assert "weights.gguf" in said
    if document["schema"] == "harness.session/1":
        assert document["status"] == "failed"
        assert harness("events", "verify", "@last")[0] == 0


HALF = '{"text": "first half of the'
ANSWERS: dict[str, tuple[dict[str, Any], int, str | None]] = {
    "half a JSON": ({"text": HALF}, 14, "artifact.invalid_after_retries"),
    "half a JSON, cut off": ({"text": HALF, "finish": "length"}, 1, "role.answer_truncated"),
    "prose": ({"text": "I would rather not."}, 14, "artifact.invalid_after_retries"),
    "another shape": ({"json": {"words": 1}}, 14, "artifact.invalid_after_retries"),
    "NaN": ({"text": '{"text": NaN}'}, 14, "artifact.invalid_after_retries"),
    "infinity": ({"text": '{"text": 1e999}'}, 14, "artifact.invalid_after_retries"),
    "a lone surrogate": ({"text": '{"text": "\\ud83d"}'}, 14, "artifact.invalid_after_retries"),
    "a pair of surrogates": ({"text": '{"text": "\\ud83c\\udf78 and \\u202e"}'}, 0, None),
    "a key twice": ({"text": '{"text": "a", "text": "b"}'}, 14, "artifact.invalid_after_retries"),
    "a refusal": ({"text": "no", "finish": "refusal"}, 1, "role.refused"),
    "an error of the provider": ({"error": {"code": "provider.unavailable"}}, 13, "provider.unavailable"),
    "nothing": ({"text": ""}, 14, "artifact.invalid_after_retries"),
}


@pytest.mark.inv("I-24", "I-25")
@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_that_is_none_is_never_an_artifact(place: Any, harness: Command, what: str) -> None:
    answer, exit_code, failure = ANSWERS[what]
    place(*[answer] * 8, stages=one_stage(allowed_tools=[], max_turns=2))
    code, document = harness("run", "Go.")
    assert (code, (document["failure"] or {}).get("code")) == (exit_code, failure)
    assert len(document["artifacts"]) == (exit_code == 0)
    assert harness("events", "verify", "@last")[0] == 0
    assert harness("replay", "@last")[0] == 0


# ------------------------------------------------------------------------------------------------- tool calls

SAME_ID = [{"name": "effects_pure", "args": {"note": note}, "id": "same"} for note in "ab"]
CALLS: dict[str, tuple[list[dict[str, Any]], str | None]] = {
    "a wrong type": ([{"name": "effects_unkeyed", "args": {"note": 7}}], "tool.invalid_args"),
    "a number as text": ([{"name": "effects_slow", "args": {"seconds": "1"}}], "tool.invalid_args"),
    "an unknown argument": ([{"name": "effects_unkeyed", "args": {"node": "a"}}], "tool.invalid_args"),
    "no object": ([{"name": "effects_unkeyed", "args": ["a"]}], "tool.invalid_args"),
    "text for an object": ([{"name": "effects_unkeyed", "args": '{"note": "a"}'}], "tool.invalid_args"),
    "nothing for an object": ([{"name": "effects_unkeyed", "args": None}], "tool.invalid_args"),
    "a million characters": ([{"name": "effects_unkeyed", "args": {"note": MILLION}}], "tool.args_too_large"),
    "an unknown tool": ([{"name": "effects_sing", "args": {}}], "tool.unknown"),
    "another case": ([{"name": "Effects_Unkeyed", "args": {"note": "a"}}], "tool.unknown"),
    "a name with a space": ([{"name": "effects_unkeyed ", "args": {"note": "a"}}], "tool.unknown"),
    "one id twice": (SAME_ID, None),
}


@pytest.mark.inv("I-25", "I-17")
@pytest.mark.parametrize("what", CALLS)
def test_a_call_that_is_none_gets_one_answer_and_does_not_run(place: Any, harness: Command, what: str) -> None:
    assert "exactly one error result" in CASES["BR-059"]["right"]
    asked, refused = CALLS[what]
    site = place({"tool_calls": asked}, says("done"))
    code, document = harness("run", "Go.")
    assert (code, document["status"]) == (0, "completed")
    ended = events("harness.tool_call.*")
    failed = [event["payload"]["error"]["code"] for event in ended if event["type"].endswith("failed")]
    assert failed == ([refused] if refused else [])
    assert len(site.effects()) == (0 if refused else len(asked))
    assert not [event for event in ended if event["type"].endswith("started")] or refused is None
    assert log_file(site).stat().st_size < 3_000_000
    assert len({event["payload"]["callId"] for event in ended}) == len(asked)
    if what == "an unknown tool":
        assert "effects_unkeyed" in json.dumps([event["payload"]["error"] for event in ended])


def events(kind: str) -> list[dict[str, Any]]:
    """Type and payload of the last session's events of a kind."""
    with Host.open(".") as host:
        return [{"type": one.type, "payload": json.loads(one.payload)} for one in host.events("@last", types=kind)]


@pytest.mark.inv("I-25")
def test_the_same_wrong_call_again_and_again_ends_the_attempt(place: Any, harness: Command) -> None:
    assert "equal failures" in CASES["BR-054"]["right"]
    wrong = {"tool_calls": [{"name": "effects_slow", "args": {"seconds": "1"}}]}
    site = place(*[wrong] * 20)
    code, document = harness("run", "Go.")
    assert (code, document["failure"]["code"]) == (1, "role.repeated_failure")
    assert len(events("harness.model.called")) == 3
    assert site.effects() == []


@pytest.mark.inv("I-25")
def test_calls_of_an_answer_that_was_cut_off_do_not_run(place: Any, harness: Command) -> None:
    assert "cut off" in CASES["BR-048"]["right"]
    site = place({"tool_calls": [{"name": "effects_unkeyed", "args": {"note": "a"}}], "finish": "length"})
    code, document = harness("run", "Go.")
    assert (code, document["failure"]["code"]) == (1, "role.answer_truncated")
    assert site.effects() == []


# --------------------------------------------------------------------------------------------------- large texts


def test_a_million_characters_on_stdin_are_kept_as_they_are(
    place: Any, harness: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(says("done"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MILLION.encode())))
    code, document = harness("run", "-")
    assert (code, document["status"]) == (0, "completed")
    code, prompt = harness("prompt", "show", "@last", "--role", "worker.ai-generate")
    assert MILLION in json.dumps(prompt)


@pytest.mark.parametrize("data", [b"", b"  \n", b"\xff\xfe no text"], ids=["nothing", "blanks", "no text"])
def test_a_text_that_is_none_is_a_wrong_use(
    place: Any, harness: Command, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    site = place(says("done"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert harness("run", "-")[0] == 2
    assert not log_file(site).exists()


# ---------------------------------------------------------------------------------------------------------- log


def _foreign(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()


def _newer(file: Path) -> None:
    change = sqlite3.connect(file)
    change.execute("PRAGMA user_version = 999")
    change.close()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no database": lambda file: file.write_bytes(b"this is no database" * 500),
    "of another program": _foreign,
    "of a later version": _newer,
    "cut off": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
}


@pytest.mark.inv("I-14", "I-11")
@pytest.mark.parametrize("what", DAMAGE)
def test_a_log_that_is_not_ours_is_refused_and_left_as_it_is(place: Any, harness: Command, what: str) -> None:
    site = place(says("done"))
    assert harness("run", "Go.")[0] == 0
    file = log_file(site)
    for beside in file.parent.glob("harness.db-*"):
        beside.unlink()
    if what == "of another program":
        file.unlink()
    DAMAGE[what](file)
    before = file.read_bytes()
    for words in (("run", "Go."), ("sessions",), ("resume", "@last")):
        code, document = harness(*words)
        assert (code, document["schema"]) == (6, "harness.error/1"), words
        assert "harness.db" in f"{document['message']} {document['where']}"
    assert file.read_bytes() == before


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # what is forked runs another program
def test_a_full_disk_is_named_and_nothing_acknowledged_is_lost(place: Any, harness: Command) -> None:
    big = {"tool_calls": [{"name": "effects_big", "args": {"size_bytes": 200_000}}]}
    site = place(calls(("unkeyed", {"note": "before"})), big, says("done"))

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))

    done = subprocess.run(
        [*HARNESS, "run", "Go.", "--json"], env=site.process_env(), cwd=site.project,
        capture_output=True, text=True, check=False, preexec_fn=no_room,
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert (done.returncode, document["schema"]) == (6, "harness.error/1"), document
    assert document["code"] in ("store.full", "store.io")
    assert sessions(harness) == ["active"]
    assert harness("events", "verify", "@last")[0] == 0
    assert [event["type"] for event in events("harness.tool_call.succeeded")] == ["harness.tool_call.succeeded"]
    code, document = harness("resume", "@last")
    assert (code, document["status"]) == (0, "completed")
    assert notes(site).count("before") == 1


def test_a_folder_that_cannot_be_made_is_named(place: Any, harness: Command) -> None:
    site = place(says("done"))
    data = Path(site.env["XDG_DATA_HOME"])
    shutil.rmtree(data, ignore_errors=True)
    data.write_text("in the way")
    code, document = harness("run", "Go.")
    assert code == 6, document
    assert data.read_text() == "in the way"


# ------------------------------------------------------------------------------------------------------ the library

REQUESTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing": ("  ", {}, "run.empty_text"),
    "no Unicode": ("a\ud800b", {}, "run.text"),
    "a number": (5, {}, "run.text"),
    "nothing at all": (None, {}, "run.text"),
    "bytes": (b"Go.", {}, "run.text"),
    "a limit alone": ("Go.", {"budget": 5}, "config.budget"),
    "limits as they are typed": ("Go.", {"budget": "tokens=5"}, "config.budget"),
    "a list of limits": ("Go.", {"budget": []}, "config.budget"),
    "limits without names": ("Go.", {"budget": {5: 1}}, "config.budget"),
    "a limit that is no number": ("Go.", {"budget": {"tokens": float("nan")}}, "config.budget"),
    "a limit without end": ("Go.", {"budget": {"seconds": float("inf")}}, "config.budget"),
    "a limit in words": ("Go.", {"budget": {"calls": "many"}}, "config.budget"),
    "a limit of nothing known": ("Go.", {"budget": {"patience": 1}}, "config.budget"),
    "another way to ask": ("Go.", {"on_ask": "maybe"}, "config.on_ask"),
    "another yolo": ("Go.", {"yolo": "maybe"}, "config.yolo"),
    "a seed below zero": ("Go.", {"seed": -1}, "config.seed"),
    "a seed in words": ("Go.", {"seed": "x"}, "config.seed"),
    "a seed between numbers": ("Go.", {"seed": 1.5}, "config.seed"),
    "a seed that is true": ("Go.", {"seed": True}, "config.seed"),
    "somebody who is a number": ("Go.", {"by": 5}, "config.by"),
    "somebody who is zero": ("Go.", {"by": 0}, "config.by"),
    "somebody who is no Unicode": ("Go.", {"by": "a\ud800"}, "config.by"),
    "no way to ask": ("Go.", {"on_ask": None}, "config.on_ask"),
    "a yolo that is true": ("Go.", {"yolo": True}, "config.yolo"),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_a_request_that_is_none_is_named_and_nothing_is_begun(place: Any, what: str) -> None:
    text, more, code = REQUESTS[what]
    place(says("done"))
    with Host.open(".") as host:
        with pytest.raises(ConfigError) as caught:
            host.run(text, **more)
        assert caught.value.code == code
        assert list(host.sessions()) == []
        assert host.run("Go.")["status"] == "completed"


@pytest.mark.parametrize("wrong", [{"by": 5}, {"by": "a\ud800"}, {"say": 5}, {"say": "a\ud800"}], ids=repr)
def test_an_answer_that_cannot_be_recorded_is_named_and_the_question_stays_open(place: Any, wrong: Any) -> None:
    place(calls(("network", {"note": "a"})), says("done"))
    with Host.open(".") as host:
        found = host.run("Go.", on_ask="suspend")["id"]
        [item] = host.approvals()
        with pytest.raises(ConfigError) as caught:
            host.answer(item["id"], "approve", digest=item["digest"], **wrong)
        assert caught.value.code == f"config.{next(iter(wrong))}"
        host.answer(item["id"], "approve", digest=item["digest"], by="Ann", say="yes")
        assert host.resume(found)["status"] == "completed"


@pytest.mark.parametrize("wrong", [{"budget": 5}, {"budget": "tokens=5"}, {"on_ask": "perhaps"}], ids=repr)
def test_a_wrong_request_to_go_on_is_named_and_changes_nothing(place: Any, wrong: Any) -> None:
    place(calls(("network", {"note": "a"})), says("done"))
    with Host.open(".") as host:
        found = host.run("Go.", on_ask="suspend")["id"]
        with pytest.raises(ConfigError, match=r"\A(5|'tokens=5'|on_ask) is ") as caught:
            host.resume(found, **wrong)
        assert caught.value.code == f"config.{next(iter(wrong))}"
        assert host.session(found)["status"] == "awaiting_approval"


def test_a_command_that_says_nothing_is_not_posted_and_an_unknown_one_does_nothing(place: Any) -> None:
    place(calls(("network", {"note": "a"})), says("done"))
    with Host.open(".") as host:
        found = host.run("Go.", on_ask="suspend")["id"]
        with pytest.raises(IllegalMove):
            host.submit({"session": found, "id": "x"})
        host.store.post(found, "y", dumps({"kind": "dance", "body": {}}))
        [item] = host.approvals()
        host.answer(item["id"], "approve", digest=item["digest"])
        assert host.resume(found)["status"] == "completed"
