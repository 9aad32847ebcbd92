"""A project and a script in, a host that plays it out: what the tests of sessions share."""

from __future__ import annotations

import importlib
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_hookspecs.errors import HarnessError
from tests.reference import PATIENCE_SECONDS, Site, notes, one_stage, payloads, types_of, write_site


class Play:
    """One project, and a host on it."""

    def __init__(
        self, root: Path, patch: pytest.MonkeyPatch, replies: Sequence[Mapping[str, Any]], **files: Any
    ) -> None:
        self.site: Site = write_site(root, replies=replies, **{"stages": one_stage(), **files}).enter(patch)
        self._seen = threading.Condition()
        self._types: list[str] = []
        self.host = self._open()

    def _open(self, **more: Any) -> Host:
        return Host.open(self.site.project, on_event=self._see, **more)

    def _see(self, event: Any) -> None:
        with self._seen:
            self._types.append(event.type)
            self._seen.notify_all()

    def reopen(self, **more: Any) -> None:
        """What another process would have: a new host, and nothing else."""
        self.host.close()
        self.host = self._open(**more)

    def forget(self) -> None:
        """Wait only for events that are still to come."""
        with self._seen:
            self._types.clear()

    def until(self, *kinds: str, count: int = 1) -> None:
        """Wait until so many events of these types have been committed by this host."""
        with self._seen:
            came = self._seen.wait_for(lambda: sum(map(self._types.count, kinds)) >= count, PATIENCE_SECONDS)
            assert came, " ".join(self._types)

    def run(self, on_ask: str = "suspend", **more: Any) -> Any:
        return self.host.run("Go.", on_ask=on_ask, **more)

    def run_until_it_breaks(self, failpoint: str) -> None:
        """Run under a failpoint that raises, as a process that dies there would leave the session."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HARNESS_FAILPOINT", f"{failpoint}:raise")
            self.reopen()
            with pytest.raises(HarnessError):
                self.run()

    def answer(self, item: Mapping[str, Any], decision: str = "approve", **more: Any) -> Any:
        return self.host.answer(item["id"], decision, digest=item["digest"], **more)

    def resume(self, on_ask: str = "suspend", **more: Any) -> Any:
        return self.host.resume("@last", on_ask=on_ask, **more)

    def pending(self) -> Any:
        return self.host.approvals()

    def types(self) -> list[str]:
        return types_of(self.events())

    def events(self) -> list[Any]:
        return list(self.host.events("@last"))

    def payloads(self, kind: str) -> list[dict[str, Any]]:
        return payloads(self.events(), kind)

    def effects(self) -> list[str]:
        return notes(self.site)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    opened: list[Play] = []

    def begin(*replies: Mapping[str, Any], **files: Any) -> Play:
        (tmp_path / str(len(opened))).mkdir()
        opened.append(Play(tmp_path / str(len(opened)), monkeypatch, replies, **files))
        return opened[-1]

    yield begin
    for one in opened:
        one.host.close()


@pytest.fixture(scope="session")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture
def site_folder(_site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder on the path, for distributions. It is the same one for every test, so what the index knows of the
    other plugins on that path is read once; code that differs must have another name."""
    monkeypatch.syspath_prepend(str(_site))
    yield _site
    for made in _site.iterdir():
        shutil.rmtree(made)
    importlib.invalidate_caches()
