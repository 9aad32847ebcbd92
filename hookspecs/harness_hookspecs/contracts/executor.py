"""The promises of kind ``executor``: an executor goes in, the rules that it breaks come out."""

from __future__ import annotations

import copy
from typing import Any, Final

from harness_hookspecs.executor import Executor, Fail, Finish, Opens, Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit import codec
from harness_hookspecs.role import parse_task, role_of

from .rules import Contract, rule

__all__ = ["ExecutorContract"]

_ROUNDS_AT_MOST: Final = 50
_SCHEMA: Final = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}


class ExecutorContract(Contract):
    """What every executor keeps. It is called inside ``decide``, so it must be a pure function of plain JSON."""

    def subject(self) -> Executor:
        """The executor under test."""
        raise NotImplementedError("override subject()")

    def stage_input(self, **changed: Any) -> StageInput:
        """An input the executor can begin with; overridden where it needs more."""
        usual: dict[str, Any] = {
            "stage": "release-notes",
            "visit_index": 0,
            "attempt": 1,
            "persona": "writer",
            "prompt": "Write the notes.",
            "context": "changed: a.py",
            "output_schema": _SCHEMA,
            "model": "small",
            "max_turns": 3,
        }
        return StageInput(**{**usual, **changed})

    def outcome(self, request: Request, *, ok: bool = True) -> Outcome:
        """How the world answers a request; overridden where an executor needs a fitting value."""
        request_id = getattr(request, "request_id", "")
        if ok:
            return Outcome(request_id=request_id, ok=True, value={"summary": "done"})
        error = {"name": "ProviderError", "message": "no answer", "code": "provider.timeout"}
        return Outcome(request_id=request_id, ok=False, error=error)

    def _run(self, *, ok: bool) -> tuple[Executor, Any, tuple[Request, ...]]:
        executor = self.subject()
        state = executor.start(self.stage_input())
        for _ in range(_ROUNDS_AT_MOST):
            requests = executor.next(state)
            if any(isinstance(request, (Finish, Fail)) for request in requests):
                return executor, state, requests
            for request in requests:
                state = executor.apply(state, self.outcome(request, ok=ok))
        raise AssertionError(f"no end after {_ROUNDS_AT_MOST} rounds")

    @rule("executor.comes_to_one_end")
    def test_a_started_executor_asks_for_something(self) -> None:
        executor = self.subject()
        assert executor.next(executor.start(self.stage_input()))

    @rule("executor.tasks_are_wellformed")
    def test_a_role_call_carries_a_task_of_its_role(self) -> None:
        executor = self.subject()
        for request in executor.next(executor.start(self.stage_input())):
            if isinstance(request, RoleCall):
                assert role_of(parse_task(_thawed(request.task))) == request.role

    @rule("executor.ids_are_derived")
    def test_asking_twice_names_the_same_request(self) -> None:
        executor = self.subject()
        state = executor.start(self.stage_input())
        first = [_id(request) for request in executor.next(state)]
        assert [_id(request) for request in executor.next(state)] == first
        assert len(set(first)) == len(first)
        again = self.subject()
        assert [_id(request) for request in again.next(again.start(self.stage_input()))] == first

    @rule("executor.ids_are_derived")
    def test_another_attempt_or_visit_names_another_request(self) -> None:
        executor = self.subject()
        inputs = [self.stage_input(), self.stage_input(attempt=2), self.stage_input(visit_index=1)]
        found = [frozenset(_id(request) for request in executor.next(executor.start(one))) for one in inputs]
        assert len(set(found)) == len(inputs)

    @rule("executor.state_is_json")
    def test_the_state_survives_being_written_down(self) -> None:
        executor, state, requests = self._run(ok=True)
        assert executor.next(codec.loads(codec.dumps(state))) == requests
        fresh = executor.start(self.stage_input())
        assert executor.next(codec.loads(codec.dumps(fresh))) == executor.next(fresh)

    @rule("executor.opens_what_is_new")
    def test_what_an_outcome_opens_is_what_was_not_asked_before(self) -> None:
        executor = self.subject()
        if not isinstance(executor, Opens):
            return  # it is asked for everything each time
        state = executor.start(self.stage_input())
        for _ in range(_ROUNDS_AT_MOST):
            before = {_id(request): request for request in executor.next(state)}
            [request, *_] = before.values()
            if isinstance(request, (Finish, Fail)):
                return
            state = executor.apply(state, self.outcome(request))
            after = {_id(request): request for request in executor.next(state)}
            new = {name: request for name, request in after.items() if name not in before}
            assert {_id(request): request for request in executor.opened(state)} == new

    @rule("executor.apply_is_pure")
    def test_an_outcome_gives_a_new_state_and_leaves_the_old_one(self) -> None:
        executor = self.subject()
        state = executor.start(self.stage_input())
        before = copy.deepcopy(state)
        [request, *_] = executor.next(state)
        once, twice = (executor.apply(state, self.outcome(request)) for _ in range(2))
        assert state == before
        assert once == twice

    @rule("executor.comes_to_one_end")
    def test_outcomes_lead_to_one_end(self) -> None:
        _, _, requests = self._run(ok=True)
        assert len(requests) == 1
        assert isinstance(requests[0], Finish)

    @rule("executor.failure_is_told")
    def test_a_failed_outcome_is_never_a_finish(self) -> None:
        _, _, requests = self._run(ok=False)
        [end] = requests
        assert isinstance(end, Fail)
        assert end.code == "provider.timeout"
        assert end.message


def _id(request: Request) -> str:
    return str(getattr(request, "request_id", request.kind))


def _thawed(value: Any) -> Any:
    return codec.loads(codec.dumps(value))
