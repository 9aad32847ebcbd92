"""Role harnesses as a session calls them: what they are given, what they may answer, and who writes the events."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import HarnessError, VocabularyError
from harness_hookspecs.events import EVENTS, check_payload
from harness_hookspecs.role import EXECUTOR_ROLES, DelegateToDefault
from tests.reference import POLICIES, calls, one_stage, says

CALL = [kind for kind in EVENTS if kind.startswith("harness.")]


def bound(name: str) -> dict[str, Any]:
    """A harness.yaml that lets this role answer for agent stages."""
    return {"bind": {"worker.ai-generate": name}}


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads that take turns a thousand times as often: what is shared by mistake is seen to be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def text_of(session: Any) -> Any:
    """What the only artifact says, read as JSON."""
    [artifact] = session.host.artifacts("@last")
    return json.loads(json.loads(session.host.artifact(artifact["ref"]))["text"])


# ------------------------------------------------------------------------------------------- what a role is given


@pytest.mark.req("A-01")
def test_a_plain_class_with_run_is_called(play: Any) -> None:
    session = play(says("unused"), harness=bound("wire"))
    assert session.run()["status"] == "completed"
    [resolved] = session.payloads("role.resolved")
    assert (resolved["plugin"], resolved["offer"], resolved["default"]) == ("role-probe", "wire", False)
    assert session.payloads("harness.model.called") == []


@pytest.mark.req("A-18")
def test_a_role_is_told_who_it_is(play: Any) -> None:
    session = play(says("unused"), harness=bound("probe"))
    scopes = []
    for _ in range(2):
        document = session.run()
        seen = text_of(session)
        assert seen["log_dir"]
        assert seen["scope"]["runId"] == document["id"]
        assert seen["scope"]["role"] == "worker.ai-generate"
        assert "parentRunId" not in seen["scope"]
        scopes.append(seen["scope"]["logDir"])
    assert len(set(scopes)) == 2  # a folder of its own for each run


@pytest.mark.req("A-21")
def test_a_role_is_given_the_model_that_the_plan_names(play: Any) -> None:
    session = play(says("unused"), harness=bound("probe"))
    session.run()
    seen = text_of(session)
    assert seen["model"] == ["scripted", "scripted", "scripted", 32768]
    assert seen["wanted_model"] == seen["model"][0]


def test_a_role_that_asked_no_model_has_no_calls_of_one_to_pass_on(play: Any) -> None:
    session = play(says("unused"), harness=bound("unasked"))
    assert session.run()["status"] == "completed"
    assert text_of(session) == "role.no_model_turn"
    assert not [kind for kind in session.types() if kind.startswith("harness.tool_call")]


@pytest.mark.req("A-22")
@pytest.mark.parametrize("system", [None, "MARK: be brief."])
def test_the_developers_text_is_optional_and_leaves_no_empty_part(play: Any, system: str | None) -> None:
    persona = {"worker": {"prompt": system}} if system else {}
    stages = {**one_stage(allowed_tools=[]), "roles": persona}
    session = play(says("done"), stages=stages)
    session.run()
    [called] = session.payloads("harness.model.called")
    first = json.loads(session.host.artifact(f"artifact://sha256-{called['request']['messages'][0]}"))
    text = first["content"][0]["text"]
    assert text.startswith(system) if system else "MARK" not in text
    assert "\n\n\n" not in text and not text.startswith("\n")
    probed = play(says("unused"), stages=stages, harness=bound("probe"))
    probed.run()
    assert text_of(probed)["system"] == system


@pytest.mark.req("A-30")
def test_a_trace_is_no_part_of_the_log_and_may_fail(play: Any) -> None:
    session = play(says("unused"), harness=bound("probe"))
    session.run()
    assert text_of(session)["trace"] is False
    lines: list[Any] = []
    session.reopen(trace=lambda name, facts: lines.append((name, dict(facts))))
    session.run()
    assert (lines, text_of(session)["trace"]) == ([("probe", {"seen": True})], True)

    def fails(name: str, facts: Any) -> None:
        raise RuntimeError("the trace fails")

    session.reopen(trace=fails)
    assert session.run()["status"] == "completed"
    assert not [kind for kind in session.types() if "trace" in kind]


@pytest.mark.req("A-33")
def test_a_role_that_looks_at_its_record_repeats_nothing_that_has_ended(play: Any) -> None:
    session = play(says("unused"), harness=bound("resuming"))
    assert session.run()["status"] == "awaiting_approval"
    assert session.effects() == ["first", "second"]
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    assert text_of(session) == ["first", "second"]
    assert session.effects() == ["first", "second", "third"]


@pytest.mark.req("A-33")
def test_a_role_can_write_notes_and_nothing_else(play: Any) -> None:
    session = play(says("unused"), harness=bound("impostor"))
    session.run()
    assert text_of(session) == []
    assert "harness.model.called" in [note["text"] for note in session.payloads("role.note")]
    assert not [note for note in session.payloads("role.note") if note.get("remote")]
    assert "harness.model.called" not in session.types()


@pytest.mark.req("A-67")
def test_the_step_path_of_an_event_is_the_hosts_whatever_a_role_says(play: Any) -> None:
    session = play(says("unused"), harness=bound("impostor"))
    session.run()
    found = [event for event in session.events() if event.type == "role.note"]
    assert {json.loads(note.refs)["step_path"] for note in found} == {"work"}
    asked = play(says("a"), says("b"), says("c"), harness=bound("asking"))
    asked.run()
    assert {one["stepPath"] for one in asked.payloads("harness.model.responded")} == {"work"}


# ------------------------------------------------------------------------------------------ what a role may answer


@pytest.mark.req("A-09")
def test_a_result_of_another_kind_fails_the_call_and_is_recorded(play: Any) -> None:
    session = play(says("unused"), harness=bound("wrong-kind"), stages=one_stage(retry={"max_attempts": 3}))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "role.result_kind_mismatch")
    [failed] = session.payloads("role.failed")
    assert failed["error"]["code"] == "role.result_kind_mismatch"


@pytest.mark.req("A-64")
@pytest.mark.parametrize(("role", "code"), [("raising", "plugin.raised"), ("garbage", "plugin.raised")])
def test_a_role_that_breaks_fails_its_call_alone_and_once(play: Any, role: str, code: str) -> None:
    session = play(says("unused"), harness=bound(role))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", code)
    kinds = Counter(session.types())
    assert (kinds["harness.session.failed"], kinds["harness.session.completed"]) == (1, 0)
    assert session.host.session("@last")["status"] == "failed"  # the host lives


@pytest.mark.req("A-13")
def test_a_role_that_delegates_lets_the_default_answer_in_its_place(play: Any) -> None:
    plain = play(says("done"))
    plain.run()
    session = play(says("done"), harness=bound("delegating"))
    document = session.run()
    assert document["status"] == "completed"
    assert [one["ref"] for one in session.host.artifacts("@last")] == [
        one["ref"] for one in plain.host.artifacts("@last")
    ]
    [delegated] = session.payloads("role.delegated")
    assert (delegated["source"], delegated["target"]) == ("role-probe", "role-workflow")
    kinds = Counter(session.types())
    assert (kinds["harness.session.started"], kinds["harness.session.completed"]) == (1, 1)
    [started] = session.payloads("harness.session.started")
    assert started["runId"] == document["id"]
    manifest = json.loads(session.host.artifact(f"artifact://sha256-{started['manifestHash']}"))
    assert (manifest["pluginId"], manifest["delegatedFrom"]) == ("role-workflow", "role-probe")


def test_a_role_that_has_asked_may_no_longer_delegate(play: Any) -> None:
    session = play(says("done"), harness=bound("late-delegating"))
    assert session.run()["failure"]["code"] == "role.delegated_late"


def test_a_delegation_is_resumed_as_it_was(play: Any) -> None:
    session = play(calls(("network", {"note": "a"})), says("done"), harness=bound("delegating"))
    assert session.run()["status"] == "awaiting_approval"
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    kinds = Counter(session.types())
    assert [kinds[kind] for kind in ("role.resolved", "role.delegated", "harness.session.started")] == [1, 1, 1]
    assert session.effects() == ["a"]


@pytest.mark.req("B-52", "B-157")
def test_a_context_is_closed_with_its_call_and_visits_share_nothing(play: Any) -> None:
    stages = one_stage(on_success="again")
    stages["stages"]["again"] = {"role": "worker", "allowed_tools": ["effects"], "on_success": "completed"}
    session = play(says("unused"), harness=bound("keeping"), stages=stages)
    assert session.run()["status"] == "completed"
    bodies = [json.loads(session.host.artifact(one["ref"])) for one in session.host.artifacts("@last")]
    assert [json.loads(body["text"])["tried"] for body in bodies] == [[], ["Cancelled"] * 4]
    assert session.effects() == []


# --------------------------------------------------------------------------------------------- what is recorded


@pytest.mark.req("A-56", "A-78", "A-41")
def test_a_role_call_has_one_beginning_and_one_end_in_order(play: Any) -> None:
    session = play(calls(("pure", {"note": "a"})), says("done"))
    session.run()
    wanted = [kind for kind in session.types() if kind in CALL]
    assert wanted == [
        "harness.session.started",
        "harness.execute_step.started",
        "harness.model.called",
        "harness.model.responded",
        "harness.tool_call.started",
        "harness.tool_call.succeeded",
        "harness.model.called",
        "harness.model.responded",
        "harness.execute_step.succeeded",
        "harness.session.completed",
    ]
    [started] = session.payloads("harness.session.started")
    assert started["task"] == {"kind": "execute_step"}
    with pytest.raises(VocabularyError):
        check_payload("harness.session.started", {**started, "role": "coder"})


@pytest.mark.req("A-57")
def test_the_manifest_has_the_shape_of_its_role(play: Any) -> None:
    session = play(says("done"))
    session.run()
    [started] = session.payloads("harness.session.started")
    manifest = json.loads(session.host.artifact(f"artifact://sha256-{started['manifestHash']}"))
    assert (manifest["role"], manifest["uses"], manifest["stepPath"]) == ("worker.ai-generate", "ai.generate", "work")
    assert {"definitionHash", "sourceHash", "availableHashes"}.isdisjoint(manifest)
    assert {tool["name"] for tool in manifest["tools"]} >= {"effects_pure"}


@pytest.mark.req("A-60", "A-63")
def test_the_usage_at_the_end_is_the_sum_of_the_calls_and_is_not_added_again(play: Any) -> None:
    usages = [
        {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 4, "reasoningTokens": 2},
        {"inputTokens": 7, "outputTokens": 3, "cachedInputTokens": 0, "reasoningTokens": 1},
    ]
    session = play(calls(("pure", {"note": "a"}), usage=usages[0]), says("done", usage=usages[1]))
    document = session.run()
    [completed] = session.payloads("harness.session.completed")
    total = {name: usages[0][name] + usages[1][name] for name in usages[0]}
    assert {name: completed["usage"][name] for name in total} == total
    assert (document["usage"]["input_tokens"], document["usage"]["output_tokens"]) == (17, 8)
    assert document["usage"] == session.host.session("@last", at=len(session.events()) - 1)["usage"]


@pytest.mark.req("A-79")
def test_turns_count_from_one_within_their_scope(play: Any) -> None:
    session = play(says("a"), says("b"), says("c"), harness=bound("asking"))
    session.run()
    called = session.payloads("harness.model.called")
    assert [(one["scope"], one["turn"]) for one in called] == [("", 1), ("", 2), ("s", 1)]


def test_questions_asked_side_by_side_keep_to_their_own_messages(play: Any, quick_switches: None) -> None:
    harness = {**bound("asking-at-once"), "run": {"budget": {"tokens": 10_000_000, "calls": 100}}}
    session = play(*[says("yes")] * 8, harness=harness)
    session.run()
    called = session.payloads("harness.model.called")
    expected = [(scope, turn) for scope in "ABCD" for turn in range(1, 9)]
    assert sorted((one["scope"], one["turn"]) for one in called) == expected
    for one in called:
        assert len(one["request"]["messages"]) == 1500
        messages = [json.loads(session.host.store.blob(ref)) for ref in one["request"]["messages"]]
        assert {message["content"][0]["text"][0] for message in messages} == {one["scope"]}
    assert session.host.replay("@last", "skip-inference")["equal"]


@pytest.mark.req("A-73", "A-74")
def test_equal_calls_by_code_are_told_apart_and_answered_each_by_its_own(play: Any) -> None:
    session = play(says("unused"), harness=bound("counting"))
    session.run()
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["same"] * 4 + ["last"]
    started = session.payloads("harness.tool_call.started")[:4]
    assert [(one.get("scope"), one["callIndex"]) for one in started] == [
        (None, 0), (None, 1), ({"scope": "one"}, 0), ({"scope": "two"}, 0)
    ]  # fmt: skip
    assert {one["caller"] for one in started} == {"code"}
    assert all("turn" not in one for one in started)
    assert len({one["callId"] for one in started}) == 4


@pytest.mark.req("A-69", "A-71", "A-72")
def test_a_tool_call_by_the_model_says_who_asked_for_what_and_how_it_ended(play: Any) -> None:
    turn = calls(("pure", {"note": "a"}), ("fail", {"note": "b"}))
    session = play(turn, says("done"), policies={**POLICIES, "tiers": {"T2": "auto"}})
    session.run()
    started = session.payloads("harness.tool_call.started")
    assert {(one["caller"], one["turn"]) for one in started} == {("model", 1)}
    [succeeded] = session.payloads("harness.tool_call.succeeded")
    assert (succeeded["toolName"], succeeded["args"]) == ("effects_pure", {"note": "a"})
    assert succeeded["result"] == {"done": "effects_pure", "note": "a"}
    assert succeeded["durationMs"] >= 0
    [failed] = session.payloads("harness.tool_call.failed")
    assert (failed["args"], failed["error"]["code"]) == ({"note": "b"}, "effects.failed")
    for kind, payload in (("succeeded", succeeded), ("failed", failed), ("started", started[0])):
        with pytest.raises(VocabularyError):
            check_payload(f"harness.tool_call.{kind}", {**payload, "caller": "runtime"})
    with pytest.raises(VocabularyError):
        check_payload("harness.tool_call.succeeded", {k: v for k, v in succeeded.items() if k != "result"})
    with pytest.raises(VocabularyError):
        check_payload("harness.tool_call.failed", {**failed, "error": "no envelope"})


@pytest.mark.req("A-66")
def test_an_answer_names_the_model_that_gave_it(play: Any) -> None:
    session = play(says("done"))
    session.run()
    [responded] = session.payloads("harness.model.responded")
    assert responded["model"] == {"provider": "scripted", "modelId": "scripted"}
    with pytest.raises(VocabularyError):
        check_payload("harness.model.responded", {k: v for k, v in responded.items() if k != "model"})


@pytest.mark.req("A-68")
@pytest.mark.parametrize("wrong", [{"cachedInputTokens": 11}, {"reasoningTokens": 6}])
def test_a_subset_of_tokens_is_never_larger_than_its_set(play: Any, wrong: dict[str, int]) -> None:
    session = play(says("done"))
    session.run()
    [responded] = session.payloads("harness.model.responded")
    responded["response"]["usage"] |= wrong
    with pytest.raises(VocabularyError):
        check_payload("harness.model.responded", responded)


@pytest.mark.req("A-77")
def test_the_events_of_a_call_are_the_seeds_ten_and_the_failed_model_call() -> None:
    assert sorted(CALL) == [
        "harness.execute_step.started",
        "harness.execute_step.succeeded",
        "harness.model.called",
        "harness.model.failed",
        "harness.model.responded",
        "harness.session.completed",
        "harness.session.failed",
        "harness.session.started",
        "harness.tool_call.failed",
        "harness.tool_call.started",
        "harness.tool_call.succeeded",
    ]


@pytest.mark.req("A-19")
def test_there_are_six_roles_and_no_other_is_taken(play: Any) -> None:
    assert len(EXECUTOR_ROLES) == 6
    session = play(says("done"))
    session.run()
    [requested] = session.payloads("role.requested")
    for role in EXECUTOR_ROLES:
        check_payload("role.requested", {**requested, "role": role})
    with pytest.raises(VocabularyError):
        check_payload("role.requested", {**requested, "role": "worker.sing"})


# --------------------------------------------------------------------------------------------------- listeners

OBSERVER = """
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer
from harness_hookspecs import hooks

