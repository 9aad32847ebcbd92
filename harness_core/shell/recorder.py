"""A role call's calls in, their events out: intents before, results after, and recorded answers on the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from harness_core.kernel.commands import AskApproval, Record, Refusal
from harness_core.kernel.facts import Fact
from harness_hookspecs.errors import BudgetExhausted, Cancelled, Diverged, Drift, HarnessError, RoleError, Suspend
from harness_hookspecs.host import Ports
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.kit.frozen import thaw

from .journal import CallRecord, Journal
from .loop import SessionLoop

__all__ = ["RoleCallRecorder", "closed_context"]

_Command = Callable[[tuple[Fact, ...], dict[str, bytes]], Record | AskApproval]
"""Makes a command of what is in the buffer: results and contents."""


def closed_context() -> Cancelled:
    """What a call is refused by that comes after the end of its role call, or after another one that was refused."""
    return Cancelled("the role call has ended; its context is closed", code="role.closed")


class RoleCallRecorder:
    """Writes the events of one role call; results ride with the next intent of the same call (D-5).

    Once closed, by a suspension or the end, every further call raises again and nothing more is written.
    """

    def __init__(
        self,
        loop: SessionLoop,
        ports: Ports,
        *,
        role_call_id: str,
        refs: Mapping[str, Any],
        journal: Journal,
        read_blob: Callable[[str], bytes],
        in_turn: Callable[[Fact], Suspend | None] | None = None,
    ) -> None:
        self._in_turn = in_turn
        self._loop, self._ports, self._read_blob = loop, ports, read_blob
        self.role_call_id = role_call_id
        self.refs = {**refs, "role_call_id": role_call_id}
        self.journal = journal
        self.closed: Suspend | None = None
        self._waits: Suspend | None = None
        self._side_by_side = False
        self.ended = False
        self.refused: str | None = None  # the first call that was denied only because nobody may be asked
        self.fatal: HarnessError | None = None
        self._used = False
        self._manifest: Mapping[str, Any] = {}
        self._lock = ports.wait.lock()
        self._results: list[Fact] = []
        self._blobs: dict[str, bytes] = {}

    def ending(self, error: HarnessError | None) -> HarnessError | None:
        """What the role call ended by: a denial that only the unattended run made comes first, then what followed."""
        if self.refused is None:
            return error
        followed = error is not None and self.refused not in error.message
        said = f"{self.refused}; then: {error.message}" if error is not None and followed else self.refused
        return RoleError(said, code="approval.denied_unattended")

    def open(self, facts: Sequence[Fact], blobs: Mapping[str, bytes], manifest: Mapping[str, Any]) -> None:
        """Say who runs and with what; written with the first intent, and again for the default after a delegation.

        Raises:
            RoleError: ``role.delegated_late``: the role that gives the call away has made calls already.
        """
        if self._used:
            raise RoleError("a role may delegate only before its first call", code="role.delegated_late")
        self._manifest = manifest
        self._results, self._blobs = list(facts), dict(blobs)

    def fail(self, error: HarnessError) -> HarnessError:
        """Close the context for good: the whole session must stop here, whatever the role does with the error."""
        self.fatal = self.fatal or error
        self.ended = True
        return error

    def reach(self, name: str) -> None:
        """A boundary inside the call; what breaks there stops the session and is no failure of the role."""
        try:
            self._ports.reach(name)
        except HarnessError as error:
            raise self.fail(error) from error

    def check_open(self) -> None:
        """Raise again when the call is suspended or over, and when it is not the call that was recorded."""
        if self.fatal is not None:
            raise self.fatal
        if self.closed is not None:
            raise Suspend(self.closed.kind, self.closed.wait_id)
        if self.ended:
            raise closed_context()
        self.check_manifest()

    def check_manifest(self) -> None:
        """Raise ``Drift`` when the call was started as another one; looked at once, by its first use or at its end."""
        if not self._used:
            self._used = True
            self._check_manifest()

    def _check_manifest(self) -> None:
        """The manifest of a resumed call must be the recorded one (A-59)."""
        recorded_hash = self.journal.manifest_hash
        if recorded_hash is None or recorded_hash == digest(self._manifest):
            return
        recorded = loads_trusted(self._read_blob(recorded_hash))
        changes = [
            {"field": name, "recorded": recorded.get(name), "now": self._manifest.get(name)}
            for name in sorted({*recorded, *self._manifest})
            if recorded.get(name) != self._manifest.get(name)
        ]
        text = "; ".join(f"{c['field']}: {c['recorded']!r} -> {c['now']!r}" for c in changes)
        raise self.fail(
            Drift(
                f"the role call was started with something else: {text}",
                code="role.manifest_drift",
                hint="undo the change, or go on with --accept-drift",
                changes=changes,
            )
        )

    def suspend(self, kind: str, wait_id: str) -> Suspend:
        """Close the context; the caller raises what is returned. The first reason stands."""
        if self._in_turn is not None:
            self._in_turn(self.fact("role.suspended", {"kind": kind, "wait_id": wait_id}))
        if self._waits is None:
            self._waits = Suspend(kind, wait_id)
        if not self._side_by_side:
            self.closed = self._waits
        return Suspend(self._waits.kind, self._waits.wait_id)

    @contextmanager
    def side_by_side(self) -> Iterator[None]:
        """Calls of one turn: when one must wait, the others are finished and recorded before the context closes."""
        self._side_by_side = True
        try:
            yield
        finally:
            self._side_by_side = False
            self.closed = self.closed or self._waits

    def result(self, facts: Sequence[Fact], blobs: Mapping[str, bytes] | None = None, *, flush: bool = False) -> None:
        """Keep results for the next intent, or write them at once when their effect cannot be repeated."""
        if self._in_turn is not None:
            self._await_turn(facts[0])
            self._submit(lambda opening, kept: Record(
                self.role_call_id, results=(*opening, *facts), blobs={**kept, **(blobs or {})}
            ))  # fmt: skip
            return  # the record says where it stands, not what it was written with
        with self._lock:
            self._results += facts
            self._blobs.update(blobs or {})
        self.reach("result.buffered")
        if flush:
            self._submit(lambda results, kept: Record(self.role_call_id, results=results, blobs=kept))

    def _await_turn(self, fact: Fact) -> None:
        """In a replay a call is held until its turn, and one that was given up when its answer came suspends."""
        waits = None if self._in_turn is None else self._in_turn(fact)
        if waits is not None:
            raise self.suspend(waits.kind, waits.wait_id)

    def drain(self) -> tuple[tuple[Fact, ...], dict[str, bytes]]:
        """Take what is in the buffer, for the command that ends the role call."""
        with self._lock:
            return self._drain()

    def _drain(self) -> tuple[tuple[Fact, ...], dict[str, bytes]]:
        results, self._results = tuple(self._results), []
        blobs, self._blobs = self._blobs, {}
        return results, blobs

    def intend(
        self,
        facts: Sequence[Fact],
        blobs: Mapping[str, bytes] | None = None,
        *,
        reserve_tokens: int | None = None,
        elapsed_seconds: float = 0.0,
    ) -> None:
        """Write an intent, and everything before it, to the disk; then its effect may start.

        Raises:
            Suspend: The session is paused or its budget is used up.
            Cancelled: The session is cancelled or over.
        """
        self.check_open()
        self._await_turn(facts[-1])
        reply = self._submit(
            lambda results, kept: Record(
                self.role_call_id,
                results=results,
                intent=tuple(facts),
                blobs={**kept, **(blobs or {})},
                reserve_tokens=reserve_tokens,
                elapsed_seconds=elapsed_seconds,
            )
        )
        if isinstance(reply, Refusal):
            raise self._refused(reply)
        self.reach("intent.committed")

    def ask(self, payload: Mapping[str, Any], verdict: str, kind: str, blobs: Mapping[str, bytes]) -> str:
        """Write an approval request without its digest (or find the one that stands) and return its id."""
        self.check_open()
        if self._in_turn is not None:
            self._in_turn(Fact("approval.requested", dict(payload)))
        reply = self._submit(
            lambda results, kept: AskApproval(payload, verdict, kind, results, {**kept, **blobs})  # type: ignore[arg-type]
        )
        if isinstance(reply, Refusal):
            raise self._refused(reply)
        return str(reply)

    def _submit(self, command: _Command) -> Any:
        """Hand a command with all that is in the buffer to the loop; a replay takes none, and what it says then is
        fatal, whoever catches it.

        Nobody else may lay down a command between the two: a call of the same answer, made beside this one, would come
        into the log before the answer that asked for it.
        """
        try:
            with self._lock:
                ticket = self._loop.lay_down(command(*self._drain()), durable=True)
            return self._loop.carry_out(ticket)
        except Diverged as error:
            unused = self.journal.first_unused()
            if unused is None:
                raise self.fail(error) from error
            message = f"the role makes another call than the one recorded at event {unused.seq}"
            raise self.fail(Diverged(message, seq=unused.seq)) from error

    def _refused(self, refusal: Refusal) -> BaseException:
        if refusal.kind in ("pause", "budget"):
            return self.suspend(refusal.kind, refusal.wait_id)
        if refusal.kind == "limit":
            return BudgetExhausted(refusal.wait_id, code="limits.max_tokens")
        self.ended = True
        return Cancelled("the session was cancelled", reason=refusal.kind)

    def recorded_model(self, scope: str, turn: int, prompt_hash: str) -> CallRecord | None:
        """What the journal has of a model call; another question is fatal for the whole run."""
        try:
            return self.journal.model(scope, turn, prompt_hash)
        except Diverged as error:
            raise self.fail(error) from error

    def recorded_tool(self, call_id: str, name: str, args: Any) -> CallRecord | None:
        """What the journal has of a tool call by the model; another call is fatal for the whole run."""
        try:
            return self.journal.model_tool(call_id, name, args)
        except Diverged as error:
            raise self.fail(error) from error

    def note(self, text: str, facts: Mapping[str, Any], *, remote: bool = False) -> None:
        """Keep a role's note once; a note already recorded is not written again on a re-run."""
        self.check_open()
        payload: dict[str, Any] = {"role_call_id": self.role_call_id, "text": text}
        if facts:
            payload["facts"] = thaw(facts)
        if remote:
            payload["remote"] = True
        if not self.journal.has_note(payload):
            self.result([self.fact("role.note", payload, actor="agent")])

    def read_blob(self, ref: str) -> bytes:
        """Recorded content."""
        return self._read_blob(ref)

    def fact(self, event_type: str, payload: dict[str, Any], *, actor: str = "system", **refs: Any) -> Fact:
        """An event of this role call; the step path is the bridge's, whatever the role says (A-67)."""
        return Fact(event_type, payload, {**self.refs, **refs}, actor)
