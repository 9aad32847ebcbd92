"""A session's own events in, moves that may not be, and what was done against a pause, a cancel or an end, out."""

from __future__ import annotations

from collections.abc import Iterator

from harness_core.kernel.facts import Event
from harness_core.kernel.inbox import is_command
from harness_core.kernel.own_steps import is_own_step
from harness_core.kernel.state import FINAL

from .history import Broken

__all__ = ["Lifecycle"]

_MOVES: dict[str, tuple[frozenset[str], str]] = {
    "session.created": (frozenset({""}), "created"),
    "session.forked": (frozenset({"created"}), "created"),
    "session.started": (frozenset({"created"}), "active"),
    "session.paused": (frozenset({"active"}), "paused"),
    "session.resumed": (frozenset({"paused", "awaiting_approval"}), "active"),
    "session.awaiting": (frozenset({"active", "awaiting_approval"}), "awaiting_approval"),
    "session.completed": (frozenset({"active"}), "completed"),
    "session.failed": (frozenset({"active", "awaiting_approval"}), "failed"),
    "session.cancelled": (frozenset({"created", "active", "paused", "awaiting_approval"}), "cancelled"),
}
_AFTER_THE_END = frozenset({"command.received", "effect.ignored", "store.pruned"})
_GOING_ON = frozenset(
    {
        "approval.requested", "artifact.accepted", "artifact.proposed", "artifact.rejected", "compile.requested",
        "child.granted", "child.requested", "context.requested", "external.cancelled", "external.delivered",
        "external.requested", "external.timed_out",
        "harness.model.called", "harness.tool_call.started", "retry.scheduled", "role.requested", "session.completed",
        "session.failed", "stage.entered", "stage.left", "stage.skipped", "timer.cancelled", "timer.elapsed",
        "timer.requested", "transition.taken", "validation.requested",
    }
)  # fmt: skip
"""What nobody decides once the session is to stop."""


class Lifecycle:
    """The state machine of B-137, commands once each, and the configuration a session is pinned to."""

    def __init__(self) -> None:
        self._status = ""
        self._stopping = ""  # why nothing new may begin: "cancelled", "paused"
        self._config = ""
        self._commands: set[str] = set()

    def see(self, event: Event) -> Iterator[Broken]:
        yield from self._allowed(event)
        if event.type in _MOVES:
            yield from self._move(event)
        elif event.type == "command.received":
            yield from self._command(event)
        elif event.type in ("config.loaded", "config.migrated"):
            yield from self._configured(event)

    def _allowed(self, event: Event) -> Iterator[Broken]:
        if not self._status and event.type != "session.created":
            yield Broken("I-20", event.seq, f"{event.type} stands before session.created")
        elif self._status in FINAL and event.type not in _AFTER_THE_END:
            yield Broken("I-20", event.seq, f"{event.type} comes after the session was {self._status}")
        elif self._stopping and (event.type in _GOING_ON or is_own_step(event)):
            yield Broken("I-20", event.seq, f"{event.type} goes on with a session that was to be {self._stopping}")

    def _move(self, event: Event) -> Iterator[Broken]:
        allowed, status = _MOVES[event.type]
        if self._status not in allowed and self._status not in FINAL:
            was = self._status or "not there"
            yield Broken("I-20", event.seq, f"{event.type} is no move of a session that is {was}")
        if self._status not in FINAL:
            self._status = status
        if event.type in ("session.started", "session.resumed") and self._stopping == "paused":
            self._stopping = ""
        elif event.type == "session.paused":
            self._stopping = self._stopping or "paused"
        elif event.type == "session.created":
            self._config = event.payload["config_digest"]

    def _command(self, event: Event) -> Iterator[Broken]:
        command_id, kind = event.payload["command_id"], event.payload["kind"]
        if command_id in self._commands:
            yield Broken("I-5", event.seq, f"the command {command_id} was received before")
        self._commands.add(command_id)
        if not is_command(kind, event.payload.get("body") or {}):
            return
        if kind == "cancel" and self._status not in FINAL:
            self._stopping = "cancelled"
        elif kind == "pause" and self._status == "active":
            self._stopping = self._stopping or "paused"

    def _configured(self, event: Event) -> Iterator[Broken]:
        migrated = event.type == "config.migrated"
        if event.payload["old_digest" if migrated else "digest"] != self._config:
            yield Broken("I-19", event.seq, f"{event.type} is not about the configuration the session runs under")
        if migrated:
            self._config = event.payload["new_digest"]
