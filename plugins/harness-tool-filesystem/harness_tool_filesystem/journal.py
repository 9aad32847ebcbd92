"""What a keyed call is about to do goes in, and after a crash what it had been about to do comes out.

The record is on the disk before the file changes, so that a repeated call finds out by digests whether it had taken
effect. Records live in the state folder and may be lost; only the newest are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import CodecError, NotFound
from harness_hookspecs.host import Files
from harness_hookspecs.kit import codec

__all__ = ["Journal", "Record"]

_FOLDER: Final = "tool-filesystem"
_KEPT: Final = 256


class Record(NamedTuple):
    """One change: digests of the file before and after (``None``: no file), and the result it was to give."""

    before: str | None
    after: str
    value: Mapping[str, Any]


class Journal:
    """The records of one state folder.

    Args:
        files: Files below the state folder.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def is_complete(self) -> bool:
        """Whether a call without a record is known not to have come so far: there are records, and none was dropped."""
        return 0 < len(self._known()) < _KEPT

    def find(self, key: str, name: str, args: Mapping[str, Any]) -> Record | None:
        """The record of exactly this call, ``None`` when it has not come so far or the record is lost."""
        try:
            found = codec.loads(self._files.read_bytes(_place(key, name, args)))
            return Record(found["before"], found["after"], found["value"])
        except (NotFound, CodecError, KeyError, TypeError):
            return None

    def add(self, key: str, name: str, args: Mapping[str, Any], record: Record) -> None:
        """Store a record; it is on the disk when this returns."""
        self._forget_old()
        self._files.write_bytes(_place(key, name, args), codec.dumps(record._asdict()))

    def _forget_old(self) -> None:
        known = self._known()
        for _, path in sorted(known)[: max(0, len(known) - _KEPT + 1)]:
            with suppress(NotFound):  # another process was faster
                self._files.remove(path)

    def _known(self) -> list[tuple[int, str]]:
        """When each record was written, and where it lies."""
        if self._files.facts(_FOLDER) is None:
            return []
        return [(facts.modified_ns, path) for path, facts in self._files.walk(_FOLDER) if facts.kind == "file"]


def _place(key: str, name: str, args: Mapping[str, Any]) -> str:
    call = codec.dumps([key, name, dict(args)], sort_keys=True)
    return f"{_FOLDER}/{hashlib.sha256(call).hexdigest()}.json"
