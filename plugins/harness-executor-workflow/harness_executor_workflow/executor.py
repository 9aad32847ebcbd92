"""The executor ``workflow``: a stage's input and the outcomes of its calls go in, what is asked for comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness_hookspecs.errors import HarnessError, IllegalMove, ValidationFailed
from harness_hookspecs.executor import (
    Compile,
    ExternalEvent,
    Fail,
    Finish,
    Outcome,
    OwnStep,
    Request,
    RoleCall,
    StageInput,
    Timer,
)
from harness_hookspecs.rules import Rules
from harness_hookspecs.value import thaw
from harness_hookspecs.workflow import Workflow

from .planning import asked, begun, checked, is_of_planning, proposed
from .running.program import Program, program_of
from .running.run import apply, end_of, next_asks, opened_asks, start
from .stage import given_to, identity_of, limits_of

if TYPE_CHECKING:
    from harness_hookspecs.compiler import Compiler

__all__ = ["WorkflowExecutor"]

_KEPT_PROGRAMS: Final = 16
_CHECK: Final = "check"
"""The name of the first request; a step's has a number behind its path."""


class WorkflowExecutor:
    """Runs the plan that its stage names.

    ``S`` is ``{prefix, unchecked, given}`` until the plan is checked, then ``{prefix, plan, version, run}`` or, where
    nothing can be run, ``{end}``; plain JSON. What is derived from a plan is kept beside it and made again where it is
    missing.

    Args:
        rules: Gives the engine of the session; it is asked for when the first plan is run.
    """

    def __init__(self, rules: Callable[[], Rules]) -> None:
        self._rules = rules
        self._programs: dict[str, Program] = {}

    def compiler(self) -> Compiler:
        """What plans are checked by; see :class:`harness_hookspecs.executor.Compiles`."""
        from .compiling.compiler import WorkflowCompiler

        return WorkflowCompiler()

    def start(self, stage_input: StageInput) -> Any:
        """The plan is to be checked first; or the end, for a stage without a plan."""
        document = thaw(stage_input.plan)
        if document is None and stage_input.definition is not None:
            given = {name: value for name, value in stage_input.to_wire().items() if name != "plan"}
            return {"prefix": identity_of(stage_input), "planning": begun(stage_input), "given": given}
        if document is None:
            message = f"Stage {stage_input.stage} runs plans and has none; give it one under the key plan."
            return {"end": {"code": "workflow.no_plan", "message": message}}
        given = {name: value for name, value in stage_input.to_wire().items() if name != "plan"}
        return {"prefix": identity_of(stage_input), "unchecked": document, "given": given}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """The state after one outcome; what comes late changes nothing.

        Raises:
            IllegalMove: ``executor.unknown_request`` for an outcome of something that was not asked.
        """
        prefix = state.get("prefix", "")
        if prefix and outcome.request_id == prefix + _CHECK:
            return self._checked(state, outcome) if "unchecked" in state else state
        if "planning" in state and is_of_planning(outcome.request_id.removeprefix(prefix)):
            return self._planned(state, outcome)
        if "run" not in state or not outcome.request_id.startswith(prefix):
            message = f"Nothing was asked under the id {outcome.request_id}."
            raise IllegalMove(message, code="executor.unknown_request")
        program = self._program(state["version"], state["plan"])
        told = outcome.model_copy(update={"request_id": outcome.request_id.removeprefix(prefix)})
        return {**state, "run": apply(program, state["run"], _of_run(told, prefix))}

    def _asked(self, state: Any) -> RoleCall | Compile:
        given = state["given"]
        return asked(state["prefix"], state["planning"], given["definition"], given.get("plan_form", "plan"))

    def _planned(self, state: Any, outcome: Outcome) -> Any:
        """One step further in a round; the run, once a plan is registered."""
        planning, definition = state["planning"], state["given"]["definition"]
        if outcome.request_id != self._asked(state).request_id:
            return state
        if "document" not in planning:
            found = proposed(planning, outcome)
        elif not outcome.ok:
            found = checked(planning, outcome, definition)
        elif state["given"].get("goal") == "plan":
            version = {"workflowVersionId": outcome.value["workflowVersionId"]}
            return {"prefix": state["prefix"], "end": {"output": version}}
        else:
            return self._checked(state, outcome)
        if "end" in found:
            return {"prefix": state["prefix"], **found}
        return {**state, "planning": found}

    def _checked(self, state: Any, outcome: Outcome) -> Any:
        """The first steps are open; or the end, for a plan that was refused or that cannot be run here."""
        prefix = state["prefix"]
        if not outcome.ok:
            return {"prefix": prefix, "end": {name: outcome.error[name] for name in ("code", "message")}}
        plan, version = thaw(outcome.value["plan"]), outcome.value["workflowVersionId"]
        stage_input = StageInput.from_wire(state["given"])
        try:
            program = self._program(version, plan)
            given = given_to(program.plan, stage_input)
        except HarnessError as error:
            code = "workflow.invalid_plan" if isinstance(error, ValidationFailed) else error.code
            return {"prefix": prefix, "end": {"code": code, "message": f"The plan cannot be run: {error}"}}
        about = {"id": f"{stage_input.stage}.visit[{stage_input.visit_index}]", "attempt": stage_input.attempt}
        tells = bool(outcome.value.get("ownSteps"))
        limits = limits_of(program.plan, stage_input.definition) if outcome.value.get("keepsLimits") else None
        run = start(program, given, run=about, seed=f"{version}|{prefix}", tells=tells, limits=limits)
        return {"prefix": prefix, "plan": plan, "version": version, "run": run}

    def next(self, state: Any) -> tuple[Request, ...]:
        """Everything that is open, then ``Finish`` or ``Fail``."""
        return self._said(state, lambda program: next_asks(program, state["run"]))

    def opened(self, state: Any) -> tuple[Request, ...]:
        """Of ``next`` what the last outcome has opened; see :class:`harness_hookspecs.executor.Opens`."""
        return self._said(state, lambda program: opened_asks(state["run"]))

    def _said(self, state: Any, asks: Callable[[Program], Iterable[Mapping[str, Any]]]) -> tuple[Request, ...]:
        if "planning" in state:
            return (self._asked(state),)
        if "unchecked" in state:
            definition = state["given"].get("definition")
            return (Compile(request_id=state["prefix"] + _CHECK, document=state["unchecked"], definition=definition),)
        end = state["end"] if "end" in state else end_of(state["run"])
        if end is None:
            program = self._program(state["version"], state["plan"])
            return tuple(_request(f"{state['prefix']}{ask['id']}", ask) for ask in asks(program))
        if "output" in end:
            return (Finish(output=end["output"]),)
        error = end.get("error", end)
        return (Fail(code=error["code"], message=error["message"]),)

    def _program(self, version: str, document: Any) -> Program:
        known = self._programs.get(version)
        if known is None:
            while len(self._programs) >= _KEPT_PROGRAMS:
                self._programs.pop(next(iter(self._programs)))
            known = self._programs[version] = program_of(Workflow.from_wire(document), self._rules())
        return known


