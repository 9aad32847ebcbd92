"""One session that this process owns: its lock, its loop, its inbox and what happens when it stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from harness_core.kernel.commands import CancelNow, Migrate, PauseNow, PluginsFailed, Received
from harness_core.kernel.effects import Ask
from harness_core.kernel.facts import Event
from harness_core.kernel.projections.session import session_document
from harness_core.kernel.state import SessionState
from harness_hookspecs.errors import Drift, HarnessError, Locked, StoreError
from harness_hookspecs.host import Files, HeldLock, Ports
from harness_hookspecs.provider import Chunk
from harness_hookspecs.store import Head, Posted, Store, StoredEvent

from .answering import post_answer, question
from .children import Children, Nursery, Started
from .deadlines import Deadlines
from .heads import copy_head
from .loop import SessionLoop
from .loop_parts import LoopHooks
from .machine import SessionMachine
from .perform import Performer
from .perform_ask import AskSite, OnAsk, close_prompt
from .perform_compile import lock_drift
from .posting import inbox_row, said
from .redaction import Redactor
from .services import ActiveTime, Services
from .session_parts import SessionParts
from .snapshots import fold_on, newer_events
from .timers import Timers
from .trace import TraceSink
from .watching import Watch

__all__ = ["OwnedSession", "SessionWorld", "take_ownership"]

_NAMED_BY_TYPE = (
    "session.created", "stage.left", "transition.taken", "budget.settled", "timer.elapsed", "external.delivered",
    "child.requested", "child.granted", "child.completed", "child.failed",
)  # fmt: skip
_REACHED_BY_TYPE = {"artifact.accepted": "artifact.stored", **{name: name for name in _NAMED_BY_TYPE}}
_ENDINGS = frozenset({"session.completed", "session.failed", "session.cancelled"})


@attrs.frozen
class SessionWorld:
    """What every session of a host shares."""

    ports: Ports
    store: Store
    data_dir: Path
    redactor: Redactor
    observers: Sequence[Callable[[StoredEvent], None]]
    on_chunk: Callable[[str, Chunk], None]
    cancel_grace_seconds: float
    park_after_seconds: float
    trace: TraceSink | None = None
    complain: Callable[[HarnessError], None] = lambda error: None  # what a person is told beside the log
    nursery: Nursery | None = None  # begins child sessions; None where none are
    on_end: Callable[[str, Head], None] | None = None  # told of each session that has ended, with its head


def take_ownership(session_id: str, data: Files) -> HeldLock:
    """Own a session; the lock, a file of the data folder, is free as soon as its holder is dead.

    Raises:
        Locked: A living process owns it.
    """
    lock = data.try_lock(f"owners/{session_id}")
    if lock is None:
        raise Locked(
            f"session {session_id[-8:]} is run by another process",
            code="run.locked",
            hint="its answers, pause and cancel reach it from here; wait for it to stop before resuming it",
        )
    return lock


class OwnedSession:
    """Runs a session to a final state or to a pause.

    Args:
        session_id: The session.
        parts: What it runs with; ``None`` for who only cancels it.
        world: What it shares with the others.
        on_ask: What an approval that nobody decides does in this run.
        terminal: Whether a person may be asked here.
        accept_drift: Whether a role call that has become another one may begin anew.
    """

    def __init__(
        self,
        session_id: str,
        parts: SessionParts | None,
        world: SessionWorld,
        *,
        on_ask: OnAsk = "suspend",
        terminal: bool = False,
        accept_drift: bool = False,
    ) -> None:
        self.session_id = session_id
        self.stream = f"session:{session_id}"
        self._world, self._ports = world, world.ports
        self._lock = take_ownership(session_id, world.ports.files(world.data_dir))
        self._cancel = self._ports.wait.token()
        self._late_cancel = self._ports.wait.token()
        self._leave = self._ports.wait.token()
        self._begun = self._closed = False
        self._rested = True  # until it is given back amid something
        self._cancel_seen = False
        self._cut_off = False
        self._accept_drift = accept_drift
        definition: Any = None if parts is None else parts.definition  # to cancel, nothing of it is looked at
        machine = SessionMachine(session_id, definition, world.store.blob)

        def folded() -> tuple[SessionState, int]:
            state = fold_on(world.store, machine)
            self._timers.found([*state.timers.values(), *state.externals.values()])
            return state, state.seq

        hooks = LoopHooks(self._perform, self._committing, self._committed, self._turned, folded)
        self.loop = SessionLoop(self.stream, ports=self._ports, store=world.store, machine=machine, hooks=hooks)
        loop = self.loop  # neither of the two holds the session
        self._timers = Timers(self._ports, lambda: loop.state, world.park_after_seconds)
        self._watch = Watch(self._ports, world.store, loop, self._timers, self._leave)
        self._watched = getattr(self._ports, "concurrent", True)  # with one thread nobody could look while work is done
        started = Started(lambda: loop.state, on_ask, terminal, accept_drift)
        nursery = world.nursery
        self._children = None if nursery is None else Children(world.store, nursery, started, self._ports.spawn)
        self._performer = None if parts is None else self._new_performer(parts, on_ask, terminal)
        self._failures = () if parts is None else parts.failures

    def _new_performer(self, parts: SessionParts, on_ask: OnAsk, terminal: bool) -> Performer:
        world = self._world
        services = Services(
            ports=self._ports,
            loop=self.loop,
            redactor=world.redactor,
            deadlines=Deadlines(self._ports, lambda said: world.complain(HarnessError(said))),
            cancel=self._cancel,
            late_cancel=self._late_cancel,
            on_chunk=lambda chunk: world.on_chunk(self.session_id, chunk),
            active=ActiveTime(self._ports),
            trace=world.trace,
            on_raised=world.complain,
            accept=self._accept if self._accept_drift else None,
            run_child=None if self._children is None else self._children.run,
        )
        ask_site = AskSite(
            session_id=self.session_id,
            approvers=parts.approvers,
            timeout_seconds=parts.approver_timeout_seconds,
            on_ask=on_ask,
            has_terminal=terminal,
            leave=self._leave,
            post_answer=self._post_answer,
        )
        return Performer(self.session_id, self.stream, parts, services, world.store, ask_site)

    @property
    def state(self) -> SessionState:
        """The folded state; read only for everyone but the loop."""
        return self.loop.state  # type: ignore[no-any-return]  # the loop is generic

    def begin(self, command: Any, *, first: Any = None) -> None:
        """Load, take what waits in the inbox, run the command, and go on in the background.

        Args:
            command: What the session is begun or gone on with.
            first: A command that everything else depends on, an accepted change of the configuration.

        Raises:
            StoreError: The log cannot be read or written, or a newer version wrote in it (``store.newer_events``).
        """
        self._load()
        if first is not None:
            self.loop.submit(first)
        self._check_plans()
        seen = self._world.store.change_counter() if self._watched else 0  # before the inbox: see Watch
        self._take_inbox()
        if self._children is not None:
            self._children.end_given_up(self.state.given_up)
        self.loop.submit(command)
        if self._failures and self.state.plugin_failures == 0:
            self.loop.submit(PluginsFailed(tuple(self._world.redactor.value(list(self._failures)))))
        self._ask_again()
        if self._watched:
            self._ports.spawn(self._watch, seen, self._take_inbox, name="inbox")
        if self._leave.cancelled():  # it was told to stop while there was nothing yet to be stopped
            self.ask_to_stop(str(self._leave.reason))
        self._begun = True
        self.loop.wake()

    def _check_plans(self) -> None:
        """What the open attempt runs is checked again, before anything of it goes on."""
        if self._performer is None:
            return
        try:
            lock_drift(self.state, self._performer.compile_site())
        except Drift as drift:
            if not self._accept_drift:
                raise
            self._accept(drift, "plan")

    def cancel(self, command_id: str, row: bytes) -> None:
        """Post a cancel to what nobody runs and end it, with nothing of its configuration.

        It is taken before whatever else waits in the inbox, so that nothing is gone on with.

        Raises:
            StoreError: As for ``begin``; then nothing was posted, or as the hint says the row waits for who is next.
        """
        self._load()
        if not self.state.final:
            posted = self._world.store.post(self.session_id, command_id, row)
            try:
                self._take(posted)
            except StoreError as error:
                resume = f"harness resume {self.session_id[-8:]}"
                error.hint = f"the cancel is recorded: once the log can be written, {resume} ends the session by it"
                raise
        self._take_inbox()

    def _load(self) -> None:
        self.loop.load()
        if self.state.unknown_types:
            raise newer_events(self.state, "it can be looked at here; go on with it where it was run last")

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until it is final, paused or nothing is under way any more; raises what stopped it.

        A timer that is due soon is waited for too. Work that does not heed a cancel may go on longer: nobody waits for
        it.
        """
        if not self._watched:
            timeout_seconds = self._watch.wait_here(timeout_seconds, self._take_inbox)
        return self.loop.wait_until(self._rests, timeout_seconds=timeout_seconds)

    def _rests(self, state: SessionState) -> bool:
        if state.final or state.status == "paused" or self._cut_off:
            return self.loop.between_turns()
        return self._rested and self.loop.quiescent() and not self._timers.keeps_here()

    def ask_to_stop(self, reason: str) -> None:
        """Say that it should stop: an active session pauses after what is in flight, one that waits stays so (I-38)."""
        self._leave.cancel(reason)
        if self.state.status == "active":
            self._tell("pause", reason)

    def ask_to_end(self, reason: str) -> None:
        """Say that it should be cancelled, with all that it has begun."""
        self._tell("cancel", reason)

    def _tell(self, kind: str, reason: str) -> None:
        row = inbox_row(kind, {"reason": reason}, self._world.redactor)
        self._world.store.post(self.session_id, f"{kind}:{self._ports.ids.uuid7()}", row)
        self._take_inbox()

    def stop_within(self, grace_seconds: float, reason: str) -> None:
        """Stop what was asked to: what is in flight may end within the grace, and is told to in any case."""
        try:
            if not self.loop.wait_until(lambda _: self._stands_still(), timeout_seconds=grace_seconds):
                self.loop.submit(PauseNow(reason))
        finally:
            # What is cut off now is as unknown as after a crash: how it answers the cancel is no result.
            self._cut_off = True
            self.loop.stop()
            self._cancel.cancel(reason)
            self._late_cancel.cancel(reason)

    def _stands_still(self) -> bool:
        """Whether nothing is under way, nor about to be: one that is being begun stands still only when it is."""
        return (self._begun or self._closed) and self.loop.quiescent()

    def nudge(self) -> None:
        """Take what was just posted by this process, unless it goes on no more here.

        In the middle of a turn it is left to whoever watches the inbox: the caller may be a listener, who is told in
        that very turn and would wait for its end for ever.
        """
        if self.loop.between_turns() and not self.loop.stopped:
            self._take_inbox()

    def document(self) -> dict[str, Any] | None:
        """The session's document; ``None`` while work goes on and changes the state: then the log has it."""
        return self.loop.stored(session_document) if self.loop.quiescent() else None

    def close(self) -> None:
        """Give the session back; what still runs finds its context closed."""
        if self._closed:
            return
        self._closed = True
        with ExitStack() as then:  # the last one first, and each of them whatever breaks at one
            then.callback(self._let_go)
            then.callback(self._lock.release)
            if self._performer is not None:
                then.callback(self._performer.services.deadlines.close)
            then.callback(self._late_cancel.cancel, "closed")
            then.callback(self._cancel.cancel, "closed")
            then.callback(self.loop.stop)  # before both: how work answers the cancel is no result (see interrupt)
            self._rested = self.loop.quiescent()  # work that is cut off here leaves nothing under way either
            self._leave.cancel("closed")

    def _let_go(self) -> None:
        """Cut the ways back to here, or what a session held would stay until somebody looks at all objects."""
        self.loop.forget()
        self._performer = None

    def _accept(self, drift: Drift, what: str = "role call") -> None:
        """Record what a role call or a plan was begun with and is no more, which neither configuration nor versions
        show."""
        state, changed = self.state, drift.facts.get("changes", ())
        changes = [
            {"key": f"{what}: {one['field']}", "old": one["recorded"], "new": one["now"]}
            | {name: one[name] for name in ("workflow_version_id",) if name in one}
            for one in changed
        ]
        digests = {"old_digest": state.config_digest, "new_digest": state.config_digest}
        self.loop.submit(Migrate({**digests, "content_ref": state.config_ref, "changes": changes}, {}))

    # -- hooks of the loop ---

    def _perform(self, effect: Any) -> Any:
        assert self._performer is not None  # what is only cancelled has no effects
        return self._performer(effect)

    def _committing(self, events: Sequence[Event]) -> None:
        if not _ENDINGS.isdisjoint([event.type for event in events]):
            self._ports.reach("session.ending")

    def _committed(self, stored: Sequence[StoredEvent]) -> None:
        self._timers.committed(stored)
        for event in stored:
            if event.type in _REACHED_BY_TYPE:
                self._ports.reach(_REACHED_BY_TYPE[event.type])
            for observer in self._world.observers:
                observer(event)
        if self._children is not None:
            self._children.committed(stored)
        last = stored[-1]
        if not _ENDINGS.isdisjoint([event.type for event in stored]):
            self._copy_head(last)

    def _copy_head(self, last: StoredEvent) -> None:
        """Put the head outside the store, so that a cut tail shows (I-7)."""
        copy_head(self._ports.files(self._world.data_dir), self.session_id, Head(last.seq, last.hash))
        self._ports.reach("head.copied")
        if self._world.on_end is not None:
            self._world.on_end(self.session_id, Head(last.seq, last.hash))

    def _turned(self, state: SessionState) -> None:
        if self._children is not None and self._children.is_news(state):
            self._ports.spawn(self._children.pass_on, name="stop")
        if state.cancelling is not None and not self._cancel_seen:
            self._cancel_seen = True
            self._ports.spawn(self._cancel_gracefully, state.cancelling, name="cancel")

    def _cancel_gracefully(self, reason: str) -> None:
        """Signal tools at once, let a model call finish for a while, then end the session in any case (K-30)."""
        self._cancel.cancel(reason)
        try:
            if not self.loop.wait_until(lambda state: state.final, timeout_seconds=self._world.cancel_grace_seconds):
                self._late_cancel.cancel(reason)
                self.loop.submit(CancelNow(reason))
        except HarnessError:
            return  # the loop has stopped by itself; its error reaches whoever waits for the session

    # -- the inbox ---

    def _take_inbox(self) -> None:
        for posted in self._world.store.take(self.session_id):
            self._take(posted)

    def _take(self, posted: Posted) -> None:
        kind, body = said(posted)
        self._ports.reach("inbox.taken")
        if self._performer is not None:
            close_prompt(self._performer.ask_site, kind, body)
        clean = self._world.redactor.value(body)  # whoever posted it may not know this session's secrets
        self.loop.submit(Received(posted.command_id, kind, clean))

    def _post_answer(self, approval_id: str, body: Mapping[str, Any]) -> None:
        found = question(self.state.approvals[approval_id], self.state)
        post_answer(found, body, self._world.store, self._world.redactor)
        self._ports.reach("approval.posted")
        self._take_inbox()

    def _ask_again(self) -> None:
        """On resume, approvals that nobody answered are asked about once more, now that someone may be here."""
        for approval in list(self.state.pending.values()):
            if approval.awaited and not self.state.final:
                self.loop.launch(Ask(approval.approval_id, approval.approval_id))
