"""The promises of a role that carries out steps without a model: a role goes in, the rules that it breaks come out.

A role that delegates such a step keeps the rules about it by not taking part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness_hookspecs.errors import Cancelled, HarnessError, RuleError, Suspend
from harness_hookspecs.role import DelegateToDefault, ExecutorRole, RoleHarness, parse_task

from .fake_engine import FakeEngine
from .fake_rules import FakeRules
from .host import FakeHost
from .role_context import FakeRoleContext, FakeTool, says
from .rules import Contract, rule

__all__ = ["StepsContract"]

_SUMS = """async def main(input, tools):
    found = [await tools.look(name=name) for name in input["names"]]
    return sum(found)
"""
_CATCHING = """async def main(input, tools):
    try:
        return await tools.look(name="a")
    except BaseException:
        return 0
"""
_NUMBER: Mapping[str, Any] = {"mode": "json", "schema": {"type": "integer", "maximum": 10}}


class StepsContract(Contract):
    """What a role keeps on ``tool.call``, ``decision`` and ``code.run`` steps. The suite's ``host`` has an engine, and
    rules that know the conditions ``yes``, ``no``, ``odd`` (no bool) and ``broken`` (an error)."""

    def setup_method(self) -> None:
        """Give the host what runs such steps."""
        super().setup_method()
        self.engine = FakeEngine()
        self.rules = FakeRules({"yes": True, "no": False, "odd": 1, "broken": RuleError("no such key")})
        self.host = FakeHost(self.folder / "with", rules=self.rules, engines={"plain": self.engine})

    def subject(self) -> RoleHarness:
        """The role under test, built with ``self.host``."""
        raise NotImplementedError("override subject()")

    def _run(self, uses: str, with_: Mapping[str, Any], ctx: FakeRoleContext, step_input: Any = None) -> Any:
        step: dict[str, Any] = {"id": "one", "uses": uses, "with": dict(with_)}
        if uses != "decision":
            step["output"] = _NUMBER
        where = {"stepPath": "one", "visitIndex": 0}
        task = {"kind": "execute_step", "step": step, "stepInput": step_input, "stepContext": where}
        result = self.subject().run(parse_task(task), ctx)
        if isinstance(result, DelegateToDefault):
            pytest.skip(f"the role delegates {uses}")
        return result.to_wire()["output"]

    def _call(self, *answers: Any) -> tuple[Any, FakeTool, FakeRoleContext]:
        tool = FakeTool(*answers)
        ctx = _context("worker.tool-call", tool)
        return self._run("tool.call", {"tool": "look", "args": {"name": "a"}}, ctx), tool, ctx

    def _decide(self, *conditions: str) -> Any:
        cases = [{"when": when, "to": f"to_{index}"} for index, when in enumerate(conditions)]
        return self._run("decision", {"cases": cases, "default": "otherwise"}, _context("worker.code-run"), {})

    def _code(self, source: str, tool: FakeTool) -> tuple[Any, FakeRoleContext]:
        ctx = _context("worker.code-run", tool)
        with_ = {"language": "python", "source": source, "tools": ["look"]}
        return self._run("code.run", with_, ctx, {"names": ["a", "a"]}), ctx

    @rule("role.tool_step_is_one_call")
    def test_a_tool_step_is_one_call_with_its_arguments(self) -> None:
        output, tool, _ = self._call(3)
        assert (output, tool.runs) == (3, [{"name": "a"}])

    @rule("role.steps_keep_their_contract")
    def test_what_breaks_the_contract_of_a_step_is_no_output(self) -> None:
        with pytest.raises(HarnessError):
            self._call("three")
        with pytest.raises(HarnessError):
            self._code(_SUMS, FakeTool(6))

    @rule("role.steps_ask_no_model")
    def test_neither_a_tool_step_nor_a_decision_nor_code_asks_a_model(self) -> None:
        _, _, ctx = self._call(3)
        assert ctx.model.asked == []
        _, ctx = self._code(_SUMS, FakeTool(3))
        assert ctx.model.asked == []

    @rule("role.first_case_that_holds")
    def test_a_decision_takes_the_first_case_that_holds(self) -> None:
        first = self._decide("no", "yes", "yes")
        assert (first["chosen"], first["caseIndex"]) == ("to_1", 1)
        assert self._decide("no")["chosen"] == "otherwise"

    @rule("role.an_error_is_never_false")
    def test_a_condition_that_is_no_bool_or_cannot_be_evaluated_ends_the_decision(self) -> None:
        for condition in ("odd", "broken", "unknown"):
            with pytest.raises(HarnessError):
                self._decide(condition, "yes")

    @rule("role.code_calls_through_the_context")
    def test_code_calls_its_tools_through_the_context(self) -> None:
        tool = FakeTool(3)
        output, ctx = self._code(_SUMS, tool)
        assert (output, tool.runs) == (6, [{"name": "a"}] * 2)
        assert [noted.what for noted in ctx.noted] == ["tool", "tool"]

    @rule("role.runs_are_the_same")
    def test_the_same_step_is_run_the_same_way_again(self) -> None:
        for _ in range(2):
            self._code(_SUMS, FakeTool(3))
        assert len(self.engine.runs) == 2 and self.engine.runs[0] == self.engine.runs[1]

    @rule("role.code_hides_no_suspension")
    def test_code_that_catches_everything_hides_no_suspension_and_no_cancel(self) -> None:
        for stop in (Suspend("approval", "appr_1"), Cancelled("over")):
            with pytest.raises(type(stop)):
                self._code(_CATCHING, FakeTool(stop))


def _context(role: ExecutorRole, look: FakeTool | None = None) -> FakeRoleContext:
    tools = {} if look is None else {"look": look}
    return FakeRoleContext(lambda turn, chat: says("3"), tools=tools, role=role)
