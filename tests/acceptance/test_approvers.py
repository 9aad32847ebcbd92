"""Whatever an approver says or does, a session ends or waits in time, and an answer that is none decides nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from harness_core.shell.perform_ask import AskSite
from harness_core.shell.posting import answer_place
from harness_core.shell.session import OwnedSession
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit.codec import dumps
from tests.commands import until
from tests.reference import POLICIES, calls, says

ASK_ONCE = [calls(("network", {"note": "a"})), says("done")]

CODE = """
import threading

from harness_hookspecs import hooks
from harness_hookspecs.approver import ApprovalAnswer
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

class Robot:
    released, returned, asked = threading.Event(), False, []
    interactive = False

    def __init__(self, settings, host):
        self.host = host

    def ask(self, request, cancel):
        self.asked.append(request.approval_id)
        assert len(self.asked) < 5, "asked again and again"
        {does}

@implements(hooks.harness_provide_approvers)
def harness_provide_approvers():
    return [Offer(kind="approver", name="{name}", build=Robot)]
"""

NONE_OF_THEM: dict[str, tuple[str, str]] = {
    "of no kind": ("ApprovalAnswer('approve', request.digest, 'robot', kind='robot')", "kind of answer"),
    "says a number": ("ApprovalAnswer('approve', request.digest, 'robot', 'policy', say=5)", "say of answer"),
    "says zero": ("ApprovalAnswer('approve', request.digest, 'robot', 'policy', say=0)", "say of answer"),
    "by nobody": ("ApprovalAnswer('approve', request.digest, None, 'policy')", "by of answer"),
    "no text in by": ("ApprovalAnswer('approve', request.digest, 'r\\ud800', 'policy')", "no JSON at /by"),
    "no text in say": ("ApprovalAnswer('approve', request.digest, 'r', 'policy', say='\\udcff')", "no JSON at /say"),
    "of no decision": ("ApprovalAnswer(['approve'], request.digest, 'robot', 'policy')", "is not approve, deny"),
    "about something else": ("ApprovalAnswer('approve', 'f' * 64, 'robot', 'policy')", "bound to other arguments"),
    "a plain text": ("'approve'", "no ApprovalAnswer but a str"),
    "yes": ("True", "no ApprovalAnswer but a bool"),
}
"""What is no answer: how an approver gives it, and what the log says of it."""

LATE = {
    "never returns": "type(self).returned = self.released.wait(20) or True",
    "answers when its time is over": (
        "cancel.on_cancel(self.released.set); self.released.wait(20); "
        "return ApprovalAnswer('approve', request.digest, 'robot', 'policy')"
    ),
}


@pytest.fixture
def robot(site_folder: Path) -> Iterator[Any]:
    """Makes a distribution with an approver that does so; gives its name."""
    made: list[str] = []

    def install(what: str, does: str) -> str:
        name = f"robot_{what.replace(' ', '_')}"  # a module stays imported, so other code has another name
        code = CODE.format(name=name, does=does)
        provides = [{"kind": "approver", "name": name}]
        made.append(make_distribution(site_folder, f"acme-{name}", provides=provides, code=code).module)
        return name

    yield install
    for name in made:
        module: Any = sys.modules.pop(name, None)
        if module is not None:
            module.Robot.released.set()


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("what", NONE_OF_THEM)
def test_an_answer_that_is_none_leaves_the_question_open_and_its_approver_named(
    play: Any, robot: Any, what: str
) -> None:
    given, said = NONE_OF_THEM[what]
    name = robot(what, f"return {given}")
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [name]})
    assert session.run(on_ask="suspend")["status"] == "awaiting_approval"
    [flaw] = session.payloads("session.awaiting")[-1]["flaws"]
    assert flaw.startswith(f"approver {name} gave no ") and said in flaw
    assert "command.received" not in session.types()
    session.answer(session.pending()[0], by="ann")
    assert session.resume()["status"] == "completed"
    assert session.payloads("approval.granted")[0]["by"] == "ann"


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("what", [*NONE_OF_THEM, "raises"])
def test_an_answer_that_is_none_is_nobodys_where_nobody_may_be_asked(play: Any, robot: Any, what: str) -> None:
    does = "raise RuntimeError('boom \\ud800')" if what == "raises" else f"return {NONE_OF_THEM[what][0]}"
    name = robot(f"denied {what}", does)
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [name]})
    document = session.run(on_ask="deny")
    assert (document["status"], document["failure"]["code"]) == ("failed", "approval.denied_unattended")
    [denied] = session.payloads("approval.denied")
    assert f"(on_ask is deny); approver {name} " in denied["reason"]
    assert session.effects() == []


@pytest.mark.inv("I-23")
@pytest.mark.parametrize(("what", "on_ask"), [(what, on_ask) for what in LATE for on_ask in ("deny", "suspend")])
def test_an_approver_that_gives_no_answer_in_time_holds_nobody_up(
    play: Any, robot: Any, monkeypatch: pytest.MonkeyPatch, what: str, on_ask: str
) -> None:
    monkeypatch.setattr("harness_core.shell.perform_ask.HEED_SECONDS", 0.05)
    name = robot(f"{on_ask} {what}", LATE[what])
    limits = {"run": {"approver_timeout_sec": 0.3}}
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [name]}, harness=limits)
    document = session.run(on_ask=on_ask)
    said = f"approver {name} gave no answer within 0.3 s"
    assert not sys.modules[f"acme_{name}"].Robot.returned
    assert session.effects() == []
    if on_ask == "deny":
        assert document["failure"]["code"] == "approval.denied_unattended"
        assert said in session.payloads("approval.denied")[0]["reason"]
    else:
        assert document["status"] == "awaiting_approval"
        assert session.payloads("session.awaiting")[0]["flaws"] == [said]


@pytest.mark.inv("I-23")
def test_the_next_approver_is_asked_when_one_gives_no_answer(play: Any, robot: Any) -> None:
    name = robot("first of two", "raise RuntimeError('boom')")
    rule = {"tool": "effects_network", "tier": "T3", "decision": "approve"}
    harness = {"plugins": {"settings": {"policy": {"rules": [rule]}}}}
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [name, "policy"]}, harness=harness)
    assert session.run(on_ask="deny")["status"] == "completed"


@pytest.mark.inv("I-23")
def test_an_answer_that_comes_when_its_session_was_cut_off_counts_and_nobody_else_is_asked(
    play: Any, robot: Any
) -> None:
    answer = "return ApprovalAnswer('approve', request.digest, '{who}', 'policy')"
    thinks = robot("who thinks", f"self.released.wait(20); {answer.format(who='first')}")
    second = robot("who would come next", answer.format(who="second"))
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [thinks, second]})
    found = session.host.start("Go.", on_ask="suspend")
    owned = session.host._owned[found]
    until(lambda: f"acme_{thinks}" in sys.modules and sys.modules[f"acme_{thinks}"].Robot.asked)
    session.host.interrupt("SIGINT", grace_seconds=0.05)
    sys.modules[f"acme_{thinks}"].Robot.released.set()
    until(owned.loop.quiescent)
    assert session.host.wait(found)["status"] == "paused"
    session.reopen()
    assert session.resume()["status"] == "completed"
    assert session.payloads("approval.granted")[0]["by"] == "first"
    assert sys.modules[f"acme_{second}"].Robot.asked == []


def test_a_question_that_was_interrupted_is_before_nobody_any_more(
    play: Any, robot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = robot("who is interrupted", "raise KeyboardInterrupt")
    import_module(f"acme_{name}").Robot.interactive = True
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [name]})
    begin, sites = OwnedSession.begin, list[AskSite]()

    def noted(owned: OwnedSession, *command: Any, **first: Any) -> None:
        assert owned._performer is not None
        sites.append(owned._performer.ask_site)
        begin(owned, *command, **first)

    monkeypatch.setattr(OwnedSession, "begin", noted)
    session.reopen(ports="inline", terminal=(0, 1))  # there the question is asked where Ctrl-C comes
    with pytest.raises(KeyboardInterrupt):
        session.run(on_ask="ask")
    [site] = sites
    assert site.prompts == {}


@pytest.mark.inv("I-23")
def test_nobody_else_is_asked_once_the_answer_came_from_elsewhere(play: Any, robot: Any) -> None:
    waits = robot("who waits", "cancel.on_cancel(self.released.set); self.released.wait(20)")
    second = robot("who is not needed", "pass")
    people = [import_module(f"acme_{name}").Robot for name in (waits, second)]
    for one in people:
        one.interactive = True
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [waits, second]})
    session.reopen(terminal=(0, 1))
    found = session.host.start("Go.", on_ask="ask")
    until(lambda: people[0].asked)
    session.answer(session.pending()[0])
    assert session.host.wait(found)["status"] == "completed"
    assert "role.suspended" not in session.types()  # the call went on where it was
    assert people[1].asked == []


@pytest.mark.inv("I-23")
def test_each_approver_is_shown_what_runs_whatever_one_before_did_to_it(play: Any, robot: Any) -> None:
    spoils = robot("who spoils what it is shown", "request.args['note'] = 'harmless'")
    approves = robot("who says what it was shown", "return ApprovalAnswer('approve', request.digest, 'r', 'policy', "
                     "say=request.args['note'])")  # fmt: skip
    session = play(*ASK_ONCE, policies={**POLICIES, "approver": [spoils, approves]})
    assert session.run()["status"] == "completed"
    [granted] = session.payloads("approval.granted")
    assert (granted["say"], session.effects()) == ("a", ["a"])


SPOILED: dict[str, Any] = {
    "of no kind": lambda body: {"kind": "answer", "body": {**body, "kind": "robot"}},
    "about something else": lambda body: {"kind": "answer", "body": {**body, "digest": "f" * 64}},
    "another command": lambda body: {"kind": "steer", "body": {"text": "left", "by": "me"}},
    "no command": lambda body: [1],
}


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("what", [*SPOILED, "of another session"])
def test_a_row_that_is_no_answer_does_not_hold_the_place_of_the_answer_for_ever(play: Any, what: str) -> None:
    session = play(*ASK_ONCE)
    document = session.run()
    [item] = session.pending()
    body = {"approval_id": item["id"], "decision": "approve", "digest": item["digest"], "by": "old", "kind": "person"}
    row = SPOILED[what](body) if what in SPOILED else {"kind": "answer", "body": body}
    owner = document["id"] if what in SPOILED else "another"
    session.host.store.post(owner, f"answer:{item['id']}", dumps(row))
    assert session.resume()["status"] == "awaiting_approval"
    assert session.answer(item, by="ann").by == "ann"
    assert session.answer(item, "deny", by="ben").by == "ann"
    place = answer_place(item["id"], item["digest"], document["id"], session.host.store)
    assert place.command_id == f"answer:{item['id']}:2"
    assert session.resume()["status"] == "completed"
    assert session.payloads("approval.granted")[0]["by"] == "ann"


@pytest.mark.parametrize("name", ["nobody", "nobody:terminal"])
def test_an_approver_that_is_written_down_and_not_there_stops_the_run_before_it_begins(play: Any, name: str) -> None:
    session = play(calls(("network", {"note": "a"})), says("done"), policies={**POLICIES, "approver": ["policy", name]})
    with pytest.raises(PluginError) as caught:
        session.run()
    assert (caught.value.code, list(session.host.sessions())) == ("plugin.missing", [])
    assert "policies.yaml" in str(caught.value.where)
