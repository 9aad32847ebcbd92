"""The one writing connection: pieces of work go in from any thread, their results come out once committed.

Whoever finds nobody writing leads: it commits its own work and, in one transaction with it, all that others have laid
down meanwhile (group commit). They wait on a bare lock of their own, never on the leader's, or they would queue up
behind each other. A leader serves one round and hands over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn, Protocol, TypeVar

from harness_hookspecs.errors import StoreError
from harness_hookspecs.host import Ports, WaitLock

from .driver import Connection, DriverError, IntegrityError
from .schema import FILL_LOG, SMALL_CACHE, USUAL_CACHE

__all__ = ["Place", "T", "Transaction", "Work", "Writer"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_MAX_PLACES = 4096
_FULL = 2  # of PRAGMA synchronous
_COMMITS_WORTH_ROOM = 32  # room for the log costs 4 ms, and each commit that finds it there takes 0.1 ms less
_MALFORMED = (AttributeError, OverflowError, TypeError, ValueError)  # what values of wrong types lead to


Place = tuple[int | None, int, bytes]
"""Where the next event of a stream goes: the stream's number, ``None`` before its first event, and its head's seq and
hash. A plain tuple, since one is made for each append."""


class Work(Protocol[T_co]):
    """Something to be written."""

    def alone(self, connection: Connection, places: dict[str, Place]) -> T_co | None:
        """Write it as one statement that is a transaction of its own; ``None`` when it takes more than that."""

    def within(self, transaction: Transaction) -> T_co:
        """Write it between BEGIN IMMEDIATE and COMMIT; what it refuses, it refuses before its first write."""


class Transaction:
    """An open transaction as the works in it see it.

    Attributes:
        connection: The writing connection.
        known: Places of streams as they were last seen; what has moved since, the file itself refuses.
        places: Places of streams as this transaction leaves them.
        appends: Whether events were written.
    """

    __slots__ = ("appends", "connection", "known", "places")

    def __init__(self, connection: Connection, known: Mapping[str, Place]) -> None:
        self.connection = connection
        self.known = known
        self.places: dict[str, Place] = {}
        self.appends = False


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
        ports: For locks and boundaries.
        failure: Names an error of the driver.
    """

    def __init__(self, connection: Connection, ports: Ports, failure: Callable[[BaseException], StoreError]) -> None:
        self._connection = connection
        self._failure = failure
        self._new_lock = ports.wait.lock
        self._reach = ports.reach
        self._mutex = ports.wait.lock()
        self._leading = False
        self._closed = False
        self._commits = 0
        self._waiting: list[_Job] = []
        self._places: dict[str, Place] = {}

    def run(self, work: Work[T]) -> T:
        """Write and commit; returns what the work gives.

        Raises:
            StoreError: It was refused or could not be written; nothing of it was.
        """
        job: _Job | None = None
        with self._mutex:
            if self._closed:
                raise StoreError("The store is closed.", code="store.closed")
            if self._leading:
                job = self._queue(work)
            self._leading = True
        if job is not None:
            followed: T = self._follow(job)
            return followed
        # Nobody was writing: this work goes first and alone, which is the usual case and the quick one. It is written
        # out here, because each call between two waits for the disk costs ten times what it costs elsewhere.
        try:
            try:
                result = work.alone(self._connection, self._places)
            except IntegrityError:
                # What the file itself refuses is looked at again, which says exactly why, or that it fits after all.
                self._places.clear()
                result = None
            except _MALFORMED as error:
                raise _malformed() from error
            except DriverError as error:
                self._fail(error)
            if result is None:
                return self._write_in_transaction(work)
            self._committed()
            return result
        finally:
            self._hand_over()

    def close(self) -> Connection | None:
        """Refuse later works, let the earlier ones end and give the connection out; ``None`` the second time."""
        with self._mutex:
            if self._closed:
                return None
            self._closed = True
            last = self._queue(_Nothing()) if self._leading else None
        if last is not None:
            with suppress(StoreError):
                self._follow(last)
        return self._connection

    def _queue(self, work: Work[Any]) -> _Job:
        turn = self._new_lock()
        turn.acquire()
        job = _Job(work, turn)
        self._waiting.append(job)
        return job

    def _follow(self, job: _Job) -> Any:
        try:
            job.turn.acquire()
        except BaseException:  # a signal in the main thread: nobody may wait for this one to lead
            self._leave(job)
            raise
        if job.leads:
            self._lead()
        return _outcome(job)

    def _leave(self, job: _Job) -> None:
        with self._mutex:
            if job in self._waiting:
                self._waiting.remove(job)
        if job.leads:
            self._hand_over()

    # ------------------------------------------------------------------------------------------ leading

    def _lead(self) -> None:
        """Write all that waits, the leader's own work among it."""
        with self._mutex:
            jobs, self._waiting = self._waiting, []
        try:
            self._write_together(jobs)
        finally:
            self._hand_over()
            for job in jobs:
                if not job.leads:
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

    def _write_in_transaction(self, work: Work[T]) -> T:
        job = _Job(work, self._mutex)
        self._transaction([job])
        written: T = _outcome(job)
        return written

    def _write_together(self, jobs: list[_Job]) -> None:
        try:
            self._transaction(jobs)
        except StoreError as error:
            for job in jobs:
                job.error = error
            if isinstance(error.__cause__, (IntegrityError, *_MALFORMED)) and len(jobs) > 1:
                for job in jobs:  # whose fault it was, each finds out by itself
                    self._write_together([job])

    def _transaction(self, jobs: list[_Job]) -> None:
        try:
            try:
                transaction = self._written(jobs)
            except IntegrityError:  # as for one that goes alone: looked at again, without what is known of the heads
                self._roll_back()
                transaction = self._written(jobs)
        except DriverError as error:
            self._fail(error)
        except BaseException:
            self._roll_back()
            raise
        for job in jobs:
            job.committed = True
        if len(self._places) > _MAX_PLACES:
            self._places.clear()
        self._places.update(transaction.places)
        self._committed()

    def _written(self, jobs: list[_Job]) -> Transaction:
        connection = self._connection
        transaction = Transaction(connection, self._places)
        connection.execute("BEGIN IMMEDIATE")
        for job in jobs:
            _attempt(job, transaction)
        if transaction.appends:
            self._reach("append.inside")
        connection.execute("COMMIT")
        return transaction

    def _committed(self) -> None:
        self._commits += 1
        if self._commits == _COMMITS_WORTH_ROOM:
            self._make_room()

    def _make_room(self) -> None:
        """Let a log that is written to for longer grow once instead of with every commit: ext4 commits a journal of its
        own for each fsync of a file that grew. Where there is no room, what needs it will say so.
        """
        connection = self._connection
        if connection.execute("PRAGMA synchronous").fetchone()[0] < _FULL:  # no commit waits for the disk
            return
        try:
            with suppress(DriverError):
                connection.execute(SMALL_CACHE).close()
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(FILL_LOG)
        finally:
            self._roll_back()
            connection.execute(USUAL_CACHE).close()

    def _fail(self, error: BaseException) -> NoReturn:
        self._roll_back()
        raise self._failure(error) from error

    def _roll_back(self) -> None:
        self._places.clear()
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except DriverError as error:  # then SQLite rolls back when the file is opened next
            raise self._failure(error) from error


def _attempt(job: _Job, transaction: Transaction) -> None:
    job.error = None
    try:
        job.result = job.work.within(transaction)
    except StoreError as refusal:
        job.error = refusal
    except _MALFORMED as error:
        raise _malformed() from error


def _malformed() -> StoreError:
    return StoreError("What is to be written is not of the promised types.", code="store.malformed")


def _outcome(job: _Job) -> Any:
    if job.error is not None:
        raise job.error
    if not job.committed:
        raise StoreError("The transaction of which this was a part came to no end.", code="store.io")
    return job.result


class _Nothing:
    """The last work: when it is done, so is everything before it."""

    def alone(self, connection: Connection, places: dict[str, Place]) -> bool:
        return True

    def within(self, transaction: Transaction) -> bool:
        return True
