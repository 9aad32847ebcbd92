from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import jsonschema

from harness_hookspecs.contracts.role import RoleContract
from harness_hookspecs.contracts.rules import complaints, failing_rules
from harness_hookspecs.errors import CodecError, RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import ChatInput, ErrorEnvelope, Message, TextPart, ToolCallPart, ToolResultPart
from harness_hookspecs.role import DelegateToDefault, ExecuteStepResult, PlanResult


class PlainRole:
    """Keeps every rule with as little as possible; each method is a place to break one."""

    def run(self, task: Any, ctx: Any) -> Any:
        self.refuse(task.step)
        messages = [Message(role="system", content=(TextPart(text=ctx.system),)), self.said(task.step.with_.prompt)]
        failures: Counter[bytes] = Counter()
        for turn in self.turns(task.step):
            response = ctx.model.complete(self.question(messages, turn, ctx))
            self.check(response)
            messages.append(
                Message(role="assistant", content=(*response.content, *map(self.asked, response.tool_calls or ())))
            )
            if response.tool_calls:
                messages += self.called(ctx, response.tool_calls, failures)
            elif self.valid(response.text, task.step.output.schema_):
                return self.result(task, codec.loads(response.text))
            else:
                messages.append(self.said("again"))
        raise RoleError("no answer")

    def refuse(self, step: Any) -> None:
        if step.uses == "parallel":
            raise RoleError("fan-out belongs to the runtime")

    def turns(self, step: Any) -> Iterator[int]:
        return iter(range(step.with_.max_turns))

    def question(self, messages: list[Message], turn: int, ctx: Any) -> ChatInput:
        return ChatInput(messages=tuple(messages), tools=tuple(sorted(ctx.tools)) or None)

    def check(self, response: Any) -> None:
        if response.finish_reason not in {"stop", "tool_calls"}:
            raise RoleError("not a whole answer")

    def said(self, text: str) -> Message:
        return Message(role="user", content=(TextPart(text=text),))

    def asked(self, call: Any) -> ToolCallPart:
        return ToolCallPart(call_id=call.call_id, tool_name=call.tool_name, args=call.args)

    def called(self, ctx: Any, calls: Any, failures: Counter[bytes]) -> list[Message]:
        outcomes = list(ctx.call_tools(calls))
        for call, outcome in zip(calls, outcomes, strict=True):
            failures[codec.dumps(call.args)] += not outcome.ok
        if max(failures.values()) >= self.equal_failures():
            raise RoleError("the same failure again")
        return [self.answered(call, outcome) for call, outcome in self.paired(calls, outcomes)]

    def equal_failures(self) -> int:
        return 3

    def paired(self, calls: Any, outcomes: Any) -> list[Any]:
        return list(zip(calls, outcomes, strict=True))

    def answered(self, call: Any, outcome: Any) -> Message:
        ending = {"result": outcome.value} if outcome.ok else {"error": ErrorEnvelope(name="E", message="no")}
        part = ToolResultPart(call_id=call.call_id, tool_name=call.tool_name, **ending)
        return Message(role="tool", call_id=call.call_id, content=(part,))

    def valid(self, text: str, schema: Any) -> bool:
        with suppress(CodecError):
            return jsonschema.Draft202012Validator(schema).is_valid(codec.loads(text))
        return False

    def result(self, task: Any, output: Any) -> Any:
        return ExecuteStepResult(output=output, artifact_refs=())


def _with(**changed: Any) -> Callable[[Any], PlainRole]:
    return lambda suite: type("Broken", (PlainRole,), changed)()


def _returning_in_finally(self: PlainRole, task: Any, ctx: Any) -> Any:
    result = None
    try:
        result = PlainRole.run(self, task, ctx)
    finally:
        if ctx.closed is not None:
            return ExecuteStepResult(output=None, artifact_refs=())  # noqa: B012
    return result


def _catching_everything(self: PlainRole, task: Any, ctx: Any) -> Any:
    try:
        return PlainRole.run(self, task, ctx)
    except RoleError:
        raise
    except:  # noqa: E722
        return ExecuteStepResult(output=None, artifact_refs=())


def _effect_in_finally(self: PlainRole, task: Any, ctx: Any) -> Any:
    try:
        return PlainRole.run(self, task, ctx)
    finally:
        if ctx.closed is not None:
            with suppress(BaseException):
                ctx.durability.note("the end")


_COUNTER = count()


def _counting(self: PlainRole, messages: list[Message], turn: int, ctx: Any) -> ChatInput:
    chat = PlainRole.question(self, messages, turn, ctx)
    return chat.model_copy(update={"stop": (f"stop {next(_COUNTER)}",)})


def _changing(self: PlainRole, messages: list[Message], turn: int, ctx: Any) -> ChatInput:
    first = Message(role="system", content=(TextPart(text=f"{ctx.system} Turn {turn}."),))
    return PlainRole.question(self, [first, *messages[1:]], turn, ctx)


def _mutating(self: PlainRole, task: Any, output: Any) -> Any:
    object.__setattr__(task, "step_input", "changed")
    return PlainRole.result(self, task, output)


def _fabricating(self: PlainRole, messages: list[Message], turn: int, ctx: Any) -> ChatInput:
    return ChatInput(messages=tuple(messages), tools=("look", "feel", "hear"))


BROKEN = {
    "role.result_is_of_the_tasks_kind": _with(result=lambda self, task, output: PlanResult(lwir=output)),
    "role.output_meets_the_contract": _with(
        valid=lambda self, text, schema: text.startswith("{") and text.endswith("}")
    ),
    "role.suspend_passes": _with(run=_returning_in_finally),
    "role.nothing_after_suspend": _with(run=_effect_in_finally),
    "role.same_answers_same_calls": _with(question=_counting),
    "role.system_stands_first": _with(question=_changing),
    "role.calls_are_paired": _with(paired=lambda self, calls, outcomes: [*zip(calls, outcomes, strict=True)][::-1]),
    "role.cut_calls_never_run": _with(
        check=lambda self, response: PlainRole.check(self, response) if not response.tool_calls else None
    ),
    "role.refusal_is_an_error": _with(
        check=lambda self, response: None if response.finish_reason == "refusal" else PlainRole.check(self, response)
    ),
    "role.turns_are_bounded": _with(turns=lambda self, step: iter(range(200))),
    "role.equal_failures_are_bounded": _with(equal_failures=lambda self: 1_000),
    "role.only_its_tools": _with(question=_fabricating),
    "role.task_is_untouched": _with(result=_mutating),
    "role.refuses_parallel": _with(refuse=lambda self, step: None),
}


class Delegating:
    """Wants nothing of the work."""

    def run(self, task: Any, ctx: Any) -> Any:
        if task.step.uses == "parallel":
            raise RoleError("no")
        return DelegateToDefault()


def test_each_rule_of_the_suite_bites() -> None:
    assert complaints(RoleContract, good=lambda _: PlainRole(), broken=BROKEN, at_most=2) == []


def test_a_role_that_catches_everything_is_found_whether_it_goes_on_or_not() -> None:
    assert failing_rules(RoleContract, _with(run=_catching_everything)) == {"role.suspend_passes"}


def test_a_role_that_delegates_keeps_the_rules() -> None:
    assert failing_rules(RoleContract, lambda _: Delegating()) == set()
