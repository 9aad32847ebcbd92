from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import psycopg

from harness_hookspecs.contracts.store import StoreContract
from harness_hookspecs.store import Store
from harness_store_postgres.settings import Settings
from harness_store_postgres.store import open_store


def schema_of(folder: Path) -> str:
    """A log for each host: hosts have folders, and folders have names of their own."""
    return f"log_{sha256(str(folder).encode()).hexdigest()[:16]}"


class TestPostgresStore(StoreContract):
    # The rows are the same at NORMAL, and a walk of hundreds of commits need not wait for the disk.
    def subject(self) -> Store:
        return open_store(Settings(schema_name=schema_of(self.host.data_dir), synchronous="NORMAL"), self.host)

    def reopen(self, store: Store) -> Store:
        store.close()
        return self.kept(self.subject())  # walks keep none

    def cut_tail(self, store: Store, stream: str, count: int) -> bool:
        with psycopg.connect(autocommit=True) as connection:
            connection.execute(f"SET search_path = {schema_of(self.host.data_dir)}")
            connection.execute("ALTER TABLE events DISABLE TRIGGER events_kept")
            connection.execute("DELETE FROM events WHERE position > (SELECT max(position) - %s FROM events)", (count,))
        return True
