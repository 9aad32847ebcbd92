from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from harness_hookspecs.contracts.executor import ExecutorContract
from harness_hookspecs.contracts.rules import complaints
from harness_hookspecs.executor import Fail, Finish, Outcome, Request, RoleCall, StageInput


def _task(uses: str = "ai.generate") -> dict[str, Any]:
    settings = {"model": "small", "prompt": "do"} if uses == "ai.generate" else {"tool": "x"}
    step = {"id": "one", "uses": uses, "with": settings, "output": {"mode": "text"}}
    context = {"stepPath": "one", "visitIndex": 0}
    return {"kind": "execute_step", "step": step, "stepInput": None, "stepContext": context}


class OneCall:
    """Asks once and ends with the answer."""

    uses = "ai.generate"

    def start(self, stage_input: StageInput) -> Any:
        return {"id": f"{stage_input.visit_index}.{stage_input.attempt}", "end": None}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return {**state, "end": outcome.to_wire()}

    def next(self, state: Any) -> tuple[Request, ...]:
        if state["end"] is None:
            return (RoleCall(request_id=state["id"], role="worker.ai-generate", task=_task(self.uses)),)
        return self.ending(state["end"])

    def ending(self, end: Any) -> tuple[Request, ...]:
        if end["ok"]:
            return (Finish(output=end["value"]),)
        return (Fail(code=end["error"]["code"], message=end["error"]["message"]),)


def _with(**changed: Any) -> Callable[[Any], OneCall]:
    return lambda suite: type("Broken", (OneCall,), changed)()


def _mutating(self: OneCall, state: Any, outcome: Outcome) -> Any:
    state["end"] = outcome.to_wire()
    return state


def _unwritable(self: OneCall, stage_input: StageInput) -> Any:
    return {**OneCall.start(self, stage_input), "seen": {1, 2}}


_COUNTER = count()

BROKEN = {
    "executor.tasks_are_wellformed": _with(uses="tool.call"),
    "executor.ids_are_derived": _with(
        start=lambda self, stage_input: {"id": f"request-{next(_COUNTER)}", "end": None},
    ),
    "executor.state_is_json": _with(start=_unwritable),
    "executor.opens_what_is_new": _with(opened=lambda self, state: ()),
    "executor.apply_is_pure": _with(apply=_mutating),
    "executor.comes_to_one_end": _with(ending=lambda self, end: OneCall.ending(self, end) * 2),
    "executor.failure_is_told": _with(ending=lambda self, end: (Finish(output=end.get("value")),)),
}


def test_each_rule_of_the_suite_bites() -> None:
    assert complaints(ExecutorContract, good=lambda _: OneCall(), broken=BROKEN, at_most=2) == []
