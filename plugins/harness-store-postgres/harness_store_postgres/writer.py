"""The one writing connection: pieces of work go in from any thread, their results come out once committed.

Whoever finds nobody writing leads: it commits, in one transaction, its own work and all that others have laid down
meanwhile (group commit). They wait on a bare lock of their own, never on the leader's, or they would queue up behind
each other. A leader serves one round and hands over.

When the connection is lost, nothing was written unless COMMIT was on its way. Then the log itself is asked on a new
connection: the last event's hash stands at its place, or it does not.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from harness_hookspecs.errors import StoreError
from harness_hookspecs.host import Ports, WaitLock

from .failure import is_fault_of_one, is_passing
from .link import Connection, DriverError, Link
from .transaction import Transaction

__all__ = ["Work", "Writer"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_MAX_TRIES: Final = 4


class Work(Protocol[T_co]):
    """Something to be written."""

    def within(self, transaction: Transaction) -> T_co:
        """Write it between BEGIN and COMMIT; what it refuses, it refuses before its first write."""


class _Job:
    """A work that waits. Unless its transaction is committed or fails with an error, it was lost."""

    __slots__ = ("committed", "error", "leads", "result", "turn", "work")

    def __init__(self, work: Work[Any], turn: WaitLock) -> None:
        self.work = work
        self.turn = turn
        self.leads = False
        self.committed = False
        self.result: Any = None
        self.error: StoreError | None = None


class Writer:
    """Owns the writing connection.

    Args:
        connection: In autocommit mode.
        link: The way to the log, for another one.
        ports: For locks and boundaries.
    """

    def __init__(self, connection: Connection, link: Link, ports: Ports) -> None:
        self._connection: Connection | None = connection
        self._link = link
        self._new_lock = ports.wait.lock
        self._reach = ports.reach
        self._mutex = ports.wait.lock()
        self._leading = False
        self._closed = False
        self._waiting: list[_Job] = []
        self._last: Transaction | None = None

    def run(self, work: Work[T]) -> T:
        """Write and commit; returns what the work gives.

        Raises:
            StoreError: It was refused or could not be written; nothing of it was, except that with
                ``store.in_doubt`` nobody knows.
        """
        with self._mutex:
            if self._closed:
                raise StoreError("The store is closed.", code="store.closed")
            job = self._queue(work)
            leads = not self._leading
            self._leading = True
        if leads:
            self._lead()
        else:
            self._follow(job)
        result: T = _outcome(job)
        return result

    def close(self) -> None:
        """Refuse later works, let the earlier ones end and close the connection."""
        with self._mutex:
            if self._closed:
                return
            self._closed = True
            last = self._queue(_Nothing()) if self._leading else None
        if last is not None:
            with suppress(StoreError):
                self._follow(last)
        self._drop()

    def _queue(self, work: Work[Any]) -> _Job:
        turn = self._new_lock()
        turn.acquire()
        job = _Job(work, turn)
        self._waiting.append(job)
        return job

    def _follow(self, job: _Job) -> None:
        try:
            job.turn.acquire()
        except BaseException:  # a signal in the main thread: nobody may wait for this one to lead
            self._leave(job)
            raise
        if job.leads:
            self._lead()

    def _leave(self, job: _Job) -> None:
        with self._mutex:
            if job in self._waiting:
                self._waiting.remove(job)
        if job.leads:
            self._hand_over()

    # ------------------------------------------------------------------------------------------ leading

    def _lead(self) -> None:
        """Write all that waits, the leader's own work first."""
        with self._mutex:
            jobs, self._waiting = self._waiting, []
        try:
            self._write_together(jobs)
        finally:
            self._hand_over()
            for job in jobs[1:]:
                job.turn.release()

    def _hand_over(self) -> None:
        with self._mutex:
            if not self._waiting:
                self._leading = False
                return
            successor = self._waiting[0]
            successor.leads = True  # in here, so that whoever leaves at this moment knows that it has to hand over
        successor.turn.release()

    # ------------------------------------------------------------------------------------------ writing

    def _write_together(self, jobs: list[_Job]) -> None:
        try:
            self._transact(jobs)
        except StoreError as error:
            for job in jobs:
                job.error = error
            if is_fault_of_one(error.__cause__) and len(jobs) > 1:
                for job in jobs:  # whose fault it was, each finds out by itself
                    self._write_together([job])

    def _transact(self, jobs: list[_Job]) -> None:
        """Write the works in one transaction, again when it is certain that nothing of it was written."""
        doubtful: Transaction | None = None
        for tries_left in reversed(range(_MAX_TRIES)):
            transaction = Transaction(self._connected(doubtful), self._last)
            self._last = None
            try:
                transaction.begin()
                if doubtful is not None and transaction.finds(doubtful):
                    self._roll_back()
                    break
                doubtful = None
                self._fill(transaction, jobs)
                transaction.end()
                self._last = transaction
                break
            except DriverError as error:
                lost = transaction.connection.closed
                if lost and transaction.ending:
                    doubtful = transaction
                self._fail(error, lost, tries_left, doubtful)
            except BaseException:
                self._drop()  # whatever the connection was doing, the server undoes it, unless it was the COMMIT
                if transaction.ending:
                    _doubt(jobs, self._link.where)
                raise
        for job in jobs:
            job.committed = True

    def _connected(self, doubtful: Transaction | None) -> Connection:
        if self._connection is None or self._connection.closed:
            self._drop()
            try:
                self._connection = self._link.reconnect(writes=True)
            except StoreError as error:
                if doubtful is None:
                    raise
                raise _in_doubt(self._link.where) from error
        return self._connection

    def _fill(self, transaction: Transaction, jobs: list[_Job]) -> None:
        for job in jobs:
            job.error = None
            try:
                job.result = job.work.within(transaction)
            except StoreError as refusal:
                job.error = refusal
        if transaction.proof is not None:
            self._reach("append.inside")

    def _fail(self, error: DriverError, lost: bool, tries_left: int, doubtful: Transaction | None) -> None:
        """Clear up after a failed transaction; returns when it is to be tried again."""
        if not lost:
            self._roll_back()
        if tries_left and (lost or is_passing(error)):
            return
        if doubtful is not None:
            raise _in_doubt(self._link.where) from error
        raise self._link.failure(error, lost=lost) from error

    def _roll_back(self) -> None:
        try:
            if self._connection is not None:
                self._connection.execute("ROLLBACK")
        except DriverError:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection, self._last = self._connection, None, None
        if connection is not None:
            connection.close()


def _doubt(jobs: list[_Job], where: str) -> None:
    for job in jobs:
        job.error = job.error or _in_doubt(where)


def _in_doubt(where: str) -> StoreError:
    text = "the connection was lost amid a COMMIT, and the server cannot be asked whether it came about"
    return StoreError(text, code="store.in_doubt", where=where, hint="see that the server runs, then resume")


def _outcome(job: _Job) -> Any:
    if job.error is not None:
        raise job.error
    if not job.committed:
        raise StoreError("The transaction of which this was a part came to no end.", code="store.io")
    return job.result


class _Nothing:
    """The last work: when it is done, so is everything before it."""

    def within(self, transaction: Transaction) -> bool:
        return True
