"""The configured stages, or what a session did, in; nodes and edges as ``harness.graph/1`` out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness_core.kernel.definition import RESERVED_TARGETS
from harness_core.kernel.facts import Event

from .places import NOWHERE, Place, Places

__all__ = ["ConfiguredStage", "configured_graph", "session_graph"]

_ENDS = ("completed", "failed", "cancelled")


class ConfiguredStage(NamedTuple):
    """A stage as a graph needs it; ``rules`` are pairs of condition and targets, in their order."""

    name: str
    role: str
    executor: str
    model: str | None
    max_attempts: int
    rules: Sequence[tuple[str, Sequence[str]]]


def configured_graph(initial: str, stages: Iterable[ConfiguredStage]) -> dict[str, Any]:
    """What may happen: every stage, and every target of every rule as an edge."""
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, Any]] = []
    for stage in stages:
        nodes[stage.name] = _node(stage.name, stage.role, stage.model, stage.executor)
        for index, (when, targets) in enumerate(stage.rules):
            edges += [_edge(stage.name, _end(target, stage.name), when, index=index) for target in targets]
        if stage.max_attempts > 1:
            edges.append(_edge(stage.name, stage.name, f"up to {stage.max_attempts} attempts", kind="retry"))
    for edge in edges:
        nodes.setdefault(edge["to"], _end_node(edge["to"]))
    return _document("configured", None, initial, nodes, edges)


def session_graph(events: Iterable[Event], session_id: str) -> dict[str, Any]:
    """What did happen: stages with their visits and attempts, transitions with how often each was taken (B-125)."""
    drawing = _Drawing()
    for event in events:
        drawing.see(event)
    return _document("session", session_id, drawing.initial, drawing.nodes, list(drawing.edges.values()))


class _Drawing:
    def __init__(self) -> None:
        self.places = Places()
        self.initial: str | None = None
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: dict[tuple[str, str, str, str], dict[str, Any]] = {}

    def see(self, event: Event) -> None:
        place, payload = self.places.see(event), event.payload
        if event.type == "stage.entered":
            self._entered(payload)
        elif event.type == "transition.taken" and payload["target"] != "retry":
            self._taken(payload["source"], _end(payload["target"], payload["source"]), payload["rule"])
        elif event.type == "retry.scheduled":
            self.nodes[place.stage]["attempts"] += 1
            self._taken(place.stage, place.stage, payload["code"], kind="retry")
        elif event.type == "stage.left":
            self.nodes[payload["stage"]]["status"] = payload["status"]
        elif event.type.removeprefix("session.") in _ENDS:
            self._ended(event.type.removeprefix("session."), place, payload)

    def _entered(self, payload: Mapping[str, Any]) -> None:
        stage = payload["stage"]
        self.initial = self.initial or stage
        node = self.nodes.setdefault(
            stage, _node(stage, payload["persona"], payload["model"], payload["executor"], visits=0, attempts=0)
        )
        node["visits"] += 1
        node["attempts"] += 1
        node["status"] = "active"

    def _taken(self, source: str, target: str, label: str, *, kind: str = "transition") -> None:
        if target in _ENDS:
            self.nodes.setdefault(target, _end_node(target))
        edge = self.edges.setdefault((source, target, label, kind), _edge(source, target, label, kind=kind, taken=0))
        edge["taken"] += 1

    def _ended(self, end: str, place: Place, payload: Mapping[str, Any]) -> None:
        """An end that no rule led to still has its edge, labelled with the reason."""
        if place != NOWHERE and not any(edge["to"] == end for edge in self.edges.values()):
            self.nodes[place.stage]["status"] = end
            self._taken(place.stage, end, str(payload.get("code") or payload.get("reason") or ""))
        if end in self.nodes:
            self.nodes[end] |= {"visits": 1, "status": end}


def _end(target: str, source: str) -> str:
    """Where a target leads: ``retry`` back to the stage itself, ``end`` to ``completed``."""
    return {"end": "completed", "retry": source}.get(target, target)


def _node(
    name: str, role: str, model: str | None, executor: str, *, visits: int | None = None, attempts: int | None = None
) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "stage",
        "role": role,
        "model": model,
        "executor": executor,
        "visits": visits,
        "attempts": attempts,
        "status": None,
    }


def _end_node(name: str) -> dict[str, Any]:
    kind = "end" if name in RESERVED_TARGETS else "missing"
    return {**_node(name, "", None, ""), "kind": kind, "role": None, "executor": None}


def _edge(
    source: str,
    target: str,
    label: str,
    *,
    kind: str = "transition",
    taken: int | None = None,
    index: int | None = None,
) -> dict[str, Any]:
    return {"from": source, "to": target, "kind": kind, "label": label, "rule_index": index, "taken": taken}


def _document(
    kind: str,
    session_id: str | None,
    initial: str | None,
    nodes: Mapping[str, dict[str, Any]],
    edges: list[dict[str, Any]],
) -> dict[str, Any]:
    return {
        "schema": "harness.graph/1",
        "kind": kind,
        "session_id": session_id,
        "initial": initial,
        "nodes": list(nodes.values()),
        "edges": edges,
    }
