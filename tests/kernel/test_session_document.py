"""A session's state in, its document and its state hash out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness_core.kernel.commands import AskApproval, PauseNow, Resume, Unanswered
from harness_core.kernel.facts import Event
from harness_core.kernel.projections.session import session_document, state_hash, waiting_for
from harness_hookspecs.events import CATEGORIES, check_payload
from harness_hookspecs.kit.codec import dumps, loads
from harness_hookspecs.messages import Usage
from tests.playing import REF, Play, definition, retry, stage

CALL = {"subject": "tool", "name": "curl", "tier": "T3", "args": {}, "rule": "tiers.T3", "call_id": "c1"}
FIELDS = (
    "schema id status stage title project parent_id created_at updated_at last_seq usage cost_usd unpriced_calls "
    "artifacts waiting config_hash failure state_hash"
).split()


def ask(play: Play) -> str:
    request = play.open_one("role").payload
    where = {name: request[name] for name in ("visit_id", "persona", "role_call_id")}
    play.send(AskApproval({**CALL, **where}, "ask"))
    return str(play.reply)


def responded(play: Play, **usage: int | bool) -> None:
    """A model call that ended; its usage is the contract's."""
    said = Usage(**{"known": True, **usage}).to_wire()
    response = {"finishReason": "stop", "messageRef": REF, "usage": said}
    model = {"provider": "p", "modelId": "m"}
    payload = {"turn": 1, "callId": "c", "model": model, "response": response}
    check_payload("harness.model.responded", payload)
    play.machine.evolve(play.state, Event(play.state.seq + 1, "e", "harness.model.responded", payload, {}))


def test_the_document_has_its_fields_in_every_state_and_is_plain_json() -> None:
    empty = Play(definition(), start=False)
    for play in (empty, Play(definition()), Play(definition()).to_role(), done()):
        document = session_document(play.state)
        assert list(document) == FIELDS
        assert loads(dumps(document)) == document


def done() -> Play:
    play = Play(definition())
    play.succeed()
    return play


def test_the_document_tells_what_there_is() -> None:
    play = done()
    document = session_document(play.state)
    assert (document["status"], document["stage"], document["title"]) == ("completed", "work", "words")
    assert (document["last_seq"], document["created_at"]) == (len(play.facts), "2026-01-01T00:00:00.001Z")
    assert document["artifacts"] == [f"artifact://sha256-{REF}"]
    assert document["failure"] is None
    failed = Play(definition(stage(denied_by="policies.yaml:3:1")))
    assert session_document(failed.state)["failure"]["code"] == "routing.provider_denied"


def test_usage_is_the_sum_of_the_calls_and_subsets_are_not_added() -> None:
    play = Play(definition()).to_role()
    responded(play, input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=3)
    responded(play, input_tokens=1, output_tokens=2)
    usage = session_document(play.state)["usage"]
    counts = {"input_tokens": 11, "output_tokens": 7, "cached_input_tokens": 4, "reasoning_tokens": 3}
    assert usage == {**counts, "known": True}
    responded(play, known=False)
    assert session_document(play.state)["usage"] == {**counts, "known": False}


def test_what_a_session_waits_for_is_listed_until_it_is_over() -> None:
    play = Play(definition()).to_role()
    assert waiting_for(play.state) == []
    approval_id = ask(play)
    assert waiting_for(play.state) == [{"kind": "approval", "id": approval_id, "until": None}]
    play.state.exhausted = {"dimension": "tokens"}
    play.state.in_doubt["eff"] = {"tool_name": "t"}
    assert [one["kind"] for one in waiting_for(play.state)] == ["approval", "in_doubt", "budget"]
    play.receive("cancel")
    assert (play.state.status, waiting_for(play.state)) == ("cancelled", [])


# -------------------------------------------------------------------------------------------- the state hash


def test_two_sessions_of_the_same_decisions_have_one_hash_whatever_their_ids_and_times() -> None:
    one, two = done(), done()
    two.state.session_id = "another"
    two.state.created_at = two.state.updated_at = "2027-01-01T00:00:00.000Z"
    for artifact in two.state.artifacts:
        artifact["artifact_id"] = artifact["visit_id"] = "another"
    assert state_hash(one.state) == state_hash(two.state)


def test_a_pause_is_outside_the_hash() -> None:
    play = Play(definition()).to_role()
    before = state_hash(play.state)
    play.send(PauseNow("interrupted"))
    assert state_hash(play.state) == before
    play.send(Resume("resume"))
    assert state_hash(play.state) == before


def retried(play: Play) -> None:
    play.role_fails()
    play.to_role()


CHANGES: dict[str, Callable[[Play], Any]] = {
    "a call": lambda play: responded(play, input_tokens=1),
    "a question": ask,
    "a denial": lambda play: (ask(play), play.send(Unanswered(play.reply, deny=True))),
    "another attempt": retried,
    "a result": Play.role,
    "an artifact": lambda play: (play.role(), play.judged(), play.judged()),
    "the end": lambda play: play.receive("cancel"),
}


def test_the_hash_sees_everything_that_was_decided() -> None:
    hashes = {}
    for name, change in {"nothing": lambda play: None, **CHANGES}.items():
        play = Play(definition(stage(retry=retry("retry", 2)))).to_role()
        change(play)
        hashes[name] = state_hash(play.state)
        assert session_document(play.state)["state_hash"] == hashes[name]
    assert len(set(hashes.values())) == len(CHANGES) + 1


def test_what_the_hash_sees_a_category_s_sees_and_of_what_is_open_each_its_own() -> None:
    seen = {}
    for name, change in {"nothing": lambda play: None, **CHANGES}.items():
        play = Play(definition(stage(retry=retry("retry", 2)))).to_role()
        change(play)
        seen[name] = {one: state_hash(play.state, one) for one in CATEGORIES}
    assert len({tuple(hashes.values()) for hashes in seen.values()}) == len(CHANGES) + 1
    play = Play(definition())
    before = {one: state_hash(play.state, one) for one in CATEGORIES}
    play.to_role()
    assert {one for one in CATEGORIES if state_hash(play.state, one) != before[one]} == {"compression", "domain"}
