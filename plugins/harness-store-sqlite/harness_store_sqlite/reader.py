"""The reading connections: a question goes in from any thread, rows come out a page at a time.

A connection is lent for one page and given back, so that a slow reader holds no snapshot: the writer is never held up
and the write-ahead log can always be folded into the file. Nothing is lost by that, since the log only grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from harness_hookspecs.errors import StoreError
from harness_hookspecs.kit.whole_pages import in_order
from harness_hookspecs.store import StoredEvent

from .driver import READ_ERRORS, Connection, Cursor
from .rows import event
from .schema import EVENT_COLUMNS

__all__ = ["FOREVER", "Readers"]

_PAGE_ROWS: Final = 512
_PAGE_BYTES: Final = 1_048_576
_MAX_IDLE: Final = 8

_EVENTS = (
    f"SELECT {EVENT_COLUMNS} FROM events"
    " WHERE sid = (SELECT id FROM streams WHERE name = ?) AND seq > ? AND seq <= ?"
    f" ORDER BY seq LIMIT {_PAGE_ROWS}"
)
_ENDS = "SELECT seq, (SELECT max(seq) FROM events WHERE sid = streams.id) FROM streams WHERE name = ?"
_SUMMARIES = (
    "SELECT changed, name, document FROM summaries JOIN streams ON id = sid"
    f" WHERE changed < ? ORDER BY changed DESC LIMIT {_PAGE_ROWS}"
)
FOREVER: Final = 2**63 - 1
"""No seq and no position is greater: what SQLite can count to."""


class Readers:
    """Lends reading connections.

    Args:
        connect: Opens one more.
        failure: Names an error of the driver.
    """

    def __init__(self, connect: Callable[[], Connection], failure: Callable[[BaseException], StoreError]) -> None:
        self._connect = connect
        self._failure = failure
        self._idle: list[Connection] = []  # pop and append are atomic, so no lock is needed
        self._closed = False

    def first(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """The first row, ``None`` when there is none."""
        return self._ask(sql, parameters, lambda cursor: cursor.fetchone())

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Every row; for answers that are known to be short."""
        rows: list[Any] = self._ask(sql, parameters, lambda cursor: cursor.fetchall())
        return rows

    def events(self, stream: str, after: int, until: int | None) -> Iterator[StoredEvent]:
        """The events of a stream with ``after < seq <= until``, in order; one that is missing is an error."""
        last = FOREVER if until is None else min(until, FOREVER)
        return in_order(
            stream,
            max(after, 0),
            last,
            page=lambda seq, to: self._ask(_EVENTS, (stream, seq, to), _page_of_events),
            ends=lambda: self.first(_ENDS, (stream,)) or (0, None),
            event=event,
        )

    def summaries(self) -> Iterator[tuple[str, bytes]]:
        """Stream and document, the last changed one first."""
        before, more = FOREVER, True
        while more:
            rows, more = self._ask(_SUMMARIES, (before,), _page_of_summaries)
            for _, name, document in rows:
                yield name, document
            before = rows[-1][0] if rows else 0

    def extra(self) -> Connection:
        """One that the caller keeps and closes."""
        if self._closed:
            raise StoreError("The store is closed.", code="store.closed")
        return self._connect()

    def close(self) -> None:
        """Close what is not lent; the rest is closed when it comes back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _ask(self, sql: str, parameters: Sequence[Any], answer: Callable[[Cursor], Any]) -> Any:
        connection = self._borrow()
        try:
            cursor = connection.execute(sql, parameters)
            result = answer(cursor)
            cursor.close()
        except READ_ERRORS as error:
            connection.close()
            raise self._failure(error) from error
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return result

    def _borrow(self) -> Connection:
        if self._closed:
            raise StoreError("The store is closed.", code="store.closed")
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _give_back(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= _MAX_IDLE:
            connection.close()
            return
        self._idle.append(connection)
        if self._closed:  # closed at that very moment
            self.close()


def _page_of_events(cursor: Cursor) -> tuple[list[Any], bool]:
    return _page(cursor, 3)


def _page_of_summaries(cursor: Cursor) -> tuple[list[Any], bool]:
    return _page(cursor, 2)


def _page(cursor: Cursor, large_column: int) -> tuple[list[Any], bool]:
    """Rows up to a page's size, and whether there may be more."""
    rows: list[Any] = []
    size_bytes = 0
    for row in cursor:
        rows.append(row)
        size_bytes += len(row[large_column])
        if size_bytes > _PAGE_BYTES:
            return rows, True
    return rows, len(rows) == _PAGE_ROWS
