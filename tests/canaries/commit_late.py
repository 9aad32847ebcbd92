"""A transaction that is committed when the next one comes: what was acknowledged last is lost with the process."""

from __future__ import annotations

from typing import Any

import pytest

from harness_store_sqlite.writer import Transaction, Writer, _attempt

__all__ = ["plant"]


def plant(patch: pytest.MonkeyPatch) -> None:
    """Put the bug in."""
    patch.setattr(Writer, "_transaction", _transaction)


def _transaction(self: Writer, jobs: list[Any]) -> None:
    connection = self._connection
    if connection.in_transaction:
        connection.execute("COMMIT")
    transaction = Transaction(connection, self._places)
    connection.execute("BEGIN IMMEDIATE")
    for job in jobs:
        _attempt(job, transaction)
        job.committed = True
    if transaction.appends:
        self._reach("append.inside")
    self._places.update(transaction.places)
