"""A stored session in, files of its events, its contents and its document out, and back again to the byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness_core.kernel.projections.session import session_document
from harness_core.shell.replaying import fold_session
from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.codec import dumps, loads
from harness_hookspecs.store import Store, StoredEvent

__all__ = ["FOLDER", "History", "document_of", "history_of", "names", "read_history", "write_history"]

FOLDER = Path(__file__).parent
_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class History(NamedTuple):
    """A session as it was recorded.

    Attributes:
        events: Its whole stream.
        blobs: The contents that its events name, and those that these name, by digest.
        document: Its ``harness.session/1``, as bytes.
    """

    events: Sequence[StoredEvent]
    blobs: Mapping[str, bytes]
    document: bytes


def document_of(store: Store, session_id: str) -> bytes:
    """The document that the log folds to."""
    return dumps(session_document(fold_session(store, session_id)))


def history_of(store: Store, session_id: str) -> History:
    """Take a session out of a store."""
    events = list(store.read(f"session:{session_id}"))
    blobs = dict(_named(store, [event.payload for event in events]))
    return History(events, blobs, document_of(store, session_id))


def _named(store: Store, texts: list[bytes]) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    while texts:
        for digest in {found.decode() for found in _DIGEST.findall(texts.pop())} - seen:
            seen.add(digest)
            try:
                content = store.blob(digest)
            except NotFound:  # a digest of something that is not kept, such as a prompt's
                continue
            texts.append(content)
            yield digest, content


# -------------------------------------------------------------------------------------------------------- files


def names(version: Path) -> list[str]:
    """The histories of one version."""
    return sorted(file.stem for file in version.glob("*.jsonl"))


def write_history(version: Path, name: str, history: History) -> None:
    """Write the files of a history; one that is there is not touched."""
    (version / "blobs").mkdir(parents=True, exist_ok=True)
    for digest, content in history.blobs.items():
        (version / "blobs" / digest).write_bytes(content)
    with (version / f"{name}.jsonl").open("xb") as file:
        file.write(b"".join(dumps(_line(event)) + b"\n" for event in history.events))
    with (version / f"{name}.session.json").open("xb") as file:
        file.write(history.document)


def read_history(version: Path, name: str) -> History:
    """Read them back; contents are those of all histories of the version."""
    lines = (version / f"{name}.jsonl").read_bytes().splitlines()
    blobs = {file.name: file.read_bytes() for file in (version / "blobs").iterdir()}
    document = (version / f"{name}.session.json").read_bytes()
    return History([_event(loads(line)) for line in lines], blobs, document)


def _line(event: StoredEvent) -> dict[str, object]:
    texts = {"refs": event.refs.decode(), "payload": event.payload.decode(), "hash": event.hash.hex()}
    return {**event._asdict(), **texts}


def _event(line: dict[str, object]) -> StoredEvent:
    texts = {name: str(line[name]).encode() for name in ("refs", "payload")}
    return StoredEvent(**{**line, **texts, "hash": bytes.fromhex(str(line["hash"]))})  # type: ignore[arg-type]
