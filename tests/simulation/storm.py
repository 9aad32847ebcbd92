"""A session with every kind of effect in, how it went in a weather and under a seed out; the checker judges it.

A weather is what happens around the session: nothing, another writer of its stream, a cancel at some instant, a crash
at some boundary, a clock that jumps, a person who says no. Everything is drawn from the seed: the same seed plays the
same session again.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest

from harness_core import Host
from harness_core.kernel.checking.check import check
from harness_core.kernel.checking.history import Broken, Happened, History
from harness_core.shell.assembly import Assembly
from harness_core.shell.ports.failpoints import Failpoints
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_core.shell.ports.world import timestamp_of
from harness_core.shell.session_parts import SessionParts
from harness_hookspecs.errors import HarnessError, IllegalMove, InternalError
from harness_hookspecs.host import CancelToken
from harness_hookspecs.store import Draft, Head, Store, StoredEvent
from harness_store_memory.log import Log
from harness_store_memory.store import _LOGS, MemoryStore
from tests.reference import PATIENCE_SECONDS, Site, calls, says, write_site

__all__ = [
    "CALM", "MEMORY", "PARKED_MS", "Played", "Weather", "foreign", "judged", "play", "unlimited", "write_storm",
    "write_waiting",
]  # fmt: skip

MEMORY: Mapping[str, Any] = {"store": {"plugin": "memory", "name": "storm"}}
"""A log that outlives its host, as long as this process lives."""

TEXT = "Weather it."
PARKED_MS = 60_000
"""A timer for which a session is given back."""
_MAX_OWNERS = 40
_BOUNDARIES = 90  # so many an owner reaches at most
_CRASHING = 2  # so many owners may crash
_FINAL = ("completed", "failed", "cancelled")
_USAGE = {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 4, "reasoningTokens": 2, "known": True}

Beside = Callable[[SimulatedPorts, Host, str], None]


class Weather(NamedTuple):
    """What happens around a session."""

    ends: frozenset[str] = frozenset({"completed"})
    beside: Beside | None = None
    crashes: bool = False
    jumps: bool = False
    gate: str = "approve"
    hasty: bool = False  # people answer and settle also where the owner has died, before another one goes on
    between: Callable[[Store, str], None] | None = None  # done to the store while nobody runs the session


CALM = Weather()


@attrs.frozen
class Played:
    """How a session went, and all that was seen of it."""

    stream: str
    status: str
    state_hash: str | None
    events: tuple[StoredEvent, ...]
    head: Head
    content: Mapping[str, bytes]
    acknowledged: tuple[tuple[int, str], ...]
    happened: tuple[tuple[Happened, str], ...]  # each with its note
    crashes: int = 0

    def history(self) -> History:
        """As the checker takes it."""
        return History(
            self.stream,
            self.events,
            self.head,
            content=self.content.__getitem__,
            acknowledged=self.acknowledged,
            happened=[line for line, _ in self.happened],
            crashes=self.crashes,
            state_hash=self.state_hash,
        )

    def notes(self) -> list[str]:
        """The notes of what may not happen twice, in alphabetical order."""
        return sorted(note for line, note in self.happened if line.tool != "effects_pure")


def judged(played: Played, weather: Weather = CALM) -> tuple[Broken, ...]:
    """What is broken, by the checker's word, and an end that this weather does not lead to."""
    broken = check(played.history()).broken
    if played.status in weather.ends:
        return broken
    return (*broken, Broken("I-20", len(played.events), f"the session ended as {played.status}"))


# ------------------------------------------------------------------------------------------------------ the session


def write_storm(root: Path) -> Site:
    """Two stages, calls side by side, every effect class, two approvals, a retry and cached tokens."""
    stages = {
        "initial": "work",
        "stages": {
            "work": {
                "role": "worker",
                "task": "Do the work.",
                "allowed_tools": ["effects"],
                "transitions": [{"when": 'artifact.status == "success"', "goto": "check"}],
                "on_failure": "failed",
            },
            "check": {
                "role": "checker",
                "task": "Check it.",
                "approvals": {"artifact": "required"},
                "retry": {"strategy": "corrective", "max_attempts": 2},
                "on_success": "completed",
                "on_failure": "failed",
            },
        },
    }
    slow = ("slow", {"note": "d", "seconds": 0.004, "deaf": True})
    first = calls(("pure", {"note": "a"}), ("keyed", {"note": "b"}), ("keyed", {"note": "c"}), slow)
    replies = [
        _reply("work", first, turn=1),
        _reply("work", calls(("unkeyed", {"note": "e"})), turn=2),
        _reply("work", calls(("network", {"note": "f"})), turn=3),
        _reply("work", says("The report."), turn=4),
        {"when": {"stage": "check", "attempt": 1}, "error": {"code": "provider.unavailable"}},
        _reply("check", says("It is good.")),
    ]
    harness = {**MEMORY, "run": {"cancel_grace_sec": 0.001}}
    tools = {"tools": {"effects": {"probes": False}}}
    return write_site(root, stages=stages, replies=replies, harness=harness, tools=tools)


