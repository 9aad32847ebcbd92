"""Approvals: who is asked, what an answer is bound to, what it allows and what it leaves as it was."""

from __future__ import annotations

import json
import os
import pwd
import threading
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core import Host
from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from harness_core.cli.session_text import exit_of_session
from harness_core.kernel.approvals import approval_digest
from harness_hookspecs.errors import ConfigError, HarnessError, IllegalMove, NotFound, Refused
from harness_hookspecs.kit.codec import dumps
from tests.reference import POLICIES, calls, cases, one_stage, says

CASES = cases("runtime")
ASK_ONCE = [calls(("network", {"note": "a"})), says("done")]


# ------------------------------------------------------------------------------------------------ who is asked


@pytest.mark.req("B-07", "B-155")
def test_only_what_policy_calls_prompt_is_asked_about(play: Any) -> None:
    turn = calls(("pure", {"note": "T1"}), ("keyed", {"note": "T2"}), ("network", {"note": "T3"}))
    session = play(turn, says("done"))
    assert session.run()["status"] == "awaiting_approval"
    assert [item["tier"] for item in session.pending()] == ["T3"]
    assert sorted(session.effects()) == ["T1", "T2"]  # what asks has not run


@pytest.mark.req("B-155")
def test_an_effect_that_asks_runs_under_a_grant_that_the_log_names(play: Any) -> None:
    session = play(*ASK_ONCE)
    session.run()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    events = session.events()
    [granted] = [event for event in events if event.type == "approval.granted"]
    [started] = [event for event in events if event.type == "harness.tool_call.started"]
    assert json.loads(started.refs)["causation_id"] == granted.id
    assert granted.seq < started.seq


@pytest.mark.req("B-159")
def test_a_written_rule_resolves_a_gate_and_the_event_says_so(play: Any) -> None:
    rule = {"tool": "effects_network", "tier": "T3", "decision": "approve"}
    session = play(*ASK_ONCE, harness={"plugins": {"settings": {"policy": {"rules": [rule]}}}})
    assert session.run(on_ask="deny")["status"] == "completed"
    [granted] = session.payloads("approval.granted")
    assert granted["kind"] == "policy"
    assert session.effects() == ["a"]


@pytest.mark.req("B-159")
@pytest.mark.parametrize(("decision", "status"), [("approve", "completed"), ("deny", "failed")])
def test_a_person_resolves_the_gate_of_an_artifact(play: Any, decision: str, status: str) -> None:
    session = play(says("done"), stages=one_stage(approvals={"artifact": "required"}, on_failure="failed"))
    assert session.run()["status"] == "awaiting_approval"
    [item] = session.pending()
    assert (item["subject"], item["name"]) == ("artifact", "text")
    session.answer(item, decision)
    assert session.resume()["status"] == status
    ended = session.payloads("approval.granted" if decision == "approve" else "approval.denied")
    assert [one["kind"] for one in ended] == ["person"]
    assert ("artifact.accepted" in session.types()) == (decision == "approve")


# ------------------------------------------------------------------------------------- what an answer is bound to


def digest_about(session: Any, item: Any, **other: Any) -> str:
    """What an answer would be bound to if these were the item's tool, arguments and so on."""
    [asked] = [one for one in session.payloads("approval.requested") if one["approval_id"] == item["id"]]
    bound = {"tool": item["name"], "args": item["args"], "session_id": item["session_id"], "generation": 1}
    return approval_digest(**{**bound, "place": f"{asked['role_call_id']}/{asked['call_id']}", **other})


