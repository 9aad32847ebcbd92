"""The steps that the runtime runs itself are told of like those of roles: when they begin, and what they give."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.timeline import timeline

from .listing import replays_equal
from .test_workflows import MODELS, NAMES, WIDE, WIDE_REPLIES, generate, plan_of, planned

OWN = ("harness.execute_step.started", "harness.execute_step.succeeded")


def told(session: Any) -> list[tuple[str, str, int]]:
    """Of each step that began or gave its output: where, and which attempt of the runtime's own (0: a role's)."""
    found = [(one.type.rpartition(".")[2], json.loads(one.payload)) for one in session.events() if one.type in OWN]
    return [(what, one["stepPath"], one.get("attempt", 0)) for what, one in found]


def fan(mode: str, *steps: Any, **more: Any) -> dict[str, Any]:
    settings = {
        "items": "{{ input.names }}", "itemKey": "{{ item }}", "maxBranches": 5, "maxConcurrency": 1,
        "failureMode": mode,
    }  # fmt: skip
    return {"id": "each", "uses": "parallel", "with": settings, "steps": [*steps], **more}


@pytest.mark.req("A-75", "A-76")
def test_a_fan_out_is_told_of_around_its_branches_with_what_it_gives(play: Any) -> None:
    session = play(*WIDE_REPLIES, stages=planned(WIDE), models=MODELS)
    assert session.host.run(NAMES)["status"] == "completed"
    began = {one["stepId"]: one["uses"] for one in session.payloads(OWN[0])}
    assert began == {"each": "parallel", **dict.fromkeys(("greet", "praise", "sum", "last"), "ai.generate")}
    order = told(session)
    assert order[0] == ("started", "each", 1)
    branches = [number for number, one in enumerate(order) if one[1].startswith("each[")]
    assert len(branches) == 12 and order[max(branches) + 1] == ("succeeded", "each", 1)
    [done] = [one for one in session.payloads(OWN[1]) if one["uses"] == "parallel"]
    assert done["branches"] == {"failureMode": "all_settled", "completed": 3, "failed": 0}
    envelopes = json.loads(session.host.store.blob(done["outputRef"]))
    assert [(one["itemKey"], one["output"]) for one in envelopes] == [
        (name, f"great {name}") for name in ("ann", "bob", "cy")
    ]
    replays_equal(session, roles=len(session.payloads("role.requested")))
    assert session.host.verify("@last")["broken"] == []


@pytest.mark.req("A-77")
def test_of_a_fan_out_that_fails_only_its_beginning_is_told_once_each_attempt(play: Any) -> None:
    each = fan("fail_fast", generate("greet", "Greet {{ item }}."), retry={"maxAttempts": 2})
    session = play(*WIDE_REPLIES[1:], stages=planned(plan_of([each], "x")), models=MODELS)
    assert session.host.run(NAMES)["failure"]["code"] == "script.exhausted"
    assert [one for one in told(session) if one[2]] == [("started", "each", 1), ("started", "each", 2)]
    [row] = session.host.report("@last")["fan_outs"]
    assert (row["begun"], row["succeeded"], row["branches_failed"]) == (2, 0, 0)


@pytest.mark.req("A-76")
def test_branches_that_failed_are_counted_where_the_fan_out_goes_on_without_them(play: Any) -> None:
    inner = fan("all_settled", generate("greet", "Greet {{ item }}."))
    outer = {**fan("all_settled", inner), "id": "all"}
    outer["with"] = {**outer["with"], "items": "{{ [1, 2] }}"}
    session = play(*WIDE_REPLIES[1:3], stages=planned(plan_of([outer], {"text": "x"})), models=MODELS)
    assert session.host.run(NAMES)["status"] == "completed"
    rows = {one["step"]: one for one in session.host.report("@last")["fan_outs"]}
    assert (rows["all"]["begun"], rows["all"]["branches_completed"]) == (1, 2)
    assert [rows["each"][name] for name in ("begun", "succeeded", "branches_completed", "branches_failed")] == [
        2, 2, 4, 2,
    ]  # fmt: skip
    assert ("started", "all[2].each", 1) in told(session)
    lines = [line.text for line in timeline(map(decoded, session.events())) if "all[2].each:" in line.text]
    assert lines == ["note/all[2].each: begins", "note/all[2].each: done: 2 branches completed, 1 failed"]
    replays_equal(session, roles=6)
