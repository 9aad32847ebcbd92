"""The records that model workers keep in the state folder in, the workers that are alive out.

A worker holds a lock on its record ``workers/PID.json`` as long as it lives; whoever can take the lock looks at the
record of a dead one. Nothing here knows an engine: any provider with processes of its own may keep such records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import CodecError, HarnessError
from harness_hookspecs.host import Files
from harness_hookspecs.kit import codec

__all__ = ["RECORD_SCHEMA", "LivingWorker", "living_workers"]

FOLDER: Final = "workers"
RECORD_SCHEMA: Final = "harness.worker/1"
RECORD_LIMIT_BYTES: Final = 65_536


class LivingWorker(NamedTuple):
    """One process that holds a model, as it describes itself; ``None`` is what it does not say.

    ``memory_bytes`` is the resident memory, asked of the system now where it tells, else the worker's last word.
    """

    pid: int
    backend: str | None
    model: str | None
    state: str
    path: str | None
    started_at: str | None
    memory_bytes: int | None


def living_workers(files_at: Callable[[Path], Files], state_dir: Path) -> list[LivingWorker]:
    """List the workers of every process of this person, by pid.

    Args:
        files_at: ``ports.files``.
        state_dir: The state folder (``state/harness``).
    """
    files = files_at(state_dir)
    facts = files.facts(FOLDER)
    if facts is None or facts.kind != "directory":
        return []
    return sorted(worker for path in list(_records(files)) if (worker := _living(files, path)) is not None)


def _records(files: Files) -> Iterator[str]:
    for path, facts in files.walk(FOLDER):
        if facts.kind == "file" and path.endswith(".json") and path.count("/") == 1:
            yield path


def _living(files: Files, path: str) -> LivingWorker | None:
    lock = files.try_lock(path)
    if lock is not None:  # nobody holds it: the worker is dead, and its provider's next start clears up
        lock.release()
        return None
    try:
        record = codec.loads(files.read_bytes(path, limit_bytes=RECORD_LIMIT_BYTES))
    except (CodecError, HarnessError):
        return None  # it ended in this very moment
    if not isinstance(record, dict) or record.get("schema") != RECORD_SCHEMA or not isinstance(record.get("pid"), int):
        return None
    return _worker(record)


def _worker(record: dict[str, Any]) -> LivingWorker:
    said = {name: value if isinstance(value := record.get(name), str) else None for name in _TEXTS}
    last_word = record.get("memory_bytes")
    memory_bytes = _memory(record["pid"]) or (last_word if isinstance(last_word, int) else None)
    state = said.pop("state") or "starting"
    return LivingWorker(pid=record["pid"], state=state, memory_bytes=memory_bytes, **said)


_TEXTS: Final = ("backend", "model", "state", "path", "started_at")


def _memory(pid: int) -> int | None:
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
