"""How durable a store is to be goes in, an empty one in a folder of its own comes out, and counts its commits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.store import Store, StoredEvent
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

__all__ = ["CountingStore", "Synchronous", "new_store"]

Synchronous = Literal["FULL", "NORMAL"]
"""``NORMAL`` waits for no disk while the log is written: the software's own cost."""


class CountingStore:
    """The store, and how often it committed events."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits = 0

    def append(self, *args: Any, **kwargs: Any) -> tuple[StoredEvent, ...]:
        """Append, and count."""
        self.commits += 1
        return self._store.append(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextmanager
def new_store(synchronous: Synchronous) -> Iterator[CountingStore]:
    """A store on the disk of the folder one is in, gone afterwards."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-")))
        store = open_store(Settings(synchronous=synchronous), FakeHost(folder))
        stack.callback(store.close)
        yield CountingStore(store)