def _request(name: str, ask: Mapping[str, Any]) -> Request:
    if ask["kind"] == "timer":
        return Timer(request_id=name, delay_ms=ask["delay_ms"])
    if ask["kind"] == "event":
        return ExternalEvent(request_id=name, name=ask["event"], limit_ms=ask.get("limit_ms"))
    where = {"step_path": ask["path"], "visit_index": ask["visit"]}
    if ask["kind"] == "told":
        return OwnStep(request_id=name, **ask["told"], **where)
    bounds: dict[str, Any] = {key: ask[key] for key in ("limit_ms", "max_tokens") if key in ask}
    if "within" in ask:
        bounds["within"] = [name.removesuffix(ask["id"]) + one for one in ask["within"]]
    return RoleCall(request_id=name, role=ask["role"], task=ask["task"], **where, **bounds)


def _of_run(outcome: Outcome, prefix: str) -> Outcome:
    """An outcome whose error names a timer, by the name that the run has for it."""
    details = outcome.error.get("details") if isinstance(outcome.error, Mapping) else None
    if not isinstance(details, Mapping) or not isinstance(details.get("timer"), str):
        return outcome
    error = {**outcome.error, "details": {**details, "timer": details["timer"].removeprefix(prefix)}}
    return outcome.model_copy(update={"error": error})
