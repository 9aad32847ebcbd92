"""What an executor tells of a step that it runs itself in, its fact out; and such an event folded into the state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from harness_hookspecs.executor import OwnStep
from harness_hookspecs.kit.canonical import canonical

from .facts import Event, Fact
from .state import SessionState, Visit

__all__ = ["OWN_STEP", "OWN_STEPS", "is_own_step", "own_step"]

OWN_STEP: Final = ("harness.execute_step.started", "harness.execute_step.succeeded")
"""Types of these facts; those of a role call have its id in their envelope."""


def is_own_step(event: Event) -> bool:
    """Whether the kernel decided that it is told, and no role wrote it."""
    return event.type in OWN_STEP and "requestId" in event.payload


def own_step(state: SessionState, visit: Visit, request: OwnStep) -> tuple[Fact, dict[str, bytes]]:
    """The fact, and the output by digest."""
    payload: dict[str, Any] = {
        "runId": state.session_id,
        "stepId": request.step_id,
        "uses": request.uses,
        "stepPath": request.step_path,
        "visitIndex": request.visit_index,
        "attempt": request.attempt,
        "requestId": request.request_id,
    }
    refs = {"stage_visit_id": visit.visit_id, "step_path": request.step_path, "visit_index": request.visit_index}
    if request.event == "started":
        return Fact(OWN_STEP[0], payload, refs), {}
    output = canonical(request.output)
    payload["outputRef"] = hashlib.sha256(output).hexdigest()
    if request.branches is not None:
        payload["branches"] = dict(request.branches)
    return Fact(OWN_STEP[1], payload, refs), {payload["outputRef"]: output}


def _told(state: SessionState, event: Event) -> None:
    """Fold it: the executor hears at once that it is recorded. What a role wrote changes nothing here."""
    if not is_own_step(event) or state.visit is None:
        return
    request_id = event.payload["requestId"]
    state.visit.requested[request_id] = event.id
    state.visit.outcomes.append({"request_id": request_id, "ok": True})


OWN_STEPS: Final[dict[str, Callable[[SessionState, Event], None]]] = dict.fromkeys(OWN_STEP, _told)
"""By type of the event."""
