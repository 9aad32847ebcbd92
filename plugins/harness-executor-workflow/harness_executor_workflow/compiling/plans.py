"""Who stands where in a plan: the plan goes in; its steps by id, by body and by place come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness_hookspecs.workflow import ParallelStep, Step, Workflow

from .findings import Place

__all__ = ["Located", "Plan"]


class Located(NamedTuple):
    """One step: its model and its plain JSON, where it stands, and the parallel step whose body it is in."""

    id: str
    model: Step
    data: Mapping[str, Any]
    place: Place
    parent: str | None

    @property
    def uses(self) -> str:
        """The step's type."""
        return str(self.data["uses"])

    @property
    def settings(self) -> Mapping[str, Any]:
        """What stands under ``with``."""
        found: Mapping[str, Any] = self.data["with"]
        return found

    @property
    def needs(self) -> tuple[str, ...]:
        """The steps it needs."""
        return tuple(self.data.get("needs", ()))

    @property
    def max_visits(self) -> int:
        """How often it may be visited in each branch."""
        return int(self.data.get("maxVisits", 1))

    @property
    def on_failure(self) -> str | None:
        """Where its failure leads."""
        found: str | None = self.data.get("onFailure", {}).get("to")
        return found


class Plan:
    """The steps of a plan, in the order of the document, a body behind its parallel step.

    ``steps`` and ``bodies`` leave out a step whose id another one has.
    """

    def __init__(self, workflow: Workflow, data: Mapping[str, Any]) -> None:
        self.data: Final = data
        self.workflow: Final = workflow
        self.all: Final = tuple(_located(workflow.steps, data["steps"]))
        self.steps: Final[dict[str, Located]] = {}
        self.bodies: Final[dict[str | None, list[Located]]] = {}
        self.doubled: Final[set[str]] = set()
        for one in self.all:
            if one.id not in self.steps:
                self.steps[one.id] = one
                self.bodies.setdefault(one.parent, []).append(one)
            else:
                self.doubled.add(one.id)

    @property
    def last_step(self) -> str | None:
        """The step that runs at the end, however the run ended."""
        return self.workflow.finally_

    def around(self, step: str) -> tuple[str, ...]:
        """The step and the parallel steps it lies in, innermost first."""
        found = [step]
        while (parent := self.steps[found[-1]].parent) is not None:
            found.append(parent)
        return tuple(found)


def _located(steps: Sequence[Step], data: Sequence[Mapping[str, Any]]) -> Iterator[Located]:
    """Every step with its place; ids may be doubled."""
    waiting = _body(steps, data, Place(("steps",)), None)
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one.model, ParallelStep):
            waiting += _body(one.model.steps, one.data["steps"], one.place / "steps", one.id)


def _body(
    steps: Sequence[Step], data: Sequence[Mapping[str, Any]], place: Place, parent: str | None
) -> list[Located]:
    """The steps of a body, the first one last, as a stack wants them."""
    found = [
        Located(step.id, step, plain, place / number, parent) for number, (step, plain) in enumerate(zip(steps, data))
    ]
    return found[::-1]
