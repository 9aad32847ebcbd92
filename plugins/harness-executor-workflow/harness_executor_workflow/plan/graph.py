"""The graph of a plan: the steps of one level go in; edges, starting order, back-edges and loops come out.

A level is the plan itself or the body of a ``parallel`` step. Nothing here calls itself, so a plan of any shape is met.

An edge leads from what must have settled to what may then begin: ``needs``, a ``decision``'s targets, the target of a
``failure``. An edge is a back-edge when its source cannot start before its target has; where neither of two steps has
to be first, the one that can start earlier is. Without its back-edges the graph has no cycle.

A loop is what lies between the two steps of a back-edge on any way. Loops that overlap, none holding the other, are
one, and so are loops that each lead to the other, with what lies between. When a back-edge is taken, its target and
what follows it within the loop get a new visit. Whatever leads out of a loop waits until all of it has settled and none
of its back-edges is taken; nothing waits for itself so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import combinations
from typing import Final, Literal, NamedTuple

from harness_hookspecs.workflow import DecisionStep, Step

__all__ = ["ENDS", "Edge", "Graph", "Loop", "components", "cycles", "edges_of", "graph_of", "targets_of"]

ENDS: Final = frozenset({"end", "fail"})
"""The targets that are no steps."""


class Edge(NamedTuple):
    """What leads from one step to another of the same level."""

    source: str
    target: str
    kind: Literal["needs", "decision", "failure"]


class Loop(NamedTuple):
    """Steps that may be visited again together; ``bodies`` has for each back-edge what gets a new visit with it."""

    steps: frozenset[str]
    bodies: Mapping[Edge, frozenset[str]]


class Graph(NamedTuple):
    """One level of a plan.

    ``order`` has the steps as they may start at the earliest, those that can never start are missing; ``forward`` and
    ``back`` are the edges; ``loops`` has inner ones before those around them.
    """

    ids: tuple[str, ...]
    order: tuple[str, ...]
    forward: tuple[Edge, ...]
    back: tuple[Edge, ...]
    loops: tuple[Loop, ...]


def targets_of(step: Step) -> tuple[str, ...]:
    """Where a step may lead by decision or failure, ``end`` and ``fail`` included, in order, each once."""
    if isinstance(step, DecisionStep):
        return tuple(dict.fromkeys([*(case.to for case in step.with_.cases), step.with_.default]))
    on_failure = step.on_failure
    return () if on_failure is None or on_failure.to is None else (on_failure.to,)


def edges_of(steps: Sequence[Step]) -> tuple[Edge, ...]:
    """The edges of a level, each once; what leads to no step of the level is left out."""
    ids = {step.id for step in steps}
    found: dict[Edge, None] = {}
    for step in steps:
        found |= dict.fromkeys(Edge(need, step.id, "needs") for need in step.needs or () if need in ids)
        kind: Literal["decision", "failure"] = "decision" if isinstance(step, DecisionStep) else "failure"
        found |= dict.fromkeys(Edge(step.id, target, kind) for target in targets_of(step) if target in ids)
    return tuple(found)


def graph_of(steps: Sequence[Step]) -> Graph:
    """Everything about the graph of a level."""
    ids = tuple(dict.fromkeys(step.id for step in steps))
    edges = edges_of(steps)
    starts = _Starts(ids, edges)
    back = _back_edges(starts, edges)
    forward = tuple(edge for edge in edges if edge not in back)
    return Graph(ids, starts.order, forward, tuple(edge for edge in edges if edge in back), _loops(ids, forward, back))


def components(ids: Iterable[str], edges: Iterable[Edge]) -> tuple[frozenset[str], ...]:
    """The strongly connected components (Tarjan), those that others lead to first."""
    following = _neighbours(ids, edges)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: dict[str, None] = {}
    found: list[frozenset[str]] = []
    for root in following:
        work = [] if root in index else [(root, iter(following[root]))]
        if work:
            index[root] = low[root] = len(index)
            stack[root] = None
        while work:
            node, ahead = work[-1]
            fresh = next((one for one in ahead if one not in index), None)
            if fresh is not None:
                index[fresh] = low[fresh] = len(index)
                stack[fresh] = None
                work.append((fresh, iter(following[fresh])))
                continue
            work.pop()
            low[node] = min([low[node], *(low[one] for one in following[node] if one in stack)])
            if low[node] == index[node]:
                members = list(stack)[list(stack).index(node) :]
                for member in members:
                    del stack[member]
                found.append(frozenset(members))
    return tuple(found)


def cycles(ids: Iterable[str], edges: Sequence[Edge]) -> tuple[frozenset[str], ...]:
    """The components that hold a cycle, a step that leads to itself included."""
    to_itself = {edge.source for edge in edges if edge.source == edge.target}
    return tuple(one for one in components(ids, edges) if len(one) > 1 or one & to_itself)


def _neighbours(ids: Iterable[str], edges: Iterable[Edge], *, reverse: bool = False) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {one: {} for one in ids}
    for edge in edges:
        source, target = (edge.target, edge.source) if reverse else (edge.source, edge.target)
        if source in found and target in found:
            found[source][target] = None
    return {one: list(others) for one, others in found.items()}


class _Starts:
    """How the steps of a level start if every choice goes their way.

    ``heads`` begin a loop by themselves: only the loop leads to them, and nothing from outside begins it elsewhere.
    """

    def __init__(self, ids: Sequence[str], edges: Sequence[Edge]) -> None:
        self.ids = ids
        self._place = {one: number for number, one in enumerate(ids)}
        self._needs = {one: {edge.source for edge in edges if edge == (edge.source, one, "needs")} for one in ids}
        self._routers = {one: {e.source for e in edges if e.target == one and e.kind != "needs"} for one in ids}
        self._after = _neighbours(ids, edges)
        self.heads: list[str] = []
        loops = [(loop, {e.source for e in edges if e.target in loop} - loop) for loop in cycles(ids, edges)]
        self.order = self.reached()
        while (head := self._next_head(loops)) is not None:
            self.heads.append(head)
            self.order = self.reached()

    def reached(self, without: str = "") -> tuple[str, ...]:
        """The steps that can start, perhaps without one of them, the first in the plan first."""
        started: dict[str, None] = {}
        waiting = [self._place[one] for one in self.ids if one != without and self._may(one, started)]
        while waiting:
            step = self.ids[heappop(waiting)]
            if step in started:
                continue
            started[step] = None
            for one in self._after[step]:
                if one != without and one not in started and self._may(one, started):
                    heappush(waiting, self._place[one])
        return tuple(started)

    def _may(self, step: str, started: Mapping[str, None]) -> bool:
        routers = self._routers[step]
        routed = not routers or step in self.heads or not routers.isdisjoint(started)
        return routed and self._needs[step] <= started.keys()

    def _next_head(self, loops: Sequence[tuple[frozenset[str], set[str]]]) -> str | None:
        started = dict.fromkeys(self.order)
        for step in self.ids:
            if step not in started and self._needs[step] <= started.keys():
                for loop, outside in loops:
                    if step in loop and self._routers[step] <= loop and outside <= started.keys():
                        return step
        return None


def _back_edges(starts: _Starts, edges: Sequence[Edge]) -> frozenset[Edge]:
    within = {step: loop for loop in cycles(starts.ids, edges) for step in loop}
    routes = [e for e in edges if e.kind != "needs" and e.source in within.get(e.target, ())]
    first: dict[str, frozenset[str]] = {}  # what can start without a step
    for edge in routes:
        if edge.target not in first:
            first[edge.target] = frozenset(starts.reached(without=edge.target))
    found = {e for e in routes if e.target in starts.heads or e.source not in first[e.target]}
    place = {step: number for number, step in enumerate(dict.fromkeys([*starts.order, *starts.ids]))}
    rest = [edge for edge in edges if edge not in found]
    within = {step: loop for loop in cycles(starts.ids, rest) for step in loop}
    tied = {e for e in rest if e.source in within.get(e.target, ()) and place[e.target] <= place[e.source]}
    return frozenset(found | tied)


_Region = tuple[frozenset[str], frozenset[Edge]]
"""The steps of a loop and its back-edges."""


def _loops(ids: Sequence[str], forward: Sequence[Edge], back: frozenset[Edge]) -> tuple[Loop, ...]:
    after, before = _neighbours(ids, forward), _neighbours(ids, forward, reverse=True)
    found: list[_Region] = []
    for edge in sorted(back):
        between = _reached(edge.target, after) & _reached(edge.source, before)
        found.append((between | {edge.source, edge.target}, frozenset({edge})))
    while (group := _overlapping(found) or _mutual(ids, forward, found)) is not None:
        together, between = group
        found = [region for region in found if region not in together]
        steps = between.union(*(steps for steps, _ in together))
        found.append((steps, frozenset[Edge]().union(*(edges for _, edges in together))))
    found.sort(key=lambda region: (len(region[0]), sorted(region[0])))
    return tuple(Loop(steps, _bodies(steps, edges, forward)) for steps, edges in found)


def _overlapping(found: Sequence[_Region]) -> tuple[list[_Region], frozenset[str]] | None:
    """Two loops that share steps, and neither holds the other."""
    for one, other in combinations(found, 2):
        if one[0] == other[0] or (one[0] & other[0] and one[0] - other[0] and other[0] - one[0]):
            return [one, other], frozenset()
    return None


def _mutual(
    ids: Sequence[str], forward: Sequence[Edge], found: Sequence[_Region]
) -> tuple[list[_Region], frozenset[str]] | None:
    """Loops side by side that each lead to the other, or one that leads to itself, with what lies between.

    What leaves a loop waits for all of it, so each would wait for the other.
    """
    for scope in (frozenset(ids), *(steps for steps, _ in found)):
        inner = [region for region in found if region[0] < scope]
        outermost = [region for region in inner if not any(region[0] < other[0] for other in inner)]
        name = {step: min(steps) for steps, _ in outermost for step in steps}
        contracted = [
            Edge(name.get(edge.source, edge.source), name.get(edge.target, edge.target), edge.kind)
            for edge in forward
            if {edge.source, edge.target} <= scope
        ]
        outside = [edge for edge in contracted if edge.source != edge.target]
        for circle in cycles(sorted({name.get(step, step) for step in scope}), outside):
            together = [region for region in outermost if min(region[0]) in circle]
            return together, circle
    return None


def _bodies(steps: frozenset[str], edges: frozenset[Edge], forward: Sequence[Edge]) -> dict[Edge, frozenset[str]]:
    within = _neighbours(sorted(steps), forward)
    return {edge: _reached(edge.target, within) for edge in sorted(edges)}


def _reached(start: str, following: Mapping[str, Sequence[str]]) -> frozenset[str]:
    seen, work = {start}, [start]
    while work:
        fresh = set(following[work.pop()]) - seen
        seen |= fresh
        work += fresh
    return frozenset(seen)
