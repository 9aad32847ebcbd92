"""Ways to look for a bug: a place and a seed in, what is found to be wrong there out, nothing where nothing is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from harness_core.kernel.evolve import evolve
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.snapshot import snapshot_of
from harness_core.kernel.state import SessionState
from harness_core.kernel.upcast import UPCASTERS
from harness_core.shell import snapshots
from harness_core.shell.machine import SessionMachine
from harness_core.shell.redaction import MARK, ChunkRedactor, Redactor
from harness_core.shell.snapshots import fold_on
from harness_executor_agent.executor import AgentExecutor
from harness_executor_agent.step import request_id, task
from harness_hookspecs.contracts.rules import failing_rules
from harness_hookspecs.contracts.store import StoreContract
from harness_hookspecs.errors import HarnessError, Refused
from harness_hookspecs.events import EVENTS
from harness_hookspecs.executor import Fail, Finish, Outcome, Request, RoleCall, StageInput, Timer
from harness_hookspecs.kit import codec
from harness_hookspecs.store import GENESIS_HASH, Draft, Head, Store
from harness_store_memory.log import chained
from harness_store_memory.settings import Settings
from harness_store_memory.store import MemoryStore, open_store
from harness_tool_filesystem import paths
from tests.reference import Site
from tests.simulation.storm import CALM, CANCEL, CRASH, DENIED, FOREIGN, JUMPS, PARKED_MS, Weather, judged, play

__all__ = ["HUNTS", "Hunt"]

Hunt = Callable[[Site, int], Iterable[Any]]
"""A seed that finds nothing gives nothing; an error that no weather excuses is a find, too."""


def _in(weather: Weather) -> Hunt:
    def hunt(site: Site, seed: int) -> Iterable[Any]:
        try:
            return judged(play(site, seed, weather), weather)
        except (HarnessError, AssertionError) as error:
            return [error]

    return hunt


calm, foreign, cancel, crash, jumps, denied = map(_in, (CALM, FOREIGN, CANCEL, CRASH, JUMPS, DENIED))


# ------------------------------------------------------------------------------------- things between two owners


def _stale_snapshot(store: Store, stream: str) -> None:
    """A snapshot that says it stands at the end and was made of another log, which was a little shorter."""
    state, end = SessionState(session_id=stream.partition(":")[2]), store.head(stream).seq
    for stored in store.read(stream, until=end - 6):
        evolve(state, decoded(stored))
    state.seq = end
    store.put_snapshot(stream, end, snapshots._MAKER, bytes(32) + snapshot_of(state))


def _snapshots(store: Store, stream: str) -> None:
    """What a long log has many of: the next owner goes on from one."""
    nothing: Any = None
    fold_on(store, SessionMachine(stream.partition(":")[2], nothing, store.blob), events_apart=7)


stale = _in(CALM._replace(between=_stale_snapshot))
cached = _in(CRASH._replace(between=_snapshots))


def newer(site: Site, seed: int) -> Iterable[Any]:
    """A newer version has written between two owners; whoever does not know its events may not go on."""

    def write(store: Store, stream: str) -> None:
        draft = Draft(f"newer-{seed}-{store.head(stream).seq}", "session.paint", 1, "system", _THEN, b"{}", b"{}")
        store.append(stream, [draft], expected_seq=None)

    try:
        played = play(site, seed, CALM._replace(between=write))
    except HarnessError as error:
        return [] if error.code == "store.newer_events" else [error]
    return [f"{played.status} with events of another version"]


_THEN = "2026-01-01T00:00:00.000Z"


# ------------------------------------------------------------------------------------------------ an older version

_CHANGED = "retry.scheduled"
"""The type that is taken to have had another form in version 1."""


def _older(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"visit": payload["visit_id"], **{name: value for name, value in payload.items() if name != "visit_id"}}


def _today(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"visit_id": payload["visit"], **{name: value for name, value in payload.items() if name != "visit"}}


def _rewritten(store: Store, stream: str) -> None:
    """All of the log as the older version would have written it."""
    assert isinstance(store, MemoryStore)
    written = store._log.streams[stream]
    drafts = []
    for event in written.events:
        draft = Draft(*event[3:10])
        if event.type == _CHANGED and event.version == 2:
            draft = draft._replace(version=1, payload=codec.dumps(_older(codec.loads(event.payload))))
        drafts.append(draft)
    written.events[:] = chained(stream, Head(0, GENESIS_HASH), written.events[0].position - 1, drafts)
    written.head = Head(len(drafts), written.events[-1].hash)


def older(site: Site, seed: int) -> Iterable[Any]:
    """Between two owners the log becomes one of an older version, which the next owner reads as of today."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EVENTS, _CHANGED, EVENTS[_CHANGED]._replace(version=2))
        patch.setitem(UPCASTERS, (_CHANGED, 1), _today)
        try:
            return _in(CALM._replace(between=_rewritten))(site, seed)
        except KeyError as error:  # what is missing in the older form
            return [error]


