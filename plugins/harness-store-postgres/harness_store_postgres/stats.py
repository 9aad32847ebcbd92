"""How much the log holds: reading connections go in, ``StoreStats`` come out."""

from __future__ import annotations

from typing import Final

from harness_hookspecs.store import StoreStats

from .reader import Readers

__all__ = ["stats_of"]

_TYPES: Final = (
    "SELECT substring(rest FOR position('\\x0a'::bytea IN rest) - 1) AS type, count(*) FROM"
    " (SELECT substring(envelope FROM position('\\x0a'::bytea IN envelope) + 1) AS rest FROM events) AS lines"
    " GROUP BY type ORDER BY type"
)
"""The second line of an envelope; as bytes, since the database may have another encoding."""

_COUNTS: Final = (
    "SELECT (SELECT count(*) FROM streams WHERE seq > 0),"
    " (SELECT coalesce(sum(octet_length(envelope) + octet_length(payload)), 0)::bigint FROM events),"
    " (SELECT count(*) FROM blobs),"
    " (SELECT coalesce(sum(octet_length(content)), 0)::bigint FROM blobs),"
    " (SELECT coalesce(sum(pg_column_size(content)), 0)::bigint FROM blobs),"
    " (SELECT count(*) FROM inbox), (SELECT count(*) FROM summaries), (SELECT count(*) FROM snapshots)"
)


def stats_of(readers: Readers) -> StoreStats:
    """Ask for all of it; what is committed between two questions may be in one of them only."""
    streams, event_bytes, *rest = readers.first(_COUNTS)
    types = {name.decode(): count for name, count in readers.all(_TYPES)}
    return StoreStats(None, None, None, None, None, streams, types, event_bytes, *rest)
