"""A log that says what may not be is found out, whatever its chain proves; one that nobody touched is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest

from harness_core import Host
from harness_core.kernel.checking.check import MAX_FINDINGS, check
from harness_core.kernel.checking.history import Broken, Happened, History
from harness_core.kernel.facts import effect_id
from harness_core.shell.verify import verify
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.errors import NotFound, StoreCorrupt
from harness_hookspecs.kit.canonical import digest as digest_of
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Draft, Head, StoredEvent
from harness_store_memory.log import chained
from harness_store_memory.settings import Settings
from harness_store_memory.store import MemoryStore, open_store
from tests.reference import REFERENCE, write_reference

MEMORY = {"store": {"plugin": "memory"}}


class Recorded(NamedTuple):
    """The reference session as it was played, and what was seen of it."""

    history: History
    content: dict[str, bytes]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with pytest.MonkeyPatch.context() as patch:
        site = write_reference(tmp_path_factory.mktemp("invariants"), harness=MEMORY).enter(patch)
        with Host.open(site.project) as host:
            found = host.run(REFERENCE, on_ask="suspend")["id"]
            [item] = host.approvals()
            host.answer(item["id"], "approve", digest=item["digest"])
            document = host.resume(found, on_ask="suspend")
            stream = f"session:{found}"
            events = tuple(host.events(found))
            yield Recorded(
                History(
                    stream,
                    events,
                    host.store.head(stream),
                    Head(events[-1].seq, events[-1].hash),
                    host.store.blob,
                    acknowledged=[(event.seq, event.id) for event in events],
                    happened=[Happened(line["tool"], line["key"]) for line in site.effects()],
                    state_hash=document["state_hash"],
                ),
                dict(host.store._log.blobs),
            )


class Log:
    """The events as drafts, to be changed; chained anew, as somebody would who wants to hide it."""

    def __init__(self, history: History) -> None:
        self.stream = history.stream
        self.events = [
            [Draft(e.id, e.type, e.version, e.actor, e.timestamp, e.refs, e.payload), json.loads(e.payload)]
            for e in history.events
        ]

    def at(self, event_type: str, nth: int = 0, **fields: Any) -> int:
        """Where the n-th event of that type stands whose payload holds those fields."""
        fits = [
            index
            for index, (draft, payload) in enumerate(self.events)
            if draft.type == event_type and fields.items() <= {n: v for n, v in payload.items() if n in fields}.items()
        ]
        return fits[nth]

    def change(self, index: int, **fields: Any) -> int:
        """Let the payload say something else; gives the seq."""
        self.events[index][1] = {**self.events[index][1], **fields}
        return index + 1

    def envelope(self, index: int, **fields: Any) -> int:
        """Let the envelope say something else; gives the seq."""
        self.events[index][0] = self.events[index][0]._replace(**fields)
        return index + 1

    def drop(self, index: int) -> int:
        """Leave an event out; gives the seq of the one in its place."""
        del self.events[index]
        return index + 1

    def again(self, index: int, at: int | None = None, **fields: Any) -> int:
        """Say the same once more, right after or elsewhere, under an id of its own; gives the seq."""
        draft, payload = self.events[index]
        place = index + 1 if at is None else at
        self.events.insert(place, [draft._replace(id=f"{draft.id[:-4]}{place:04x}"), {**payload, **fields}])
        return place + 1

    def history(self) -> History:
        """The whole again, with a chain that proves it."""
        drafts = [draft._replace(payload=dumps(payload)) for draft, payload in self.events]
        events = tuple(chained(self.stream, Head(0, b"\0" * 32), 0, drafts))
        return History(self.stream, events, Head(events[-1].seq, events[-1].hash))


def _decide_twice(log: Log) -> int:
    return log.again(log.at("approval.granted", kind="person"))


def _start_again(log: Log, effect_class: str) -> int:
    index = log.at("harness.tool_call.started", effectClass=effect_class)
    return log.again(index, at=log.at("harness.tool_call.succeeded", callId=log.events[index][1]["callId"]))


def _before_its_answer(log: Log) -> int:
    """Of two calls of one answer one comes into the log before the answer."""
    index = log.at("harness.tool_call.started", caller="model")
    started = log.events.pop(index)
    answered = max(at for at in range(index) if log.events[at][0].type == "harness.model.responded")
    log.events.insert(answered, started)
    return answered + 1


def _cancelled(log: Log) -> int:
    """A cancel is received in the middle, and the session goes on."""
    index = log.at("command.received")
    payload = {"command_id": "cancel:1", "kind": "cancel", "body": {}}
    before = log.at("harness.tool_call.started", toolName="effects_unkeyed")
    log.events.insert(before, [log.events[index][0]._replace(id="cancel"), payload])
    return before + 2


def _under_another(log: Log) -> int:
    """The unkeyed call runs under the approval of one before it, which is used a second time."""
    first, second = (log.at("harness.tool_call.started", toolName=f"effects_{name}") for name in ("keyed", "unkeyed"))
    return log.envelope(second, refs=log.events[first][0].refs)


def _unasked(log: Log) -> int:
    index = log.at("harness.tool_call.started", toolName="effects_unkeyed")
    refs = {**json.loads(log.events[index][0].refs), "causation_id": "nobody"}
    return log.envelope(index, refs=dumps(refs))


def _as_free(log: Log, cause: str) -> int:
    """A call that somebody was asked about, and approved, runs as one that nobody need be asked about."""
    index = log.at("harness.tool_call.started", toolName="effects_unkeyed")
    refs = {**json.loads(log.events[index][0].refs), "causation_id": cause}
    log.envelope(index, refs=dumps(refs))
    return log.change(index, tier="T0")


def _after_another(log: Log) -> int:
    """And right after the grant of another call."""
    first = log.events[log.at("harness.tool_call.started", toolName="effects_keyed")]
    return _as_free(log, json.loads(first[0].refs)["causation_id"])


def _bound_elsewhere(log: Log) -> int:
    index = log.at("approval.requested", name="effects_network")
    return log.change(index, args={"note": "something else"})


def _unanswered(log: Log) -> int:
    log.drop(log.at("command.received"))
    return log.at("approval.granted", kind="person") + 1


def _awaits_nothing(log: Log) -> int:
    """The log of a session that nobody will go on with: it awaits what was answered."""
    del log.events[log.at("approval.granted", kind="person") + 1 :]
    return len(log.events)


def _routed_elsewhere(log: Log) -> int:
    log.change(log.at("transition.taken"), target="completed")
    return log.at("stage.entered", 1) + 1


def _not_passed(log: Log) -> int:
    index = log.at("validation.passed", level="semantic")
    log.events[index][0] = log.events[index][0]._replace(type="validation.failed")
    return log.at("artifact.accepted") + 1


def _joined_early(log: Log) -> int:
    log.drop(log.at("role.returned"))
    return log.at("artifact.proposed") + 1


def _without_intent(log: Log, start: str, end: str) -> int:
    call_id = log.events[log.at(start)][1]["callId"]
    log.drop(log.at(start))
    return log.at(end, callId=call_id) + 1


def _without_result(log: Log) -> int:
    log.drop(log.at("harness.tool_call.succeeded"))
    return log.at("role.returned") + 1


def _spent(log: Log) -> int:
    """What was cached is counted once more."""
    answered = log.at("harness.model.responded")
    response = log.events[answered][1]["response"]
    usage = {**response["usage"], "cachedInputTokens": 4}
    log.change(answered, response={**response, "usage": usage})
    return log.change(log.at("budget.settled"), tokens=19)


def _elsewhere(log: Log, event_type: str) -> int:
    """An event says that it belongs to another stage visit and role call, of which there is nothing."""
    index = log.at(event_type)
    refs = json.loads(log.events[index][0].refs)
    named = {name: "nowhere" for name in ("role_call_id", "stage_visit_id") if name in refs}
    return log.envelope(index, refs=dumps({**refs, **named}))


def _beside(log: Log, index: int, event_type: str, nth: int = 0, **payload: Any) -> int:
    """An event of another type stands right before that one, and in the same place; gives its seq."""
    draft = log.events[index][0]
    log.events.insert(index, [draft._replace(id=f"{draft.id[:-4]}ffa{nth}", type=event_type), payload])
    return index + 1


def _doubted(log: Log, tool: str, nth: int = 0) -> int:
    """A call of that tool that has just been started is said to be in doubt."""
    index = log.at("harness.tool_call.started", toolName=f"effects_{tool}")
    draft, started = log.events[index]
    role_call_id = json.loads(draft.refs)["role_call_id"]
    payload = {
        "effect_id": effect_id(role_call_id, started["callId"], 1), "role_call_id": role_call_id,
        "call_id": started["callId"], "tool_name": started["toolName"], "args_digest": started["argsDigest"],
    }  # fmt: skip
    return _beside(log, index + 1, "effect.in_doubt", nth, **payload)


def _settled(log: Log, tool: str, nth: int = 0) -> int:
    """And that it is settled."""
    index = log.at("harness.tool_call.started", toolName=f"effects_{tool}")
    draft, started = log.events[index]
    effect = effect_id(json.loads(draft.refs)["role_call_id"], started["callId"], 1)
    return _beside(log, index + 1, "effect.settled", nth, effect_id=effect, outcome="happened", by="me", kind="person")


def _refused_before(log: Log) -> int:
    """A call that has failed already is started."""
    index = log.at("harness.tool_call.started")
    kept = {name: log.events[index][1][name] for name in ("callId", "caller", "toolName", "args", "turn")}
    return _beside(log, index, "harness.tool_call.failed", **kept, error={"name": "E", "message": "m"}) + 1


def _another_tools(log: Log) -> int:
    return log.change(log.at("harness.tool_call.succeeded"), toolName="effects_network")


def _asked_again(log: Log) -> int:
    """A question that has its answer is put once more."""
    return log.again(log.at("harness.model.called"), at=log.at("budget.settled") + 1)


def _started_after_all(log: Log) -> int:
    index = log.at("harness.tool_call.started", effectClass="keyed")
    return log.again(index, at=log.at("harness.tool_call.succeeded", callId=log.events[index][1]["callId"]) + 1)


def _without(log: Log, dropped: str, found: str, nth: int = 0) -> int:
    """An event is missing; gives the seq of the one that misses it."""
    log.drop(log.at(dropped, nth))
    return log.at(found, nth) + 1


def _left_to_nowhere(log: Log) -> int:
    """The last rule does not end the session, and it ends as completed."""
    log.change(log.at("transition.taken", 1), target="failed")
    return log.at("session.completed") + 1


CHANGES: dict[str, tuple[str, Callable[[Log], int]]] = {
    "an event in the middle of a batch": ("I-2", lambda log: log.again(log.at("harness.model.responded"))),
    "a reservation without its call": ("I-2", lambda log: log.drop(log.at("harness.model.called"))),
    "a command twice": ("I-5", lambda log: log.again(log.at("command.received"))),
    "an id twice": ("I-5", lambda log: log.envelope(8, id=log.events[7][0].id)),
    "an attempt is missing": ("I-6", lambda log: log.change(log.at("retry.scheduled"), attempt=3)),
    "nobody's event": ("I-8", lambda log: log.envelope(4, actor="nobody")),
    "a local time": ("I-10", lambda log: log.envelope(4, timestamp="2026-01-01T01:00:00.000+01:00")),
    "a negative time": ("I-10", lambda log: log.change(log.at("harness.tool_call.succeeded"), durationMs=-5)),
    "a payload of another type": ("I-11", lambda log: log.envelope(4, type="stage.entered")),
    "a result of no call": (
        "I-15", lambda log: _without_intent(log, "harness.tool_call.started", "harness.tool_call.succeeded"),
    ),
    "an answer to no question": (
        "I-15", lambda log: _without_intent(log, "harness.model.called", "harness.model.responded"),
    ),
    "a call before the answer that asks for it": ("I-15", _before_its_answer),
    "arguments of another digest": (
        "I-15", lambda log: log.change(log.at("harness.tool_call.started"), argsDigest="0" * 64),
    ),
    "a verdict nobody asked for": ("I-15", lambda log: log.drop(log.at("validation.requested"))),
    "an unkeyed call twice": ("I-16", lambda log: _start_again(log, "unkeyed")),
    "a keyed call twice": ("I-16", lambda log: _start_again(log, "keyed")),
    "a role call twice": ("I-16", lambda log: log.again(log.at("role.requested"))),
    "a second result": ("I-17", lambda log: log.again(log.at("harness.tool_call.succeeded"))),
    "a second answer": ("I-17", lambda log: log.again(log.at("harness.model.responded"))),
    "a second end of a role call": ("I-17", lambda log: log.again(log.at("role.returned"))),
    "a call without a result": ("I-17", _without_result),
    "another configuration": ("I-19", lambda log: log.change(log.at("config.loaded"), digest="0" * 64)),
    "an event after the end": ("I-20", lambda log: log.again(log.at("stage.left", 1), at=len(log.events))),
    "a second end": ("I-20", lambda log: log.again(len(log.events) - 1)),
    "a start of what is active": ("I-20", lambda log: log.again(log.at("session.started"))),
    "a cancel that is not heeded": ("I-20", _cancelled),
    "an awaited approval that is there": ("I-20", _awaits_nothing),
    "a stage that is not left": ("I-20", lambda log: log.drop(log.at("stage.left"))),
    "a join before all": ("I-21", _joined_early),
    "an approval bound elsewhere": ("I-23", _bound_elsewhere),
    "a decision bound elsewhere": (
        "I-23", lambda log: log.change(log.at("approval.granted", kind="person"), digest="0" * 64),
    ),
    "a second decision": ("I-23", _decide_twice),
    "a call under another's approval": ("I-23", _under_another),
    "a call without an approval": ("I-23", _unasked),
    "a call without the approval it was asked about": ("I-23", lambda log: _as_free(log, "nobody")),
    "a call after another's approval": ("I-23", _after_another),
    "a person nobody heard": ("I-23", _unanswered),
    "a grant nobody gave": ("I-23", lambda log: log.change(log.at("approval.granted", kind="policy"), kind="grant")),
    "a level that did not pass": ("I-24", _not_passed),
    "a pass of what is wrong": (
        "I-24",
        lambda log: log.change(
            log.at("validation.passed"), findings=[{"code": "x", "severity": "error", "path": "", "message": "no"}]
        ),
    ),
    "another artifact than passed": ("I-24", lambda log: log.change(log.at("artifact.accepted"), body_ref="0" * 64)),
    "a way that no rule leads": ("I-24", _routed_elsewhere),
    "another tool than asked for": (
        "I-25", lambda log: log.change(log.at("harness.tool_call.started"), toolName="effects_network"),
    ),
    "tokens counted twice": ("I-27", _spent),
    "an end of a call of nobody": ("I-20", lambda log: _elsewhere(log, "harness.tool_call.succeeded")),
    "a call of nobody": ("I-20", lambda log: _elsewhere(log, "harness.tool_call.started")),
    "a question of nobody": ("I-20", lambda log: _elsewhere(log, "harness.model.called")),
    "an answer to nobody": ("I-20", lambda log: _elsewhere(log, "harness.model.responded")),
    "a reservation twice": ("I-27", lambda log: log.again(log.at("budget.reserved"))),
    "a question with nothing reserved": ("I-27", lambda log: _without(log, "budget.reserved", "harness.model.called")),
    "a settlement with nothing reserved": ("I-27", lambda log: _without(log, "budget.reserved", "budget.settled")),
    "a question after its answer": ("I-16", _asked_again),
    "another question under the same id": (
        "I-16", lambda log: log.again(log.at("harness.model.called"), promptHash="0" * 64),
    ),
    "a start after a failure": ("I-17", _refused_before),
    "a start after a result": ("I-16", _started_after_all),
    "a result of another tool": ("I-17", _another_tools),
    "a doubt about what can be repeated": ("I-16", lambda log: _doubted(log, "keyed")),
    "a doubt twice": ("I-17", lambda log: max(_doubted(log, "unkeyed"), _doubted(log, "unkeyed", 1)) + 1),
    "a settlement of what can be repeated": ("I-16", lambda log: _settled(log, "keyed")),
    "a settlement twice": ("I-17", lambda log: max(_settled(log, "unkeyed"), _settled(log, "unkeyed", 1)) + 1),
    "a rule of another visit": ("I-24", lambda log: _elsewhere(log, "transition.taken")),
    "a second rule": ("I-24", lambda log: log.again(log.at("transition.taken"))),
    "a stage left without a rule": ("I-20", lambda log: _without(log, "transition.taken", "stage.left")),
    "a stage left elsewhere": ("I-20", lambda log: _elsewhere(log, "stage.left")),
    "an end that no rule leads to": ("I-24", _left_to_nowhere),
    "an attempt of another visit": ("I-6", lambda log: _elsewhere(log, "retry.scheduled")),
    "a pass that does not say of what": (
        "I-24", lambda log: log.change(log.at("validation.passed", level="payload"), body_ref=None),
    ),
    "a pass of another visit": ("I-24", lambda log: _elsewhere(log, "artifact.accepted")),
    "an artifact of another visit": ("I-21", lambda log: _elsewhere(log, "artifact.proposed")),
    "an artifact accepted twice": ("I-24", lambda log: log.again(log.at("artifact.accepted"))),
    "another prompt": ("I-40", lambda log: log.change(log.at("harness.model.called"), promptHash="0" * 64)),
}  # fmt: skip


@pytest.mark.inv("I-1", "I-3", "I-7", "I-12", "I-15", "I-16", "I-17", "I-20", "I-23", "I-24", "I-40")
def test_nothing_is_found_in_what_nobody_touched(recorded: Recorded) -> None:
    checked = check(recorded.history)
    assert checked.broken == ()
    assert checked.head == recorded.history.head
    assert (checked.prompts, checked.contents > checked.prompts) == (6, True)
    assert check(Log(recorded.history).history()).broken == ()  # neither does chaining it anew


@pytest.mark.inv(
    "I-2", "I-5", "I-6", "I-8", "I-10", "I-11", "I-15", "I-16", "I-17", "I-19", "I-20", "I-21", "I-23", "I-24", "I-25",
    "I-27", "I-40",
)  # fmt: skip
@pytest.mark.parametrize("name", CHANGES)
def test_what_may_not_be_is_found_where_it_is(name: str, recorded: Recorded) -> None:
    invariant, change = CHANGES[name]
    log = Log(recorded.history)
    seq = change(log)
    broken = check(log.history()).broken
    assert (invariant, seq) in [(one.invariant, one.seq) for one in broken], broken
    assert broken[0].seq == min(one.seq for one in broken)


@pytest.mark.inv("I-23")
def test_a_call_that_was_asked_about_may_be_free_under_other_settings_or_with_other_arguments(
    recorded: Recorded,
) -> None:
    log = Log(recorded.history)
    index = _as_free(log, "nobody") - 1
    loaded = log.events[log.at("config.loaded")]
    digest = loaded[1]["digest"]
    payload = {"old_digest": digest, "new_digest": "0" * 64, "content_ref": "0" * 64, "changes": []}
    log.events.insert(index, [loaded[0]._replace(id="migrated", type="config.migrated"), payload])
    assert check(log.history()).broken == ()
    log = Log(recorded.history)
    index = _as_free(log, "nobody") - 1
    args = {"note": "another"}
    log.change(index, args=args, argsDigest=digest_of(args))
    assert check(log.history()).broken == ()


def _moved(history: History, **fields: Any) -> Sequence[StoredEvent]:
    events = list(history.events)
    events[9] = events[9]._replace(**fields)
    return events


@pytest.mark.inv("I-3", "I-7", "I-9", "I-14")
def test_what_a_chain_does_not_prove_is_found_and_nothing_after_it(recorded: Recorded) -> None:
    history = recorded.history
    whole = list(history.events)

    def broken(**more: Any) -> list[tuple[str, int]]:
        return [(one.invariant, one.seq) for one in check(attrs.evolve(history, **more)).broken]

    assert broken(events=[*whole[:9], *whole[10:]]) == [("I-3", 10)]
    assert broken(events=_moved(history, payload=b"{}")) == [("I-7", 10)]
    assert broken(events=_moved(history, position=1)) == [("I-9", 10)]
    assert broken(events=whole[:-3]) == [("I-7", len(whole) - 2)]
    assert broken(copied_head=Head(5, b"another")) == [("I-7", 5)]
    assert broken(head=None, copied_head=Head(len(whole) + 1, b"")) == [("I-7", len(whole) + 1)]
    assert broken(anchored=(Head(5, whole[4].hash), Head(len(whole), whole[-1].hash))) == []
    assert broken(anchored=(Head(5, whole[4].hash), Head(6, b"another"))) == [("I-7", 6)]
    assert broken(anchored=(Head(len(whole) + 1, b""),)) == [("I-7", len(whole) + 1)]

    def stops() -> Iterator[StoredEvent]:
        yield from whole[:4]
        raise StoreCorrupt("the page cannot be read", code="store.corrupt")

    assert broken(events=stops()) == [("I-14", 5)]


class Growing:
    """A store in which somebody appends an event, and copies its head out, whenever its head was looked at, or what
    stands behind its head is about to be read; or in which somebody put one in behind a head that stays."""

    def __init__(self, store: MemoryStore, when: str, copies: Path) -> None:
        self._store, self._when, self._copies = store, when, copies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def head(self, stream: str) -> Head:
        head = self._store.head(stream)
        if not head.seq:
            return head
        if self._when == "looked at":
            self._grow(stream, head)
        elif self._when == "hidden" and len(list(self._store.read(stream))) == head.seq:
            log = self._store._log
            log.streams[stream].events += chained(stream, head, log.last_position, [_more(head)])
        return head

    def read(self, stream: str, **bounds: Any) -> Iterator[StoredEvent]:
        if self._when == "read" and "after" in bounds:
            self._grow(stream, self._store.head(stream))
        return self._store.read(stream, **bounds)

    def _grow(self, stream: str, head: Head) -> None:
        [new] = self._store.append(stream, [_more(head)], expected_seq=None)
        (self._copies / stream.removeprefix("session:")).write_text(f"{new.seq} {new.hash.hex()}\n")


def _more(head: Head) -> Draft:
    return Draft(f"more-{head.seq}", "effect.ignored", 1, "system", "2026-01-01T00:00:00.000Z", b"{}", IGNORED)


IGNORED = b'{"effect_id":"eff_0","reason":"late"}'


@pytest.mark.inv("I-7")
@pytest.mark.parametrize("when", ["looked at", "read", "hidden"])
def test_a_log_that_grows_while_it_is_looked_at_is_whole_and_one_that_says_more_than_its_head_is_not(
    when: str, recorded: Recorded, tmp_path: Path
) -> None:
    host = FakeHost(tmp_path)
    store = open_store(Settings(), host)
    drafts = [draft._replace(payload=dumps(payload)) for draft, payload in Log(recorded.history).events]
    for content in recorded.content.values():
        store.put_blob(content)
    stream = recorded.history.stream
    store.append(stream, drafts, expected_seq=0)
    store.append("store:main", [_more(Head(0, b""))], expected_seq=0)  # what was removed is looked at as well
    (tmp_path / "heads").mkdir()
    growing: Any = Growing(store, when, tmp_path / "heads")
    found = verify(growing, stream.removeprefix("session:"), host.ports.files(tmp_path))
    assert [one["code"] for one in found["broken"]] == (["store.tail_missing"] if when == "hidden" else [])
    assert found["equal"] is (when != "hidden")


@pytest.mark.inv("I-40")
def test_content_that_is_lost_or_changed_is_found_at_the_event_that_needs_it(recorded: Recorded) -> None:
    def read(digest: str) -> bytes:
        if digest not in recorded.content:
            raise NotFound("There is no content of that digest.", where=digest)
        return recorded.content[digest]

    shown = next(e for e in recorded.history.events if e.type == "harness.model.called")
    message = json.loads(shown.payload)["request"]["messages"][0]
    kept = recorded.content.pop(message)
    try:
        broken = check(attrs.evolve(recorded.history, content=read)).broken
        assert [(one.invariant, one.seq, one.code) for one in broken] == [("I-40", shown.seq, "store.content_missing")]
        recorded.content[message] = kept.replace(b"system", b"System")  # a store that does not look
        broken = check(attrs.evolve(recorded.history, content=read)).broken
        assert ("I-40", shown.seq, "store.prompt_hash") in [(one.invariant, one.seq, one.code) for one in broken]
    finally:
        recorded.content[message] = kept


@pytest.mark.inv("I-40")
@pytest.mark.parametrize(
    "shown",
    [
        b"no JSON", b'{"role":"user","n":1e999}', b'{"n":9007199254740993}', b'{"n":[9007199254740993',
        b'"1234567890123456\xff"',
    ],
    ids=["text", "too large a number", "too long a number", "a long number and no end", "long and not UTF-8"],
)
def test_a_message_that_hashes_to_its_digest_and_is_no_strict_json_is_found(shown: bytes, recorded: Recorded) -> None:
    log = Log(recorded.history)
    index = log.at("harness.model.called")
    named = sha256(shown).hexdigest()
    request = log.events[index][1]["request"]
    seq = log.change(index, request={**request, "messages": [named, *request["messages"][1:]]})
    content = {**recorded.content, named: shown}
    broken = check(attrs.evolve(log.history(), content=content.__getitem__)).broken
    assert [(one.invariant, one.seq, one.code) for one in broken] == [("I-40", seq, "store.prompt_hash")]


# ------------------------------------------------------------------------------------------------ what lies outside


def _key(history: History, tool: str) -> str:
    started = next(
        event
        for event in history.events
        if event.type == "harness.tool_call.started" and json.loads(event.payload)["toolName"] == tool
    )
    return effect_id(json.loads(started.refs)["role_call_id"], json.loads(started.payload)["callId"])


def _outside(history: History) -> dict[str, tuple[str, dict[str, Any]]]:
    happened = list(history.happened or ())
    unkeyed, keyed = (Happened(tool, _key(history, tool)) for tool in ("effects_unkeyed", "effects_keyed"))
    return {
        "what was acknowledged is gone": ("I-1", {"acknowledged": [(3, "another")]}),
        "the owner had another state in mind": ("I-12", {"state_hash": "0" * 64}),
        "an effect without an intent": ("I-15", {"happened": [*happened, Happened("effects_keyed", "eff_0")]}),
        "an unkeyed effect twice": ("I-16", {"happened": [*happened, unkeyed], "crashes": 5}),
        "a keyed effect twice": ("I-16", {"happened": [*happened, keyed]}),
        "a success without its effect": ("I-16", {"happened": [one for one in happened if one.key != keyed.key]}),
    }


@pytest.mark.inv("I-1", "I-12", "I-15", "I-16")
def test_what_was_seen_outside_must_fit_the_log(recorded: Recorded) -> None:
    for name, (invariant, more) in _outside(recorded.history).items():
        broken = check(attrs.evolve(recorded.history, **more)).broken
        assert [one.invariant for one in broken] == [invariant], name
    twice = [*(recorded.history.happened or ()), Happened("effects_keyed", _key(recorded.history, "effects_keyed"))]
    assert check(attrs.evolve(recorded.history, happened=twice, crashes=1)).broken == ()


@pytest.mark.inv("I-16")
@pytest.mark.parametrize(("outcome", "found"), [("never_happened", None), ("happened", "I-16"), (None, "I-16")])
def test_an_unkeyed_call_is_started_again_only_when_it_never_happened(
    outcome: str | None, found: str | None, recorded: Recorded
) -> None:
    log = Log(recorded.history)
    index = log.at("harness.tool_call.started", effectClass="unkeyed")
    draft, payload = log.events[index]
    role, effect = json.loads(draft.refs)["role_call_id"], _key(recorded.history, "effects_unkeyed")
    doubt = {"effect_id": effect, "role_call_id": role, "call_id": payload["callId"]}
    said = {**doubt, "tool_name": payload["toolName"], "args_digest": payload["argsDigest"]}
    log.events.insert(index + 1, [draft._replace(id="doubt", type="effect.in_doubt"), said])
    if outcome is not None:
        settled = {"effect_id": effect, "outcome": outcome, "by": "ops", "kind": "person"}
        log.events.insert(index + 2, [draft._replace(id="settled", type="effect.settled"), settled])
    seq = log.again(index, at=index + (2 if outcome is None else 3))
    broken = check(log.history()).broken
    assert [(one.invariant, one.seq) for one in broken] == ([] if found is None else [(found, seq)])


def test_of_a_log_that_is_all_wrong_only_so_much_is_said(recorded: Recorded) -> None:
    log = Log(recorded.history)
    for index in range(len(log.events)):
        log.envelope(index, actor="nobody", timestamp="now")
    broken = check(log.history()).broken
    assert len(broken) == MAX_FINDINGS
    assert all(isinstance(one, Broken) for one in broken)


@pytest.mark.req("B-92")
@pytest.mark.inv("I-11")
def test_what_refers_to_an_event_of_another_version_is_not_judged(recorded: Recorded) -> None:
    outside = {name: getattr(recorded.history, name) for name in ("acknowledged", "happened")}
    for event_type in {event.type for event in recorded.history.events}:
        log = Log(recorded.history)
        for index in range(len(log.events)):
            if log.events[index][0].type == event_type:
                log.envelope(index, version=2)
        checked = check(attrs.evolve(log.history(), **outside))
        assert checked.broken == (), event_type
        assert checked.unknown_seq == log.at(event_type) + 1
    assert check(recorded.history).unknown_seq is None


@pytest.mark.inv("I-1", "I-7", "I-11", "I-12", "I-40")
def test_bytes_contents_and_what_was_acknowledged_are_proved_behind_an_event_of_another_version(
    recorded: Recorded,
) -> None:
    log = Log(recorded.history)
    log.envelope(log.at("config.loaded"), version=2)
    log.change(log.at("role.returned"), effect_id=7)
    log.change(log.at("harness.model.called"), promptHash="0" * 64)
    history = log.history()
    at = [log.at(one) + 1 for one in ("harness.model.called", "role.returned")]
    expected = [("I-40", at[0]), ("I-11", at[1])]
    last = len(log.events)
    more: dict[str, Any] = {"acknowledged": [(last, "another")], "state_hash": "0" * 64}
    broken = check(attrs.evolve(history, **more)).broken
    assert [(one.invariant, one.seq) for one in broken] == [*expected, ("I-1", last), ("I-12", last)]
    cut = check(attrs.evolve(history, events=history.events[:-1])).broken  # type: ignore[index]
    assert [(one.invariant, one.seq) for one in cut] == [*expected, ("I-7", last)]


@pytest.mark.inv("I-11")
def test_events_of_another_version_are_proved_and_passed_over(recorded: Recorded) -> None:
    log = Log(recorded.history)
    log.again(3, at=4)
    log.envelope(4, type="stage.painted", version=7)
    log.again(4, at=5)
    log.envelope(5, type="stage.entered", version=2)
    assert check(log.history()).broken == ()
