"""An executor's state in, what it newly asks for as facts out, or how its attempt ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.executor import Compile, ExternalEvent, Fail, Finish, OwnStep, Request, RoleCall, Timer
from harness_hookspecs.kit.canonical import canonical

from .commands import Advance
from .definition import Definition
from .externals import hand_over
from .facts import Decision, Fact, derive
from .guard import guarded
from .own_steps import OWN_STEP, own_step
from .state import OpenRequest, SessionState, Visit

__all__ = ["ASKED", "ASKED_OF_WORLD", "ENDING", "REQUESTED", "End", "ask", "ask_beside", "deliver"]

ASKED = Decision(reply="the executor asks for nothing more until another of its calls has ended")
ENDING = Decision(reply="the executor is at its end, and others of its calls are under way")

REQUESTED = frozenset({"role.requested", "timer.requested", "external.requested", "compile.requested", *OWN_STEP})
"""What an executor's requests are in the log; no decision holds the steps of roles."""

ASKED_OF_WORLD = frozenset({"role", "timer", "external", "compile", "child"})
"""Kinds of open requests beside which more may be asked for."""

End = Finish | HarnessError
"""How an attempt ends."""


class _Asked(NamedTuple):
    fact: Fact
    blobs: dict[str, bytes] = {}


def ask(state: SessionState, definition: Definition, visit: Visit, executor_state: Any) -> Decision | End:
    """What the executor asks for, or how its attempt ends, where nothing of it is under way."""
    requests = _said(definition, visit, executor_state)
    if isinstance(requests, HarnessError):
        return requests
    found = _asked(state, definition, visit, requests)
    return HarnessError("the executor asks for nothing", code="executor.stalled") if found is None else found


def ask_beside(state: SessionState, definition: Definition, command: Advance, executor_state: Any) -> Decision:
    """Ask for what follows from what has ended while other things are open: no branch waits for a slow one (I-22).

    Its end and its errors are met when nothing of it is under way any more, so that each call keeps its result. What is
    only waited for, by the clock or from outside, holds up no end: it is cancelled.
    """
    visit = state.visit
    assert visit is not None
    if visit.failure is not None:
        return _let_go(state, "the attempt has failed")
    if command.asked:
        return ASKED
    requests = _said(definition, visit, executor_state) if command.opened is None else tuple(command.opened)
    found = requests if isinstance(requests, HarnessError) else _asked(state, definition, visit, requests)
    if found is None:
        return ASKED
    if isinstance(found, Decision):
        return found
    return _let_go(state, "the stage has its output" if isinstance(found, Finish) else found.message)


def _let_go(state: SessionState, reason: str) -> Decision:
    """Timers, and waits for what comes from outside, end where nothing else is open."""
    if len(state.timers) + len(state.externals) < len(state.open):
        return ENDING
    return Decision(tuple(_cancelled(one, reason) for one in state.open.values()))


def _cancelled(waited: OpenRequest, reason: str) -> Fact:
    refs = {"stage_visit_id": waited.payload["visit_id"]}
    return Fact(f"{waited.kind}.cancelled", {"effect_id": waited.effect_id, "reason": reason}, refs)


def deliver(state: SessionState, definition: Definition, visit: Visit, executor_state: Any) -> Decision:
    """Hand over what was delivered from outside, where the executor has asked for all that it wants; ``ASKED`` where
    nothing can be.

    An executor says of no request that it wants it no more. So it is asked for all of them before one gets something
    that another wait might need.
    """

    def still_asked() -> set[str]:
        requests = _said(definition, visit, executor_state)
        named = () if isinstance(requests, HarnessError) else requests
        return {one.request_id for one in named if not isinstance(one, Finish | Fail)}

    return hand_over(state, still_asked) or ASKED


def _said(definition: Definition, visit: Visit, executor_state: Any) -> tuple[Request, ...] | HarnessError:
    if isinstance(executor_state, HarnessError):  # start or apply raised
        return executor_state
    what, executor = f"executor {visit.executor}", definition.executors.get(visit.executor)
    if executor is None:  # the configuration was migrated
        return HarnessError(f"no stage uses the {what} any more", code="executor.not_available")
    requests, error = guarded(lambda: tuple(executor.next(executor_state)), what=what)
    return requests if error is None else error


