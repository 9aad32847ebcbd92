"""Events in, contents that are missing or changed and prompts that do not hash to their promptHash out (I-40)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness_core.kernel.facts import Event
from harness_core.kernel.projections.artifacts import digest_of_ref
from harness_core.kernel.projections.prompt import rehash
from harness_hookspecs.errors import CodecError, NotFound, StoreCorrupt
from harness_hookspecs.kit.canonical import read_canonical

from .history import Broken

__all__ = ["Contents"]


class Contents:
    """What was stored by its digest, each looked at once.

    Args:
        read: Content by digest; ``None`` proves of a prompt only that its recorded digests hash to it.
    """

    def __init__(self, read: Callable[[str], bytes] | None) -> None:
        self._read = read
        self._seen: set[str] = set()
        self._lost: set[str] = set()
        self.prompts = 0

    @property
    def count(self) -> int:
        """How many contents were looked at."""
        return len(self._seen)

    def see(self, event: Event) -> Iterator[Broken]:
        if self._read is not None:
            for digest in _digests(event):
                yield from self._content(digest, event, self._read)
        if event.type == "harness.model.called":
            yield from self._prompt(event)

    def _content(self, digest: str, event: Event, read: Callable[[str], bytes]) -> Iterator[Broken]:
        if digest in self._seen:
            return
        self._seen.add(digest)
        try:
            read(digest)
        except NotFound:
            message = f"the content {digest[:12]} of event {event.seq} is missing"
            yield Broken("I-40", event.seq, message, "store.content_missing")
            self._lost.add(digest)
        except StoreCorrupt as error:
            message = f"the content {digest[:12]} of event {event.seq} does not hash to its digest"
            yield Broken("I-40", event.seq, message, error.code)
            self._lost.add(digest)

    def _prompt(self, event: Event) -> Iterator[Broken]:
        digests = event.payload["request"]["messages"]
        if not self._lost.isdisjoint(digests):
            return  # said already
        self.prompts += 1
        read = self._read
        try:
            messages: list[Any] | None = None if read is None else [read_canonical(read(digest)) for digest in digests]
            hashed = rehash(event.payload, messages)
        except CodecError as error:
            message = f"what the model was shown at event {event.seq} is no strict JSON: {error.message}"
            yield Broken("I-40", event.seq, message, "store.prompt_hash")
            return
        if hashed != event.payload["promptHash"]:
            message = f"what the model was shown at event {event.seq} does not hash to its promptHash"
            yield Broken("I-40", event.seq, message, "store.prompt_hash")


def _digests(event: Event) -> Iterator[str]:
    """The contents that an event refers to; data of tools and rules may look like a digest and is not read."""
    payload = event.payload
    for name, value in payload.items():
        if isinstance(value, str) and (name.endswith(("_ref", "Ref")) or name == "manifestHash"):
            yield digest_of_ref(value) or value
    if event.type == "session.completed":
        yield from filter(None, map(digest_of_ref, payload["artifact_refs"]))
    if event.type == "session.forked":
        yield from filter(None, (digest_of_ref(item["ref"]) for item in payload["artifacts"]))
    if event.type == "harness.model.called":
        request = payload["request"]
        yield from request["messages"]
        yield from (tool["schemaHash"] for tool in request.get("tools", ()))
        if "responseSchemaHash" in (request.get("params") or {}):
            yield request["params"]["responseSchemaHash"]
    elif event.type == "harness.model.responded":
        yield payload["response"]["messageRef"]
