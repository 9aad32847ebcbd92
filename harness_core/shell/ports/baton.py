"""A seed in, one order of steps of several threads out: exactly one runs, and at each call the seed picks the next.

Threads of the operating system pass a baton. Time is virtual: it jumps to the earliest timer when nobody can run, and,
with a probability that belongs to the seed, also when somebody could.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from harness_hookspecs.errors import InternalError

from .crew import run_on_thread
from .strand import Abandoned, Strand, Switch, place_of
from .watchdog import watch

__all__ = ["Baton"]

T = TypeVar("T")

_FLOWS = (0.0, 0.1, 0.3)
_LATENCIES_SECONDS = (0.0, 0.001, 0.05, 1.0)
_TRACE_LENGTH = 20_000
_STEPS_AT_ONE_INSTANT = 1_000_000
_STEPS_WITHOUT_MAIN = 3_000_000
_UNWIND_SECONDS = 2.0


class Baton:
    """The order of steps. The thread that makes it is the main participant and holds the baton first.

    Args:
        seed: Decides every pick, and how time flows.
        watchdog_seconds: Real time without a step after which all stacks are dumped.

    Attributes:
        flow: How likely the earliest timer fires at a pick although somebody is ready.
        now_ns: Virtual nanoseconds since the start.
        trace: The last steps, for debugging.
    """

    def __init__(self, seed: int, *, watchdog_seconds: float) -> None:
        self.watchdog_seconds = watchdog_seconds
        self._chance = random.Random(f"{seed}/switches")  # a text as seed is hashed by SHA-512: the same everywhere
        self.flow = self.choose(_FLOWS)
        self._latency_seconds = self.choose(_LATENCIES_SECONDS)
        self.now_ns = 0
        self.trace: deque[Switch] = deque(maxlen=_TRACE_LENGTH)
        self.main = self.holder = Strand("main")
        self.main.ident, self.main.started = threading.get_ident(), True
        self._living: dict[Strand, None] = {self.main: None}
        self._ready: list[Strand] = []
        self._timers: list[tuple[int, int, int, Strand]] = []
        self._numbers, self._timer_numbers = itertools.count(1), itertools.count()
        self._steps = self._moved_at_step = self._main_at_step = 0
        self._crashed: list[str] = []
        self._closed = False
        self._outside = 0  # inside real calls that may take their time
        watch(self)

    # -- what a port does -----------------------------------------------------------------------------------------

    def call(self, what: str) -> None:
        """A switch point: anybody who is ready may run before this returns."""
        if self._closed:
            return self._unwind(blocking=False)
        me = self._me()
        self._ready.append(me)
        self._pass_on(me)
        self.trace.append(Switch(self.now_ns, me.name, what))
        return None

    def block(self, what: str, timeout_seconds: float | None = None) -> bool:
        """Wait until somebody wakes this strand; ``False`` when its time ran out first."""
        if self._closed:
            self._unwind(blocking=True)
        me = self._me()
        me.waits, me.blocked, me.woken = what, True, False
        me.turn += 1
        if timeout_seconds is not None and timeout_seconds < math.inf:
            at_ns = self.now_ns + max(0, math.ceil(timeout_seconds * 1e9))  # never a little too early
            heapq.heappush(self._timers, (at_ns, next(self._timer_numbers), me.turn, me))
        try:
            self._pass_on(me)
        finally:
            me.waits, me.blocked = "", False
        self.trace.append(Switch(self.now_ns, me.name, f"{what}: {'woken' if me.woken else 'timeout'}"))
        return me.woken

    def wake(self, strand: Strand) -> None:
        """Let a blocked strand go on when its turn comes; harmless for any other."""
        if strand.blocked:
            strand.blocked, strand.woken = False, True
            self._ready.append(strand)

    def begin(self, name: str, body: Callable[[], object]) -> Strand:
        """A new strand that is ready to run."""
        strand = Strand(f"{name}-{self.number()}", body)
        self._living[strand] = None
        self._ready.append(strand)
        return strand

    def linger(self, what: str) -> None:
        """Let some virtual time pass, as much as the seed draws."""
        if self._latency_seconds and not self._closed:
            self.block(what, self._latency_seconds * self._chance.random())

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Around a real call that may take long: the watchdog looks away."""
        self._outside += 1
        try:
            yield
        finally:
            self._outside -= 1

    def number(self) -> int:
        """A number for a name; each is given once."""
        return next(self._numbers)

    def choose(self, among: tuple[T, ...]) -> T:
        """One of them, as the seed decides."""
        return among[int(self._chance.random() * len(among))]

    # -- the baton ------------------------------------------------------------------------------------------------

    def _me(self) -> Strand:
        me = self.holder
        if me.ident == threading.get_ident():
            return me
        self._unwind(blocking=True)  # a strand that was given up for lost and comes back
        raise AssertionError

    def _pass_on(self, me: Strand) -> None:
        following = self._pick()
        if following is not me:
            self.holder = following
            self._go(following)
            me.gate.acquire()
        if me.failure is not None:
            failure, me.failure = me.failure, None
            raise failure
        if self._closed:
            self._unwind(blocking=True)

    def _pick(self) -> Strand:
        self._steps += 1
        self._fire()
        if self._timers and (not self._ready or (self.flow and self._chance.random() < self.flow)):
            self.now_ns, self._moved_at_step = self._timers[0][0], self._steps
            self._fire()
        if not self._ready:
            return self._stop("simulation.deadlock", f"nobody can go on: {self.who_waits()}")
        if self._steps - self._moved_at_step > _STEPS_AT_ONE_INSTANT:
            return self._stop("simulation.livelock", f"time stands still: {self.who_waits()}")
        if self._steps - self._main_at_step > _STEPS_WITHOUT_MAIN:
            return self._stop("simulation.livelock", f"main waits while others go round: {self.who_waits()}")
        picked = self._ready.pop(int(self._chance.random() * len(self._ready)))
        if picked is self.main:
            self._main_at_step = self._steps
        return picked

    def _fire(self) -> None:
        """Make everyone ready whose time has come; timers of waits that ended otherwise are dropped."""
        timers = self._timers
        while timers:
            at_ns, _, turn, strand = timers[0]
            current = strand.blocked and strand.turn == turn
            if current and at_ns > self.now_ns:
                return
            heapq.heappop(timers)
            if current:
                strand.blocked = False
                self._ready.append(strand)

    def _stop(self, code: str, message: str) -> Strand:
        """Nothing good can follow: the main participant gets an error where it waits, and the baton."""
        self._moved_at_step = self._main_at_step = self._steps
        self.main.failure = InternalError(
            message, code=code, last_steps=[" ".join(map(str, step)) for step in list(self.trace)[-20:]]
        )
        self.main.blocked = False
        if self.main in self._ready:
            self._ready.remove(self.main)
        return self.main

    def _go(self, strand: Strand) -> None:
        if strand.started:
            strand.gate.release()
        else:
            strand.started = True
            run_on_thread(lambda: self._run(strand))

    def _run(self, strand: Strand) -> None:
        strand.ident = threading.get_ident()
        threading.current_thread().name = strand.name
        try:
            assert strand.body is not None
            strand.body()
        except BaseException as error:  # handed over to whoever joins
            strand.error = error
            if not isinstance(error, Abandoned):
                self._crashed.append(f"{strand.name} ended with {type(error).__name__}: {error}")
        strand.body = None
        strand.ended = True
        self._living.pop(strand, None)
        if not self._closed and self.holder is strand:
            self.trace.append(Switch(self.now_ns, strand.name, "ends"))
            for joiner in strand.joiners:
                self.wake(joiner)
            self.holder = following = self._pick()
            self._go(following)
        strand.over.release()

    # -- ends -----------------------------------------------------------------------------------------------------

    def _unwind(self, *, blocking: bool) -> None:
        """What a call does once the simulation is over, or without its caller: each strand is told once, by an
        exception; while it unwinds, only waiting is refused again."""
        ident = threading.get_ident()
        strand = next((one for one in self._living if one.ident == ident), None)
        if strand is None or strand is self.main:
            if not blocking:
                return
            name = threading.current_thread().name
            raise InternalError(f"{name} takes no part in the simulation, or it is over", code="simulation.stranger")
        if blocking or not strand.told:
            strand.told = True
            raise Abandoned

    def close(self) -> None:
        """Unwind every strand that has not ended, one after the other; called by the main participant."""
        if self._closed:
            return
        self._closed = True
        for strand in list(self._living):
            if strand is self.main or not strand.started:
                continue
            if strand is not self.holder:
                strand.gate.release()
            strand.over.acquire(timeout=_UNWIND_SECONDS)
        self._living.clear()
        self._ready.clear()
        self._timers.clear()

    def pulse(self) -> int | None:
        """For the watchdog: the number of steps, ``None`` while nothing has to happen."""
        idle = self._closed or self._outside or len(self._living) == 1
        return None if idle else self._steps

    def give_up(self) -> None:
        """For the watchdog: the holder blocks for real, so the main participant is told, unless it is the one."""
        stuck = self.holder
        if stuck is self.main or self._closed:
            return
        stack = place_of(stuck)
        self._stop("simulation.blocked", f"{stuck.name} blocks on what is no port, {stack}: {self.who_waits()}")
        self.holder = self.main
        self.main.gate.release()

    def who_waits(self) -> str:
        """Every living participant, what it waits for and where, and who has died of an error."""
        lines = [f"{one.name} {self._does(one)} {place_of(one)}" for one in list(self._living)]
        return "; ".join([*lines, *self._crashed])

    def _does(self, strand: Strand) -> str:
        if strand is self.holder and not strand.waits:
            return "runs"
        return f"waits for {strand.waits or 'its turn'}"
