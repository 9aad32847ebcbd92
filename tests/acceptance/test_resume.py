"""Resume: what is there and may go on does, under what it was started with, and nothing is done a second time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.errors import exit_of
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.timeline import timeline
from harness_core.shell.dispatcher import Dispatcher
from harness_core.shell.ports import NoThread, threads
from harness_core.shell.session import take_ownership
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import Drift, HarnessError, IllegalMove, NotFound
from tests.reference import REFERENCE, calls, cases, says, write_reference

CASES = cases("runtime")
ASK = [calls(("unkeyed", {"note": "before"})), calls(("network", {"note": "asked"})), says("done")]

FREE = [calls(("pure", {"note": "before"})), *ASK[1:]]
"""The same, with nothing done that may not be done twice."""


NOTHING_NEW = "harness: configuration and plugins are the session's own: of them no drift is recorded"


def models(**other: Any) -> dict[str, Any]:
    """Two entries of the same script; the keys given replace those of the one that is used."""
    entry = {"provider": "scripted", "script": "script.yaml", "capabilities": ["tool_calling"], "context_size": 32768}
    return {"default": "scripted", "models": {"scripted": entry, "other": entry}, **other}


# ------------------------------------------------------------------------------------------------- what may go on


@pytest.mark.inv("I-20")
@pytest.mark.parametrize("named", ["01990000-0000-7000-8000-000000000000", "zzzz", "", " ", "@first", "session:"])
def test_a_name_of_nothing_resumes_nothing(play: Any, named: str) -> None:
    assert "Typed error" in CASES["BR-023"]["right"]
    session = play(says("done"))
    session.run()
    before = session.types()
    with pytest.raises(NotFound) as caught:
        session.host.resume(named)
    assert exit_of(caught.value) == 4
    assert session.types() == before
    assert len(session.host.sessions()) == 1
    assert session.effects() == []


@pytest.mark.inv("I-20")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_what_has_ended_is_not_resumed(play: Any, end: str) -> None:
    replies = {"completed": says("done"), "failed": {"error": {"code": "provider.unavailable"}}}
    session = play(replies.get(end, calls(("network", {"note": "a"}))))
    session.run()
    if end == "cancelled":
        session.host.cancel("@last")
    before = session.types()
    assert session.host.session("@last")["status"] == end
    with pytest.raises(IllegalMove) as caught:
        session.resume()
    assert caught.value.code == "state.final"
    assert session.types() == before


def test_the_last_of_another_project_is_not_meant(play: Any) -> None:
    other = play(calls(("network", {"note": "a"})), says("done"))
    other.run()
    session = play(says("done"))
    with pytest.raises(NotFound):
        session.resume()


@pytest.mark.inv("I-20")
def test_resuming_what_waits_changes_nothing_but_asks_again(play: Any) -> None:
    session = play(*ASK)
    session.run()
    before = session.types()
    for _ in range(2):
        assert session.resume()["status"] == "awaiting_approval"
    assert session.types() == before


@pytest.mark.req("A-83")
def test_a_resume_repeats_no_model_call_and_no_tool_call(play: Any) -> None:
    session = play(*ASK)
    session.run()
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    turns = [one["turn"] for one in session.payloads("harness.model.called")]
    assert turns == [1, 2, 3]
    assert session.effects() == ["before", "asked"]


@pytest.mark.inv("I-18")
def test_a_replay_of_the_whole_session_makes_no_call_and_comes_to_the_same_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = write_reference(tmp_path).enter(monkeypatch)
    with Host.open(site.project) as host:
        document = host.run(REFERENCE, on_ask="deny", yolo="on")
        before, head = site.effects(), host.store.head(f"session:{document['id']}")
        for mode in ("full", "skip-inference"):
            report = host.replay("@last", mode)
            assert (report["equal"], report["state_hash"]) == (True, document["state_hash"])
            assert (report["model_calls"], report["tool_calls"]) == (0, 0)
        assert site.effects() == before
        assert host.store.head(f"session:{document['id']}") == head


FIRST: dict[str, Any] = {
    "arguments that were too large": {"tool_calls": [{"name": "effects_unkeyed", "args": {"note": "x" * 1_000_000}}]},
    "an unknown tool": {"tool_calls": [{"name": "effects_sing", "args": ["x"]}]},
    "a tool that crashed": calls(("fail", {"how": "crash"})),
    "a result that was too large": calls(("big", {"size_bytes": 500_000})),
    "a number with a fraction": calls(("slow", {"seconds": 0.001})),
    "signs of all kinds": calls(("unkeyed", {"note": "\u00fc \u202e \U0001f378 \u0000 \u2028"})),
    "an answer that was none": {"text": "prose"},
}


@pytest.mark.inv("I-18")
@pytest.mark.parametrize("what", FIRST)
def test_whatever_was_recorded_before_answers_again_after(play: Any, what: str) -> None:
    session = play(FIRST[what], calls(("network", {"note": "asked"})), says("done"))
    assert session.run()["status"] == "awaiting_approval"
    session.reopen()
    session.answer(session.pending()[0], say="go on")
    before = session.effects()
    assert session.resume()["status"] == "completed"
    assert session.effects() == [*before, "asked"]
    assert session.host.replay("@last", "skip-inference")["equal"]


# ------------------------------------------------------------------------------------------------------- drift


@pytest.mark.inv("I-19")
def test_another_configuration_refuses_and_names_what_changed(play: Any) -> None:
    session = play(*ASK)
    session.run()
    session.answer(session.pending()[0])
    session.site.write("harness", {"run": {"max_turns": 7}})
    session.reopen()
    before = session.types()
    with pytest.raises(Drift) as caught:
        session.resume()
    assert (caught.value.code, exit_of(caught.value)) == ("config.drift", 3)
    assert "run.max_turns" in caught.value.message
    assert session.types() == before
    assert session.effects() == ["before"]


@pytest.mark.inv("I-18", "I-19")
def test_no_later_result_is_used_on_an_earlier_step_that_has_changed(play: Any) -> None:
    assert "never a mix" in CASES["BR-026"]["right"]
    steps = [f"step{number}" for number in range(1, 6)]
    plan = {
        name: {"role": "worker", "task": f"Do {name}.", "allowed_tools": ["effects"], "on_success": after}
        for name, after in zip(steps, [*steps[1:], "completed"], strict=True)
    }
    tools = dict.fromkeys(steps[:3], "pure") | {"step4": "network"}
    asked = [calls((tool, {"note": name}), when={"stage": name, "turn": 1}) for name, tool in tools.items()]
    done = [says("done", when={"stage": name}) for name in steps]
    session = play(*asked, *done, stages={"initial": "step1", "stages": plan})
    assert session.run()["status"] == "awaiting_approval"
    session.answer(session.pending()[0])
    plan["step2"]["task"] = "Do something else."
    session.site.write("stages", {"initial": "step1", "stages": plan})
    session.reopen()
    before = session.types()
    with pytest.raises(Drift) as caught:
        session.resume()
    assert "stages.step2.task" in caught.value.message
    assert (session.types(), session.effects()) == (before, steps[:3])


@pytest.mark.req("A-59")
def test_another_model_stops_the_resume_before_any_call_and_names_the_field(play: Any) -> None:
    session = play(*ASK, models=models())
    session.run()
    session.answer(session.pending()[0])
    session.site.write("models", models(default="other"))
    session.reopen()
    with pytest.raises(Drift) as caught:
        session.resume()
    assert "default: 'scripted' -> 'other'" in caught.value.message
    assert len(session.payloads("harness.model.called")) == 2
    assert session.effects() == ["before"]


@pytest.mark.req("A-59")
def test_a_role_that_became_another_one_stops_the_resume_and_names_the_field(
    play: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness_role_workflow.role import WorkflowRole

    session = play(*FREE)
    name = session.run()["id"][-8:]
    session.answer(session.pending()[0])
    facts = {"prompt_template_version": "workflow/2", "addendum_hash": "0" * 64}
    monkeypatch.setattr(WorkflowRole, "prompt_facts", lambda self, role: facts)
    session.reopen()
    for takes_over in (False, True):
        with pytest.raises(Drift) as caught:
            session.resume()
        assert (caught.value.code, exit_of(caught.value)) == ("role.manifest_drift", 3)
        # Nobody has died: the first of the two was refused.
        told = f"harness: session {name} was left amid its work; it is taken over here\n"
        assert capsys.readouterr().err == (told if takes_over else "")
        assert "promptTemplateVersion: 'workflow/1' -> 'workflow/2'" in caught.value.message
    assert len(session.payloads("harness.model.called")) == 2
    capsys.readouterr()
    assert session.resume(accept_drift=True)["status"] == "awaiting_approval"  # it begins the attempt anew
    assert NOTHING_NEW in capsys.readouterr().err.splitlines()  # nor is that what is recorded
    [migrated] = session.payloads("config.migrated")
    changes = {one["key"]: (one["old"], one["new"]) for one in migrated["changes"]}
    assert changes["role call: promptTemplateVersion"] == ("workflow/1", "workflow/2")
    assert all(key.startswith("role call: ") for key in changes)
    assert migrated["old_digest"] == migrated["new_digest"]
    [told] = [line.text for line in timeline(map(decoded, session.events())) if "migrated" in line.text]
    assert told.startswith("configuration migrated: role call: addendumHash: '")


@pytest.mark.inv("I-19")
def test_an_accepted_change_is_recorded_and_the_session_goes_on_under_it(play: Any) -> None:
    session = play(*FREE, models=models())
    session.run()
    session.site.write("models", models(default="other"))
    session.reopen()
    assert session.resume(accept_drift=True)["status"] == "awaiting_approval"
    [migrated] = session.payloads("config.migrated")
    assert {"key": "models.default", "old": "scripted", "new": "other"} in migrated["changes"]
    [retry] = session.payloads("retry.scheduled")  # the attempt under the old model is over, a new one has begun
    assert retry["code"] == "config.migrated"
    assert len(session.pending()) == 1  # what the old attempt asked is not asked any more
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    called = session.payloads("harness.model.called")
    assert [one["request"]["model"]["modelId"] for one in called] == ["scripted"] * 2 + ["other"] * 3
    assert session.host.session("@last")["config_hash"] == migrated["new_digest"]
    assert session.host.replay("@last", "skip-inference")["equal"]


@pytest.mark.inv("I-16", "I-19")
def test_no_accepted_change_does_again_what_may_not_happen_twice(play: Any) -> None:
    session = play(*ASK, models=models())
    session.run()
    session.site.write("models", models(default="other"))
    session.reopen()
    with pytest.raises(Drift) as caught:
        session.resume(accept_drift=True)
    assert "effects_unkeyed" in caught.value.message
    assert session.effects() == ["before"]
    session.site.write("models", models())  # what the message says: undo it
    session.reopen()
    session.answer(session.pending()[0])
    assert session.resume(accept_drift=True)["status"] == "completed"
    assert session.effects() == ["before", "asked"]
    assert session.host.replay("@last", "skip-inference")["equal"]


@pytest.mark.inv("I-19")
def test_an_accepted_change_that_a_role_call_does_not_see_lets_it_go_on(play: Any) -> None:
    session = play(*ASK)
    session.run()
    session.answer(session.pending()[0])
    session.site.write("harness", {"run": {"cancel_grace_sec": 1}})
    session.reopen()
    assert session.resume(accept_drift=True)["status"] == "completed"
    assert session.effects() == ["before", "asked"]
    assert len(session.payloads("config.migrated")) == 1


@pytest.mark.inv("I-19", "I-16")
def test_a_change_is_not_accepted_over_an_effect_of_which_nobody_knows(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(*ASK, models=models(), tools={"tools": {"effects": {"probes": False}}})
    monkeypatch.setenv("HARNESS_FAILPOINT", "effect.done@2:raise")  # the first tool call
    session.reopen()
    with pytest.raises(HarnessError):
        session.run()
    monkeypatch.delenv("HARNESS_FAILPOINT")
    session.site.write("models", models(default="other"))
    session.reopen()
    with pytest.raises(Drift):
        session.resume(accept_drift=True)
    assert session.effects() == ["before"]


@pytest.mark.inv("I-19")
def test_a_plugin_that_is_merely_installed_does_not_matter(play: Any) -> None:
    session = play(*ASK)
    session.run()
    [created] = session.payloads("session.created")
    assert {one["id"] for one in created["plugins"]} >= {"role-workflow", "store-sqlite", "role-probe"}
    [loaded] = session.payloads("config.loaded")
    document = json.loads(session.host.artifact(f"artifact://sha256-{loaded['content_ref']}"))
    assert document["settings"]["models"]["default"] == "scripted"
    assert loaded["digest"] == session.host.config.digest


# --------------------------------------------------------------------------------------- what was lost, and lost again


@pytest.mark.inv("I-16")
@pytest.mark.parametrize("probes", [False, True])
def test_what_was_said_of_one_start_of_an_effect_says_nothing_of_the_next(
    play: Any, monkeypatch: pytest.MonkeyPatch, probes: bool
) -> None:
    session = play(calls(("unkeyed", {"note": "a"})), says("done"), tools={"tools": {"effects": {"probes": probes}}})
    monkeypatch.setenv("HARNESS_FAILPOINT", "intent.committed@2:raise")  # the tool's: nothing was done yet
    session.reopen()
    with pytest.raises(HarnessError):
        session.run()
    assert session.effects() == []
    doubt: Any = None
    if not probes:
        monkeypatch.delenv("HARNESS_FAILPOINT")
        session.reopen()
        [doubt] = session.resume()["waiting"]
        session.host.settle(doubt["id"], "never_happened")
    monkeypatch.setenv("HARNESS_FAILPOINT", "effect.done:raise")  # it is done, and its result is lost as well
    session.reopen()
    with pytest.raises(HarnessError):
        session.resume()
    assert session.effects() == ["a"]
    monkeypatch.delenv("HARNESS_FAILPOINT")
    session.reopen()
    document = session.resume()
    if not probes:
        [again] = document["waiting"]
        assert again["id"] != doubt["id"]
        session.host.settle(again["id"], "happened")
        document = session.resume()
    assert document["status"] == "completed"
    assert session.effects() == ["a"]
    assert session.host.replay("@last", mode="skip-inference")["equal"]


# ---------------------------------------------------------------------------------------------- plugins of another day

NAME, BYSTANDER = "acme-tool-bystander", [{"kind": "tool", "name": "bystander"}]
ASK_ONCE = [calls(("network", {"note": "asked"})), says("done")]


@pytest.fixture
def other_version(play: Any, site_folder: Path) -> Any:
    """A session that waits, begun when a plugin that it has no use for had another version."""
    made = make_distribution(site_folder, NAME, provides=BYSTANDER)
    session = play(*ASK_ONCE)
    assert session.run()["status"] == "awaiting_approval"
    shutil.rmtree(made.metadata)
    make_distribution(site_folder, NAME, provides=BYSTANDER, version="7.7.7")
    session.reopen()
    return session


def test_another_version_of_a_plugin_is_one_line_of_warning_and_no_event(
    other_version: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    session = other_version
    before = session.types()
    session.resume()
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        f"harness: warning: the session was started with other plugins: {NAME} 1.0 -> 7.7.7"
    )
    assert session.types() == before


def test_accepted_plugins_are_recorded_named_and_warned_of_no_more(
    other_version: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    session = other_version
    session.resume(accept_drift=True)
    [migrated] = session.payloads("config.migrated")
    assert migrated["changes"] == [{"key": f"plugin:{NAME}", "old": "1.0", "new": "7.7.7"}]
    [told] = [line.text for line in timeline(map(decoded, session.events())) if "migrated" in line.text]
    assert told == f"configuration migrated: {NAME} 1.0 -> 7.7.7"
    session.reopen()
    session.resume()
    assert "warning" not in capsys.readouterr().err


def test_accepting_where_nothing_has_changed_records_nothing_and_says_so(
    play: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    session = play(*ASK_ONCE)
    session.run()
    session.reopen()
    session.resume(accept_drift=True)
    assert "config.migrated" not in session.types()
    said = capsys.readouterr().err
    assert said == f"{NOTHING_NEW}\n"


# ------------------------------------------------------------------------------------------------- a process that died


@pytest.mark.parametrize("died", [False, True])
def test_who_takes_over_from_a_process_that_died_is_told_so(
    play: Any, capsys: pytest.CaptureFixture[str], died: bool
) -> None:
    session = play(*ASK_ONCE)
    if died:
        session.run_until_it_breaks("intent.committed")
    else:
        session.run()
    session.reopen()
    session.resume()
    assert ("it is taken over here" in capsys.readouterr().err) is died


def test_an_owner_that_ends_before_its_session_is_taken_is_not_said_to_have_left_it(
    play: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = play(*ASK_ONCE)
    session.run_until_it_breaks("intent.committed")
    session.reopen()

    def ends_meanwhile(*parts: Any) -> Any:
        monkeypatch.setattr("harness_core.shell.session.take_ownership", take_ownership)
        with Host.open(session.site.project) as elsewhere:
            elsewhere.resume("@last", on_ask="suspend")
        return take_ownership(*parts)

    monkeypatch.setattr("harness_core.shell.session.take_ownership", ends_meanwhile)
    assert session.resume()["status"] == "awaiting_approval"
    assert capsys.readouterr().err.count("it is taken over here") == 1  # by the one that came first


@pytest.mark.inv("I-22")
@pytest.mark.parametrize("given", [0, 1, 3])
def test_calls_of_one_answer_are_all_made_by_the_threads_that_the_machine_gives(
    play: Any, monkeypatch: pytest.MonkeyPatch, given: int
) -> None:
    session = play(calls(*[("unkeyed", {"note": str(number)}) for number in range(6)]), says("done"))
    begin, tools = threads._begin, iter(range(given))

    def few(*args: Any, name: str) -> None:
        if name == "harness-tool" and next(tools, None) is None:
            raise NoThread("can't start new thread")
        begin(*args, name=name)

    monkeypatch.setattr(threads, "_begin", few)
    monkeypatch.setattr(threads, "_MAX_IDLE_WORKERS", 0)
    assert session.run()["status"] == "completed"
    assert sorted(session.effects()) == list("012345")


def test_a_machine_that_gives_no_thread_is_no_fault_of_the_role_and_the_session_goes_on_later(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = play(calls(("unkeyed", {"note": "a"}), ("unkeyed", {"note": "b"})), says("done"))
    begin, begun = threads._begin, list[str]()

    def none_for_tools(*args: Any, name: str) -> None:  # so that the role's own thread makes the calls, one by one
        if name == "harness-tool":
            raise NoThread("can't start new thread")
        begin(*args, name=name)

    def none_left(dispatcher: Any, call: Any, record: Any) -> None:
        begun.append(call.args["note"])
        raise NoThread("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threads, "_begin", none_for_tools)
        patch.setattr(threads, "_MAX_IDLE_WORKERS", 0)
        patch.setattr(Dispatcher, "run", none_left)
        with pytest.raises(NoThread):
            session.run()
    assert begun == ["a"]  # none is begun after the first that the machine had no thread for
    session.reopen()
    assert session.resume()["status"] == "completed"
    assert sorted(session.effects()) == ["a", "b"]
