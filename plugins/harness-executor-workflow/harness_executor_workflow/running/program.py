"""A checked plan and a rule engine go in; what its run needs to know, and never changes, comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from harness_executor_workflow.plan.graph import Edge, Graph, Loop, graph_of, targets_of
from harness_executor_workflow.plan.templates import parse, templates_in
from harness_hookspecs.rules import Rules
from harness_hookspecs.workflow import DecisionStep, ParallelStep, Step, StepOutput, WaitStep, Workflow

from .expressions import Reader, reader_of

__all__ = ["Fan", "Level", "Program", "StepPlan", "program_of"]

_AT_ONCE: Final = 100
_ROOTS: Final = ("input", "steps", "visit", "run")
_TEMPLATED: Final = {"ai.generate": ("prompt", "system"), "tool.call": ("args",)}
"""What of a step's ``with`` is a template; the source of code and the expressions of a decision are not."""


class Fan(NamedTuple):
    """What a ``parallel`` step does with its items."""

    items: str
    key: str
    max_branches: int
    max_concurrency: int
    stops_at_failure: bool
    by_key: bool
    output_step: str
    body: Level


class StepPlan(NamedTuple):
    """One step; ``wire`` is its JSON, ``readers`` its expressions by their text."""

    id: str
    uses: str
    wire: Mapping[str, Any]
    templated: Mapping[str, Any]
    readers: Mapping[str, Reader]
    max_visits: int
    retry: Mapping[str, Any]
    fixes: int
    to: str | None
    targets: tuple[str, ...]
    output: StepOutput | None
    fan: Fan | None
    limit_ms: int | None


class Level(NamedTuple):
    """The plan itself or the body of a ``parallel`` step: its steps, what leads to and from each, and its loops.

    ``leaves`` names the loop, by its place, that must be over before an edge out of it counts; ``around`` has the loops
    of a step, inner ones first.
    """

    steps: Mapping[str, StepPlan]
    place: Mapping[str, int]
    starters: tuple[str, ...]
    incoming: Mapping[str, tuple[Edge, ...]]
    following: Mapping[str, tuple[str, ...]]
    loops: tuple[Loop, ...]
    around: Mapping[str, tuple[int, ...]]
    leaves: Mapping[Edge, int]
    behind: Mapping[int, tuple[str, ...]]


class Program(NamedTuple):
    """A plan, ready to run; ``last`` is the level of its last step alone, ``output`` the expressions of its output.

    ``at_once`` is how many branches may be under way, of all ``parallel`` steps together.
    """

    plan: Workflow
    root: Level
    last: Level | None
    output: Mapping[str, Reader]
    max_calls: int | None
    at_once: int = _AT_ONCE


def program_of(plan: Workflow, rules: Rules) -> Program:
    """Derive everything that is the same for every run of a plan.

    Raises:
        RuleError: An expression or a template of it cannot be compiled; the check of a plan finds that before.
    """
    usual = [step for step in plan.steps if step.id != plan.finally_]
    last = [step for step in plan.steps if step.id == plan.finally_]
    return Program(
        plan=plan,
        root=_level(usual, rules, _ROOTS),
        last=_level(last, rules, _ROOTS) if last else None,
        output=_readers(plan.to_wire()["output"]["value"], rules, _ROOTS),
        max_calls=plan.limits.max_step_executions if plan.limits is not None else None,
    )


def _level(steps: Sequence[Step], rules: Rules, roots: Sequence[str]) -> Level:
    graph = graph_of(steps)
    place = {name: number for number, name in enumerate(graph.ids)}
    incoming = {name: tuple(edge for edge in graph.forward if edge.target == name) for name in graph.ids}
    leaves = _leaves(graph)
    following: dict[str, dict[str, None]] = {name: {} for name in graph.ids}
    behind: dict[int, dict[str, None]] = {number: {} for number in range(len(graph.loops))}
    for edge in graph.forward:
        waits = behind[leaves[edge]] if edge in leaves else following[edge.source]
        waits[edge.target] = None
    return Level(
        steps={step.id: _step(step, rules, roots) for step in steps},
        place=place,
        starters=tuple(name for name in graph.ids if not incoming[name]),
        incoming=incoming,
        following={name: tuple(sorted(targets, key=place.__getitem__)) for name, targets in following.items()},
        loops=graph.loops,
        around={
            name: tuple(number for number, loop in enumerate(graph.loops) if name in loop.steps) for name in graph.ids
        },
        leaves=leaves,
        behind={number: tuple(sorted(targets, key=place.__getitem__)) for number, targets in behind.items()},
    )


def _leaves(graph: Graph) -> dict[Edge, int]:
    """For each edge that leaves loops the outermost of them, which stands last."""
    found = {}
    for edge in graph.forward:
        for number, loop in enumerate(graph.loops):
            if edge.source in loop.steps and edge.target not in loop.steps:
                found[edge] = number
    return found


def _step(step: Step, rules: Rules, roots: Sequence[str]) -> StepPlan:
    wire = step.to_wire()
    templated = {name: wire["with"][name] for name in _TEMPLATED.get(step.uses, ()) if name in wire["with"]}
    templated |= {"input": wire["input"]} if "input" in wire else {}
    on_failure = None if isinstance(step, DecisionStep) else step.on_failure
    fixer = on_failure.fixer if on_failure is not None and step.uses == "code.run" else None
    return StepPlan(
        id=step.id,
        uses=step.uses,
        wire=wire,
        templated=templated,
        readers=_readers(templated, rules, roots) | _own_readers(step, rules, roots),
        max_visits=step.max_visits or 1,
        retry=wire.get("retry", {}),
        fixes=fixer.max_attempts if fixer is not None else 0,
        to=on_failure.to if on_failure is not None else None,
        targets=targets_of(step),
        output=step.output if isinstance(step, WaitStep) else None,
        fan=_fan(step, rules, roots) if isinstance(step, ParallelStep) else None,
        limit_ms=wire.get("timeoutMs") if step.uses != "code.run" else None,  # which its engine keeps
    )


def _own_readers(step: Step, rules: Rules, roots: Sequence[str]) -> dict[str, Reader]:
    """The expressions of a step that stand outside of its templates."""
    if isinstance(step, DecisionStep):
        return {case.when: reader_of(case.when, rules, roots) for case in step.with_.cases}
    if isinstance(step, ParallelStep):
        of_item = _readers(step.with_.item_key, rules, _inner(roots))
        return _readers(step.with_.items, rules, roots) | of_item
    return {}


def _fan(step: ParallelStep, rules: Rules, roots: Sequence[str]) -> Fan:
    settings, fan_in = step.with_, step.with_.fan_in
    order = fan_in.order if fan_in is not None else None
    named = fan_in.output_step if fan_in is not None else None
    return Fan(
        items=settings.items,
        key=settings.item_key,
        max_branches=settings.max_branches,
        max_concurrency=settings.max_concurrency,
        stops_at_failure=settings.failure_mode == "fail_fast",
        by_key=order == "itemKey",
        output_step=named or step.steps[-1].id,
        body=_level(step.steps, rules, _inner(roots)),
    )


def _inner(roots: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*roots, "item"]))


def _readers(value: Any, rules: Rules, roots: Sequence[str]) -> dict[str, Reader]:
    texts = [part.text for _, text in templates_in(value) for part in parse(text).expressions]
    return {text: reader_of(text, rules, roots) for text in texts}
