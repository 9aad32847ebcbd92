"""The executor as its contract wants it, over plans whose expressions are names with dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from harness_executor_workflow import harness_provide_executors
from harness_hookspecs.contracts.executor import ExecutorContract
from harness_hookspecs.errors import IllegalMove, RuleError
from harness_hookspecs.executor import (
    Compile,
    Executor,
    ExternalEvent,
    Fail,
    Finish,
    Opens,
    Outcome,
    OwnStep,
    Request,
    RoleCall,
    StageInput,
    Timer,
)
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.role import ExecuteStepTask, parse_task, role_of
from harness_hookspecs.value import freeze, thaw


class Dotted(NamedTuple):
    """An expression that is a name with dots."""

    text: str

    @property
    def roots(self) -> frozenset[str]:
        return frozenset({self.text.partition(".")[0]})

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        found: Any = values
        for name in self.text.split("."):
            found = found[name]
        return found


class DottedRules:
    """The smallest engine there is."""

    version = "dotted 1"

    def compile(self, text: str, *, roots: Sequence[str]) -> Dotted:
        program = Dotted(text)
        if not program.roots <= set(roots):
            raise RuleError(f"`{text}` is not in scope.", code="expr.unknown_root")
        return program

    def condition(self, program: Dotted, values: Mapping[str, Any]) -> bool:
        return bool(program.evaluate(values))


class OfRules(NamedTuple):
    """A host that has nothing but rules."""

    engine: DottedRules = DottedRules()

    def rules(self) -> DottedRules:
        return self.engine


def executor() -> Executor:
    [offer] = harness_provide_executors()
    assert (offer.kind, offer.name, offer.settings) == ("executor", "workflow", None)
    built: Executor = offer.build(None, OfRules())
    return built


def generate(name: str, *needs: str, prompt: str = "Write.", **more: Any) -> dict[str, Any]:
    settings = {"model": "m", "prompt": prompt}
    return {"id": name, "uses": "ai.generate", "needs": [*needs], "with": settings, "output": {"mode": "json"}, **more}


def plan(*steps: Any, value: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "harness.lwir/v1", "kind": "Workflow", "metadata": {"name": "test"},
        "input": {"schema": True}, "output": {"schema": True, "value": value},
        "permissions": {"models": ["m"], "tools": []}, "steps": list(steps), **more,
    }  # fmt: skip


TWO = plan(generate("a"), generate("b", "a", prompt="{{ steps.a.output.summary }}"), value="{{ steps.b.output }}")


def stage_input(**changed: Any) -> StageInput:
    usual: dict[str, Any] = {
        "stage": "note", "visit_index": 2, "attempt": 3, "persona": "writer",
        "prompt": "Write.", "context": "c", "model": "small", "max_turns": 4, "plan": TWO,
    }  # fmt: skip
    return StageInput(**{**usual, **changed})


def registered(asked: Request) -> Outcome:
    """What the world says of a plan that is sound."""
    assert isinstance(asked, Compile)
    value = {"workflowVersionId": f"wfv_{digest(thaw(asked.document))[:32]}", "plan": asked.document}
    return Outcome(request_id=asked.request_id, ok=True, value=value)


def begun(subject: Executor, given: StageInput) -> Any:
    """The state after the plan was checked."""
    state = subject.start(given)
    [asked] = subject.next(state)
    return subject.apply(state, registered(asked))


class TestWorkflowExecutor(ExecutorContract):
    def subject(self) -> Executor:
        return executor()

    def stage_input(self, **changed: Any) -> StageInput:
        return super().stage_input(**{"plan": TWO, **changed})

    def outcome(self, request: Request, *, ok: bool = True) -> Outcome:
        return registered(request) if ok and isinstance(request, Compile) else super().outcome(request, ok=ok)


def test_before_its_first_step_a_plan_is_checked_once() -> None:
    subject = executor()
    state = subject.start(stage_input())
    [asked] = subject.next(state)
    assert asked == Compile(request_id="note.visit[2].attempt[3]:check", document=TWO)
    state = subject.apply(state, registered(asked))
    assert subject.apply(state, registered(asked)) == state
    assert all(isinstance(request, RoleCall) for request in subject.next(state))


def test_a_plan_that_is_refused_runs_nothing() -> None:
    subject = executor()
    state = subject.start(stage_input())
    [asked] = subject.next(state)
    assert isinstance(asked, Compile)
    error = {"name": "CompileFailed", "code": "workflow.rejected", "message": "the plan was not registered: no"}
    state = subject.apply(state, Outcome(request_id=asked.request_id, ok=False, error=error))
    assert subject.next(state) == (Fail(code="workflow.rejected", message=error["message"]),)


def test_a_call_says_which_step_of_which_attempt_it_is() -> None:
    subject = executor()
    [request] = subject.next(begun(subject, stage_input()))
    assert isinstance(request, RoleCall)
    assert (request.request_id, request.step_path, request.visit_index) == ("note.visit[2].attempt[3]:a#1", "a", 0)
    task = parse_task(thaw(request.task))
    assert isinstance(task, ExecuteStepTask)
    assert role_of(task) == request.role == "worker.ai-generate"
    assert task.step_context.to_wire() == {"stepPath": "a", "visitIndex": 0}


def test_a_plan_runs_to_its_output_in_a_state_that_another_process_may_go_on_with() -> None:
    first, second = executor(), executor()
    state = begun(first, stage_input())
    [call] = first.next(state)
    assert isinstance(call, RoleCall)
    state = thaw(freeze(first.apply(state, Outcome(request_id=call.request_id, ok=True, value={"summary": "s"}))))
    [call] = second.next(state)
    assert isinstance(call, RoleCall)
    assert call.task["step"]["with"]["prompt"] == "s"
    state = second.apply(state, Outcome(request_id=call.request_id, ok=True, value=[1]))
    assert second.next(state) == (Finish(output=[1]),)


def test_a_failure_says_the_step_its_visit_and_its_attempt() -> None:
    subject = executor()
    state = begun(subject, stage_input())
    [call] = subject.next(state)
    assert isinstance(call, RoleCall)
    error = {"name": "ProviderError", "message": "no answer", "code": "provider.timeout"}
    state = subject.apply(state, Outcome(request_id=call.request_id, ok=False, error=error))
    message = "Step a (visit 0, attempt 1) failed: no answer"
    assert subject.next(state) == (Fail(code="provider.timeout", message=message),)


def test_waits_and_events_are_asked_for_by_what_they_are() -> None:
    waits = [
        {"id": "w", "uses": "wait", "with": {"durationMs": 5}},
        {"id": "e", "uses": "wait", "with": {"event": "paid", "limitMs": 9}},
        {"id": "f", "uses": "wait", "with": {"event": "paid"}},
    ]
    subject = executor()
    asked = subject.next(begun(subject, stage_input(plan=plan(*waits))))
    name = "note.visit[2].attempt[3]:"
    assert asked == (
        Timer(request_id=f"{name}w#1", delay_ms=5),
        ExternalEvent(request_id=f"{name}e#1", name="paid", limit_ms=9),
        ExternalEvent(request_id=f"{name}f#1", name="paid", limit_ms=None),
    )


def test_it_says_what_each_outcome_opens_and_its_end() -> None:
    subject = executor()
    assert isinstance(subject, Opens)
    state = subject.start(stage_input(plan=plan(generate("a"), generate("b"), generate("c", "a"))))
    assert subject.opened(state) == subject.next(state)
    state = begun(subject, stage_input(plan=plan(generate("a"), generate("b"), generate("c", "a"))))
    first, second = subject.next(state)
    assert subject.opened(state) == (first, second)
    assert isinstance(first, RoleCall) and isinstance(second, RoleCall)
    state = subject.apply(state, Outcome(request_id=first.request_id, ok=True))
    assert subject.next(state) == (second, *subject.opened(state))
    [third] = subject.opened(state)
    assert isinstance(third, RoleCall) and third.step_path == "c"
    for call in (second, third):
        state = subject.apply(state, Outcome(request_id=call.request_id, ok=True))
    assert subject.opened(state) == subject.next(state) == (Finish(output=None),)


@pytest.mark.parametrize(
    ("prompt", "schema", "given"),
    [
        ('{"x": 1}', {"type": "object", "required": ["x"]}, {"x": 1}),
        ("Words.", True, {"task": "Words.", "context": "c", "feedback": "again"}),
        ("[1]", {"properties": {"task": {}, "other": {}}}, {"task": "[1]"}),
    ],
)
def test_a_run_is_given_an_object_or_what_the_stage_has(prompt: str, schema: Any, given: Any) -> None:
    subject = executor()
    document = {**plan(generate("a", input={"all": "{{ input }}"})), "input": {"schema": schema}}
    [call] = subject.next(begun(subject, stage_input(plan=document, prompt=prompt, feedback="again")))
    assert isinstance(call, RoleCall)
    assert call.task["stepInput"] == {"all": given}


def contract(schema: Any) -> dict[str, Any]:
    """A definition of a workflow that is given that."""
    return {
        "workflowId": "w", "name": "w", "definitionHash": "a" * 64, "inputSchema": schema, "outputSchema": True,
        "modelSlots": {}, "tools": [], "permissions": {"models": [], "tools": []}, "planner": {"maxRepairs": 0},
        "workers": {}, "memory": [], "limits": {},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("prompt", "schema", "given"),
    [
        ("[1]", {"type": "array"}, [1]),
        ('"x"', {"type": "string"}, "x"),
        ("null", True, None),
        ("7", {"type": "object"}, {"task": "7", "context": "c"}),
        ("Words.", True, {"task": "Words.", "context": "c"}),
        ('{"x": 1}', {"type": "object", "required": ["y"]}, {"x": 1}),
    ],
)
def test_a_workflow_is_planned_for_and_run_on_what_its_input_takes_of_any_kind(
    prompt: str, schema: Any, given: Any
) -> None:
    subject, definition = executor(), contract(schema)
    state = subject.start(stage_input(plan=None, definition=definition, prompt=prompt))
    [planner] = subject.next(state)
    assert isinstance(planner, RoleCall)
    assert planner.task["input"] == given
    document = {**plan(generate("a", input={"all": "{{ input }}"})), "input": {"schema": True}}
    with_plan = stage_input(plan=document, definition=definition, prompt=prompt)
    [call] = subject.next(begun(subject, with_plan))
    assert isinstance(call, RoleCall)
    assert call.task["stepInput"] == {"all": given}


@pytest.mark.parametrize(
    ("document", "code", "said"),
    [
        ([], "workflow.invalid_plan", "This is not a Workflow"),
        (plan(generate("a", prompt="{{ other.x }}")), "expr.unknown_root", "`other.x` is not in scope."),
        ({**TWO, "input": {"schema": {"required": ["y"]}}}, "input.schema_mismatch", "The input is not what the plan"),
    ],
)
def test_what_cannot_be_run_fails_before_a_step_is_asked_for(document: Any, code: str, said: str) -> None:
    subject = executor()
    [end] = subject.next(begun(subject, stage_input(plan=document)))
    assert isinstance(end, Fail)
    assert end.code == code
    assert said in end.message


def test_a_stage_without_a_plan_fails_before_anything_is_asked() -> None:
    subject = executor()
    [end] = subject.next(subject.start(stage_input(plan=None)))
    assert isinstance(end, Fail)
    assert (end.code, "give it one under the key plan" in end.message) == ("workflow.no_plan", True)


@pytest.mark.parametrize("name", ["other", "note.visit[2].attempt[3]:zz#1", "note.visit[2].attempt[2]:a#1", ""])
def test_an_outcome_of_something_else_is_refused(name: str) -> None:
    subject = executor()
    for state in (begun(subject, stage_input()), subject.start(stage_input()), subject.start(stage_input(plan=None))):
        with pytest.raises(IllegalMove) as caught:
            subject.apply(state, Outcome(request_id=name, ok=True))
        assert caught.value.code == "executor.unknown_request"


EACH = {
    "id": "each", "uses": "parallel", "steps": [generate("a")],
    "with": {
        "items": "{{ input.items }}", "itemKey": "{{ item }}", "maxBranches": 1, "maxConcurrency": 1,
        "failureMode": "fail_fast",
    },
}  # fmt: skip


@pytest.mark.parametrize("tells", [True, False])
def test_a_fan_out_is_told_of_only_where_the_plan_was_registered_by_who_records_it(*, tells: bool) -> None:
    subject = executor()
    state = subject.start(stage_input(plan=plan(EACH), prompt='{"items": ["k"]}'))
    asked = registered(subject.next(state)[0])
    state = subject.apply(state, asked.model_copy(update={"value": freeze({**asked.value, "ownSteps": tells})}))
    if tells:
        [begins] = subject.next(state)
        assert isinstance(begins, OwnStep)
        assert (begins.event, begins.step_path, begins.attempt) == ("started", "each", 1)
        state = subject.apply(state, Outcome(request_id=begins.request_id, ok=True))
    [call] = subject.next(state)
    assert isinstance(call, RoleCall)
    state = subject.apply(state, Outcome(request_id=call.request_id, ok=True, value="said"))
    if tells:
        [ends] = subject.next(state)
        assert isinstance(ends, OwnStep)
        assert [(one["itemKey"], one["status"], one["output"]) for one in ends.output] == [("k", "completed", "said")]
        state = subject.apply(state, Outcome(request_id=ends.request_id, ok=True))
    assert isinstance(subject.next(state)[0], Finish)