def write_waiting(root: Path) -> Site:
    """One stage whose text says what is asked for: branches of role calls and timers (see harness-executor-probe)."""
    stages = {
        "initial": "work",
        "stages": {
            "work": {
                "role": "worker",
                "executor": "branches",
                "allowed_tools": ["effects"],
                "on_success": "completed",
                "on_failure": "failed",
            }
        },
    }
    replies = [calls(("keyed", {"note": "a"}), ("slow", {"note": "b", "seconds": 0.002})), says("done", delay_ms=2)]
    harness = {**MEMORY, "run": {"cancel_grace_sec": 0.001}}
    return write_site(root, stages=stages, replies=replies, harness=harness)


def _reply(stage: str, said: Mapping[str, Any], **when: int) -> dict[str, Any]:
    return {**said, "when": {"stage": stage, **when}, "usage": _USAGE}


def _unlimited(parts: SessionParts) -> SessionParts:
    return attrs.evolve(parts, validator_timeout_seconds=math.inf, approver_timeout_seconds=math.inf)


@contextmanager
def unlimited() -> Iterator[pytest.MonkeyPatch]:
    """Nothing is late: where time flows, any limit may strike before work that is ready, and a session has one end
    only where none does."""
    made = Assembly.session_parts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Assembly, "session_parts", lambda self: _unlimited(made(self)))
        yield patch


# ------------------------------------------------------------------------------------------------------ how it goes


def play(site: Site, seed: int, weather: Weather = CALM, *, text: str = TEXT) -> Played:
    """The session under one seed, gone on with by as many owners as it takes to its end.

    Raises:
        HarnessError: What no weather excuses.
        AssertionError: What an owner left is broken, or nobody comes to an end.
    """
    site.effects_file.unlink(missing_ok=True)
    _LOGS.clear()
    told: list[StoredEvent] = []
    chance = random.Random(f"{seed}/weather")
    found, crashes = "", 0
    for owner in range(_MAX_OWNERS):
        document: Mapping[str, Any] | None = None
        with SimulatedPorts(seed * _MAX_OWNERS + owner, watchdog_seconds=PATIENCE_SECONDS) as ports:
            _change(ports, chance, weather, owner)
            with Host.open(site.project, ports=ports, on_event=told.append) as host:
                if found and weather.between is not None:
                    weather.between(host.store, f"session:{found}")
                try:
                    document = _own(host, ports, found, weather, text)
                except HarnessError as error:
                    if error.code != "failpoint.raised":
                        raise
                    crashes += 1
        found = found or next((stream.removeprefix("session:") for stream in _log().streams), "")
        if not found:
            continue  # it died before it had begun
        played = _seen(found, document or {}, told, site, crashes)  # now that nobody writes any more
        if played.status in _FINAL:
            return played
        broken = check(played.history()).broken
        assert not broken, broken
    raise AssertionError(f"{_MAX_OWNERS} owners did not bring it to an end")


def _change(ports: SimulatedPorts, chance: random.Random, weather: Weather, owner: int) -> None:
    if weather.crashes and owner < _CRASHING:
        ports.failpoints = Anywhere(chance.randint(1, _BOUNDARIES))
    if weather.jumps:
        ports.clock = Jumping(ports.clock, chance)  # type: ignore[assignment]  # it is one in all that is asked of it


def _own(host: Host, ports: SimulatedPorts, found: str, weather: Weather, text: str) -> Mapping[str, Any]:
    """One owner's part: run or resume to a rest, then answer and settle what waits."""
    if not found:
        found = host.start(text, on_ask="suspend")
        others = [ports.spawn(weather.beside, ports, host, found, name="beside")] if weather.beside is not None else []
        document = host.wait(found)
        for other in others:
            other.join()
    else:
        document = host.session(found)
        if weather.hasty:
            _answer(host, document, weather)
        if document["status"] not in _FINAL:
            _let_time_pass(ports, document)
            document = host.resume(found, on_ask="suspend")
    _answer(host, document, weather)
    now: Mapping[str, Any] = host.session(found)
    return now


