"""What can run, and what has surely run before: the steps of a body go in; conditions on its choices come out.

A run chooses at each decision, and whether a step whose failure leads elsewhere fails. From these follows, by the rules
of activation, under which condition each step starts and completes. A step of a loop is looked at in its latest visit:
edges that lead back are left out, which is safe, since what was completed once stays readable by ``last`` and ``all``.
A failure that leads nowhere, and the target ``fail``, end the run; no step that could read anything comes after. A step
begins when whatever leads to it has settled, so all that stands before it on any way has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from harness_executor_workflow.plan.graph import Edge, graph_of, targets_of

from .diagrams import ALWAYS, NEVER, Condition, Conditions
from .plans import Located

__all__ = ["Flow", "Known"]


class Known(NamedTuple):
    """What an expression has found out about a step before it reads: that it is set, or that it is not."""

    step: str
    accessor: str
    is_set: bool


class _Choice(NamedTuple):
    """What one step chooses between; a step without a choice has one outcome."""

    number: int
    outcomes: tuple[str, ...]


_OK: Final = "ok"
_FAILED: Final = "failed"


class Flow:
    """The conditions of one body."""

    def __init__(
        self, steps: Sequence[Located], *, conditions: Conditions, apart: str | None
    ) -> None:
        """Work out the order and the conditions.

        Args:
            steps: The steps of the body, whose ids are different and whose needs and targets exist.
            conditions: The plan's conditions.
            apart: The step that runs at the end.

        Raises:
            TooManyConditions: The plan's choices cannot be followed.
        """
        self._steps: Final = {one.id: one for one in steps}
        self._graph: Final = graph_of([one.model for one in steps])
        self._conditions: Final = conditions
        self._apart: Final = apart
        self._back: Final = frozenset((edge.source, edge.target) for edge in self._graph.back)
        self._routers = self._find_routers()
        self._leading_on = _sources(self._graph.forward)
        self._leading = _sources([*self._graph.forward, *self._graph.back])
        self._earlier: dict[str, frozenset[str]] = {}
        self._settled: dict[str, frozenset[str]] = {}
        self._order: Final = self._in_order()
        self._choices: Final = {step: self._choice(step) for step in self._order}
        self._starts: Final[dict[str, Condition]] = {}
        for step in self._order:
            self._starts[step] = self._start(step)

    def starts(self, step: str) -> Condition:
        """The condition under which the step is run."""
        return self._starts.get(step, NEVER)

    def completes(self, step: str) -> Condition:
        """The condition under which the step has an output."""
        started = self.starts(step)
        failure = self._chosen(step, _FAILED)
        return started if failure == NEVER else self._conditions.both(started, self._conditions.neither(failure))

    def fails(self, step: str) -> Condition:
        """The condition under which the step fails and the run goes on."""
        return self._conditions.both(self.starts(step), self._chosen(step, _FAILED))

    def holds(self, step: str, accessor: str) -> Condition:
        """The condition under which an accessor of the step is set at last."""
        return self.fails(step) if accessor == "error" else self.completes(step)

    def is_set_for(self, reader: str | None, step: str, accessor: str, known: Iterable[Known]) -> bool:
        """Whether the step is set whenever the reader reads it.

        Args:
            reader: A step of this body; None for the plan's output, which is read when all steps are settled.
            step: Another step of it.
            accessor: What of it is read.
            known: What has been asked before, about steps of this body.
        """
        both, neither = self._conditions.both, self._conditions.neither
        given = ALWAYS if reader is None else self.starts(reader)
        for one in known:
            there = self._holds_before(reader, one.step, one.accessor)
            given = both(given, self.holds(one.step, one.accessor) if one.is_set else neither(there))
        return self._conditions.implies(given, self._holds_before(reader, step, accessor))

    def _holds_before(self, reader: str | None, step: str, accessor: str) -> Condition:
        """The condition under which the accessor is set when the reader reads; the last step comes after all others."""
        if self._apart is not None and self._apart in (reader, step):
            return NEVER
        is_before = reader is None or step in self._before(reader)
        return self.holds(step, accessor) if is_before else NEVER

    def comes_after(self, reader: str, step: str) -> bool:
        """Whether the reader comes after the step on any way, ways that lead back included."""
        if reader == self._apart:
            return step != reader
        if reader not in self._earlier:
            self._earlier[reader] = _reached(reader, self._leading)
        return step in self._earlier[reader]

    def _before(self, reader: str) -> frozenset[str]:
        """The steps that have settled when the reader begins."""
        if reader not in self._settled:
            self._settled[reader] = _reached(reader, self._leading_on)
        return self._settled[reader]

    def _find_routers(self) -> dict[str, list[str]]:
        """For each step those that lead to it, without the edges that lead back."""
        found: dict[str, list[str]] = {}
        for one in self._steps.values():
            for target in targets_of(one.model):
                if (one.id, target) not in self._back:
                    found.setdefault(target, []).append(one.id)
        return found

    def _before_each(self, step: str) -> list[str]:
        needs = [one for one in self._steps[step].needs if one in self._steps]
        return list(dict.fromkeys([*needs, *self._routers.get(step, ())]))

    def _in_order(self) -> list[str]:
        """Each step behind those that it waits for; steps that wait for each other in a circle are left out."""
        waits = {step: len(self._before_each(step)) for step in self._steps}
        after: dict[str, list[str]] = {}
        for step in self._steps:
            for one in self._before_each(step):
                after.setdefault(one, []).append(step)
        found = [step for step, count in waits.items() if not count]
        for step in found:  # grows
            for one in after.get(step, ()):
                waits[one] -= 1
                if not waits[one]:
                    found.append(one)
        return found

    def _choice(self, step: str) -> _Choice:
        one = self._steps[step]
        outcomes: tuple[str, ...]
        if one.uses != "decision":
            outcomes = (_OK, _FAILED) if one.on_failure not in (None, "fail") else (_OK,)
        else:
            outcomes = tuple(way for way in targets_of(one.model) if way != "fail" and (step, way) not in self._back)
        return _Choice(self._conditions.new_choice(), outcomes)

    def _chosen(self, step: str, outcome: str) -> Condition:
        choice = self._choices.get(step)
        if choice is None or outcome not in choice.outcomes:
            return NEVER
        taken = frozenset({choice.outcomes.index(outcome)})
        return self._conditions.chosen(choice.number, len(choice.outcomes), taken)

    def _leads(self, router: str, step: str) -> Condition:
        outcome = step if self._steps[router].uses == "decision" else _FAILED
        return self._conditions.both(self.starts(router), self._chosen(router, outcome))

    def _start(self, step: str) -> Condition:
        needs, routers = self._steps[step].needs, self._routers.get(step, ())
        either = self._conditions.any_of
        found = NEVER if needs else ALWAYS
        for one in needs:  # a step that failed counts for the step that its failure led to
            found = either(found, self.completes(one))
            found = either(found, self._leads(one, step)) if one in routers else found
        led = NEVER if routers else ALWAYS
        for one in routers:
            led = either(led, self._leads(one, step))
        return self._conditions.both(found, led)


def _sources(edges: Iterable[Edge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for edge in edges:
        found.setdefault(edge.target, []).append(edge.source)
    return found


def _reached(start: str, leading: Mapping[str, list[str]]) -> frozenset[str]:
    """Whatever leads there, on any way; the step itself only where it leads back to itself."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = [one for one in leading.get(waiting.pop(), ()) if one not in found]
        found.update(fresh)
        waiting += fresh
    return frozenset(found)
