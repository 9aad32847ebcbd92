"""Phase 2: a plain JSON value goes in, the plan as the contract's model comes out, or each place where it is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.workflow import PlanFinding, Workflow

from .findings import MOST_FINDINGS, Place, did_you_mean, finding
from .wording import Flaw, flaws_of

__all__ = ["hint_of", "read_form", "step_at"]


def read_form(value: Any) -> Workflow | list[PlanFinding]:
    """Hold the value to the contract."""
    if not isinstance(value, dict):
        hint = 'begin with {"apiVersion":"harness.lwir/v1","kind":"Workflow",...}'
        return [finding("schema.invalid", Place(), None, "A plan is a JSON object.", hint)]
    try:
        plan = Workflow.from_wire(value)
    except ValidationFailed as error:
        return [_told(one, value) for one in flaws_of(error, "The plan")]
    return list(islice(_renamed(value, plan.to_wire()), MOST_FINDINGS)) or plan


def _renamed(value: Any, wire: Any) -> Iterator[PlanFinding]:
    """Fields by the names that they have in Python, which the contract reads as well and a document does not have."""
    waiting = [(value, wire, Place())]
    while waiting:
        one, other, place = waiting.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            for name in one:
                if name not in other:
                    message = f"{name} is written differently in a plan."
                    hint = did_you_mean(name, other.keys() - one.keys())
                    yield finding("schema.invalid", place / name, step_at(value, place), message, hint)
                else:
                    waiting.append((one[name], other[name], place / name))
        elif isinstance(one, list) and isinstance(other, list):
            waiting += [(inner, outer, place / number) for number, (inner, outer) in enumerate(zip(one, other))]


def _told(one: Flaw, value: Any) -> PlanFinding:
    return finding("schema.invalid", one.place, step_at(value, one.place), one.message, hint_of(one))


def hint_of(one: Flaw) -> str | None:
    """What to do about a flaw of the form."""
    hints = {"extra_forbidden": "leave it out", "missing": "add it"}
    return hints.get(one.kind) if one.place else None


def step_at(value: Any, place: Sequence[str | int]) -> str | None:
    """The id of the innermost step that the place lies in, as the plan says it."""
    found = None
    for before, part in zip(("", *place), place):
        inner = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, list) and isinstance(part, int) and part < len(value):
            inner = value[part]
        value = inner
        if before == "steps" and isinstance(value, dict) and isinstance(value.get("id"), str):
            found = value["id"]
    return found
