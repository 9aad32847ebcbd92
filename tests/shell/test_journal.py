"""What a role call has recorded answers the same call when it is asked again, whatever it looks like."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness_core.kernel.facts import Event
from harness_core.shell.journal import OMITTED, Journal
from harness_core.shell.redaction import Redactor
from harness_core.shell.role_context import Durability
from harness_hookspecs.errors import Diverged
from harness_hookspecs.kit.canonical import digest

ARGS: dict[str, Any] = {
    "few": {"path": "a"},
    "one that is called as what stands in for large ones": {"omitted": OMITTED},
    "one more": {"omitted": OMITTED, "sha256": "0"},
}
LARGE = {"text": "x"}


def recorded(end: str, args: Any, *, caller: str, **more: Any) -> Journal:
    payload = {"callId": "c1", "caller": caller, "toolName": "t", "args": args, **more}
    return Journal([Event(1, "e1", f"harness.tool_call.{end}", payload, {}, "", 1)])


@pytest.mark.inv("I-18")
@pytest.mark.parametrize("what", ARGS)
@pytest.mark.parametrize("end", ["started", "failed"])
def test_a_call_is_answered_by_its_record(what: str, end: str) -> None:
    args = ARGS[what]
    more = {"argsDigest": digest(args)} if end == "started" else {"error": {"name": "Refused", "message": "no"}}
    by_model = recorded(end, args, caller="model", **more)
    assert by_model.model_tool("c1", "t", args) is not None
    with pytest.raises(Diverged):
        by_model.model_tool("c1", "t", {"other": 1})
    by_code = recorded(end, args, caller="code", callIndex=0, **more)
    assert by_code.code_tool(("", "t", digest(args)), 0) is not None
    assert by_code.code_tool(("", "t", digest({"other": 1})), 0) is None


@pytest.mark.inv("I-18")
@pytest.mark.parametrize("caller", ["model", "code"])
def test_a_call_that_ran_is_told_by_the_digest_in_its_record_whatever_its_arguments_say(caller: str) -> None:
    args = {"omitted": OMITTED, "sizeBytes": 300_000, "sha256": "0"}
    journal = recorded("started", args, caller=caller, argsDigest=digest(args))
    found = journal.model_tool("c1", "t", args) if caller == "model" else journal.code_tool(("", "t", digest(args)), 0)
    assert found is not None


@pytest.mark.inv("I-18")
def test_a_call_whose_arguments_were_too_large_to_keep_is_told_by_their_digest() -> None:
    stand_in = {"omitted": OMITTED, "sizeBytes": 300_000, "sha256": digest(LARGE)}
    journal = recorded("failed", stand_in, caller="model", error={"name": "ValidationFailed", "message": "no"})
    assert journal.model_tool("c1", "t", LARGE) is not None
    with pytest.raises(Diverged):
        journal.model_tool("c1", "t", {"text": "y"})


def test_a_role_that_changes_what_it_is_told_of_its_record_changes_its_own() -> None:
    event = Event(1, "e1", "harness.tool_call.started", {"args": {"path": ["a"]}}, {}, "", 1)
    recorder: Any = SimpleNamespace(journal=Journal())
    [told] = Durability(recorder, [event], Redactor()).prior_events()
    told["payload"]["args"]["path"].append("b")
    assert event.payload == {"args": {"path": ["a"]}}
