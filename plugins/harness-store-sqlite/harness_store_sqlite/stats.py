"""How much the file holds: reading connections and a path go in, ``StoreStats`` come out."""

from __future__ import annotations

import os
from pathlib import Path

from harness_hookspecs.store import StoreStats

from .reader import Readers

__all__ = ["has_table", "stats_of"]

_HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE name = ?"

_TYPES = (
    "WITH types AS (SELECT substr(envelope, instr(envelope, char(10)) + 1) AS rest FROM events)"
    " SELECT substr(rest, 1, instr(rest, char(10)) - 1) AS type, count(*) FROM types GROUP BY type ORDER BY type"
)
_COUNTS = (
    "SELECT (SELECT count(*) FROM streams WHERE seq > 0),"
    " (SELECT coalesce(sum(octet_length(envelope) + octet_length(payload)), 0) FROM events),"
    " blobs, content_bytes, blob_bytes,"
    " (SELECT count(*) FROM inbox)"
    " FROM (SELECT count(*) AS blobs, coalesce(sum(size), 0) AS content_bytes,"
    " coalesce(sum(octet_length(content)), 0) AS blob_bytes FROM blobs)"
)


def stats_of(readers: Readers, path: Path) -> StoreStats:
    """Ask for all of it; what is committed between two questions may be in one of them only."""
    streams, event_bytes, *counts = readers.first(_COUNTS)
    counts += [_cached(readers, table) for table in ("summaries", "snapshots")]
    page_bytes, free_pages, version = (
        readers.first(f"PRAGMA {name}")[0] for name in ("page_size", "freelist_count", "user_version")
    )
    return StoreStats(
        str(path),
        version,
        _size_bytes(path),
        _size_bytes(path.with_name(f"{path.name}-wal")),
        page_bytes * free_pages,
        streams,
        dict(readers.all(_TYPES)),
        event_bytes,
        *counts,
    )


def has_table(readers: Readers, name: str) -> bool:
    """Whether the file has that table of caches; one that may only be read can lack it."""
    return readers.first(_HAS_TABLE, (name,)) is not None


def _cached(readers: Readers, table: str) -> int:
    count: int = readers.first(f"SELECT count(*) FROM {table}")[0] if has_table(readers, table) else 0
    return count


def _size_bytes(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
