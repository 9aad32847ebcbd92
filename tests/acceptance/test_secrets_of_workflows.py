"""A secret that stands in a plan, an input or an answer of a workflow is in nothing that is kept or shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_hookspecs.contracts.distribution import make_distribution
from tests.acceptance.test_secrets import MARK, SECRET, kept
from tests.orchestra import PLAN, lead
from tests.reference import says

CODE = """
import json
import os

from pydantic import BaseModel

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import OracleResponse, TextPart, ToolCallRequest, Usage
from harness_hookspecs.offer import Offer


class Settings(BaseModel):
    key: str


class Teller:
    def __init__(self, settings, host):
        self._key = host.secret(settings.key)

    def complete(self, request, call):
        said = json.loads(os.environ["TELLER_SAYS"].replace("$KEY", os.environ["TELLER_KEY"]))
        asked = repr(request)
        answer = next(one for words, one in said if words in asked)
        if isinstance(answer, str):
            return OracleResponse(content=(TextPart(text=answer),), finish_reason="stop", usage=Usage.unknown())
        calls = tuple(ToolCallRequest(call_id="c", tool_name=name, args=args) for name, args in answer)
        return OracleResponse(content=(), tool_calls=calls, finish_reason="tool_calls", usage=Usage.unknown())

    def close(self):
        pass


@implements(hooks.harness_provide_providers)
def harness_provide_providers():
    return [Offer(kind="provider", name="teller", build=Teller, settings=lambda: Settings)]
"""
PROVIDES = {
    "kind": "provider",
    "name": "teller",
    "config": {"type": "object", "properties": {"key": {"type": "string"}}},
}
MODELS = {"models": {"scripted": {"provider": "teller", "key": "env:TELLER_KEY", "capabilities": ["tool_calling"]}}}
OPEN = {"jobs": {"description": "Does a job.", "tools": ["effects"]}}
LOOKS = (
    "sessions --json", "sessions tree @last --json", "report @last --tree --json", "workflows --json", "events @last",
    "transitions @last", "prompt show @last --json", "artifacts --json", "graph @last --json",
)  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "teller"
    make_distribution(folder, "acme-teller", provides=[PROVIDES], code=CODE)
    return folder


@pytest.fixture
def telling(play: Any, written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A project whose model has a secret and says what it is told to; ``$KEY`` in that is the secret."""
    monkeypatch.syspath_prepend(str(written))
    monkeypatch.setenv("TELLER_KEY", SECRET)

    def begin(*said: tuple[str, Any]) -> Any:
        monkeypatch.setenv("TELLER_SAYS", json.dumps(said))
        return play(says("unused"), models=MODELS, stages={**lead(), "workflows": OPEN})

    yield begin
    sys.modules.pop("acme_teller", None)


def planned(prompt: str = "Do {{ input.note }} now.") -> str:
    step = {"id": "work", "uses": "ai.generate", "with": {"model": "scripted", "prompt": prompt}}
    return json.dumps({**PLAN, "input": {"schema": True}, "steps": [{**step, "output": {"mode": "text"}}]})


PLANNER = "Write the workflow"
START = [["start_workflow", {"workflowId": "jobs", "input": {"note": "use $KEY"}}]]
WAYS: dict[str, tuple[Any, list[tuple[str, Any]]]] = {
    "an input that a person gives": ({"note": f"use {SECRET}"}, [(PLANNER, planned()), ("now.", "done")]),
    "a plan that a model writes": ({"note": "x"}, [(PLANNER, planned("Do $KEY now.")), ("now.", "done")]),
    "a plan that is refused": (
        {"note": "x"}, [("unknown_root", planned()), (PLANNER, planned("{{ nowhere.$KEY }}")), ("now.", "done")],
    ),
    "the answer in a step": ({"note": "x"}, [(PLANNER, planned()), ("now.", "it is $KEY")]),
    "an input that a model gives": (None, [(PLANNER, planned()), ("now.", "it is $KEY"), ("c", START)]),
}  # fmt: skip


@pytest.mark.inv("I-29")
def test_a_secret_in_a_plan_that_a_person_runs_is_in_nothing_that_is_kept(telling: Any) -> None:
    session = telling(("now.", "done"))
    session.reopen()
    plan = {**json.loads(planned(f"Do {SECRET} now.")), "permissions": {"models": ["scripted"], "tools": []}}
    found = session.host.start_plan(json.dumps(plan).encode(), {"note": "x"})
    assert session.host.wait(found)["status"] == "completed"
    content = kept(session)
    assert SECRET.encode() not in content
    assert MARK in content


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_of_a_workflow_is_in_nothing_that_is_kept_or_shown(
    telling: Any, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given, said = WAYS[way]
    session = telling(*said)
    session.reopen()
    found = session.host.start("Go.") if given is None else session.host.start_workflow("jobs", given)
    session.host.wait(found)
    for look in LOOKS:
        main(look.split())
    screen = capsys.readouterr()
    content = kept(session)
    assert SECRET not in screen.out + screen.err
    assert SECRET.encode() not in content
    assert MARK in content
