"""A store in, the documents that list its sessions out: caches, which are read as they stand or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from harness_core.kernel.state import FINAL
from harness_hookspecs.errors import CodecError, HarnessError, StoreCorrupt
from harness_hookspecs.kit.codec import loads_trusted

if TYPE_CHECKING:
    from harness_hookspecs.store import Store

__all__ = ["brought_up", "listed"]

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


def brought_up(store: Store, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document as its log has it by now, for what is shown: tokens are counted in many events, and kept at few.

    Only of a session that has not ended, and whose log went on after its document was kept, the log is read: somebody
    runs it, or has left it so by dying. Where that log cannot be read, what was kept is all there is, and how many
    tokens were used since is not known.
    """
    kept_seq, stream = document.get("last_seq"), f"session:{document['id']}"
    if document["status"] in FINAL or not isinstance(kept_seq, int) or store.head(stream).seq <= kept_seq:
        return document
    from harness_core.kernel.projections.session import session_document

    from .replaying import fold_session
    from .upkeep import NO_FACTS

    try:
        return session_document(fold_session(store, document["id"]))
    except (HarnessError, *NO_FACTS):
        return {**document, "usage": {**document["usage"], "known": False}}


def _damaged(stream: str) -> StoreCorrupt:
    return StoreCorrupt("what lists the session is damaged", code="store.changed", hint=_HINT, where=stream)
