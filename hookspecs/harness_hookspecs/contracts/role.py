"""The promises of kind ``role``: a role harness goes in, the rules that it breaks come out.

A role that answers :class:`~harness_hookspecs.role.DelegateToDefault` for ``ai.generate`` keeps the rules about it by
not taking part; the others bind it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import pytest

from harness_hookspecs.errors import HarnessError, Suspend, ToolError
from harness_hookspecs.messages import ChatInput, Message, OracleResponse, ToolCallPart, ToolResultPart
from harness_hookspecs.role import DelegateToDefault, RoleHarness, RoleResult, RoleTask, parse_task

from .role_context import FakeRoleContext, FakeTool, calls, says
from .rules import Contract, rule

__all__ = ["FakeRoleContext", "FakeTool", "RoleContract", "calls", "says"]

_SCHEMA: Final = {
    "type": "object",
    "properties": {"summary": {"type": "string", "maxLength": 20}},
    "required": ["summary"],
    "additionalProperties": False,
}
_VALID: Final = '{"summary": "done"}'
_WAIT: Final = ("approval", "appr_1")


class RoleContract(Contract):
    """What every role harness keeps, shown on ``ai.generate`` steps."""

    def subject(self) -> RoleHarness:
        """The role under test."""
        raise NotImplementedError("override subject()")

    def task(self, *, max_turns: int = 5, tools: bool = True) -> RoleTask:
        """A step that asks for an object with a short summary."""
        settings: dict[str, Any] = {"model": "small", "prompt": "Look, then sum up.", "maxTurns": max_turns}
        if tools:
            settings["tools"] = ["look"]
        step = {"id": "sum", "uses": "ai.generate", "with": settings, "output": {"mode": "object", "schema": _SCHEMA}}
        where = {"stepPath": "sum", "visitIndex": 0}
        task = {"kind": "execute_step", "step": step, "stepInput": {"context": "three files"}, "stepContext": where}
        return parse_task(task)

    def context(
        self,
        script: Sequence[OracleResponse | BaseException] | Callable[[int, ChatInput], OracleResponse],
        *,
        tools: Mapping[str, FakeTool] | None = None,
        system: str | None = "Be brief.",
    ) -> FakeRoleContext:
        """A context whose model answers by a script; a role that asks somewhere else overrides it, has that side answer
        what the script says, and skips what has no meaning there, such as a call of a tool.
        """
        return FakeRoleContext(script, tools=tools, system=system)

    def _run(self, ctx: FakeRoleContext, task: RoleTask | None = None) -> RoleResult:
        result = self.subject().run(task or self.task(), ctx)
        if isinstance(result, DelegateToDefault):
            pytest.skip("the role delegates ai.generate")
        return result

    def _fails(self, ctx: FakeRoleContext, task: RoleTask | None = None) -> None:
        with pytest.raises(HarnessError):
            self._run(ctx, task)

    @rule("role.result_is_of_the_tasks_kind")
    def test_the_result_is_of_the_tasks_kind(self) -> None:
        task = self.task()
        result = self.subject().run(task, self.context([says(_VALID)]))
        assert result.kind in {task.kind, "delegate_to_default"}

    @rule("role.output_meets_the_contract")
    def test_the_output_is_the_models_answer(self) -> None:
        result = self._run(self.context([says(_VALID)]))
        assert result.to_wire()["output"] == {"summary": "done"}

    @rule("role.output_meets_the_contract")
    def test_an_output_that_breaks_the_contract_is_never_a_result(self) -> None:
        too_long = '{"summary": "far too long for the schema"}'
        for text in ('{"summary": 7}', too_long, "{}", "done", '{"draft": true} ' + _VALID):
            self._fails(self.context([says(text), says(text)]), self.task(max_turns=2))

    @rule("role.suspend_passes")
    def test_waiting_inside_a_model_call_passes_through_the_role(self) -> None:
        ctx = self.context([Suspend("budget", "run")])
        with pytest.raises(Suspend):
            self._run(ctx)

    @rule("role.suspend_passes")
    def test_waiting_inside_a_tool_call_passes_through_the_role(self) -> None:
        ctx = self.context([calls(("c1", "look", {}))], tools={"look": FakeTool(Suspend(*_WAIT))})
        with pytest.raises(Suspend):
            self._run(ctx)

    @rule("role.nothing_after_suspend")
    def test_nothing_is_tried_after_a_suspension(self) -> None:
        ctx = self.context([calls(("c1", "look", {}))], tools={"look": FakeTool(Suspend(*_WAIT))})
        with suppress(Suspend):
            self._run(ctx)
        assert ctx.after_close == []

    @rule("role.same_answers_same_calls")
    def test_the_same_answers_lead_to_the_same_calls(self) -> None:
        subject = self.subject()
        noted = []
        for _ in range(2):
            ctx = self._looking(FakeTool({"files": 3}))
            subject.run(self.task(), ctx)
            noted.append(ctx.noted)
        assert noted[0] == noted[1]

    @rule("role.same_answers_same_calls")
    def test_after_a_suspension_it_comes_to_the_same_place(self) -> None:
        before, after = self._looking(FakeTool(Suspend(*_WAIT))), self._looking(FakeTool({"files": 3}))
        subject = self.subject()
        with suppress(Suspend):
            subject.run(self.task(), before)
        subject.run(self.task(), after)
        assert after.noted[: len(before.noted)] == before.noted

    def _looking(self, tool: FakeTool) -> FakeRoleContext:
        return self.context([calls(("c1", "look", {"name": "a"})), says(_VALID)], tools={"look": tool})

    @rule("role.system_stands_first")
    def test_the_system_message_stands_first_and_never_changes(self) -> None:
        script = [calls(("c1", "look", {})), says("not yet"), says(_VALID)]
        ctx = self.context(script, tools={"look": FakeTool({"files": 3})}, system="MARK: be brief.")
        self._run(ctx)
        firsts = {chat.messages[0].to_json_bytes() for chat in ctx.model.asked}
        assert len(firsts) == 1
        assert "MARK: be brief." in ctx.model.asked[0].messages[0].text
        for chat in ctx.model.asked:
            assert [message.role for message in chat.messages].index("system") == 0
            assert all(message.role != "system" for message in chat.messages[1:])

    @rule("role.calls_are_paired")
    def test_each_call_has_one_result_right_after_it_in_the_order_of_the_calls(self) -> None:
        script = [calls(("c1", "look", {"name": "a"}), ("c2", "gone", {}), ("c3", "look", {"name": "b"})), says(_VALID)]
        ctx = self.context(script, tools={"look": FakeTool({"files": 3}, ToolError("no such file"))})
        self._run(ctx)
        for chat in ctx.model.asked:
            _check_pairs(chat.messages)
        answered = [message.call_id for message in ctx.model.asked[-1].messages if message.role == "tool"]
        assert answered == ["c1", "c2", "c3"]

    @rule("role.cut_calls_never_run")
    def test_tool_calls_of_an_answer_that_was_cut_off_are_not_run(self) -> None:
        endings: tuple[Literal["length", "error"], ...] = ("length", "error")
        for finish in endings:
            tool = FakeTool({"files": 3})
            cut = calls(("c1", "look", {"name": "a"}), finish=finish)
            self._fails(self.context([cut] * 5, tools={"look": tool}))
            assert tool.runs == []

    @rule("role.refusal_is_an_error")
    def test_a_refusal_is_an_error_whatever_it_says(self) -> None:
        self._fails(self.context(lambda turn, chat: says(_VALID, finish="refusal")))

    @rule("role.turns_are_bounded")
    def test_a_model_that_never_ends_is_stopped(self) -> None:
        tool = FakeTool(ToolError("no such file"))
        ctx = self.context(lambda turn, chat: calls((f"c{turn}", "look", {"n": turn})), tools={"look": tool})
        self._fails(ctx, self.task(max_turns=4))
        assert len(ctx.model.asked) <= 4

    @rule("role.equal_failures_are_bounded")
    def test_the_same_failing_call_is_not_repeated_for_ever(self) -> None:
        tool = FakeTool(ToolError("items is no list"))
        asked = {"items": '[{"a": 1}]'}
        ctx = self.context(lambda turn, chat: calls((f"c{turn}", "look", asked)), tools={"look": tool})
        self._fails(ctx, self.task(max_turns=60))
        assert len(tool.runs) < 30

    @rule("role.only_its_tools")
    def test_the_model_is_offered_tools_of_the_context_only(self) -> None:
        without = self.context([says(_VALID)])
        self._run(without, self.task(tools=False))
        ctx = self.context([says(_VALID)], tools={"look": FakeTool(), "feel": FakeTool()})
        self._run(ctx)
        assert not without.model.asked[0].tools
        assert set(ctx.model.asked[0].tools or ()) <= {"look", "feel"}

    @rule("role.task_is_untouched")
    def test_the_task_is_the_same_afterwards(self) -> None:
        task = self.task()
        before = task.to_json_bytes()
        self._run(self.context([says(_VALID)]), task)
        assert task.to_json_bytes() == before

    @rule("role.refuses_parallel")
    def test_a_parallel_step_is_refused_without_a_call(self) -> None:
        ctx = self.context(lambda turn, chat: says(_VALID), tools={"look": FakeTool()})
        with pytest.raises(HarnessError):
            self.subject().run(_parallel(), ctx)
        assert ctx.noted == []


def _parallel() -> RoleTask:
    inner = {"id": "one", "uses": "ai.generate", "with": {"model": "small", "prompt": "x"}, "output": {"mode": "text"}}
    settings = {
        "items": "{{ input.names }}", "itemKey": "{{ item }}", "maxBranches": 2, "maxConcurrency": 1,
        "failureMode": "fail_fast",
    }  # fmt: skip
    step = {"id": "fan", "uses": "parallel", "with": settings, "steps": [inner]}
    where = {"stepPath": "fan", "visitIndex": 0}
    return parse_task({"kind": "execute_step", "step": step, "stepInput": None, "stepContext": where})


def _check_pairs(messages: tuple[Message, ...]) -> None:
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            [part] = message.content
            assert isinstance(part, ToolResultPart)
            assert open_calls, "a result without a call"
            assert part.call_id == message.call_id == open_calls.pop(0)
        else:
            assert not open_calls, "a call without a result"
            open_calls = [part.call_id for part in message.content if isinstance(part, ToolCallPart)]
    assert not open_calls, "a call without a result"
