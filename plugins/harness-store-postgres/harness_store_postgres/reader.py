"""The reading connections: a question goes in from any thread, rows come out a page at a time.

A connection is lent for one page and given back, so that a slow reader holds none. What the server or the network took
away meanwhile is replaced and asked again, which a question can bear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, LiteralString

from harness_hookspecs.errors import StoreError
from harness_hookspecs.kit.whole_pages import in_order
from harness_hookspecs.store import StoredEvent

from .link import Connection, DriverError, Link
from .rows import event
from .schema import EVENT_COLUMNS

__all__ = ["FOREVER", "Readers"]

_PAGE_ROWS: Final = 512
_PAGE_BYTES: Final = 1_048_576
_MAX_IDLE: Final = 4

_EVENTS: Final[LiteralString] = f"""
    SELECT {EVENT_COLUMNS} FROM (
        SELECT {EVENT_COLUMNS}, sum(octet_length(payload)) OVER (ORDER BY seq) - octet_length(payload) AS before_bytes
        FROM events
        WHERE stream = (SELECT id FROM streams WHERE name = %s) AND seq > %s::bigint AND seq <= %s::bigint
        ORDER BY seq LIMIT {_PAGE_ROWS}
    ) page WHERE before_bytes < {_PAGE_BYTES} ORDER BY seq
"""
_ENDS: Final[LiteralString] = """
    SELECT seq, (SELECT max(seq) FROM events WHERE stream = streams.id) FROM streams WHERE name = %s
"""
_SUMMARIES: Final[LiteralString] = f"""
    SELECT changed, name, document FROM (
        SELECT changed, name, document,
            sum(octet_length(document)) OVER (ORDER BY changed DESC) - octet_length(document) AS before_bytes
        FROM summaries JOIN streams ON streams.id = stream
        WHERE changed < %s::bigint ORDER BY changed DESC LIMIT {_PAGE_ROWS}
    ) page WHERE before_bytes < {_PAGE_BYTES} ORDER BY changed DESC
"""
FOREVER: Final = 2**63 - 1
"""No seq and no position is greater: what a bigint can count to."""


class Readers:
    """Lends reading connections.

    Args:
        link: The way to the log.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._idle: list[Connection] = []  # pop and append are atomic, so no lock is needed
        self._closed = False

    def first(self, sql: LiteralString, parameters: Sequence[Any] = ()) -> Any:
        """The first row, ``None`` when there is none."""
        return next(iter(self.all(sql, parameters)), None)

    def all(self, sql: LiteralString, parameters: Sequence[Any] = ()) -> list[Any]:
        """Every row; for answers that are known to be short."""
        try:
            return self._ask(self._borrow(), sql, parameters)
        except StoreError as error:
            if error.code != "store.unreachable":
                raise
        self._drop()  # what lies idle is likely to be lost too
        return self._ask(self._link.reconnect(), sql, parameters)

    def _ask(self, connection: Connection, sql: LiteralString, parameters: Sequence[Any]) -> list[Any]:
        try:
            rows = connection.execute(sql, parameters, binary=True).fetchall()
        except DriverError as error:
            lost = connection.closed
            connection.close()
            raise self._link.failure(error, lost=lost) from error
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return rows

    def events(self, stream: str, after: int, until: int | None) -> Iterator[StoredEvent]:
        """The events of a stream with ``after < seq <= until``, in order; one that is missing is an error."""
        last = FOREVER if until is None else min(until, FOREVER)
        name = stream.encode(errors="surrogatepass")  # no stream is called so, which is an answer

        def page(seq: int, to: int) -> tuple[Sequence[Any], bool]:
            rows = self.all(_EVENTS, (name, seq, to))
            return rows, _is_full(rows, 3)

        def ends() -> tuple[int, int | None]:
            return self.first(_ENDS, (name,)) or (0, None)

        return in_order(stream, max(after, 0), last, page=page, ends=ends, event=event)

    def summaries(self) -> Iterator[tuple[str, bytes]]:
        """Stream and document, the last changed one first."""
        before, more = FOREVER, True
        while more:
            rows = self.all(_SUMMARIES, (before,))
            for _, name, document in rows:
                yield name.decode(), document
            more = _is_full(rows, 2)
            before = rows[-1][0] if rows else 0

    def close(self) -> None:
        """Close what is not lent; the rest is closed when it comes back."""
        self._closed = True
        self._drop()

    def _drop(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _borrow(self) -> Connection:
        if self._closed:
            raise StoreError("The store is closed.", code="store.closed")
        try:
            return self._idle.pop()
        except IndexError:
            return self._link.connect()

    def _give_back(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= _MAX_IDLE:
            connection.close()
            return
        self._idle.append(connection)
        if self._closed:  # closed at that very moment
            self._drop()


def _is_full(rows: Sequence[Any], large_column: int) -> bool:
    """Whether a page ended because of its size, so that more may follow."""
    return len(rows) == _PAGE_ROWS or sum(len(row[large_column]) for row in rows) >= _PAGE_BYTES
