"""Hand-made logs in; graphs, contexts and prompts out."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.kernel.projections.context import context_document, find_visit
from harness_core.kernel.projections.drawing import dot, mermaid
from harness_core.kernel.projections.graph import ConfiguredStage, configured_graph, session_graph
from harness_core.kernel.projections.prompt import prompt_calls, prompt_document
from harness_core.kernel.projections.timeline import Timeline, timeline
from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.kit.prompt import prompt_hash
from tests.kernel.handmade import SHA, Log

# -- graph ---


def _stage(name: str, *rules: tuple[str, list[str]], attempts: int = 1) -> ConfiguredStage:
    return ConfiguredStage(name, "role", "agent", "m", attempts, rules)


def test_the_configured_graph_has_every_target_and_tells_ends_from_stages_that_are_missing() -> None:
    stages = [
        _stage("a", ("x", ["b", "failed"]), ("true", ["end"])),
        _stage("b", ("true", ["retry"]), ("y", ["nowhere"]), attempts=3),
    ]
    graph = configured_graph("a", stages)
    assert {node["id"]: node["kind"] for node in graph["nodes"]} == {
        "a": "stage",
        "b": "stage",
        "failed": "end",
        "completed": "end",
        "nowhere": "missing",
    }
    assert [(e["from"], e["to"], e["kind"]) for e in graph["edges"]] == [
        ("a", "b", "transition"), ("a", "failed", "transition"), ("a", "completed", "transition"),
        ("b", "b", "transition"), ("b", "nowhere", "transition"), ("b", "b", "retry"),
    ]  # fmt: skip


def test_the_session_graph_counts_visits_attempts_and_ways() -> None:
    log = (
        Log()
        .visit("a")
        .retried(2)
        .taken("a", "b")
        .left("a")
        .visit("b")
        .taken("b", "a")
        .left("b")
        .visit("a", 1)
        .taken("a", "b")
        .left("a", 1)
    )
    log.visit("b", 1).taken("b", "end").left("b", 1).add("session.completed")
    graph = session_graph(log.events, "s")
    nodes = {node["id"]: (node["visits"], node["attempts"], node["status"]) for node in graph["nodes"]}
    assert nodes == {"a": (2, 3, "success"), "b": (2, 2, "success"), "completed": (1, None, "completed")}
    assert {(e["from"], e["to"], e["kind"]): e["taken"] for e in graph["edges"]} == {
        ("a", "a", "retry"): 1, ("a", "b", "transition"): 2, ("b", "a", "transition"): 1,
        ("b", "completed", "transition"): 1,
    }  # fmt: skip


def test_an_end_that_no_rule_led_to_has_an_edge_with_the_reason() -> None:
    log = Log().visit("a").add("session.failed", code="provider.unavailable", message="gone")
    graph = session_graph(log.events, "s")
    assert [(e["from"], e["to"], e["label"]) for e in graph["edges"]] == [("a", "failed", "provider.unavailable")]


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_name_and_no_rule_leaves_its_label(name: str, rule: str) -> None:
    graph = configured_graph(name, [_stage(name, (rule, ["failed"]))])
    drawn = mermaid(graph).split("\n")
    edges = [line for line in drawn if "-->|" in line]
    assert len(drawn) == (6 if name != "failed" else 5)
    assert all(
        re.fullmatch(r'  n\d+ -->\|"[^"<>`|\[\]{}\\&;]*(#\d+;[^"<>`|\[\]{}\\&;]*)*"\| n\d+', line) for line in edges
    )
    for line in dot(graph).split("\n"):
        assert re.fullmatch(r'[^"]*("([^"\\]|\\["\\n])*"[^"]*)*', line), line


# -- context ---


def _context_log() -> tuple[Log, dict[str, bytes]]:
    made = f"artifact://sha256-{SHA}"
    items = [
        {
            "item_id": "i0",
            "kind": "steering",
            "title": "",
            "tokens": 1,
            "layer": 1,
            "pinned": True,
            "source": {"event": "steering.received"},
        },
        {
            "item_id": "i1",
            "kind": "artifact",
            "title": "",
            "tokens": 1,
            "layer": 1,
            "pinned": False,
            "source": {"artifact": made},
        },
        {
            "item_id": "i2",
            "kind": "file",
            "title": "a.py",
            "tokens": 9,
            "layer": 3,
            "pinned": False,
            "source": {"file": "a.py"},
        },
    ]
    pack = {
        "input": {"prompt": "do it", "feedback": "bad", "tools": ["net"]},
        "items": items[:2],
        "left_out": [{**items[2], "reason": "budget"}],
    }
    facts = {"items": [{**item, "text": f"text {item['item_id']}"} for item in items]}
    facts["items"][0]["text"] = "be careful"
    blobs = {digest(value): canonical(value) for value in (pack, facts)}
    log = Log().add("session.created").visit("plan").add("artifact.accepted", body_ref=SHA)
    log.visit("build").add("steering.received", text="be careful", source="ann").retried(2)
    log.add("context.requested", effect_id="e")
    log.add(
        "context.assembled",
        attempt=2,
        pack_ref=digest(pack),
        facts_ref=digest(facts),
        tokens=2,
        budget_tokens=5,
        counted_by="x",
    )
    return log, blobs


def test_every_item_of_a_context_has_its_source_events() -> None:
    log, blobs = _context_log()
    document = context_document(log.events, find_visit(log.events, "build"), blobs.__getitem__, "s")
    (attempt,) = document["attempts"]
    sources = {item["item_id"]: item["source_events"] for item in (*attempt["items"], *attempt["left_out"])}
    assert sources == {"i0": ["event-5"], "i1": ["event-3"], "i2": ["event-7"]}
    assert attempt["task"] == {"text": "do it", "source_events": ["event-1"]}
    assert attempt["feedback"] == {"text": "bad", "source_events": ["event-6"]}
    assert [(item["text"], item["reason"]) for item in attempt["left_out"]] == [("text i2", "budget")]


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("a", "stg_a1"),
        ("a#0", "stg_a0"),
        ("a#1", "stg_a1"),
        ("stg_a0", "stg_a0"),
        ("_a1", None),
        ("g_b0", "stg_b0"),
        ("a#7", None),
        ("", None),
        ("c", None),
    ],
)
def test_a_visit_is_named_by_stage_number_or_id(reference: str, found: str | None) -> None:
    log = Log().visit("a").visit("b").visit("a", 1)
    if found is not None:
        assert find_visit(log.events, reference) == found
        return
    with pytest.raises(NotFound) as caught:
        find_visit(log.events, reference)
    assert caught.value.hint is not None
    assert "a#0, b#0, a#1" in caught.value.hint


# -- prompt ---


@pytest.mark.parametrize("fault", ["none", "changed", "missing"])
def test_a_prompt_is_proved_by_its_hash(fault: str) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    request = {
        "model": {"provider": "p", "modelId": "m"},
        "messages": [digest(message)],
        "tools": [],
        "params": {"seed": 1},
    }
    hashed = prompt_hash(provider="p", model_id="m", params={"seed": 1}, tools={}, messages=[message])
    log = Log().visit("a").add("harness.model.called", turn=1, callId="c", request=request, promptHash=hashed)
    stored = {"none": canonical(message), "changed": canonical({**message, "role": "system"}), "missing": None}[fault]
    document = prompt_document(prompt_calls(log.events)[0], lambda wanted: stored, "s")
    assert document["equal"] is (fault == "none")
    assert (document["recomputed_hash"] is None) == (fault == "missing")


# -- timeline ---


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        (
            "budget.raised",
            {"limits": {"tokens": 1_000_000, "seconds": 2.5}},
            "budget raised: tokens to 1000000, seconds to 2.5",
        ),
        (
            "budget.exhausted",
            {"dimension": "seconds", "used": 0.5631399900012184, "limit": 0.5, "wanted": 0},
            "budget of seconds reached: 0.56 of 0.5",
        ),
        (
            "budget.exhausted",
            {"dimension": "tokens", "used": 1_234_567, "limit": 1_300_000, "wanted": 100_000},
            "budget of tokens reached: 1234567 of 1300000, 100000 more wanted",
        ),
    ],
)
def test_amounts_are_said_in_words_and_no_more_exactly_than_they_mean(
    kind: str, payload: dict[str, Any], text: str
) -> None:
    [event] = Log().add(kind, **payload).events
    line = Timeline().line(event)
    assert line is not None and line.text == text


def test_a_way_that_no_condition_leads_is_not_said_to_follow_from_true() -> None:
    said = [
        Timeline().line(Log().add("transition.taken", source="draft", target="failed", rule=rule).events[0])
        for rule in ("true", "a == 1")
    ]
    assert [line and line.text for line in said] == [
        "draft -> failed, by a rule without a condition",
        "draft -> failed because a == 1",
    ]


def test_what_happens_in_a_step_of_a_plan_names_the_step() -> None:
    call = {"role_call_id": "role_1"}
    log = Log().visit("draft").add("role.requested", {**call, "step_path": "each[2].say"}, **call, role="planner")
    log.add("harness.tool_call.started", {**call, "step_path": "each[2].say"}, toolName="read")
    log.add("role.failed", call, **call, error={"message": "gone"}).add("retry.scheduled", attempt=1, reason="gone")
    assert [line.text for line in timeline(log.events)][1:] == [
        "draft/each[2].say: read started",
        "draft/each[2].say: role call failed: gone",
        "draft: attempt 1 of 2 failed: gone",
    ]


def test_a_stage_without_a_plan_is_not_named_twice() -> None:
    log = Log().visit("draft").add("harness.tool_call.started", {"step_path": "draft"}, toolName="read")
    assert timeline(log.events)[-1].text == "draft: read started"


def test_a_child_session_is_named_as_people_name_sessions() -> None:
    log = Log().visit("lead").add("child.completed", child_id="01990000-0000-7000-8000-00000000beef", summary="done")
    [*_, line] = timeline(log.events)
    assert line.text == "lead: child 0000beef is done: done"
