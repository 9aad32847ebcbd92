"""A session's log, its head and the head copied out of the store in, ``harness.verify/1`` out: whole, or where not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from harness_core.kernel.facts import Event
from harness_core.kernel.projections.artifacts import digest_of_ref
from harness_core.kernel.projections.event import decoded
from harness_core.kernel.projections.prompt import rehash
from harness_hookspecs.errors import HarnessError, NotFound, StoreCorrupt
from harness_hookspecs.host import Files
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.store import GENESIS_HASH, Draft, Head, Store, StoredEvent, chain_hash

__all__ = ["copied_head", "verify"]

_FOLDER = "heads"
_NOTHING = Head(0, GENESIS_HASH)


def copied_head(files: Files, session_id: str) -> Head | None:
    """The head as it was copied out when the session ended; ``None`` without a copy.

    Raises:
        StoreCorrupt: ``store.head_copy``: the copy cannot be read.
    """
    path = f"{_FOLDER}/{session_id}"
    if files.facts(path) is None:
        return None
    text = files.read_bytes(path, limit_bytes=200).decode(errors="replace")
    seq, _, digest = text.strip().partition(" ")
    try:
        return Head(int(seq), bytes.fromhex(digest))
    except ValueError as error:
        raise StoreCorrupt("the head that was copied out cannot be read", code="store.head_copy", where=path) from error


def verify(store: Store, session_id: str, files: Files) -> dict[str, Any]:
    """Prove a session's log: each event against the chain, the end against the head and its copy, each content
    against its digest, each question to a model against its promptHash (I-7, I-40).

    Args:
        store: The store.
        session_id: The session; one without any event is checked against its heads.
        files: The data directory.

    Returns:
        ``harness.verify/1``: ``equal`` is true, or ``bad`` says what is wrong at the first bad seq.
    """
    check, stream = _Check(store), f"session:{session_id}"
    head = _NOTHING
    try:
        head = store.head(stream)
        check.copy = copied_head(files, session_id) or check.copy
        for event in store.read(stream):
            check.event(event)
        check.end(head)
    except StoreCorrupt as error:
        check.found(error.facts.get("seq") or check.seq + 1, error)
    return {
        "schema": "harness.verify/1",
        "session_id": session_id,
        "equal": check.bad is None,
        "events": check.seq,
        "head": _head(head),
        "copied_head": _head(check.copy) if check.copy.seq else None,
        "contents": len(check.contents),
        "prompts": check.prompts,
        "bad": check.bad,
    }


def _head(head: Head) -> dict[str, Any]:
    return {"seq": head.seq, "hash": head.hash.hex()}


@attrs.define
class _Check:
    """What is proved so far. Only the first thing that is wrong is kept; what follows from it is no news."""

    store: Store
    copy: Head = _NOTHING
    seq: int = 0
    hash: bytes = GENESIS_HASH
    hash_at_copy: bytes = b""
    contents: set[str] = attrs.Factory(set)
    prompts: int = 0
    bad: dict[str, Any] | None = None

    def found(self, seq: int, error: HarnessError) -> None:
        if self.bad is None or seq < self.bad["seq"]:
            self.bad = {"seq": seq, "code": error.code, "message": error.message}

    def event(self, event: StoredEvent) -> None:
        if event.seq != self.seq + 1:
            message = f"expected seq {self.seq + 1}, found {event.seq}"
            raise StoreCorrupt(message, code="store.gap", seq=self.seq + 1)
        draft = Draft(event.id, event.type, event.version, event.actor, event.timestamp, event.refs, event.payload)
        computed = chain_hash(self.hash, event.stream, event.seq, draft)
        if computed != event.hash:
            raise StoreCorrupt(f"event {event.seq} does not match its hash", code="store.changed", seq=event.seq)
        self.seq, self.hash = event.seq, computed
        if event.seq == self.copy.seq:
            self.hash_at_copy = computed
        self._contents_of(decoded(event))

    def end(self, head: Head) -> None:
        """A log may have grown since its head was copied out; it never became shorter or another one."""
        if (self.seq, self.hash) != head:
            message = f"the log ends at seq {self.seq}, its head says {head.seq}"
            raise StoreCorrupt(message, code="store.tail_missing", seq=min(self.seq, head.seq) + 1)
        copy = self.copy
        if self.seq < copy.seq:
            message = f"the log ends at seq {self.seq}; the head copied out at the session's end says {copy.seq}"
            raise StoreCorrupt(message, code="store.tail_missing", seq=self.seq + 1)
        if copy.seq and self.hash_at_copy != copy.hash:
            message = f"event {copy.seq} is another one than when its head was copied out"
            raise StoreCorrupt(message, code="store.changed", seq=copy.seq)

    def _contents_of(self, event: Event) -> None:
        for digest in _digests(event):
            if digest in self.contents:
                continue
            self.contents.add(digest)
            try:
                self.store.blob(digest)
            except NotFound:
                message = f"the content {digest[:12]} of event {event.seq} is missing"
                self.found(event.seq, StoreCorrupt(message, code="store.content_missing"))
            except StoreCorrupt as error:
                message = f"the content {digest[:12]} of event {event.seq} does not hash to its digest"
                self.found(event.seq, StoreCorrupt(message, code=error.code))
        if event.type == "harness.model.called":
            self._prompt(event)

    def _prompt(self, event: Event) -> None:
        self.prompts += 1
        try:
            messages = [loads_trusted(self.store.blob(digest)) for digest in event.payload["request"]["messages"]]
        except (NotFound, StoreCorrupt):
            return  # said already
        if rehash(event.payload, messages) != event.payload["promptHash"]:
            message = f"what the model was shown at event {event.seq} does not hash to its promptHash"
            self.found(event.seq, StoreCorrupt(message, code="store.prompt_hash"))


def _digests(event: Event) -> Iterator[str]:
    """The contents that an event refers to; data of tools and rules may look like a digest and is not read."""
    payload: Mapping[str, Any] = event.payload
    for name, value in payload.items():
        if isinstance(value, str) and (name.endswith(("_ref", "Ref")) or name == "manifestHash"):
            yield digest_of_ref(value) or value
    if event.type == "session.completed":
        yield from filter(None, map(digest_of_ref, payload["artifact_refs"]))
    if event.type == "harness.model.called":
        request = payload["request"]
        yield from request["messages"]
        yield from (tool["schemaHash"] for tool in request.get("tools", ()))
        if "responseSchemaHash" in (request.get("params") or {}):
            yield request["params"]["responseSchemaHash"]
    elif event.type == "harness.model.responded":
        yield payload["response"]["messageRef"]