class Listener:
    def __init__(self, file):
        self.file = file

    def on_event(self, event):
        with open(self.file, "a") as out:
            out.write(f"{event.seq} {event.type}\\n")

    def close(self):
        with open(self.file, "a") as out:
            out.write("closed\\n")

@implements(hooks.harness_provide_observers)
def harness_provide_observers():
    return [Offer(kind="observer", name="acme", build=lambda settings, host: Listener("FILE"))]
"""


def heard(file: Path) -> list[tuple[int, str]]:
    lines = [line.split(" ") for line in file.read_text().splitlines() if " " in line]
    return [(int(seq), kind) for seq, kind in lines]


@pytest.mark.req("B-14")
def test_a_plugin_that_listens_is_told_of_all_events_in_order(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = calls(("pure", {"note": "a"}), ("keyed", {"note": "b"}))
    session = play(turn, says("done"), harness=bound("delegating"))
    monkeypatch.setenv("HARNESS_PROBE_EVENTS", str(tmp_path / "heard"))
    session.reopen()
    session.run()
    assert heard(tmp_path / "heard") == [(event.seq, event.type) for event in session.events()]


@pytest.mark.req("B-14")
def test_an_observer_that_is_installed_is_told_of_all_events_and_closed(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provides = [{"kind": "observer", "name": "acme"}]
    code = OBSERVER.replace("FILE", str(tmp_path / "heard"))
    make_distribution(tmp_path / "site", "acme-observer", provides=provides, code=code)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    session = play(calls(("network", {"note": "asked"})), says("done"))
    session.run()
    session.reopen()
    session.host.cancel("@last")  # who only ends it says so too
    stored = [(event.seq, event.type) for event in session.events()]
    session.host.close()
    assert stored[-1][1] == "session.cancelled"
    assert heard(tmp_path / "heard") == stored
    assert (tmp_path / "heard").read_text().endswith("closed\n")


def test_a_listener_that_fails_is_no_reason_to_fail(play: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    session = play(says("done"), harness=bound("delegating"))
    monkeypatch.setenv("HARNESS_PROBE_EVENTS", "!")
    session.reopen()
    assert session.run()["status"] == "completed"
    assert capsys.readouterr().err.count("is told no more") == 1


# ------------------------------------------------------------------------------------- what may not be appended


@pytest.mark.req("A-14")
@pytest.mark.parametrize("bind", [{}, bound("delegating")], ids=["bound", "delegated to"])
def test_the_default_may_not_delegate(play: Any, monkeypatch: pytest.MonkeyPatch, bind: dict[str, Any]) -> None:
    from harness_role_workflow.role import WorkflowRole

    entered: list[int] = []

    def delegate(self: Any, task: Any, ctx: Any) -> Any:
        entered.append(1)
        return DelegateToDefault()

    monkeypatch.setattr(WorkflowRole, "run", delegate)
    document = play(says("unused"), harness=bind).run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "role.delegation_loop")
    assert entered == [1]


@pytest.mark.req("A-29")
def test_there_is_no_context_without_a_writer(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_core.shell.perform_role.Durability", lambda *given: None)
    session = play(says("unused"))
    with pytest.raises(HarnessError) as caught:
        session.run()
    assert caught.value.code == "role.no_durability"
    assert "harness.session.started" not in session.types()


@pytest.mark.req("A-58")
def test_a_manifest_that_does_not_hash_to_its_name_is_not_appended(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_core.shell.recorder import RoleCallRecorder

    opened = RoleCallRecorder.open

    def tampered(self: Any, facts: Any, blobs: Any, manifest: Any) -> None:
        for fact in facts:
            if fact.type == "harness.session.started":
                fact.payload["manifestHash"] = "0" * 64
        opened(self, facts, blobs, manifest)

    monkeypatch.setattr(RoleCallRecorder, "open", tampered)
    session = play(says("unused"))
    assert session.run()["failure"]["code"] == "vocabulary.hash"
    assert "harness.session.started" not in session.types()


@pytest.mark.req("A-65")
def test_a_prompt_hash_that_is_not_the_requests_is_not_appended(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_core.shell.model_handle import BoundModel

    question = BoundModel._question

    def tampered(self: Any, chat: Any, said: Any) -> Any:
        return question(self, chat, said)._replace(prompt_hash="0" * 64)

    monkeypatch.setattr(BoundModel, "_question", tampered)
    session = play(says("unused"))
    assert session.run()["failure"]["code"] == "vocabulary.hash"
    assert "harness.model.called" not in session.types()


@pytest.mark.req("A-70")
@pytest.mark.parametrize(("caller", "taken"), [("model", True), ("code", True), ("runtime", False), ("", False)])
def test_a_tool_is_called_by_the_model_or_by_code(caller: str, taken: bool) -> None:
    payload: dict[str, Any] = {"callId": "c", "caller": caller, "toolName": "t", "args": {}, "result": None}
    if taken:
        check_payload("harness.tool_call.succeeded", payload)
        return
    with pytest.raises(VocabularyError):
        check_payload("harness.tool_call.succeeded", payload)
