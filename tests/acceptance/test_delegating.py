"""A role that is bound to all executor roles and takes only some of their tasks; the default does the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_hookspecs.offer import EXECUTOR_ROLES
from tests.acceptance.listing import decided, listed, outcomes, ran, replays_equal, step
from tests.acceptance.test_fixes import planning
from tests.reference import says

SAY = step("say", "ai.generate", {"model": "scripted", "prompt": "Say it."}, output={"mode": "text"})
CODE = ran("count", "async def main(input, tools):\n    return input['n'] + 1\n", {"n": 1})
CALL = step("call", "tool.call", {"tool": "effects.pure", "args": {"note": "a"}}, output={"mode": "text"})
ROUTE = decided("route", ("input.n > 1", "far"), default="near", values={"input": {"n": 2}})


def bound(play: Any, name: str, *calls: Any) -> Any:
    session = play(
        {"text": "said by a model", "usage": says("")["usage"]},
        stages=listed(*calls),
        harness={"bind": dict.fromkeys(EXECUTOR_ROLES, name)},
    )
    document = session.run()
    assert document["status"] == "completed", document["failure"]
    assert all(ended["ok"] for ended in outcomes(session)), outcomes(session)
    assert {one["runId"] for one in session.payloads("harness.session.started")} == {document["id"]}
    replays_equal(session, roles=len(calls))
    return session


def who_ran(session: Any) -> list[tuple[str, str | None]]:
    """The plugin that really ran each call, and the one that gave it away."""
    refs = [one["manifestHash"] for one in session.payloads("harness.session.started")]
    found = (json.loads(session.host.artifact(f"artifact://sha256-{ref}")) for ref in refs)
    return [(one["pluginId"], one.get("delegatedFrom")) for one in found]


DEFAULT, OWN = ("role-workflow", "role-probe"), ("role-probe", None)


@pytest.mark.req("A-13", "A-15")
def test_a_role_may_take_plans_and_delegate_every_step(play: Any) -> None:
    session = bound(play, "own-plans", planning(), SAY, CODE, CALL, ROUTE)
    plan, *steps = [ended["value"] for ended in outcomes(session)]
    assert plan["lwir"] == {"plannedFor": "w"}
    assert [steps[0], steps[1], steps[3]["chosen"]] == ["said by a model", 2, "far"]
    assert who_ran(session) == [OWN, DEFAULT, DEFAULT, DEFAULT, DEFAULT]


@pytest.mark.req("A-13", "A-16")
def test_a_role_may_delegate_code_alone_and_keep_the_other_steps(play: Any) -> None:
    session = bound(play, "own-words", SAY, CODE, CALL)
    assert [ended["value"] for ended in outcomes(session)] == ["my own words for say", 2, "my own words for call"]
    assert who_ran(session) == [OWN, DEFAULT, OWN]
    assert len(session.payloads("role.delegated")) == 1
    assert not session.payloads("harness.model.called") and not session.effects()
