from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from harness_hookspecs.contracts.role_steps import StepsContract
from harness_hookspecs.contracts.rules import Contract, complaints, failing_rules
from harness_hookspecs.errors import RoleError, RuleError
from harness_hookspecs.kit.code_step import CodePlace, run_code
from harness_hookspecs.kit.step_output import held
from harness_hookspecs.messages import ChatInput, Message, TextPart
from harness_hookspecs.role import DelegateToDefault, ExecuteStepResult

_COUNTER = count()
_ASKED = ChatInput(messages=(Message(role="user", content=(TextPart(text="How many?"),)),))


class PlainSteps:
    """Keeps every rule with as little as possible; each method is a place to break one."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def run(self, task: Any, ctx: Any) -> Any:
        do = {"tool.call": self.call, "decision": self.decide, "code.run": self.code}[task.step.uses]
        return ExecuteStepResult(output=do(task, task.step, ctx), artifact_refs=())

    def call(self, task: Any, step: Any, ctx: Any) -> Any:
        return self.kept(step, ctx.tools[step.with_.tool].execute(dict(step.with_.args)))

    def kept(self, step: Any, value: Any) -> Any:
        return held(step.output, value)

    def decide(self, task: Any, step: Any, ctx: Any) -> Any:
        for index, case in enumerate(step.with_.cases):
            if self.holds(case):
                return {"chosen": case.to, "caseIndex": index}
        return {"chosen": step.with_.default, "caseIndex": None}

    def holds(self, case: Any) -> bool:
        rules = self.host.rules()
        found = rules.condition(rules.compile(case.when, roots=()), {})
        if not isinstance(found, bool):
            raise RoleError("no bool")
        return found

    def code(self, task: Any, step: Any, ctx: Any) -> Any:
        place, tools = self.place(), self.tools(ctx)
        return run_code(self.host.engine(), step, task.step_input, tools=tools, place=place, cancel=ctx.abort_signal)

    def place(self) -> CodePlace:
        return CodePlace("run", "one", 0)

    def tools(self, ctx: Any) -> Any:
        return ctx.tools


def _with(**changed: Any) -> Callable[[Contract], PlainSteps]:
    return lambda suite: type("Broken", (PlainSteps,), changed)(suite.host)


def _calling_twice(self: PlainSteps, task: Any, step: Any, ctx: Any) -> Any:
    PlainSteps.call(self, task, step, ctx)
    return PlainSteps.call(self, task, step, ctx)


def _asking(self: PlainSteps, task: Any, step: Any, ctx: Any) -> Any:
    ctx.model.complete(_ASKED)
    return PlainSteps.call(self, task, step, ctx)


def _last_that_holds(self: PlainSteps, task: Any, step: Any, ctx: Any) -> Any:
    cases = [*enumerate(step.with_.cases)][::-1]
    found = [(index, case.to) for index, case in cases if self.holds(case)]
    index, chosen = found[0] if found else (None, step.with_.default)
    return {"chosen": chosen, "caseIndex": index}


def _false_when_broken(self: PlainSteps, case: Any) -> bool:
    with suppress(RuleError, RoleError):
        return PlainSteps.holds(self, case)
    return False


class _Direct:
    """A tool whose calls go past the context."""

    def __init__(self, tool: Any) -> None:
        self.tool, self.description, self.input_schema = tool, tool.description, tool.input_schema

    def execute(self, args: Any, *, scope: str = "") -> Any:
        return self.tool.answer(args)


def _swallowing(self: PlainSteps, task: Any, step: Any, ctx: Any) -> Any:
    done = self.host.engine().run(
        step.with_.source, dict(task.step_input), tools=ctx.tools, limits=(1, 1, 1), seed=0, epoch_ms=0,
        cancel=ctx.abort_signal,
    )  # fmt: skip
    return self.kept(step, done)


BROKEN = {
    "role.tool_step_is_one_call": _with(call=_calling_twice),
    "role.steps_keep_their_contract": _with(kept=lambda self, step, value: value),
    "role.steps_ask_no_model": _with(call=_asking),
    "role.first_case_that_holds": _with(decide=_last_that_holds),
    "role.an_error_is_never_false": _with(holds=_false_when_broken),
    "role.code_calls_through_the_context": _with(
        tools=lambda self, ctx: {name: _Direct(tool) for name, tool in ctx.tools.items()}
    ),
    "role.runs_are_the_same": _with(place=lambda self: CodePlace("run", "one", next(_COUNTER))),
    "role.code_hides_no_suspension": _with(code=_swallowing),
}


class Delegating:
    """Wants nothing of the work."""

    def run(self, task: Any, ctx: Any) -> Any:
        return DelegateToDefault()


def test_each_rule_of_the_suite_bites() -> None:
    assert complaints(StepsContract, good=lambda suite: PlainSteps(suite.host), broken=BROKEN, at_most=2) == []


def test_a_role_that_delegates_keeps_the_rules() -> None:
    assert failing_rules(StepsContract, lambda _: Delegating()) == set()
