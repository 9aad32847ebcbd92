"""Commands in, committed events out, one turn at a time: decide, append, evolve, react, and effects handed to workers.

The loop is a token, not a thread. Whoever submits a command and finds the token free runs the turn for everyone who
is waiting; the others block on a bare lock of their own. At most one turn runs at any instant, so decide, evolve and
append keep a single order (architecture D-3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.kernel.projections.event import folding
from harness_hookspecs.errors import HarnessError, InternalError, StoreConflict
from harness_hookspecs.host import Ports
from harness_hookspecs.store import Draft, Store

from .due import DueEffects
from .loop_parts import Batch, LoopHooks, Machine, Ticket, drained, not_run, reason_of, texts_of, wake_those, with_cause

__all__ = ["SessionLoop"]

T = TypeVar("T")

_MAX_HELD = 64  # a batch up to this size is one autocommit statement (D-7)
_MAX_ROUNDS = 64  # then the leader hands the token over
_MAX_CONFLICTS = 8
_MAX_KEPT = 1024  # digests remembered, so that equal content is not sent to the store again and again
_new = tuple.__new__  # a third of the time of ``Event(...)``, and each of a batch is one


class SessionLoop:
    """The loop of one stream.

    Args:
        stream: Where the events go.
        ports: The doors to threads, time and ids.
        store: The log.
        machine: The pure part.
        hooks: Who performs effects, who is told.
    """

    def __init__(self, stream: str, *, ports: Ports, store: Store, machine: Machine, hooks: LoopHooks) -> None:
        self.stream = stream
        self._ports, self._store, self._machine, self._hooks = ports, store, machine, hooks
        self._token = ports.wait.lock()
        self._inbox: deque[Ticket] = deque()
        self._running: dict[str, Any] = {}  # under way, or due
        self._due = DueEffects(lambda: ports.spawn(self._arrive, name="effect"))
        self._held = Batch()
        self._riding: list[Any] = []  # commands whose events are held, in case they must be decided again
        self._watchers: list[tuple[Callable[[Any], bool], Any]] = []
        self._kept: dict[str, None] = {}  # digests this loop has stored, the latest ones
        self._error: BaseException | None = None
        self.stopped = self._turning = False
        self._turns = 0
        self.state = machine.new_state()
        self._seq = 0  # of the last committed event

    # -- what others call ---

    def load(self) -> None:
        """Fold the stream; called before the first command, and again after a failed append."""
        state, seq = self._hooks.folded() or (self._machine.new_state(), 0)
        for stored in folding(self._machine.evolve, state, self._store.read(self.stream, after=seq)):
            seq = stored.seq
        self._held, self._riding = Batch(), []
        self.state, self._seq = state, seq  # at once: others look at it meanwhile

    def submit(self, command: Any, *, durable: bool = True) -> Any:
        """Run a command through a turn and wait for it; returns the decision's reply.

        Args:
            command: What is asked.
            durable: Whether to wait until everything so far is committed; else it may ride with what follows.

        Raises:
            HarnessError: The append failed, or the loop has stopped.
        """
        return self.carry_out(self.lay_down(command, durable=durable))

    def lay_down(self, command: Any, *, durable: bool) -> Ticket:
        """Put a command behind all that were laid down before; whoever does so has it carried out."""
        gate = self._ports.wait.lock()
        gate.acquire()
        ticket = Ticket(command, gate, durable=durable)
        self._put(ticket)
        return ticket

    def carry_out(self, ticket: Ticket) -> Any:
        """Run turns until the command was decided, and give its reply or raise its error; see ``submit``."""
        self._lead()
        assert ticket.gate is not None
        ticket.gate.acquire()
        if ticket.error is not None:
            raise ticket.error
        return ticket.reply

    def launch(self, effect: Any) -> None:
        """Start an effect that the state does not ask for by itself, such as asking again on resume."""
        if effect.key not in self._running:
            self._running[effect.key] = effect
            self._start([effect])

    def flush(self) -> None:
        """Commit what is held; then the store has everything the state has."""
        self.submit(None)

    def quiescent(self) -> bool:
        """Whether nothing is under way and nothing waits in the inbox."""
        turns = self._turns  # four looks are not one: a turn that began meanwhile makes them worth nothing
        return not (self._turning or self._inbox or self._running) and turns == self._turns

    def between_turns(self) -> bool:
        """Whether no turn is under way, so that what the state says is not about to be appended."""
        return not self._turning

    def read_blob(self, digest: str) -> bytes:
        """Content decided here or stored."""
        return self._machine.blob(digest)

    def is_running(self, key: str) -> bool:
        """Whether the effect of that key is under way in this process."""
        return key in self._running

    def wait_until(
        self, holds: Callable[[Any], bool], *, timeout_seconds: float | None = None, cancel: Any = None
    ) -> bool:
        """Block until ``holds(state)`` after some turn; ``False`` on timeout. What stopped the loop is raised here."""
        deadline = None if timeout_seconds is None else self._ports.clock.monotonic() + timeout_seconds
        while True:
            flag = self._ports.wait.event()
            watcher = (holds, flag)
            self._watchers.append(watcher)  # before the look, so that no change falls between
            try:
                held, whole = self._look(holds)
                if self._error is not None:  # asked for after the look: the turn that was looked into may have failed
                    raise self._error
                if held and whole and not self._held.drafts:
                    return True
                if self.stopped and whole:  # else a last turn is about to end, and to wake whoever waits
                    raise self._ended()
                if held and not self.stopped:  # it is decided and not stored yet; what is shown is stored (I-1)
                    self.flush()
                    continue
                left = None if deadline is None else deadline - self._ports.clock.monotonic()
                if left is not None and left <= 0:
                    return False
                flag.wait(left, cancel)
            finally:
                self._watchers.remove(watcher)

    def stored(self, look: Callable[[Any], T]) -> T | None:
        """What ``look`` makes of the state; ``None`` where it may have seen something that is not stored (I-1)."""
        try:
            seen, whole = self._look(look)
        except RuntimeError:  # a turn changed what was being gone through
            return None
        return seen if whole and self._error is None and not self._held.drafts else None

    def _look(self, look: Callable[[Any], T]) -> tuple[T, bool]:
        """What ``look`` makes of the state, and whether no turn was under way at any moment of the look.

        A turn that ended meanwhile may have failed, or folded again and decided otherwise than was seen.
        """
        turns, resting = self._turns, not self._turning  # in this order: see _lead
        return look(self.state), resting and turns == self._turns

    def wait_quiescent(self, timeout_seconds: float | None = None) -> bool:
        """Block until nothing is under way; ``False`` on timeout."""
        return self.wait_until(lambda state: self.quiescent(), timeout_seconds=timeout_seconds)

    def wake(self) -> None:
        """Let go on who waited for what holds now."""
        wake_those(self._watchers, self.state, everybody=self.stopped)

    def stop(self, error: BaseException | None = None) -> None:
        """Refuse everything from now on, and begin nothing; waiting callers are refused too, so that none hangs."""
        if not self.stopped:  # what work says that was cut off by the end is no reason for it
            self._error = error and reason_of(error)  # first, so that whoever sees the end sees its reason
        self.stopped = True
        for effect in iter(self._due.take, None):
            self._running.pop(effect.key, None)
        self._let_go(drained(self._inbox), self._ended())
        self.wake()

    def forget(self) -> None:
        """Let go of whom a stopped loop tells, for they hold it too; a turn that is under way still tells them."""
        if self.stopped and self.between_turns():
            self._hooks = LoopHooks(lambda effect: None)
            self._due = DueEffects(bool)

    def _ended(self) -> BaseException:
        return self._error or not_run()

    def _put(self, ticket: Ticket) -> None:
        if self.stopped:
            raise self._ended()
        self._inbox.append(ticket)

    # -- the token ---

    def _lead(self, *, takes_effect: bool = False) -> None:
        """Run turns while there is something to do and nobody else does; look again after letting go.

        Args:
            takes_effect: Whether the caller begins an effect itself as soon as this returns.
        """
        rounds = 0
        while self._inbox and self._token.acquire(blocking=False):
            self._turning = True
            self._turns += 1
            try:
                effects = self._round()
            finally:
                self._turning = False
                self._token.release()
            self.wake()
            self._start(effects, leave=int(takes_effect and not self._inbox))
            rounds += 1
            if rounds >= _MAX_ROUNDS and self._inbox:
                try:
                    self._ports.spawn(self._lead, name="lead")
                except BaseException as error:  # no thread is left: those who wait have no leader
                    self.stop(error)
                return

    def _start(self, effects: list[Any], *, leave: int = 0) -> None:
        try:
            self._due.put(effects)
            self._due.call_worker(leave=leave)
        except BaseException as error:  # no thread is left: what does not begin never ends
            self.stop(error)

    def _arrive(self) -> None:
        """A worker comes: it takes the outcomes that are there, then what is due."""
        self._due.arrived()
        self._start([], leave=1)
        self._lead(takes_effect=True)
        self._work()

    def _work(self) -> None:
        """Perform what is due, one effect after another. An outcome is laid down and not waited for: whoever leads
        takes it, at the latest the worker who is on the way to what else is due, however long the next effect takes."""
        while (effect := self._due.take()) is not None:
            try:
                if self.stopped:  # it was due in the turn that the end fell into
                    raise self._ended()
                self._put(Ticket(self._hooks.perform(effect), None, durable=False, effect_key=effect.key))
                if not self._due.is_served():
                    self._lead(takes_effect=True)
            except BaseException as error:  # whatever it is, everyone who waits must hear of it
                self._running.pop(effect.key, None)
                self.stop(error)

    # -- one turn ---

    def _round(self) -> list[Any]:
        tickets = drained(self._inbox)
        for ticket in tickets:
            if ticket.effect_key is not None:
                self._running.pop(ticket.effect_key, None)
        try:
            if self.stopped:  # it was laid down while the loop came to its end
                raise self._ended()
            effects = self._turn(tickets)
            self._hooks.turned(self.state)
        except BaseException as error:  # whatever it is, everyone who waits must hear of it
            self._fail(tickets, error)
            return []
        self._let_go(tickets)
        return effects

    def _turn(self, tickets: list[Ticket]) -> list[Any]:
        """Decide every command and commit; on a moved head fold again and decide once more (contract.md, Events)."""
        for _ in range(_MAX_CONFLICTS):
            for ticket in tickets:
                self._decide(ticket)
            self._advance()
            self._ports.reach("decide.done")
            effects = [] if self.stopped else self._new_effects()
            try:
                if any(ticket.durable for ticket in tickets) or self._must_commit(effects):
                    self._commit()
            except StoreConflict as conflict:
                # Given back meanwhile, so that somebody else goes on with it; or a key that stands for something else.
                if self.stopped or conflict.code == "store.key_conflict":
                    raise
                self._fold_again()
                continue
            if self._held.drafts:
                self._riding += [one.command for one in tickets if one.error is None and one.command is not None]
            self._running.update({effect.key: effect for effect in effects})
            return effects
        raise InternalError("the head of the stream moved again and again", code="store.conflict")

    def _fold_again(self) -> None:
        """Take the log as it stands now and decide once more what rode along and was never appended."""
        riding = self._riding
        self.load()
        for command in riding:
            with suppress(HarnessError):  # it was decided on another head; now it may mean nothing
                self._apply(self._machine.decide(command, self.state))
            self._advance()
        self._riding = riding

    def _decide(self, ticket: Ticket) -> None:
        """Decide one command; one that is refused fails alone and leaves no trace."""
        ticket.error = None
        if ticket.command is None:
            return
        try:
            ticket.reply = self._apply(self._machine.decide(ticket.command, self.state))
        except HarnessError as error:
            ticket.error = error

    def _advance(self) -> None:
        while True:
            decision = self._machine.advance(self.state, self._running.keys())
            if not decision.facts:
                return
            self._apply(decision)

    def _apply(self, decision: Decision) -> Any:
        held, offset = self._held, len(self._held.drafts)
        self._machine.check(decision)
        if decision.facts:
            self._fold(decision.facts)
        held.blobs.update(decision.blobs)
        for command_id, index in decision.taken.items():
            held.taken[command_id] = offset + index
        return decision.reply

    def _fold(self, facts: Sequence[Fact]) -> None:
        """Make the events and fold each; it follows from the state before it where it names no cause (B-90)."""
        held, state, machine = self._held, self.state, self._machine
        new_id, version, cause_of, evolve = self._ports.ids.uuid7, machine.version, machine.cause, machine.evolve
        texts = texts_of(facts)  # before any is folded: what is refused leaves no trace
        seq, timestamp = self._seq + len(held.drafts), self._ports.clock.timestamp()
        for fact, (refs, own_refs_text, payload_text) in zip(facts, texts, strict=True):
            (event_type, payload, _, actor, key), refs_text = fact, own_refs_text
            if "causation_id" not in refs and (cause := cause_of(fact, state)) is not None:
                refs["causation_id"], refs_text = cause, with_cause(own_refs_text, cause)
            seq, event_id, number = seq + 1, new_id(), version(event_type)
            event = _new(Event, (seq, event_id, event_type, payload, refs, timestamp, number))
            held.events.append(event)
            held.drafts.append(
                _new(Draft, (event_id, event_type, number, actor, timestamp, refs_text, payload_text, key))
            )
            held.waits = held.waits or event_type in machine.waiting_types
            evolve(state, event)

    def _new_effects(self) -> list[Any]:
        return [effect for effect in self._machine.react(self.state) if effect.key not in self._running]

    def _must_commit(self, effects: list[Any]) -> bool:
        """Requests ride with what follows; they are committed when nothing does, or when something must wait."""
        held = self._held
        return bool(held.drafts) and (held.waits or not effects or len(held.drafts) >= _MAX_HELD)

    def _commit(self) -> None:
        if not (held := self._held).drafts:
            return
        self._hooks.committing(held.events)
        summary = self._machine.summary(self.state, held.events)
        stored = self._store.append(
            self.stream,
            held.drafts,
            expected_seq=self._seq,
            blobs={ref: content for ref, content in held.blobs.items() if ref not in self._kept} or None,
            taken=held.taken or None,
            summary=summary,
        )
        self._held, self._riding = Batch(), []
        self._seq = stored[-1].seq
        self._kept.update(dict.fromkeys(held.blobs))
        while len(self._kept) > _MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._hooks.committed(stored)

    def _fail(self, tickets: list[Ticket], error: BaseException) -> None:
        """An append failed or a promise broke: the state is ahead of the log, so nothing may go on from it."""
        lost, self._held = self._held.drafts, Batch()
        self.stop(error)
        if lost:  # also in the last turn of a loop that was stopped: its state is not to be shown any more
            self._error = self._error or reason_of(error)
        self._let_go(tickets, reason_of(error))
        self.wake()

    def _let_go(self, tickets: list[Ticket], error: BaseException | None = None) -> None:
        for ticket in tickets:
            ticket.error = ticket.error or error
            if ticket.gate is not None:
                ticket.gate.release()
            elif ticket.error is not None:  # an outcome that nobody can take
                self.stop(ticket.error)
