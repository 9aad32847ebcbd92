from __future__ import annotations

from pathlib import Path

from pysqlite3 import dbapi2 as sqlite

from harness_hookspecs.contracts.store import StoreContract
from harness_hookspecs.store import Store
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store


class TestSqliteStore(StoreContract):
    # The file is the same at NORMAL, and a walk of hundreds of commits need not wait for the disk.
    settings = Settings(synchronous="NORMAL")

    def subject(self) -> Store:
        return open_store(self.settings, self.host)

    def reopen(self, store: Store) -> Store:
        store.close()
        return self.subject()

    def restored(self, file: Path) -> Store:
        return open_store(Settings(path=str(file)), self.host)

    def cut_tail(self, store: Store, stream: str, count: int) -> bool:
        connection = sqlite.connect(str(self.host.data_dir / "harness.db"), isolation_level=None)
        connection.execute("DROP TRIGGER events_no_delete")
        connection.execute("DELETE FROM events WHERE position > (SELECT max(position) - ? FROM events)", (count,))
        connection.close()
        return True
