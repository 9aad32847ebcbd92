"""What stands in the log, and when: intents before effects, large results by reference, the configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.main import main
from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.recorder import RoleCallRecorder
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.kit.canonical import canonical, digest
from tests.reference import calls, one_stage, says

# ------------------------------------------------------------------------------------------ intent before effect

WATCHER = """
import json, os
from harness_core import Host
from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import OracleResponse, TextPart, ToolCallRequest, Usage
from harness_hookspecs.offer import Offer
from harness_hookspecs.tool import ToolResult, ToolSpec

CLASSES = {"pure": "T1", "keyed": "T2", "unkeyed": "T2"}

def look(what):
    with Host.open() as another:  # it opens the store anew and finds what is committed, nothing else
        events = [{"type": one.type, "payload": json.loads(one.payload)} for one in another.events("@last")]
    with open(os.environ["WATCHER_FILE"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"what": what, "events": events}) + "\\n")

class Model:
    def complete(self, request, call):
        look("model")
        content, asked = (TextPart(text='{"text": "done"}'),), None
        if not any(message.role == "tool" for message in request.messages):
            content = ()
            asked = tuple(
                ToolCallRequest(call_id=f"c{kind}", tool_name=f"watch_{kind}", args={"kind": kind}) for kind in CLASSES
            )
        reason = "tool_calls" if asked else "stop"
        return OracleResponse(content=content, tool_calls=asked, finish_reason=reason, usage=Usage.unknown())

    def close(self):
        pass

class Tools:
    def specs(self):
        schema = {"type": "object", "properties": {"kind": {"type": "string"}}}
        return tuple(
            ToolSpec(name=f"watch_{kind}", description="Look.", input_schema=schema, tier=tier, effect=kind)
            for kind, tier in CLASSES.items()
        )

    def execute(self, name, args, ctx):
        look(args["kind"])
        return ToolResult("seen")

@implements(hooks.harness_provide_providers)
def harness_provide_providers():
    return [Offer(kind="provider", name="watching", build=lambda settings, host: Model())]

@implements(hooks.harness_provide_tools)
def harness_provide_tools():
    return [Offer(kind="tool", name="watch", build=lambda settings, host: Tools())]
"""
ENDINGS = ("harness.model.responded", "harness.tool_call.succeeded", "harness.tool_call.failed")
PROVIDES = ({"kind": "provider", "name": "watching"}, {"kind": "tool", "name": "watch"})


def unanswered(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The payloads of intents of one type whose call has no end yet."""
    ended = {one["payload"]["callId"] for one in events if one["type"] in ENDINGS}
    begun = [one["payload"] for one in events if one["type"] == kind]
    return [payload for payload in begun if payload["callId"] not in ended]


