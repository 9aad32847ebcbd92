"""Records of model workers: only the living are listed."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

import pytest

from harness_core.shell.ports import make_ports
from harness_core.shell.workers import RECORD_SCHEMA, living_workers


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """The folder that workers keep their records in."""
    folder = tmp_path / "workers"
    folder.mkdir()
    return folder


def record(folder: Path, name: str, content: Any) -> IO[bytes]:
    """Write a record and hold its lock, as a living worker does."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content).ljust(4096), encoding="utf-8")
    file = path.open("rb")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def test_without_records_nobody_lives(tmp_path: Path) -> None:
    assert living_workers(make_ports("threads").files, tmp_path) == []


def test_a_worker_lives_as_long_as_it_holds_its_lock(records: Path) -> None:
    facts: dict[str, Any] = {"schema": RECORD_SCHEMA, "pid": os.getpid(), "backend": "b", "model": "m", "state": "busy"}
    facts["memory_bytes"] = 5
    files = make_ports("threads").files
    with record(records, "1.json", facts):
        [worker] = living_workers(files, records.parent)
        assert (worker.pid, worker.backend, worker.model, worker.state) == (os.getpid(), "b", "m", "busy")
        assert worker.path is None
        assert (worker.memory_bytes or 0) > 5  # the system knows better
    assert living_workers(files, records.parent) == []
    assert (records / "1.json").exists()  # looking changes nothing


@pytest.mark.parametrize("content", ["", "no JSON", "[]", {"schema": "other/1", "pid": 1}, {"schema": RECORD_SCHEMA}])
def test_a_record_of_somebody_else_is_left_out(records: Path, content: Any) -> None:
    with record(records, "1.json", content), record(records, "2.txt", {"schema": RECORD_SCHEMA, "pid": 1}):
        assert living_workers(make_ports("threads").files, records.parent) == []


def test_a_worker_that_has_no_process_any_more_keeps_its_last_word(records: Path) -> None:
    gone = {"schema": RECORD_SCHEMA, "pid": 2**22 + 1, "state": "ready", "memory_bytes": 7}
    with record(records, "1.json", gone):
        assert living_workers(make_ports("threads").files, records.parent)[0].memory_bytes == 7
