"""A session's head in, a copy of it outside the store out, so that a log that was cut off or put back shows (I-7)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from harness_hookspecs.errors import NotFound, StoreCorrupt
from harness_hookspecs.store import Head

if TYPE_CHECKING:
    from harness_hookspecs.host import Files

__all__ = ["copied_head", "copy_head", "forget_head"]

_FOLDER: Final = "heads"
_LIMIT_BYTES: Final = 200


def copy_head(files: Files, session_id: str, head: Head) -> None:
    """Put the head beside the store, in place of the one that was copied out before.

    Args:
        files: The data directory.
        session_id: The session.
        head: The end of its log.
    """
    files.write_bytes(f"{_FOLDER}/{session_id}", f"{head.seq} {head.hash.hex()}\n".encode())


def forget_head(files: Files, session_id: str) -> None:
    """Remove the copy of a session that was removed; there may be none."""
    with suppress(NotFound):
        files.remove(f"{_FOLDER}/{session_id}")


def copied_head(files: Files, session_id: str) -> Head | None:
    """The head as it was copied out last; ``None`` without a copy.

    Raises:
        StoreCorrupt: ``store.head_copy``: the copy cannot be read.
    """
    path = f"{_FOLDER}/{session_id}"
    if files.facts(path) is None:
        return None
    text = files.read_bytes(path, limit_bytes=_LIMIT_BYTES).decode(errors="replace")
    seq, _, digest = text.strip().partition(" ")
    try:
        return Head(int(seq), bytes.fromhex(digest))
    except ValueError as error:
        raise StoreCorrupt("the head that was copied out cannot be read", code="store.head_copy", where=path) from error
