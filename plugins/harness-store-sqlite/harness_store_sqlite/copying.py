"""A copy of the log that nobody else has open goes in; what was proved of it comes out."""

from __future__ import annotations

from hashlib import sha256

from harness_hookspecs.errors import StoreCorrupt
from harness_hookspecs.store import Backup, Head, verify_chain

from .driver import Connection
from .rows import event
from .schema import EVENT_COLUMNS
from .writes import unpack

__all__ = ["proved"]

_STREAMS = "SELECT id, name, seq, hash FROM streams"
_EVENTS = f"SELECT {EVENT_COLUMNS} FROM events WHERE sid = ? ORDER BY seq"
_ASTRAY = "SELECT count(*) FROM events WHERE sid NOT IN (SELECT id FROM streams)"
_BLOBS = "SELECT digest, size, deflated, content FROM blobs"


def proved(copy: Connection, size_bytes: int) -> Backup:
    """Prove each chain against its head, each content against its digest, and that nothing else lies about.

    Raises:
        StoreCorrupt: It does not verify.
    """
    found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreCorrupt(f"the file of the log is damaged: {found}", code="store.corrupt")
    heads = {}
    for sid, stream, seq, last in copy.execute(_STREAMS).fetchall():
        heads[stream] = _stream(copy, sid, stream, Head(seq, last))
    if copy.execute(_ASTRAY).fetchone()[0]:
        raise StoreCorrupt("events of the log belong to no stream", code="store.corrupt")
    return Backup(size_bytes, {stream: head for stream, head in heads.items() if head.seq}, _contents(copy))


def _stream(copy: Connection, sid: int, stream: str, head: Head) -> Head:
    try:
        return verify_chain((event(stream, row) for row in copy.execute(_EVENTS, (sid,))), head)
    except StoreCorrupt as error:
        error.where = error.where or stream
        raise


def _contents(copy: Connection) -> int:
    count = 0
    for digest, size_bytes, deflated, stored in copy.execute(_BLOBS):
        content = unpack(size_bytes, deflated, stored)
        if content is None or sha256(content).digest() != digest:
            raise StoreCorrupt("A content does not hash to its digest.", code="store.changed", where=digest.hex())
        count += 1
    return count