@pytest.mark.inv("I-15")
def test_a_model_and_a_tool_find_the_intent_of_their_own_call_in_the_log_when_they_start(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_distribution(tmp_path / "site", "acme-watch", provides=PROVIDES, code=WATCHER)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    entry = {"provider": "watching", "capabilities": ["tool_calling"], "context_size": 32768}
    session = play(models={"models": {"one": entry}}, stages=one_stage(allowed_tools=["watch"]))
    seen_file = tmp_path / "seen.jsonl"
    monkeypatch.setenv("WATCHER_FILE", str(seen_file))
    assert session.run()["status"] == "completed"
    looks = [json.loads(line) for line in seen_file.read_text(encoding="utf-8").splitlines()]
    assert sorted(look["what"] for look in looks) == ["keyed", "model", "model", "pure", "unkeyed"]
    for turn, look in enumerate((one for one in looks if one["what"] == "model"), 1):
        assert [intent["turn"] for intent in unanswered(look["events"], "harness.model.called")] == [turn]
    for look in (one for one in looks if one["what"] != "model"):
        [own] = [
            intent
            for intent in unanswered(look["events"], "harness.tool_call.started")
            if intent["toolName"] == f"watch_{look['what']}"
        ]
        assert (own["effectClass"], own["argsDigest"]) == (look["what"], digest({"kind": look["what"]}))


# ------------------------------------------------------------------------------------------------ the manifest


@pytest.mark.req("A-58")
@pytest.mark.parametrize("tampered", [False, True])
def test_a_manifest_hash_under_which_no_manifest_stands_is_not_appended(
    play: Any, monkeypatch: pytest.MonkeyPatch, tampered: bool
) -> None:
    opened = RoleCallRecorder.open

    def open_with_another_hash(self: Any, facts: Any, blobs: Any, manifest: Any) -> None:
        """The content stays as it is, under its own hash; only what the event says of it is wrong."""
        changed = [
            fact._replace(payload={**fact.payload, "manifestHash": "0" * 64})
            if fact.type == "harness.session.started"
            else fact
            for fact in facts
        ]
        opened(self, changed, blobs, manifest)

    if tampered:
        monkeypatch.setattr(RoleCallRecorder, "open", open_with_another_hash)
    session = play(says("done"))
    document = session.run()
    if tampered:
        assert (document["status"], document["failure"]["code"]) == ("failed", "vocabulary.hash")
        assert {"harness.session.started", "harness.model.called"}.isdisjoint(session.types())
        return
    [started] = session.payloads("harness.session.started")
    content = session.host.artifact(f"artifact://sha256-{started['manifestHash']}")
    assert content == canonical(json.loads(content))
    assert (json.loads(content)["role"], digest(json.loads(content))) == (started["role"], started["manifestHash"])


# ------------------------------------------------------------------------------------------------ large results

MIB = 1_048_576


@pytest.mark.req("A-102")
def test_a_result_of_a_mebibyte_is_kept_by_reference_and_is_there_as_a_whole(
    play: Any, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    session = play(calls(("big", {"size_bytes": MIB})), calls(("big", {"size_bytes": 100})), says("done"))
    assert session.run()["status"] == "completed"
    large, small = session.payloads("harness.tool_call.succeeded")
    assert "resultRef" not in small and small["result"] == "x" * 100
    assert large["truncated"] is True
    assert all(len(event.payload) < MIB // 8 for event in session.events())  # two ends at most, nowhere the whole
    session.host.close()
    capfdbinary.readouterr()
    assert main(["artifacts", "get", f"artifact://sha256-{large['resultRef']}"]) == 0
    whole = capfdbinary.readouterr().out
    assert json.loads(whole) == "x" * MIB
    assert digest("x" * MIB) == large["resultRef"]


# ------------------------------------------------------------------------------------------------ configuration


@pytest.mark.req("B-29")
def test_a_session_begins_with_the_configuration_that_it_runs_under(play: Any) -> None:
    session = play(says("done"), harness={"run": {"max_visits": 7}})
    session.run()
    assert session.types()[:2] == ["session.created", "config.loaded"]
    [loaded] = session.payloads("config.loaded")
    content = session.host.artifact(f"artifact://sha256-{loaded['content_ref']}")
    config: EffectiveConfig = session.host.config
    assert content == canonical(config.document())
    assert loaded["digest"] == config.digest == digest(json.loads(content)["settings"])
    assert json.loads(content)["settings"]["harness"]["run"]["max_visits"] == 7


@pytest.mark.req("B-29")
def test_a_replay_decides_by_the_recorded_configuration_and_not_by_what_the_files_say_now(play: Any) -> None:
    fail = {"when": "true", "goto": "failed"}
    session = play(says("done"))
    session.run()
    session.site.write("stages", one_stage(transitions=[fail], max_turns=1))
    session.reopen()
    report: Mapping[str, Any] = session.host.replay("@last", "skip-inference")
    assert (report["equal"], report["diverged"]) == (True, None)
    with Host.open(session.site.project) as host:
        assert not host.replay("@last", "skip-inference", against=session.site.project)["equal"]
