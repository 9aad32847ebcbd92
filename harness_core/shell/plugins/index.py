"""The index: a path goes in, the records of its plugins come out, from a file in the cache unless something changed.

The file is keyed on modification time in nanoseconds and size of each ``entry_points.txt`` and each manifest, so that
what did not change costs one ``stat``. It also keeps the verdicts of first imports (``trial``) and small facts that
others key themselves (``facts``). It is a cache: deleted, damaged or unwritable, it is made again or done without.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness_core.shell.config.xdg import xdg_folder
from harness_core.shell.ports_startup import read_file, replace_file
from harness_hookspecs import __version__ as contract_version

from .locate import code_state
from .scan import Found, file_state, folders_state, scan

if TYPE_CHECKING:
    from harness_hookspecs.manifest import Flaw

    from .records import Record

__all__ = ["Index", "cache_folder", "open_index"]

FORMAT = 2


def cache_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Give the folder of the cache: ``harness`` below ``XDG_CACHE_HOME``."""
    return xdg_folder(environ, "XDG_CACHE_HOME", ".cache")


def open_index(path: Sequence[str] | None = None, *, folder: str | None = None, fresh: bool = False) -> Index:
    """Find the plugins on a path.

    Args:
        path: Where to look, ``sys.path`` by default.
        folder: Where the index file lies, ``cache_folder()`` by default.
        fresh: Whether to trust nothing that was cached (``--no-cache``), verdicts included.
    """
    wanted = [folder or os.getcwd() for folder in (sys.path if path is None else path)]
    key = [FORMAT, contract_version, sys.version, sys.prefix, wanted]
    file = os.path.join(folder or cache_folder(), f"plugins-{_name(key)}.json")
    cached = {} if fresh else _load(file, key)
    empty = {"key": key, "verdicts": {}, "facts": {}, "read": {}}
    index = Index(wanted, file, {**empty, **cached}, shared=not fresh)
    index.refresh()
    return index


def _name(key: Sequence[Any]) -> str:
    from binascii import crc32

    return f"{crc32(json.dumps(key).encode()):08x}"  # the key itself stands in the file and is compared


def _load(file: str, key: Sequence[Any]) -> dict[str, Any]:
    try:
        document = json.loads(read_file(file) or b"null")
        if document["key"] == key and all(isinstance(document[part], dict) for part in ("read", "verdicts", "facts")):
            return dict(document)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return {}