# ------------------------------------------------------------------------------------------------------- branches


class _Hasty:
    """An executor with two calls side by side that would go on with the one that has ended first."""

    def start(self, given: StageInput) -> Any:
        return {"given": given.to_wire(), "first": None}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return {**state, "first": state["first"] or outcome.to_wire()}

    def next(self, state: Any) -> tuple[Request, ...]:
        if first := state["first"]:
            error = first.get("error") or {}
            return (Finish(output=first["value"]) if first["ok"] else Fail(code=error["code"], message="Failed."),)
        asked = task(state["given"])
        where = asked["stepContext"]
        names = [f"{request_id(state['given'])}.{branch}" for branch in range(2)]
        return tuple(
            RoleCall(
                request_id=name, role="worker.ai-generate", task=asked, step_path=where["stepPath"],
                visit_index=where["visitIndex"],
            )
            for name in names
        )  # fmt: skip


def branches(site: Site, seed: int) -> Iterable[Any]:
    """Whatever an executor has in mind, nothing follows from a part of what was asked for."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("start", "apply", "next"):
            patch.setattr(AgentExecutor, name, getattr(_Hasty, name))
        return calm(site, seed)


class _Waiting(_Hasty):
    """An executor with one call beside a timer that is due soon and one for which nobody stays; it waits for all."""

    def start(self, given: StageInput) -> Any:
        return {"given": given.to_wire(), "ended": {}}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return {**state, "ended": {**state["ended"], outcome.request_id: outcome.to_wire()}}

    def next(self, state: Any) -> tuple[Request, ...]:
        name, ended = request_id(state["given"]), state["ended"]
        asked = [*_Hasty.next(self, {**state, "first": None})[:1]]
        asked += [Timer(request_id=f"{name}.wait.{ms}", delay_ms=ms) for ms in (4, PARKED_MS)]
        left = tuple(one for one in asked if one.request_id not in ended)  # type: ignore[union-attr]
        return left or _Hasty.next(self, {**state, "first": ended[f"{name}.0"]})


def timers(site: Site, seed: int) -> Iterable[Any]:
    """A session that is given back for a timer, and gone on with when that is due."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("start", "apply", "next"):
            patch.setattr(AgentExecutor, name, getattr(_Waiting, name))
        return calm(site, seed)


# ---------------------------------------------------------------------------------------------- contracts


def contract(site: Site, seed: int) -> Iterable[Any]:
    """The rules of the store's contract about heads and keys."""
    rules = {"store.expected_seq", "store.race", "store.keys_repeat", "store.key_conflict"}
    return failing_rules(StoreContract, lambda suite: open_store(Settings(), suite.host), only=rules)


def chunks(site: Site, seed: int) -> Iterable[Any]:
    """A secret in a text that arrives in pieces."""
    chance = random.Random(seed)
    secret, redactor = f"secret-{chance.getrandbits(64):x}", Redactor()
    redactor.register(secret)
    text, stream, shown = f"The key is {secret}, keep it.", ChunkRedactor(redactor), ""
    while text:
        length = chance.randint(1, 9)
        shown, text = shown + stream.feed(text[:length]), text[length:]
    shown += stream.rest()
    return [] if shown == f"The key is {MARK}, keep it." else [shown]


def ways(site: Site, seed: int) -> Iterable[Any]:
    """A path of random parts; one that climbs is refused, wherever it would come out."""
    chance = random.Random(seed)
    path = "/".join(chance.choices(("..", "project-old", "a", ".", "b"), k=chance.randint(1, 4)))
    try:
        found = paths.parse_path(path)
    except Refused:
        return [] if ".." in path.split("/") else [path]
    return [f"{path} is taken for {found}"] if ".." in path.split("/") else []


HUNTS: Mapping[str, Hunt] = {
    "calm": calm,
    "foreign": foreign,
    "cancel": cancel,
    "crash": crash,
    "jumps": jumps,
    "denied": denied,
    "stale snapshot": stale,
    "snapshots": cached,
    "newer": newer,
    "older": older,
    "branches": branches,
    "timers": timers,
    "contract": contract,
    "chunks": chunks,
    "paths": ways,
}
