"""The graph of a plan: its edges, where it starts, what leads back and what is visited again with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_executor_workflow.plan.graph import Edge, Graph, components, cycles, edges_of, graph_of
from harness_hookspecs.workflow import DecisionStep, Step, ToolCallStep

TOOL: dict[str, Any] = {"with": {"tool": "t"}, "output": {"mode": "json"}}


def work(name: str, *needs: str, to: str | None = None) -> Step:
    route = {} if to is None else {"onFailure": {"to": to}}
    return ToolCallStep.from_wire({"id": name, "uses": "tool.call", "needs": [*needs], **TOOL, **route})


def choose(name: str, *needs: str, to: tuple[str, ...]) -> Step:
    cases = [{"when": "true", "to": target} for target in to[:-1]] or [{"when": "true", "to": to[-1]}]
    settings = {"cases": cases, "default": to[-1]}
    return DecisionStep.from_wire({"id": name, "uses": "decision", "needs": [*needs], "with": settings})


def test_needs_decisions_and_failures_are_edges_and_ends_are_none() -> None:
    steps = [work("a", to="c"), choose("d", "a", to=("c", "end", "fail", "nowhere")), work("c", "a", "gone")]
    assert edges_of(steps) == (
        Edge("a", "c", "failure"), Edge("a", "d", "needs"), Edge("d", "c", "decision"), Edge("a", "c", "needs"),
    )  # fmt: skip


def test_a_decision_that_leads_back_makes_a_loop_that_begins_by_itself() -> None:
    graph = graph_of(
        [work("draft"), work("review", "draft"), choose("route", "review", to=("publish", "draft")), work("publish")]
    )
    assert graph.order == ("draft", "review", "route", "publish")
    assert graph.back == (Edge("route", "draft", "decision"),)
    [loop] = graph.loops
    assert loop.steps == {"draft", "review", "route"}


@pytest.mark.parametrize("before", [(), ("first",)])
def test_two_steps_of_one_loop_may_begin_side_by_side(before: tuple[str, ...]) -> None:
    pair = [work("a", *before), work("b", *before), choose("d", "a", "b", to=("a", "b", "end"))]
    graph = graph_of([*(work(name) for name in before), *pair])
    assert graph.back == (Edge("d", "a", "decision"), Edge("d", "b", "decision"))
    [loop] = graph.loops
    assert {edge.target: body for edge, body in loop.bodies.items()} == {"a": {"a", "d"}, "b": {"b", "d"}}


def test_of_two_steps_neither_of_which_has_to_be_first_the_one_in_front_is() -> None:
    pair = [choose("a", to=("b", "end")), choose("b", to=("a", "end"))]
    assert graph_of([choose("go", to=("b", "a")), *pair]).back == (Edge("b", "a", "decision"),)


def test_what_a_loop_does_not_lead_through_is_not_visited_again() -> None:
    steps = [work("base"), work("a"), work("side", "a"), work("b", "a", "base"), choose("d", "b", to=("a", "end"))]
    [loop] = graph_of(steps).loops
    assert loop.steps == {"a", "b", "d"}


def test_an_inner_loop_stands_before_the_one_around_it() -> None:
    steps = [
        work("a"), work("b", "a"), work("c", "a"),
        choose("in", "b", "c", to=("b", "out")), choose("out", to=("a", "end")),
    ]  # fmt: skip
    graph = graph_of(steps)
    assert set(graph.back) == {Edge("in", "b", "decision"), Edge("out", "a", "decision")}
    assert [loop.steps for loop in graph.loops] == [{"b", "in"}, {"a", "b", "c", "in", "out"}]


def test_loops_that_overlap_are_one_and_what_follows_in_it_is_visited_again() -> None:
    steps = [work("t"), choose("d", "t", to=("t", "x", "end")), work("x"), choose("e", "x", to=("d", "end"))]
    [loop] = graph_of(steps).loops
    assert loop.steps == {"t", "d", "x", "e"}
    bodies = {edge.target: body for edge, body in loop.bodies.items()}
    assert bodies == {"t": {"t", "d", "x", "e"}, "d": {"d", "x", "e"}}


def test_what_lies_between_two_parts_of_a_loop_is_part_of_it() -> None:
    steps = [
        work("a"), work("way", "a"), work("b"),
        choose("d", "a", "b", to=("a", "e")), choose("e", "way", to=("b", "end")),
    ]  # fmt: skip
    [loop] = graph_of(steps).loops
    assert loop.steps == {"a", "way", "b", "d", "e"}


def test_loops_that_each_lead_to_the_other_are_one() -> None:
    steps = [
        work("a"), work("b"),
        choose("x", "a", "b", to=("a", "end")), choose("y", "b", "a", to=("b", "end")),
    ]  # fmt: skip
    [loop] = graph_of(steps).loops
    assert loop.steps == {"a", "b", "x", "y"}


def test_a_loop_entered_from_outside_begins_there() -> None:
    steps = [
        work("a"), work("c", "a"), choose("again", "c", to=("b", "end")), work("b"), choose("d", "b", to=("a", "end")),
        work("first"), choose("go", "first", to=("b", "end")),
    ]  # fmt: skip
    graph = graph_of(steps)
    assert graph.back == (Edge("again", "b", "decision"),)
    assert graph.order.index("b") < graph.order.index("a")


@pytest.mark.parametrize("steps", [
    [work("a", "b"), work("b", "a")],
    [work("a"), choose("d", "x", to=("x", "a")), work("x", "d")],
])  # fmt: skip
def test_what_can_never_start_is_missing_in_the_order(steps: list[Step]) -> None:
    graph = graph_of(steps)
    assert set(graph.order) <= {"a"}
    assert len(graph.forward) + len(graph.back) == len(edges_of(steps))


def test_a_step_that_leads_to_itself_is_a_cycle() -> None:
    steps = [choose("d", to=("d", "end")), work("x")]
    assert cycles(["d", "x"], edges_of(steps)) == (frozenset({"d"}),)
    [loop] = graph_of(steps).loops
    assert loop.steps == {"d"}


NAMES = [f"s{number}" for number in range(7)]
EDGES = st.lists(st.builds(Edge, st.sampled_from(NAMES), st.sampled_from(NAMES), st.just("needs")), max_size=16)


@given(EDGES)
def test_components_are_what_reaches_each_other(edges: list[Edge]) -> None:
    reach = {name: {name} for name in NAMES}
    for _ in NAMES:
        for edge in edges:
            reach = {name: seen | ({edge.target} if edge.source in seen else set()) for name, seen in reach.items()}
    found = components(NAMES, edges)
    assert sorted(name for one in found for name in one) == NAMES
    for one in found:
        for name in one:
            assert {other for other in NAMES if other in reach[name] and name in reach[other]} == one


SOME = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)
KINDS = st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from(NAMES), max_size=3), SOME), min_size=7, max_size=7)


@given(KINDS)
def test_without_the_back_edges_there_is_no_cycle_and_loops_lie_within_each_other(kinds: list[Any]) -> None:
    steps = [
        choose(name, *sorted(needs - {name}), to=tuple(dict.fromkeys(targets))) if decides
        else work(name, *sorted(needs - {name}))
        for name, (decides, needs, targets) in zip(NAMES, kinds, strict=True)
    ]  # fmt: skip
    graph = graph_of(steps)
    assert not cycles(graph.ids, graph.forward)
    assert {edge for loop in graph.loops for edge in loop.bodies} == set(graph.back)
    for one in graph.loops:
        for other in graph.loops:
            assert one is other or not one.steps & other.steps or one.steps < other.steps or other.steps < one.steps
    assert not cycles(graph.ids, waits(graph))


def waits(graph: Graph) -> list[Edge]:
    """Who waits for whom: for what leads to it, and for all of a loop that this leaves."""
    left = [
        Edge(step, edge.target, edge.kind)
        for edge in graph.forward
        for loop in graph.loops
        if edge.source in loop.steps and edge.target not in loop.steps
        for step in sorted(loop.steps)
    ]
    return [*graph.forward, *left]