def _let_time_pass(ports: SimulatedPorts, document: Mapping[str, Any]) -> None:
    """Nobody is there until a timer is due, or a little less long; each owner's clock begins anew."""
    due = [waiting["until"] for waiting in document["waiting"] if waiting["kind"] == "timer"]
    if due:
        left = (datetime.fromisoformat(due[0]) - ports.clock.now()).total_seconds()
        ports.clock.sleep(max(0.0, left * ports.random.uniform(0.8, 1.2)))


def _answer(host: Host, document: Mapping[str, Any], weather: Weather) -> None:
    """What people say to all that waits."""
    for item in host.approvals():
        if item["kind"] == "approval":
            answer = weather.gate if item["subject"] == "artifact" else "approve"
            host.answer(item["id"], answer, digest=item["digest"])
    for waiting in document["waiting"]:
        if waiting["kind"] == "in_doubt":
            _settle(host, waiting["id"])


def _settle(host: Host, effect_id: str) -> None:
    """Say of an effect in doubt what the file outside says."""
    happened = effect_id in _keys(host)
    host.settle(effect_id, "happened" if happened else "never_happened", value={"done": "seen"} if happened else None)


def _keys(host: Host) -> set[str]:
    site = Site(Path(), {}, Path(os.environ["HARNESS_EFFECTS_FILE"]))
    return {line["key"] for line in site.effects()}


def _log() -> Log:
    [log] = _LOGS.values()
    return log


def _seen(
    found: str, document: Mapping[str, Any], told: list[StoredEvent], site: Site, crashes: int
) -> Played:
    log, stream = _log(), f"session:{found}"
    happened = [(Happened(line["tool"], line["key"]), line["args"].get("note", "")) for line in site.effects()]
    return Played(
        stream,
        document.get("status", ""),
        document.get("state_hash"),
        tuple(log.streams[stream].events),
        log.streams[stream].head,
        log.blobs,
        tuple((event.seq, event.id) for event in told if event.stream == stream),
        tuple(happened),
        crashes,
    )


# ------------------------------------------------------------------------------------------------------- the weather


def foreign(ports: SimulatedPorts, host: Host, found: str) -> None:
    """Another writer's events, through a store of its own, now and then in the middle of the session."""
    assert isinstance(host.store, MemoryStore)
    store = MemoryStore(host.store._log, ports)
    for number in range(4):
        ports.clock.sleep(ports.random.uniform(0.0, 0.004))
        for _ in range(int(ports.random.uniform(0.0, 60.0))):  # who sleeps where no time flows comes when all others do
            ports.clock.monotonic()
        payload = f'{{"effect_id":"foreign-{number}","reason":"from elsewhere"}}'.encode()
        draft = Draft(ports.ids.uuid7(), "effect.ignored", 1, "system", ports.clock.timestamp(), b"{}", payload)
        store.append(f"session:{found}", [draft], expected_seq=None)


def cancel(ports: SimulatedPorts, host: Host, found: str) -> None:
    """Somebody cancels it at some instant."""
    ports.clock.sleep(10 ** ports.random.uniform(-3.0, 2.0))  # how long the session takes differs as much
    with suppress(IllegalMove):  # it has ended already
        host.cancel(found)


class Anywhere(Failpoints):
    """Breaks whoever comes to the n-th boundary, whatever its name."""

    def __init__(self, nth: int) -> None:
        super().__init__("")
        self._left = nth

    def reach(self, name: str) -> None:
        super().reach(name)
        self._left -= 1
        if self._left == 0:
            raise InternalError(f"crashed at {name}", code="failpoint.raised")


class Jumping:
    """A clock whose time of day jumps by up to a day either way whenever it is looked at."""

    def __init__(self, clock: Any, chance: random.Random) -> None:
        self._clock, self._chance = clock, chance

    def now(self) -> datetime:
        now: datetime = self._clock.now()
        return now + timedelta(seconds=self._chance.uniform(-86_400, 86_400))

    def timestamp(self) -> str:
        return timestamp_of(int(self.now().timestamp() * 1000))

    def monotonic(self) -> float:
        return float(self._clock.monotonic())

    def sleep(self, seconds: float, cancel: CancelToken | None = None) -> None:
        self._clock.sleep(seconds, cancel)


FOREIGN = Weather(beside=foreign)
CANCEL = Weather(frozenset({"completed", "cancelled"}), beside=cancel)
CRASH = Weather(crashes=True)
HASTY = Weather(crashes=True, hasty=True)
JUMPS = Weather(jumps=True)
DENIED = Weather(frozenset({"failed"}), gate="deny")