@pytest.mark.inv("I-23")
@pytest.mark.req("B-85")
@pytest.mark.parametrize("other", [{"args": {"note": "b"}}, {"args": {}}, {"tool": "effects_destroy"}], ids=str)
def test_an_answer_to_another_call_is_refused_and_leaves_the_question_open(play: Any, other: dict[str, Any]) -> None:
    session = play(*ASK_ONCE)
    session.run()
    [item] = session.pending()
    assert digest_about(session, item) == item["digest"]
    with pytest.raises(Refused) as caught:
        session.host.answer(item["id"], "approve", digest=digest_about(session, item, **other))
    assert caught.value.code == "approval.digest"
    assert session.pending() == [item]
    assert session.effects() == []


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("through", ["the host", "the store"])
def test_a_posted_answer_to_other_arguments_allows_nothing(play: Any, through: str) -> None:
    session = play(*ASK_ONCE)
    session.run()
    [item] = session.pending()
    digest = digest_about(session, item, args={"note": "b"})
    body = {"approval_id": item["id"], "decision": "approve", "digest": digest, "by": "forger", "kind": "person"}
    command = {"session": item["session_id"], "id": f"answer:{item['id']}", "kind": "answer", "body": body}
    if through == "the host":
        with pytest.raises(Refused) as caught:
            session.host.submit(command)
        assert caught.value.code == "approval.digest"
    else:
        session.host.store.post(command["session"], command["id"], dumps({"kind": "answer", "body": body}))
    assert session.resume()["status"] == "awaiting_approval"
    assert session.effects() == []
    session.answer(item)
    assert session.resume()["status"] == "completed"


