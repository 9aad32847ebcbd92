"""Events in their order, built by hand a call each: what tests of projections read."""

from __future__ import annotations

from typing import Any

from harness_core.kernel.facts import Event

__all__ = ["SHA", "Log"]

SHA = "ab" * 32


class Log:
    """Builds events in order; each is caused by the one before."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, event_type: str, refs: dict[str, Any] | None = None, **payload: Any) -> Log:
        seq = len(self.events) + 1
        at = f"2026-01-01T00:00:{seq:02}.000Z"
        self.events.append(Event(seq, f"event-{seq}", event_type, payload, refs or {}, at))
        return self

    def visit(self, stage: str, index: int = 0, max_attempts: int = 2) -> Log:
        return self.add(
            "stage.entered", stage=stage, visit_id=f"stg_{stage}{index}", visit_index=index, persona=f"p-{stage}",
            executor="agent", model="m", max_attempts=max_attempts,
        )  # fmt: skip

    def asked(self, call: str, turn: int = 1, role: str = "role_1") -> Log:
        if not any(event.type == "role.requested" and event.payload["role_call_id"] == role for event in self.events):
            self.add("role.requested", role_call_id=role, role="worker.ai-generate")
        request = {"model": {"provider": "prov", "modelId": "mod"}, "messages": [], "tools": [], "params": {}}
        return self.add("harness.model.called", {"role_call_id": role}, turn=turn, callId=call, request=request)

    def answered(self, call: str, usage: dict[str, Any], **timing: int) -> Log:
        response = {"usage": usage, "finishReason": "stop", "toolCalls": []}
        return self.add("harness.model.responded", turn=1, callId=call, response=response, timing=timing)

    def retried(self, attempt: int, code: str = "validation.payload", reason: str = "it was bad") -> Log:
        return self.add(
            "retry.scheduled",
            visit_id="stg",
            attempt=attempt,
            strategy="corrective",
            code=code,
            reason=reason,
            inject=True,
        )

    def taken(self, source: str, target: str, rule: str = "true", **values: Any) -> Log:
        return self.add(
            "transition.taken", visit_id="stg", source=source, target=target, rule=rule, rule_index=0, values=values
        )

    def left(self, stage: str, index: int = 0, status: str = "success", attempts: int = 1) -> Log:
        return self.add("stage.left", stage=stage, visit_id=f"stg_{stage}{index}", status=status, attempts=attempts)
