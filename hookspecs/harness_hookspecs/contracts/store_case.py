"""What the rules for stores share: a subject goes in, an opened store and drafts for it come out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness_hookspecs.errors import StoreConflict
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Draft, Head, Store, StoredEvent, verify_chain

from .host import FakeHost
from .rules import Contract

__all__ = ["OTHER", "STREAM", "StoreCase", "draft", "proved", "refused", "seen"]

STREAM = "session:019b76da-a800-7000-8000-0000000000a1"
OTHER = "session:019b76da-a800-7000-8000-0000000000b2"


def draft(number: int = 1, *, key: str | None = None, **payload: Any) -> Draft:
    """A draft whose id and payload carry the number."""
    return Draft(
        id=f"019b76da-a800-7000-8000-{number:012x}",
        type="role.note",
        version=1,
        actor="system",
        timestamp="2026-01-01T00:00:00.000Z",
        refs=b'{"causation_id":"019b76da-a800-7000-8000-000000000000"}',
        payload=dumps({"number": number, **payload}),
        key=key,
    )


class StoreCase(Contract):
    """Opens stores and closes them after the test."""

    _opened: list[Store]

    def subject(self) -> Store:
        """A store over ``self.host``; called again for the same host, it opens the same log if it has a lasting one."""
        raise NotImplementedError("override subject()")

    def reopen(self, store: Store) -> Store | None:
        """Close the store and open the same log again; ``None`` for a log that ends with its store."""
        return None

    def restored(self, file: Path) -> Store | None:
        """Open a copy that the store has made; ``None`` for a store that makes none."""
        return None

    def cut_tail(self, store: Store, stream: str, count: int) -> bool:
        """Remove the last events of a stream behind the store's back; ``False`` when there is no way to do so."""
        return False

    def setup_method(self) -> None:
        """As for every suite."""
        super().setup_method()
        self._opened = []

    def teardown_method(self) -> None:
        """Close what was opened."""
        for store in self._opened:
            store.close()
        super().teardown_method()

    def opened(self) -> Store:
        """The store under test, closed after it."""
        return self.kept(self.subject())

    def kept(self, store: Store) -> Store:
        """The same store, closed after the test."""
        self._opened.append(store)
        return store

    def fresh(self) -> Store:
        """A store over a host of its own, so that it is empty."""
        self.host = FakeHost(self.folder / str(len(self._opened)))
        return self.opened()


def proved(store: Store, stream: str) -> list[StoredEvent]:
    """All events of a stream, after its chain was verified against its head."""
    events = list(store.read(stream))
    assert verify_chain(events, store.head(stream)) == store.head(stream)
    return events


def refused(store: Store, code: str, *arguments: Any, **options: Any) -> None:
    """Append and expect the conflict of that code, after which nothing has changed."""
    before = seen(store)
    try:
        store.append(*arguments, **options)
    except StoreConflict as conflict:
        assert conflict.code == code
    else:
        raise AssertionError(f"nothing was refused, {code} was expected")
    assert seen(store) == before


def seen(store: Store) -> tuple[list[tuple[str, Head]], list[str], dict[str, bytes]]:
    """What is to be seen of a store: heads, ids of all events, summaries."""
    streams = store.streams()
    ids = [event.id for stream in streams for event in store.read(stream)]
    return [(stream, store.head(stream)) for stream in streams], ids, dict(store.summaries())