@pytest.mark.inv("I-23")
@pytest.mark.req("B-85")
def test_arguments_that_changed_after_the_approval_are_asked_about_again(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(says("unused"), harness={"bind": {"worker.ai-generate": "editing"}})
    monkeypatch.setenv("HARNESS_PROBE_NOTE", "harmless")
    session.run()
    [first] = session.pending()
    session.answer(first)
    monkeypatch.setenv("HARNESS_PROBE_NOTE", "harmful")
    assert session.resume()["status"] == "awaiting_approval"
    assert session.effects() == []
    [second] = session.pending()
    assert (first["args"], second["args"]) == ({"note": "harmless"}, {"note": "harmful"})
    session.answer(second)
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["harmful"]


@pytest.mark.inv("I-23")
def test_a_grant_covers_one_call_and_the_same_arguments_elsewhere_are_asked_about_again(play: Any) -> None:
    replies = [calls(("network", {"note": note})) for note in ("a", "a", "b")]
    session = play(*replies, says("done"))
    session.run()
    seen = []
    for count in (1, 2, 3):
        [item] = session.pending()
        seen += [item["id"], item["digest"]]
        session.answer(item)
        session.resume()
        assert session.effects() == ["a", "a", "b"][:count]
    assert len(set(seen)) == 6
    granted = [event.id for event in session.events() if event.type == "approval.granted"]
    started = [event for event in session.events() if event.type == "harness.tool_call.started"]
    assert [json.loads(event.refs)["causation_id"] for event in started] == granted


@pytest.mark.inv("I-23", "I-5")
def test_the_first_answer_stands_and_the_second_is_told_whose_it_was(play: Any) -> None:
    assert "idempotency" in CASES["BR-106"]["area"]
    session = play(*ASK_ONCE)
    session.run()
    [item] = session.pending()
    assert session.answer(item, "deny", by="ann").by == "ann"
    second = session.answer(item, "approve", by="ben")
    assert (type(second).__name__, second.by) == ("AlreadyAnswered", "ann")
    session.resume()
    third = session.answer(item, "approve", by="cem")
    assert (type(third).__name__, third.by) == ("AlreadyAnswered", "ann")
    assert session.effects() == []
    assert len(session.payloads("command.received")) == 1


@pytest.mark.inv("I-23")
def test_of_many_answers_at_once_one_wins(play: Any) -> None:
    session = play(*ASK_ONCE)
    session.run()
    [item] = session.pending()
    results: list[Any] = []
    start = threading.Barrier(8)

    def answer(name: str) -> None:
        with Host.open(session.site.project) as host:
            start.wait()
            results.append(host.answer(item["id"], "approve", digest=item["digest"], by=name))

    threads = [threading.Thread(target=answer, args=(f"p{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kinds = sorted(type(result).__name__ for result in results)
    assert kinds == [*["AlreadyAnswered"] * 7, "Answered"]
    assert len({result.by for result in results}) == 1
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["a"]


def test_an_answer_to_nothing_is_not_found(play: Any) -> None:
    session = play(says("done"))
    session.run()
    with pytest.raises(NotFound):
        session.host.answer("appr_none", "approve", digest="0" * 64)


@pytest.mark.inv("I-23", "I-1")
def test_a_pending_approval_outlives_its_process(play: Any) -> None:
    assert "restart" in CASES["BR-031"]["area"]
    session = play(*ASK_ONCE)
    session.run()
    before = session.pending()
    session.reopen()
    assert session.pending() == before
    session.answer(before[0])
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["a"]


# ------------------------------------------------------------------------------------------- what is said of them


@pytest.mark.req("B-127")
def test_every_approval_is_one_document_for_library_and_terminal_and_names_the_stage_that_asked(
    play: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (one_stage(on_success=goto)["stages"]["work"] for goto in ("check", "completed"))
    asks = [{"when": {"stage": name, "turn": 1}, **calls(("network", {"note": name}))} for name in ("work", "check")]
    replies = [*asks, {"when": {"stage": "work"}, **says("done")}]
    session = play(*replies, stages={"initial": "work", "stages": {"work": one, "check": two}})
    session.run()
    session.answer(session.pending()[0], by="ann", say="go on")
    assert seen_by_all(session, capsys) == [("work", "answered", "ann")]
    assert session.pending() == []
    session.resume()
    assert seen_by_all(session, capsys) == [("work", "granted", "ann"), ("check", "pending", None)]
    [waiting] = session.pending()
    session.host.cancel("@last")
    assert seen_by_all(session, capsys) == [("work", "granted", "ann"), ("check", "closed", None)]
    with pytest.raises(IllegalMove) as caught:
        session.answer(waiting)
    assert caught.value.code == "state.final"


def seen_by_all(session: Any, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, str | None]]:
    """Stage, status and who answered of each approval, once both doors give the published document of it."""
    items = session.host.approvals(history=True)
    capsys.readouterr()
    assert main(["approvals", "history", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["items"] == items
    Draft202012Validator(published_schema("harness.approvals/1")).validate(shown)
    return [(item["stage"], item["status"], item["answer"] and item["answer"]["by"]) for item in items]


# ---------------------------------------------------------------------------------------------- several at once


@pytest.mark.inv("I-23")
def test_two_questions_of_one_turn_are_two(play: Any) -> None:
    assert "deny" in CASES["BR-037"]["steps"]
    session = play(calls(("network", {"note": "a"}), ("network", {"note": "a"})), says("done"))
    session.run()
    first, second = session.pending()
    assert first["id"] != second["id"]
    session.answer(second, "deny")
    assert session.resume()["status"] == "awaiting_approval"
    assert [item["id"] for item in session.pending()] == [first["id"]]
    assert session.effects() == []
    session.answer(first)
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["a"]
    [denied] = session.payloads("harness.tool_call.failed")
    assert denied["error"]["code"] == "approval.denied"
    [succeeded] = session.payloads("harness.tool_call.succeeded")
    assert succeeded["callId"] != denied["callId"]


@pytest.mark.inv("I-16", "I-22")
def test_finished_siblings_of_a_call_that_waits_are_not_run_again(play: Any) -> None:
    assert "one line" in CASES["BR-022"]["right"]
    session = play(calls(("network", {"note": "ask"}), ("unkeyed", {"note": "sibling"})), says("done"))
    assert session.run()["status"] == "awaiting_approval"
    assert session.effects() == ["sibling"]
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    assert session.effects() == ["sibling", "ask"]
    called = session.payloads("harness.model.called")[-1]["request"]["messages"]
    shown = [json.loads(session.host.artifact(f"artifact://sha256-{ref}")) for ref in called]
    results = [part["result"]["note"] for message in shown for part in message["content"] if "result" in part]
    assert results == ["ask", "sibling"]  # in the order of the calls


# -------------------------------------------------------------------------------------------- what follows from no


@pytest.mark.inv("I-23")
def test_a_denial_answers_the_call_and_the_role_goes_on(play: Any) -> None:
    last = says("without", when={"contains": "denied by ann: not today"})
    session = play(calls(("network", {"note": "a"}), when={"turn": 1}), last)
    session.run()
    session.answer(session.pending()[0], "deny", by="ann", say="not today")
    assert session.resume()["status"] == "completed"
    assert session.effects() == []
    assert [one["text"] for one in session.payloads("steering.received")] == ["not today"]
    assert "harness.tool_call.started" not in session.types()


def test_what_policy_denies_answers_the_call_and_the_role_goes_on(play: Any) -> None:
    session = play(calls(("destroy", {"note": "a"})), says("without"))
    assert session.run()["status"] == "completed"
    assert session.effects() == []
    [failed] = session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "tool.denied_by_policy"
    assert "approval.requested" not in session.types()


def test_what_only_the_unattended_run_denied_ends_the_session(play: Any) -> None:
    session = play(*ASK_ONCE)
    document = session.run(on_ask="deny")
    assert (document["status"], document["failure"]["code"]) == ("failed", "approval.denied_unattended")
    assert exit_of_session(document) == 11
    assert session.effects() == []
    [denied] = session.payloads("approval.denied")
    assert denied["kind"] == "on_ask"
    assert session.host.replay("@last", "skip-inference")["equal"]


def test_what_follows_an_unattended_denial_is_told_after_it(play: Any) -> None:
    session = play(ASK_ONCE[0])
    failure = session.run(on_ask="deny")["failure"]
    assert failure["code"] == "approval.denied_unattended"
    denied, _, followed = failure["message"].partition("; then: ")
    assert denied == "effects_network was denied by on_ask: nobody may be asked in this run (on_ask is deny)"
    assert "no reply" in followed
    [failed] = session.payloads("harness.session.failed")
    assert failed["error"].get("hint") is None, "that of the script would not help"
    assert session.host.replay("@last", "skip-inference")["equal"]


def test_who_gave_no_flag_is_told_that_there_is_no_terminal(play: Any) -> None:
    session = play(*ASK_ONCE)
    failure = session.run(on_ask="auto")["failure"]
    assert failure["message"].endswith("nobody may be asked in this run (there is no terminal and run.on_ask is auto)")
    assert session.payloads("session.created")[0]["on_ask"] == "auto"


NO_TERMINAL = "there is no terminal and run.on_ask is auto"


@pytest.mark.parametrize(
    ("begun", "attended", "again", "ends"),
    [
        ("auto", False, False, NO_TERMINAL),
        ("deny", False, False, "on_ask is deny"),
        ("deny", True, True, "on_ask is deny"),
        ("auto", True, False, None),
        ("auto", False, True, None),
    ],
)
def test_a_resume_does_what_the_session_was_begun_with_and_names_what_it_was(
    play: Any, begun: str, attended: bool, again: bool, ends: str | None
) -> None:
    """``ends``: why nobody was asked, or nothing when the question is left open for a person."""
    session = play(*ASK_ONCE)
    terminals = {True: (0, 1), False: None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_FAILPOINT", "intent.committed:raise")
        session.reopen(terminal=terminals[attended])
        with pytest.raises(HarnessError):
            session.run(on_ask=begun)
    session.reopen(terminal=terminals[again])
    document = session.resume(on_ask=None)
    if ends is None:
        assert (document["status"], len(session.pending())) == ("awaiting_approval", 1)
    else:
        assert document["failure"]["message"].endswith(f"nobody may be asked in this run ({ends})")


def test_a_gate_denied_unattended_ends_the_session(play: Any) -> None:
    stages = one_stage(approvals={"artifact": "required"}, retry={"strategy": "retry", "max_attempts": 3})
    session = play(says("done"), stages=stages)
    document = session.run(on_ask="deny")
    assert (document["status"], document["failure"]["code"]) == ("failed", "approval.denied_unattended")
    assert len(session.payloads("harness.model.called")) == 1
    assert session.host.replay("@last", "skip-inference")["equal"]


def test_resuming_unattended_denies_what_nobody_answered(play: Any) -> None:
    session = play(*ASK_ONCE)
    session.run(on_ask="suspend")
    document = session.resume(on_ask="deny")
    assert (document["status"], document["failure"]["code"]) == ("failed", "approval.denied_unattended")
    moves = [kind for kind in session.types() if kind in ("session.awaiting", "session.resumed")]
    assert moves == ["session.awaiting", "session.resumed"]


# ------------------------------------------------------------------------------------------------ grants and yolo


@pytest.mark.inv("I-23")
@pytest.mark.req("B-79")
def test_a_grant_for_the_session_is_for_one_tool_and_ends_with_it(play: Any) -> None:
    assert "Always allow" in CASES["BR-036"]["symptom"]
    replies = [calls((tool, {"note": note})) for tool, note in (("network", "a"), ("network", "b"), ("unkeyed", "c"))]
    session = play(*replies, says("done"), tools={"tools": {"effects_unkeyed": {"tier": "T3"}}})
    session.run()
    session.answer(session.pending()[0], "auto_session", by="ann")
    assert session.resume()["status"] == "awaiting_approval"
    assert session.effects() == ["a", "b"]
    assert [(item["name"], item["tier"]) for item in session.pending()] == [("effects_unkeyed", "T3")]
    granted = [(one["kind"], one["by"]) for one in session.payloads("approval.granted")]
    assert granted == [("person", "ann"), ("grant", "ann")]
    session.answer(session.pending()[0])
    session.resume()
    assert session.run()["status"] == "awaiting_approval"  # another session has no grant


@pytest.mark.inv("I-23")
@pytest.mark.req("B-79")
def test_a_grant_for_the_session_is_for_one_tier(play: Any) -> None:
    session = play(*ASK_ONCE, policies={**POLICIES, "tiers": {"T4": "prompt"}})
    session.run()
    session.answer(session.pending()[0], "auto_session")
    session.site.write("tools", {"tools": {"effects_network": {"tier": "T4"}}})
    session.reopen()
    assert session.resume(accept_drift=True)["status"] == "awaiting_approval"
    assert [(item["name"], item["tier"]) for item in session.pending()] == [("effects_network", "T4")]
    assert session.effects() == []


@pytest.mark.req("B-84")
@pytest.mark.parametrize(("yolo", "ran"), [("off", []), ("on", ["T3"]), ("destructive", ["T3", "T4"])])
def test_yolo_answers_approvals_and_says_each_time_who_switched_it_on(play: Any, yolo: str, ran: list[str]) -> None:
    session = play(calls(("network", {"note": "T3"})), calls(("destroy", {"note": "T4"})), says("done"))
    document = session.run(on_ask="suspend", yolo=yolo, by="ann")
    assert document["status"] == ("awaiting_approval" if yolo == "off" else "completed")
    assert session.effects() == ran
    bypassed = [(one["kind"], one["by"]) for one in session.payloads("approval.bypassed")]
    assert bypassed == [("yolo", "ann")] * len(ran)


def test_who_answers_is_whom_the_operating_system_knows_whatever_a_variable_says(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("USER", "LOGNAME"):
        monkeypatch.setenv(variable, "somebody else")
    session = play(calls(("network", {"note": "a"})), says("done"))
    session.run()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    [granted] = session.payloads("approval.granted")
    assert granted["by"] == f"{pwd.getpwuid(os.getuid()).pw_name} (pid {os.getpid()})"


@pytest.mark.parametrize("name", ["effects", "effects_network"])
def test_a_tier_is_lowered_only_where_the_policies_say_that_it_may(play: Any, name: str) -> None:
    lowered = {"tools": {name: {"tier": "T1"}}}
    session = play(*ASK_ONCE, tools=lowered)
    with pytest.raises(ConfigError) as caught:
        session.run()
    assert (caught.value.code, session.effects()) == ("config.tier_lowered", [])
    session = play(*ASK_ONCE, tools=lowered, policies={**POLICIES, "allow_tier_lowering": True})
    assert session.run()["status"] == "completed"
    assert "approval.requested" not in session.types()


def test_a_question_is_found_without_a_look_into_sessions_that_have_ended(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(*ASK_ONCE)
    for _ in range(3):
        session.run()
        session.answer(session.pending()[0])
        assert session.resume()["status"] == "completed"
    waiting = session.run()["id"]
    [item] = session.pending()
    looked_at, read = set(), session.host.store.read

    def look(_store: Any, stream: str, **more: Any) -> Any:
        looked_at.add(stream)
        return read(stream, **more)

    monkeypatch.setattr(type(session.host.store), "read", look)
    session.answer(item)
    assert looked_at <= {f"session:{waiting}"}
