from __future__ import annotations

from pathlib import Path

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.store import StoreContract
from harness_hookspecs.contracts.store_case import STREAM, draft
from harness_hookspecs.store import Store
from harness_store_memory import harness_provide_stores
from harness_store_memory.settings import Settings
from harness_store_memory.store import MemoryStore, open_store


class MemoryContract(StoreContract):
    """The suite with the two ways in that a log in memory has."""

    def subject(self) -> Store:
        return open_store(Settings(), self.host)

    def reopen(self, store: Store) -> Store:
        assert isinstance(store, MemoryStore)
        store.close()
        return type(store)(store._log, self.host.ports)

    def cut_tail(self, store: Store, stream: str, count: int) -> bool:
        assert isinstance(store, MemoryStore)
        del store._log.streams[stream].events[-count:]
        return True


class TestMemoryStore(MemoryContract):
    pass


def test_stores_of_one_name_share_one_log(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    one, two, other = (open_store(Settings(name=name), host) for name in ("shared", "shared", "other"))
    event = one.append(STREAM, [draft()], expected_seq=0)[0]
    one.close()
    assert list(two.read(STREAM)) == [event]
    assert not other.streams()


def test_the_offer_builds_the_store() -> None:
    (offer,) = harness_provide_stores()
    assert (offer.kind, offer.name) == ("store", "memory")
    assert offer.settings is not None
    assert offer.settings()() == Settings()