class Index:
    """The plugins of one path, and what is remembered about them. Made by ``open_index``."""

    def __init__(self, path: Sequence[str], file: str, document: dict[str, Any], *, shared: bool = True) -> None:
        self.path = list(path)
        self.file = file
        self._document = document
        self._shared = shared
        self._learnt: dict[str, Any] = {}
        self._records: tuple[Record, ...] | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The records by id; made of the document when they are first asked for."""
        if self._records is None:
            try:
                self._records = self._recorded()
            except (TypeError, KeyError, ValueError):  # a damaged index is made again
                self._document["read"] = {}
                self.refresh()
                self._records = self._recorded()
        return self._records

    def _recorded(self) -> tuple[Record, ...]:
        from .records import record_from_json

        kept = [document for _, _, _, documents in self._document["read"].values() for document in documents]
        found = [record_from_json(document) for document in kept]
        return tuple(sorted(found, key=lambda record: (record.id, record.distribution)))

    def refresh(self) -> None:
        """Read again what changed on disk since the document was written."""
        old, new = self._document["read"], {}
        for found in scan(self.path):
            kept = old.get(found.file)
            new[found.file] = kept if _holds(kept, found) else self._read(found)
        if new != old:
            self._document["read"] = new
            self.forget_fact("rows")
            self.save()

    def _read(self, found: Found) -> list[Any]:
        from .reading import read_plugins
        from .records import record_to_json

        plugins = read_plugins(found, self.path, contract_version)
        files = [list(state) for plugin in plugins for state in plugin.files]
        return [found.modified_ns, found.size_bytes, files, [record_to_json(plugin.record) for plugin in plugins]]

    def catch_up(self) -> bool:
        """Take over the verdicts that other programs have written since; tell whether there were any."""
        known = self._known_to_all()
        if known == self._document["verdicts"]:
            return False
        self._document["verdicts"] = known
        self.forget_fact("rows")
        return True

    def _known_to_all(self) -> dict[str, Any]:
        theirs = _load(self.file, self._document["key"]).get("verdicts", {}) if self._shared else {}
        own = {plugin: kept for plugin, kept in self._learnt.items() if kept[0] == code_state(kept[3])}
        return {**self._document["verdicts"], **theirs, **own}

    def save(self) -> bool:
        """Write the document; ``False`` when the cache cannot be written, which harms nobody.

        The verdicts that others have written meanwhile stay in the file: a program that runs for long would otherwise
        undo them, and whoever comes next would try every plugin again.
        """
        document, known = self._document, self._known_to_all()
        if known != document["verdicts"]:
            facts = {name: kept for name, kept in document["facts"].items() if name != "rows"}
            document = {**document, "verdicts": known, "facts": facts}
        return replace_file(self.file, json.dumps(document, separators=(",", ":")).encode())

    # ------------------------------------------------------------------------------------- verdicts, facts

    def was_tried(self, record: Record) -> bool:
        """Tell whether there is a verdict on the plugin's first import that still holds.

        A verdict ends when the code changes, a bad one also when anything was installed or removed: that may have
        been the cure.
        """
        kept = self._document["verdicts"].get(_plugin(record))
        if not isinstance(kept, list) or len(kept) != 4 or kept[0] != code_state(record.code):
            return False
        return not kept[1] or kept[2] == folders_state(self.path)

    def known_flaw(self, record: Record) -> Flaw | None:
        """Give what went wrong at the plugin's first import, if that verdict still holds."""
        from harness_hookspecs.manifest import Flaw

        kept = self._document["verdicts"].get(_plugin(record))
        if not isinstance(kept, list) or not kept[1:] or not kept[1] or not self.was_tried(record):
            return None  # the usual case looks at no file
        return Flaw(*kept[1])

    def remember(self, record: Record, flaw: Flaw | None) -> None:
        """Keep a verdict for the code as it is now; ``save`` writes it."""
        state = [code_state(record.code), flaw, folders_state(self.path) if flaw else None, record.code]
        self._document["verdicts"][_plugin(record)] = self._learnt[_plugin(record)] = state
        self.forget_fact("rows")

    def verdict_states(self) -> list[Any]:
        """Give what bad verdicts depend on, as it is now: the code of each such plugin, and the folders of the path."""
        verdicts = [kept for kept in self._document["verdicts"].values() if isinstance(kept, list) and len(kept) == 4]
        bad = [code for _, flaw, _, code in verdicts if flaw]
        return [[code_state(code) for code in bad], folders_state(self.path)] if bad else []

    def fact(self, name: str, key: Any) -> Any:
        """Give what ``keep_fact`` kept under the name when its key was the same, else ``None``."""
        kept = self._document["facts"].get(name)
        return kept[1] if isinstance(kept, list) and len(kept) == 2 and kept[0] == key else None

    def keep_fact(self, name: str, key: Any, value: Any) -> None:
        """Keep a small JSON value that holds as long as ``key`` stays the same, and write it."""
        self._document["facts"][name] = [key, value]
        self.save()

    def forget_fact(self, name: str) -> None:
        """Drop a fact; ``save`` writes that."""
        self._document["facts"].pop(name, None)


def _plugin(record: Record) -> str:
    return f"{record.distribution}/{record.id}"


def _holds(kept: Any, found: Found) -> bool:
    """Whether nothing that was read of a distribution has changed; and whether it is what this program writes."""
    try:
        modified_ns, size_bytes, files, documents = kept
        states = [(path, file_state(path)) for path, _, _ in files]
        current = all(path and list(state) == known for (path, state), known in zip(states, files, strict=True))
        sound = all(isinstance(document, dict) for document in documents)
    except (TypeError, ValueError):
        return False
    return (modified_ns, size_bytes) == (found.modified_ns, found.size_bytes) and current and sound
