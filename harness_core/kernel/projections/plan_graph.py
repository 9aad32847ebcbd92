"""A plan, perhaps with what a session did of it, in; its steps and the ways between them as ``harness.graph/1`` out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from harness_core.kernel.facts import Event

__all__ = ["plan_graph", "run_graph"]

_STARTED: Final = "harness.execute_step.started"
_SUCCEEDED: Final = "harness.execute_step.succeeded"


def plan_graph(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What may happen: every step, those of branches too, and what leads to each."""
    return _document("plan", None, plan, {step["id"]: _node(step) for step in _steps(plan["steps"])})


def run_graph(plan: Mapping[str, Any], events: Iterable[Event], session_id: str, *, ended: bool) -> dict[str, Any]:
    """What did happen: each step with how often it was begun and how it ended.

    Args:
        plan: The plan that ran.
        events: What the session recorded of it. A step of a fan-out is begun once a branch; of waits nothing is
            recorded, and of fan-outs nothing by who ran them before they were told of.
        session_id: The session.
        ended: Whether the plan's run is over, so that what was never begun never will be.
    """
    begun: dict[str, dict[tuple[str, int], int]] = {}
    done: dict[str, set[tuple[str, int]]] = {}
    for event in events:
        if event.type in (_STARTED, _SUCCEEDED):
            step, place = event.payload["stepId"], (event.payload["stepPath"], event.payload["visitIndex"])
            if event.type == _STARTED:
                tries = begun.setdefault(step, {})
                tries[place] = tries.get(place, 0) + 1
            else:
                done.setdefault(step, set()).add(place)
    nodes = {step["id"]: _node(step) for step in _steps(plan["steps"])}
    told = any(node["role"] == "parallel" and name in begun for name, node in nodes.items())
    for name, node in nodes.items():
        tries = begun.get(name, {})
        if node["role"] == "wait" or (node["role"] == "parallel" and not tries and not told):
            continue
        left = tries.keys() - done.get(name, set())
        over = "failed" if left and ended else "active" if left else "completed"
        status = over if tries else "skipped" if ended else None
        node |= {"visits": len(tries), "attempts": sum(tries.values()), "status": status}
    return _document("run", session_id, plan, nodes)


def _steps(steps: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    waiting = list(steps)
    for step in waiting:  # grows
        yield step
        waiting += step.get("steps", ())


def _node(step: Mapping[str, Any]) -> dict[str, Any]:
    said = step["with"]
    return {
        "id": step["id"],
        "kind": "step",
        "role": step["uses"],
        "model": said.get("model") or said.get("tool"),
        "executor": None,
        "visits": None,
        "attempts": None,
        "status": None,
    }


def _document(
    kind: Literal["plan", "run"], session_id: str | None, plan: Mapping[str, Any], nodes: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    edges = [edge for step in _steps(plan["steps"]) for edge in _edges(step)]
    edges += _at_last(plan, edges)
    for edge in edges:
        nodes.setdefault(edge["to"], {**dict.fromkeys(next(iter(nodes.values()))), "id": edge["to"], "kind": "end"})
    led_to = {edge["to"] for edge in edges}
    first = next((step["id"] for step in plan["steps"] if step["id"] not in led_to), plan["steps"][0]["id"])
    return {
        "schema": "harness.graph/1",
        "kind": kind,
        "session_id": session_id,
        "initial": first,
        "nodes": [*nodes.values()],
        "edges": edges,
    }


def _at_last(plan: Mapping[str, Any], edges: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The ways to the step that runs however the plan ended: from each step of its level that leads to no other."""
    last, ids = plan.get("finally"), [step["id"] for step in plan["steps"]]
    leading = {edge["from"] for edge in edges if edge["to"] in ids}
    return [_edge(one, last, "finally") for one in ids if last not in (None, one) and one not in leading]


def _edges(step: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What leads to a step by need, and from it by choice, by failure and into its branches."""
    name, said = step["id"], step["with"]
    yield from (_edge(need, name, "then") for need in step.get("needs", ()))
    if step["uses"] == "decision":
        for index, case in enumerate(said["cases"]):
            yield _edge(name, case["to"], case["when"], index=index)
        yield _edge(name, said["default"], "else")
    failure = step.get("onFailure", {}).get("to")
    if failure is not None:
        yield _edge(name, failure, "on failure")
    for inner in step.get("steps", ()):
        if not inner.get("needs"):
            yield _edge(name, inner["id"], f"each of {said['items']}")


def _edge(source: str, target: str, label: str, *, index: int | None = None) -> dict[str, Any]:
    return {"from": source, "to": target, "kind": "transition", "label": label, "rule_index": index, "taken": None}