def _asked(
    state: SessionState, definition: Definition, visit: Visit, requests: Sequence[Request]
) -> Decision | End | None:
    """Ask for what is not asked for yet; an executor that has too much of it is at its end. ``None``: there is none."""
    requested, fresh = visit.requested, dict[str, Any]()
    for request in requests:  # perhaps thousands, of which one is new
        if type(request) not in _ASK:
            return request if isinstance(request, Finish) else _error_of(request)
        if (name := request.request_id) not in requested:  # type: ignore[union-attr]
            fresh[name] = request
    if not fresh:
        return None
    limit = definition.limits.requests_per_attempt
    if len(requested) + len(fresh) > limit:
        message, hint = f"the executor asks for more than {limit} things", "raise run.max_requests, or see why it does"
        return HarnessError(message, code="executor.too_many_calls", hint=hint)
    asked = [_ASK[type(one)](state, visit, one) for one in fresh.values()]
    blobs = {ref: content for one in asked for ref, content in one.blobs.items()}
    return Decision(tuple(one.fact for one in asked), blobs)


def _error_of(request: Request) -> HarnessError:
    if isinstance(request, Fail):
        return HarnessError(request.message, code=request.code)
    kind = getattr(request, "kind", type(request).__name__)
    return HarnessError(f"this host performs no {kind} request", code="executor.not_available")


def _role_call(state: SessionState, visit: Visit, request: RoleCall) -> _Asked:
    role_call_id = derive("role", state.session_id, visit.visit_id, visit.attempt, request.request_id)
    task = canonical(request.task)
    task_ref = hashlib.sha256(task).hexdigest()
    payload: dict[str, Any] = {
        "effect_id": derive("eff", role_call_id),
        "effect_class": "keyed",
        "role_call_id": role_call_id,
        "request_id": request.request_id,
        "role": request.role,
        "persona": visit.persona,
        "visit_id": visit.visit_id,
        "attempt": visit.attempt,
        "task_ref": task_ref,
        "digest": task_ref,
    }
    if visit.temperature is not None:
        payload["params"] = {"temperature": visit.temperature}
    bounds = {"limit_ms": request.limit_ms, "within": [*request.within], "max_tokens": request.max_tokens}
    payload |= {name: value for name, value in bounds.items() if value}
    refs: dict[str, Any] = {"stage_visit_id": visit.visit_id, "role_call_id": role_call_id}
    if request.step_path is not None:
        refs |= {"step_path": request.step_path, "visit_index": request.visit_index}
    return _Asked(Fact("role.requested", payload, refs), {task_ref: task})


def _timer(state: SessionState, visit: Visit, request: Timer) -> _Asked:
    payload = {**_intent(state, visit, request, "timer", "pure"), "delay_ms": request.delay_ms}
    return _Asked(Fact("timer.requested", payload, {"stage_visit_id": visit.visit_id}))


def _external(state: SessionState, visit: Visit, request: ExternalEvent) -> _Asked:
    payload = {**_intent(state, visit, request, "external", "pure"), "name": request.name}
    if request.limit_ms is not None:
        payload["limit_ms"] = request.limit_ms
    return _Asked(Fact("external.requested", payload, {"stage_visit_id": visit.visit_id}))


def _intent(
    state: SessionState, visit: Visit, request: Timer | ExternalEvent | Compile, kind: str, effect_class: str
) -> dict[str, Any]:
    return {
        "effect_id": derive("eff", state.session_id, visit.visit_id, visit.attempt, kind, request.request_id),
        "effect_class": effect_class,
        "request_id": request.request_id,
        "visit_id": visit.visit_id,
        "attempt": visit.attempt,
    }


def _compile(state: SessionState, visit: Visit, request: Compile) -> _Asked:
    document = canonical(request.document)
    document_ref = hashlib.sha256(document).hexdigest()
    payload = {**_intent(state, visit, request, "compile", "pure"), "document_ref": document_ref}
    payload |= {"form": request.form, "digest": document_ref}
    blobs = {document_ref: document}
    if request.definition is not None:
        definition = canonical(request.definition)
        payload["definition_ref"] = hashlib.sha256(definition).hexdigest()
        blobs[payload["definition_ref"]] = definition
    return _Asked(Fact("compile.requested", payload, {"stage_visit_id": visit.visit_id}), blobs)


_ASK: dict[type, Callable[[SessionState, Visit, Any], _Asked]] = {
    OwnStep: lambda state, visit, request: _Asked(*own_step(state, visit, request)),
    RoleCall: _role_call,
    Timer: _timer,
    ExternalEvent: _external,
    Compile: _compile,
}
