"""A store in, the documents that list its sessions out: caches, which are read as they stand or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from harness_hookspecs.errors import CodecError, StoreCorrupt
from harness_hookspecs.kit.codec import loads_trusted

if TYPE_CHECKING:
    from harness_hookspecs.store import Store

__all__ = ["listed"]

_KEYS: Final = frozenset(
    {"id", "status", "stage", "title", "project", "parent_id", "created_at", "updated_at", "usage"}
)
_USED: Final = frozenset({"input_tokens", "output_tokens", "known"})
_HINT: Final = "harness db rebuild makes it again from the events"


def listed(store: Store) -> Iterator[dict[str, Any]]:
    """The document of each session as it was kept, the last changed one first.

    Raises:
        StoreCorrupt: ``store.changed``: one is none; the events that it was made of may be whole.
    """
    for stream, summary in store.summaries():
        try:
            document = loads_trusted(summary)
            whole = document.keys() >= _KEYS and document["usage"].keys() >= _USED
        except (CodecError, AttributeError) as error:
            raise _damaged(stream) from error
        if not whole:
            raise _damaged(stream)
        yield document


def _damaged(stream: str) -> StoreCorrupt:
    return StoreCorrupt("what lists the session is damaged", code="store.changed", hint=_HINT, where=stream)
