"""A recorded session in, whether the same program writes the same log again out; nothing is called, nothing written.

What the session is made of runs once more: the kernel's decisions on what it came to, the roles with their own code,
what stands before and after a model's or tool's call. Each event that follows is compared whole, but for the ids and
times of its envelope (B-97, traps 29 and 30). Models and tools answer as recorded, in the recorded order, and what an
event says that was read off a clock is the recorded reading.

What comes from outside is taken as it is and not decided again: what people and other writers sent and what was made of
it, approvals and settlements that a role did not write, what the host and the limits of time did to the session
(started, resumed, paused, awaiting, cancelled, another configuration), the outcomes of gathering, of compilers and of
validators, the moments at which timers were due, and results that came too late. The record does not say when a role
heard a cancel or when its process died, and so both happen where they lead to what is recorded; a role that answers to
a cancel in its own way may be called different. The clock, ids and randomness of a role's own ports are those of this
simulation: a role that puts them into a prompt or an argument comes out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.kernel.own_steps import is_own_step
from harness_core.kernel.projections.session import state_hash
from harness_core.kernel.state import SessionState
from harness_hookspecs.errors import Diverged, Drift, HarnessError
from harness_hookspecs.host import CancelToken, Ports
from harness_hookspecs.store import StoredEvent

from .call_limits import TIME_LIMITS
from .machine import SessionMachine
from .ports.strand import Abandoned
from .replay import CONTROL_TYPES, Difference, ReplayReport
from .replay_role import ended_from_outside
from .simulate_answers import Answers
from .simulate_loop import Asked, RoleRun, SimulatedLoop
from .simulate_record import Record, call_id_of
from .simulate_unsaid import unsaid

__all__ = ["SimulationSite", "replay_simulated"]

_MOMENT_SECONDS = 1e-6
_PATIENCE_SECONDS = (_MOMENT_SECONDS, 1.0, 60.0)
"""Virtual: the first passes when nobody else can go on, the others let a role sleep that wants to."""

_OF_ROLES = frozenset(
    {
        "approval.requested", "budget.exhausted", "budget.reserved", "budget.settled", "child.requested",
        "effect.in_doubt",
    }
)  # fmt: skip
_OUTCOMES = frozenset(
    {
        "child.completed", "child.exhausted", "child.failed", "compile.failed", "context.assembled", "context.failed",
        "external.timed_out", "timer.elapsed", "validation.passed", "validation.failed", "validation.errored",
        "workflow.version_registered",
    }
)  # fmt: skip


class SimulationSite(Protocol):
    """What a simulation cannot do by itself."""

    def run_role(self, state: SessionState, call: RoleRun) -> Any:
        """Run a role call with its own code, its calls answered by ``call``; gives the command that ends it."""

    def migrate(self, event: Event) -> None:
        """The session goes on under the configuration of this ``config.migrated``."""


def replay_simulated(
    events: Sequence[StoredEvent], machine: SessionMachine, site: SimulationSite, ports: Ports
) -> ReplayReport:
    """Run a session again on its own record.

    Args:
        events: The whole stream.
        machine: The kernel under the recorded configuration.
        site: Runs roles, and follows the session to another configuration.
        ports: Simulated ones, in which time passes only when nobody can go on; the caller is their main participant.

    Returns:
        The report; ``diverged`` names the first event that comes out otherwise.

    Raises:
        BaseException: Whatever ended a role call, or a decision, that is no difference to the record.
    """
    return _Simulation(Record(events), machine, site, ports).run()


class _Simulation:
    def __init__(self, record: Record, machine: SessionMachine, site: SimulationSite, ports: Ports) -> None:
        self.record, self.machine, self.ports = record, machine, ports
        self._site = site
        self.state = machine.new_state()
        self._asked: list[Asked] = []
        self._runs: dict[str, RoleRun] = {}
        self._expected: list[Fact] = []
        self._entered: set[str] = set()
        self._difference: Difference | None = None
        self._changes = 0
        self._changed = ports.wait.event()

    def run(self) -> ReplayReport:
        while self._difference is None and self.record.next is not None:
            if not self._step(self.record.next) and not self._others() and not self._given_up():
                self._stuck(self.record.next)
        for run in self._runs.values():
            run.alive = False
        self.changed()
        return ReplayReport(
            mode="simulate",
            events=self.record.seq,
            state_hash=state_hash(self.state),
            equal=self._difference is None,
            roles_entered=len(self._entered),
            diverged=self._difference,
        )

    # -- what the strands of roles use ---

    def ask(self, command: Any, run: RoleRun) -> Any:
        """Lay a command down and wait until it is its turn."""
        asked = Asked(command, run, self.ports.wait.event())
        if not run.alive:
            raise Abandoned
        self._asked.append(asked)
        self.changed()
        asked.flag.wait()
        if not run.alive:
            raise Abandoned
        if asked.error is not None:
            raise asked.error
        return asked.reply

    def wait_for(self, holds: Callable[[], bool], run: RoleRun, cancel: CancelToken | None = None) -> None:
        """Block until it holds; it is looked at whenever something has happened."""
        while run.alive and not holds():
            self._changed.wait(None, cancel)
        if not run.alive:
            raise Abandoned

    def changed(self) -> None:
        """Let everyone who waits look again."""
        self._bury()
        self._changes += 1
        flag, self._changed = self._changed, self.ports.wait.event()
        flag.set()
        gone = [asked for asked in self._asked if not asked.run.alive]
        self._asked = [asked for asked in self._asked if asked.run.alive]  # what the dead asked, nobody writes
        for asked in gone:
            asked.flag.set()

    # -- one event ---

    def _step(self, event: Event) -> bool:
        """Have the next event happen again; ``False`` when somebody must do something first."""
        if any(run.error is not None for run in self._runs.values()):
            return self._broken(event)
        if self._cut_off(event) or self._take_asked(event):
            return True
        if self._is_decision(event):
            return self._decide()
        if event.type in _OUTCOMES and event.payload["effect_id"] not in self.state.open:
            return self._decide()  # nobody asked for it: a decision is missing before it
        if not _is_of_role(event):
            self._happen(event)
            return True
        return self._begin_role(event) or self._answer_without_facts()

    def _cut_off(self, event: Event) -> bool:
        """Have a role call end that reached a limit: how far it came in its time is the clock's word, and what the
        calls beside it had used when it asked for tokens is recorded nowhere else.
        """
        role_call_id = event.refs.get("role_call_id", "")
        if event.type not in ("harness.session.failed", "role.failed"):
            return False
        failed = next(self.record.ahead(role_call_id, "role.failed"), None)
        if failed is None or failed.payload["error"].get("code") not in {*TIME_LIMITS, "limits.max_tokens"}:
            return False
        if (run := self._runs.get(role_call_id)) is not None:
            run.alive = False
        self._happen(event)
        return True

    def _take_asked(self, event: Event) -> bool:
        """Take the command that writes the next event, if it was laid down; what came too late comes from outside."""
        if event.type == "effect.ignored":
            return False
        for asked in self._asked:
            decision = self._decision_of(asked)
            if decision is not None and decision.facts and _is_about(event, decision.facts[0]):
                self._asked.remove(asked)
                self._write(decision)
                if event.refs.get("role_call_id") not in self._entered and self._ended(asked.run):
                    self._entered.add(asked.run.answers.role_call_id)
                asked.reply = decision.reply
                asked.flag.set()
                self.changed()
                return True
        return False

    def _decision_of(self, asked: Asked) -> Decision | None:
        try:
            return self.machine.decide(asked.command, self.state)
        except HarnessError:
            return None

    def _ended(self, run: RoleRun) -> bool:
        return run.effect_id not in self.state.open

    def _answer_without_facts(self) -> bool:
        """Answer a command that leaves no trace: a refusal, or a question that stands already."""
        for asked in self._asked:
            try:
                decision = self.machine.decide(asked.command, self.state)
            except HarnessError as error:
                asked.error = error
                decision = Decision()
            if not decision.facts:
                self._asked.remove(asked)
                asked.reply = decision.reply
                asked.flag.set()
                self.changed()
                return True
        return False

    def _is_decision(self, event: Event) -> bool:
        if self._expected:
            return self._expected[0].type == event.type or event.type in CONTROL_TYPES or is_own_step(event)
        gate = event.type == "approval.requested" and "role_call_id" not in event.payload
        return event.type in CONTROL_TYPES or gate or is_own_step(event)

    def _decide(self) -> bool:
        if not self._expected:
            decision = self.machine.advance(self.state, frozenset())
            self.machine.check(decision)
            self._expected = list(decision.facts)
        if self._expected:
            self._compare(self._expected.pop(0))
        else:
            self._difference = self._sides(None)
        self.changed()
        return True

    def _write(self, decision: Decision) -> None:
        self.machine.check(decision)
        for fact in decision.facts:
            due = self.record.next
            if due is not None and due.type != fact.type and self._cut_off(due):
                return
            if self._difference is None:
                self._compare(fact)

    def _compare(self, fact: Fact) -> None:
        seq = self.record.seq + 1
        self._difference = self.record.difference(fact, self.machine.version(fact.type), seq=seq)
        if self._difference is None:
            self._fold(self.record.events[seq - 1])

    def _happen(self, event: Event) -> None:
        """What comes from outside happens as recorded."""
        self._fold(event)
        if event.type == "config.migrated":
            self._site.migrate(event)
        reason = self.state.cancelling
        for run in [one for one in self._runs.values() if one.alive]:
            if self.state.final:
                run.cancel.cancel("closed")
            elif reason is not None and self.record.heard(run.answers.role_call_id, reason):
                run.cancel.cancel(reason)
        self.changed()

    def _fold(self, event: Event) -> None:
        self.machine.evolve(self.state, event)
        self.record.seq = event.seq
        self._bury()

    def _bury(self) -> None:
        for run in [one for one in self._runs.values() if one.began_at < self.record.seq]:
            run.alive = run.alive and not self.record.dies(run.answers.role_call_id)

    # -- roles ---

    def _begin_role(self, event: Event) -> bool:
        """Run the role call that the event belongs to, unless it runs."""
        role_call_id = event.refs["role_call_id"]
        run = self._runs.get(role_call_id)
        if run is not None and (run.alive or run.began_at == self.record.seq):
            return False
        request = self.state.open_of(role_call_id)
        if request is None:
            return False
        cancel, late_cancel = self.ports.wait.token(), self.ports.wait.token()
        if self.state.cancelling is not None and self.record.heard(role_call_id, self.state.cancelling):
            cancel.cancel(self.state.cancelling)
        loop = SimulatedLoop(self)
        answers = Answers(
            self.record,
            role_call_id,
            self.machine.blob,
            lambda holds: self.wait_for(holds, loop.run),
            self.changed,
        )
        prior, again = self.record.until_now(), run is not None
        loop.run = RoleRun(request.effect_id, answers, loop, prior, again, cancel, late_cancel, self.record.seq)
        self._runs[role_call_id] = loop.run
        self.record.begins(role_call_id)
        self.ports.spawn(self._play, loop.run, name="role")
        return True

    def _play(self, run: RoleRun) -> None:
        try:
            self.ask(self._site.run_role(self.state, run), run)
        except Abandoned:
            pass  # its process died here, or the simulation is over
        except BaseException as error:
            run.error = error  # nobody joins a role: whatever it is, who waits for its events raises it
            raise
        finally:
            run.alive = False
            self.changed()

    def _others(self) -> bool:
        """Let everybody else go on until nobody can; whether anything happened."""
        for seconds in _PATIENCE_SECONDS:
            before = self._changes
            self.ports.clock.sleep(seconds)
            if self._changes != before:
                return True
        return False

    def _given_up(self) -> bool:
        """Nobody goes on by himself, so what the record does not say happens now; whether anything did."""
        found = unsaid([run for run in self._runs.values() if run.alive], self._asked, self.state, self.record)
        self.changed()
        return found

    # -- the end ---

    def _stuck(self, event: Event) -> None:
        """Nobody writes the next event: a role call was ended from outside, or something else was asked."""
        role_call_id = event.refs.get("role_call_id", "")
        failed = next(self.record.ahead(role_call_id, "role.failed"), None)
        if failed is not None and ended_from_outside(failed.payload["error"]):
            run = self._runs.get(role_call_id)
            if run is not None:
                run.alive = False
            self._happen(event)
            return
        waiting = [one for one in self._asked if one.run.answers.role_call_id == role_call_id]
        decision = self._decision_of(waiting[0]) if waiting else None
        self._difference = self._sides(decision.facts[0] if decision is not None and decision.facts else None)

    def _broken(self, event: Event) -> bool:
        """A role stopped the session: it asked something else than is recorded, or is another one; anything else that
        it ended by is raised."""
        error = next(run.error for run in self._runs.values() if run.error is not None)
        if not isinstance(error, Diverged | Drift):
            raise error
        seq = int(error.facts.get("seq", event.seq))
        recorded = self.record.events[seq - 1]
        sides = {"type": recorded.type, "payload": dict(recorded.payload)}
        self._difference = Difference(seq, sides, {"error": error.message, **error.facts})
        return True

    def _sides(self, fact: Fact | None) -> Difference:
        event = self.record.events[self.record.seq]
        replayed = None if fact is None else {"type": fact.type, "payload": fact.payload}
        return Difference(event.seq, {"type": event.type, "payload": dict(event.payload)}, replayed)

    def is_asking(self, approval_id: str, run: RoleRun) -> bool:
        """Whether somebody is being asked: until the record says that the call suspends, or others wait for it to."""
        return approval_id not in run.answers.left and not self.record.suspends(run.answers.role_call_id)


def _is_of_role(event: Event) -> bool:
    """Whether a role call writes it; what people and the clock did to one happens by itself."""
    if "role_call_id" not in event.refs:
        return False
    probed = event.type == "effect.settled" and event.payload["kind"] == "probe"
    return event.type in _OF_ROLES or event.type.startswith(("harness.", "role.")) or probed


def _is_about(event: Event, fact: Fact) -> bool:
    """Whether a fact stands where the event does: of the same kind, in the same role call, about the same call."""
    one, other = ((it.type, it.refs.get("role_call_id"), call_id_of(it)) for it in (event, fact))
    return one == other
