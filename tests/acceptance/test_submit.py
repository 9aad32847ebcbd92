"""What a surface posts is checked before it lies in an inbox: a row stays there as it was posted, for ever."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core import Host
from harness_hookspecs.errors import HarnessError, IllegalMove, NotFound, Refused
from harness_hookspecs.kit.codec import loads_trusted
from tests.reference import calls, says

STEER = {"text": "left", "by": "me"}


def waiting(play: Any) -> tuple[Any, dict[str, Any]]:
    """A session that waits for an answer, and the command that gives it."""
    session = play(calls(("network", {"note": "a"})), says("done"))
    found = session.run()["id"]
    [item] = session.pending()
    body = {"approval_id": item["id"], "decision": "approve", "digest": item["digest"], "by": "me", "kind": "person"}
    return session, {"session": found, "id": f"answer:{item['id']}", "kind": "answer", "body": body}


NO_COMMAND: dict[str, dict[str, Any]] = {
    "a number for an id": {"id": 5},
    "no id": {"id": ""},
    "an id of two lines": {"id": "a\nb"},
    "an id that is no text": {"id": "\ud800"},
    "a list for a kind": {"kind": ["a"]},
    "no kind there is": {"kind": "nonsense"},
    "a kind that is no text": {"kind": "\ud800"},
    "a list for a body": {"body": [1]},
    "a body without its fields": {"body": {"text": "left"}},
    "a body that is no text": {"body": {**STEER, "text": "\ud800"}},
    "a body that is no JSON": {"body": {**STEER, "more": {1, 2}}},
    "a body that is too deep": {"body": {**STEER, "more": loads_trusted(b"[" * 150 + b"]" * 150)}},
    "a number for a session": {"session": 5},
    "a list for a session": {"session": []},
    "the id of an answer": {"id": "answer:appr_1"},
    "the id of a settlement": {"id": "settle:eff_1"},
    "an answer under another id": {"kind": "answer", "id": "x", "body": {
        "approval_id": "appr_1", "decision": "deny", "digest": "0" * 64, "by": "me", "kind": "person"}},
}  # fmt: skip


@pytest.mark.parametrize("what", NO_COMMAND)
def test_what_is_no_command_is_refused_before_it_is_posted(play: Any, what: str) -> None:
    session, answer = waiting(play)
    command = {"session": answer["session"], "id": "s1", "kind": "steer", "body": STEER, **NO_COMMAND[what]}
    with pytest.raises(IllegalMove) as caught:
        session.host.submit(command)
    assert caught.value.code == "command.malformed"
    assert not session.host.store.take(answer["session"])


@pytest.mark.parametrize("command", [None, [], "steer", {"session": "@last"}], ids=str)
def test_what_has_not_the_parts_of_a_command_is_refused(play: Any, command: Any) -> None:
    session, _ = waiting(play)
    with pytest.raises(IllegalMove):
        session.host.submit(command)


@pytest.mark.parametrize("name", [5, None, [], b"@last"], ids=str)
def test_a_session_is_named_by_a_text_wherever_one_is_named(play: Any, name: Any) -> None:
    host = waiting(play)[0].host
    for method in (host.session, host.resume, host.pause, host.cancel, host.report, host.verify):
        with pytest.raises(NotFound) as caught:
            method(name)
        assert caught.value.code == "session.not_found"


WRONG: dict[str, tuple[dict[str, Any], type[HarnessError]]] = {
    "another digest": ({"digest": "0" * 64}, Refused),
    "another approval": ({"approval_id": "appr_other"}, NotFound),
    "no decision": ({"decision": "perhaps"}, IllegalMove),
    "a robot": ({"kind": "robot"}, IllegalMove),
    "nobody": ({"by": None}, IllegalMove),
}


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("what", WRONG)
def test_a_submitted_answer_to_something_else_leaves_the_question_open(play: Any, what: str) -> None:
    session, command = waiting(play)
    fields, error = WRONG[what]
    body = {**command["body"], **fields}
    with pytest.raises(error):
        session.host.submit({**command, "id": f"answer:{body['approval_id']}", "body": body})
    assert session.host.store.posted(command["id"]) is None
    assert session.host.submit(command)["body"]["by"] == "me"
    assert session.resume()["status"] == "completed"


@pytest.mark.inv("I-23", "I-5")
def test_a_submitted_answer_stands_if_it_is_the_first(play: Any) -> None:
    session, command = waiting(play)
    session.answer(session.pending()[0], "deny", by="ann")
    before = session.host.submit(command)
    session.resume()
    after = session.host.submit(command)  # the session has taken what stands
    assert [(one["id"], one["body"]["by"]) for one in (before, after)] == [(command["id"], "ann")] * 2
    assert session.effects() == []


@pytest.mark.inv("I-23")
def test_what_was_decided_without_an_answer_takes_none(play: Any) -> None:
    session, command = waiting(play)
    session.resume(on_ask="deny")
    with pytest.raises(IllegalMove) as caught:
        session.host.submit(command)
    assert caught.value.code == "approval.answered"


def test_what_is_not_in_doubt_is_not_settled(play: Any) -> None:
    session, command = waiting(play)
    body = {"effect_id": "eff_1", "outcome": "happened", "by": "me", "kind": "person"}
    with pytest.raises(NotFound):
        session.host.submit({"session": command["session"], "id": "settle:eff_1", "kind": "settle", "body": body})
    assert not session.host.store.take(command["session"])


FOREIGN = {
    "an answer without a body": b'{"kind":"answer","body":null}',
    "an answer of a list": b'{"kind":"answer","body":[]}',
    "an answer of a text": b'{"kind":"answer","body":"x"}',
    "an answer of a number": b'{"kind":"answer","body":5}',
    "an answer about a list": b'{"kind":"answer","body":{"approval_id":["a"]}}',
    "a number that is none of ours": b'{"kind":"steer","body":{"text":"left","by":"me","n":1152921504606846976}}',
    "deeply nested": b'{"kind":"steer","body":{"text":"left","by":"me","n":' + b"[" * 300 + b"]" * 300 + b"}}",
    "a list for a kind": b'{"kind":["answer"],"body":{}}',
    "a text": b'"answer"',
    "no JSON": b"answer",
}
"""What another program may have written into an inbox: nothing checked it."""


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("what", FOREIGN)
def test_a_row_that_is_no_command_does_not_hold_a_session_that_waits(play: Any, what: str) -> None:
    session, command = waiting(play)
    session.host.store.post(command["session"], "foreign", FOREIGN[what])
    session.host.submit(command)
    assert session.resume()["status"] == "completed"


def test_rows_that_are_no_commands_do_not_keep_a_cancel_from_a_session_that_runs(play: Any) -> None:
    session = play(calls(("slow", {"seconds": 30})), says("done"))
    with Host.open(session.site.project) as elsewhere:
        found = session.host.start("Go.")
        session.site.wait_for_effects()
        for what, row in FOREIGN.items():
            elsewhere.store.post(found, what, row)
        session.until("command.received", count=len(FOREIGN))
        elsewhere.cancel(found)
        assert session.host.wait(found, timeout_seconds=10)["status"] == "cancelled"
