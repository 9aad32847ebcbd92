"""A role call's calls in, their events out: intents before, results after, and recorded answers on the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness_core.kernel.commands import AskApproval, Record, Refusal
from harness_core.kernel.facts import Fact
from harness_hookspecs.errors import Cancelled, Suspend
from harness_hookspecs.host import Ports

from .journal import Journal
from .loop import SessionLoop

__all__ = ["RoleCallRecorder"]


class RoleCallRecorder:
    """Writes the events of one role call; results ride with the next intent of the same call (D-5).

    Once closed, by a suspension or the end, every further call raises again and nothing more is written.
    """

    def __init__(
        self, loop: SessionLoop, ports: Ports, *, role_call_id: str, refs: Mapping[str, Any], journal: Journal
    ) -> None:
        self._loop, self._ports = loop, ports
        self.role_call_id = role_call_id
        self.refs = {**refs, "role_call_id": role_call_id}
        self.journal = journal
        self.closed: Suspend | None = None
        self.ended = False
        self.refused_code: str | None = None  # set when only --on-ask deny stood in the way
        self._lock = ports.wait.lock()
        self._results: list[Fact] = []
        self._blobs: dict[str, bytes] = {}
        self._started_at = ports.clock.monotonic()

    def check_open(self) -> None:
        """Raise again when the call is suspended or over."""
        if self.closed is not None:
            raise Suspend(self.closed.kind, self.closed.wait_id)
        if self.ended:
            raise Cancelled("the role call has ended; its context is closed", code="role.closed")

    def suspend(self, kind: str, wait_id: str) -> Suspend:
        """Close the context; the caller raises what is returned. The first reason stands."""
        if self.closed is None:
            self.closed = Suspend(kind, wait_id)
        return Suspend(self.closed.kind, self.closed.wait_id)

    def result(self, facts: Sequence[Fact], blobs: Mapping[str, bytes] | None = None, *, flush: bool = False) -> None:
        """Keep results for the next intent, or write them at once when their effect cannot be repeated."""
        with self._lock:
            self._results += facts
            self._blobs.update(blobs or {})
        self._ports.reach("result.buffered")
        if flush:
            results, kept = self.drain()
            self._loop.submit(Record(self.role_call_id, results=results, blobs=kept))

    def drain(self) -> tuple[tuple[Fact, ...], dict[str, bytes]]:
        """Take what is in the buffer, for the command that writes it."""
        with self._lock:
            results, self._results = tuple(self._results), []
            blobs, self._blobs = self._blobs, {}
        return results, blobs

    def intend(
        self,
        facts: Sequence[Fact],
        blobs: Mapping[str, bytes] | None = None,
        *,
        reserve_tokens: int | None = None,
    ) -> None:
        """Write an intent, and everything before it, to the disk; then its effect may start.

        Raises:
            Suspend: The session is paused or its budget is used up.
            Cancelled: The session is cancelled or over.
        """
        self.check_open()
        results, kept = self.drain()
        reply = self._loop.submit(
            Record(
                self.role_call_id,
                results=results,
                intent=tuple(facts),
                blobs={**kept, **(blobs or {})},
                reserve_tokens=reserve_tokens,
                elapsed_seconds=self._ports.clock.monotonic() - self._started_at,
            )
        )
        if isinstance(reply, Refusal):
            raise self._refused(reply)
        self._ports.reach("intent.committed")

    def ask(self, payload: Mapping[str, Any], verdict: str, kind: str, blobs: Mapping[str, bytes]) -> str:
        """Write an approval request (or find the one that stands) and return its id."""
        self.check_open()
        results, kept = self.drain()
        reply = self._loop.submit(
            AskApproval(payload, verdict, kind, results, {**kept, **blobs})  # type: ignore[arg-type]
        )
        if isinstance(reply, Refusal):
            raise self._refused(reply)
        return str(reply)

    def _refused(self, refusal: Refusal) -> BaseException:
        if refusal.kind in ("pause", "budget"):
            return self.suspend(refusal.kind, refusal.wait_id)
        self.ended = True
        return Cancelled("the session was cancelled", reason=refusal.kind)

    def fact(self, event_type: str, payload: dict[str, Any], *, actor: str = "system", **refs: Any) -> Fact:
        """An event of this role call; the step path is the bridge's, whatever the role says (A-67)."""
        return Fact(event_type, payload, {**self.refs, **refs}, actor)
