"""What the compiler says of reads is true of runs: random plans, a read more in each, against the plan's own run."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from harness_executor_workflow.compiling.judge import Flaw
from harness_executor_workflow.compiling.phases import compile_plan
from harness_executor_workflow.compiling.plans import Plan
from harness_executor_workflow.compiling.scene import View, World
from harness_executor_workflow.plan.paths import parse_path
from harness_executor_workflow.running.program import program_of
from harness_executor_workflow.running.run import apply, end_of, next_asks, start
from harness_hookspecs.compiler import KnownModel, KnownTool, Surroundings
from harness_hookspecs.errors import RuleError
from harness_hookspecs.executor import Outcome
from harness_hookspecs.rules import Program
from harness_hookspecs.tool import ToolSpec
from harness_hookspecs.workflow import Workflow
from harness_rules_cel.rules import CelRules
from tests.workflows.plans import INPUT, answer, document, plans

ANY_TOOL = ToolSpec(name="t", description="any", input_schema={"type": "object"}, tier="T0")


class Watched:
    """A compiled expression that keeps what its evaluation raises."""

    def __init__(self, program: Program, raised: list[RuleError]) -> None:
        self.text, self.roots = program.text, program.roots
        self._program, self._raised = program, raised

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        try:
            return self._program.evaluate(values)
        except RuleError as error:
            self._raised.append(error)
            raise


class WatchingRules(CelRules):
    """An engine that keeps what goes wrong in a run, also where the plan survives it."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: list[RuleError] = []

    def compile(self, text: str, *, roots: Any) -> Any:
        return Watched(super().compile(text, roots=roots), self.raised)


RULES = CelRules()
WATCHING = WatchingRules()
THERE = Surroundings(
    rules=RULES,
    models={"m": KnownModel("scripted", "m")},
    tools={"t": KnownTool(ANY_TOOL, "T0", "ab" * 32, "tool-sample@0.1.0")},
)


def steps_in(steps: Any) -> Iterator[Any]:
    for step in steps:
        yield step
        yield from steps_in(step.get("steps", ()))


def step_of(plan: Any, path: str) -> Any:
    found, steps = None, plan["steps"]
    for one in parse_path(path):
        found = next(step for step in steps if step["id"] == one.step)
        steps = found.get("steps", ())
    return found


def missed(plan: Any, salt: str, failures: int) -> list[RuleError]:
    """The expressions that went wrong in one run."""
    WATCHING.raised.clear()
    program = program_of(Workflow.from_wire(plan), WATCHING)
    state = start(program, INPUT, run={"id": "r", "attempt": 1}, seed="seed")
    while end_of(state) is None:
        ask = next_asks(program, state)[0]
        value, error = answer(salt, ask, step_of(plan, ask["path"]), failures=failures)
        told = Outcome(request_id=ask["id"], ok=error is None, value=value, error=error)
        state = apply(program, state, told)
    return list(WATCHING.raised)


def readable(plan: Any, reader: str | None) -> list[str]:
    """What may be read there at all; whether it is set is another question."""
    world = World(Plan(Workflow.from_wire(plan), plan))
    view = View(world, None if reader is None else world.plan.steps[reader], {})
    paths = [
        f"steps.{step['id']}.{accessor}"
        for step in steps_in(plan["steps"])
        for accessor in ("output", "last", "error")
        if view.step(step["id"]) is None and not isinstance(view.accessor(step["id"], accessor), Flaw)
    ]
    return paths or ["input.xs"]


@st.composite
def reads(draw: st.DrawFn) -> Any:
    """A plan in which one step, or the output, reads a step as it is, or with a fallback."""
    plan = copy.deepcopy(draw(plans()))
    everywhere = list(steps_in(plan["steps"]))
    assume(len({step["id"] for step in everywhere}) == len(everywhere))
    readers = [step for step in everywhere if step["uses"] == "tool.call"]
    for step in readers:
        step["with"]["args"] = {}
    plan["output"]["value"] = None
    reader = draw(st.sampled_from([*readers[::-1], None]))
    path = st.sampled_from(readable(plan, reader and reader["id"]))
    one, other = draw(path), draw(path)
    shapes = [one, one, f"has({one}) ? 1 : {other}", f"!has({one}) || size([{one}]) == 1", f"has({one}) ? {other} : 1"]
    text = f"{{{{ {draw(st.sampled_from(shapes))} }}}}"
    if reader is None:
        plan["output"]["value"] = text
    else:
        reader["with"]["args"] = {"read": text}
    return plan


def codes(plan: Any) -> set[str]:
    return {one.code for one in compile_plan(plan, THERE).findings if one.severity == "error"}


@given(reads(), st.integers(0, 5))
def test_a_read_that_is_accepted_never_finds_nothing(plan: Any, salt: int) -> None:
    assume(not codes(plan))
    for failures in (0, 4, 8):
        assert not missed(plan, str(salt), failures)


@given(plans())
def test_a_plan_that_only_reads_with_guards_is_refused_for_no_read(plan: Any) -> None:
    assert not {code for code in codes(plan) if "maybe_unset" in code}


def simple(kinds: str, edges: Any) -> Any:
    """A plan of tool calls (t), tool calls that may fail (f) and decisions (d) between later steps."""
    steps: list[Any] = []
    for number, kind in enumerate(kinds):
        later = [f"s{one}" for one in range(number + 1, len(kinds))]
        needs = [f"s{one}" for one in sorted(edges[number][0]) if one < number]
        ways = [later[one % len(later)] for one in edges[number][1]] if later else ["end"]
        step: dict[str, Any] = {"id": f"s{number}", "uses": "tool.call", "with": {"tool": "t", "args": {}},
                                "output": {"mode": "json"}}  # fmt: skip
        if kind == "d":
            cases = [{"when": "true", "to": way} for way in ways]
            step = {"id": f"s{number}", "uses": "decision", "with": {"cases": cases, "default": ways[-1]}}
        elif kind == "f":
            step["onFailure"] = {"to": ways[0]}
        steps.append({**step, "needs": needs} if needs else step)
    return document(steps)


@st.composite
def simples(draw: st.DrawFn) -> Any:
    kinds = draw(st.text("tffddd", min_size=3, max_size=6))
    edges = [
        (draw(st.sets(st.integers(0, 5), max_size=2)), draw(st.lists(st.integers(0, 5), min_size=1, max_size=2)))
        for _ in kinds
    ]
    plan = simple(kinds, edges)
    working = [step for step in plan["steps"] if step["uses"] == "tool.call"]
    assume(len(working) > 1)
    reader = draw(st.sampled_from(working[1:]))
    paths = [path for path in readable(plan, reader["id"]) if path.endswith("output")]
    assume(paths)
    reader["with"]["args"] = {"read": f"{{{{ {draw(st.sampled_from(paths))} }}}}"}
    return plan


@given(simples())
def test_a_read_is_refused_only_where_some_run_misses_it(plan: Any) -> None:
    """Without loops and branches, the compiler is as exact as it can be: some outcome finds nothing."""
    found = codes(plan)
    if found == {"ref.maybe_unset"}:
        assert any(missed(plan, str(salt), failures) for failures in (0, 4, 8) for salt in range(150))
    elif not found:
        assert not any(missed(plan, str(salt), failures) for failures in (0, 4, 8) for salt in range(10))
