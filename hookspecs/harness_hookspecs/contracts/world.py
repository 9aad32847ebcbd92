"""Files and processes for tests: a folder or an argument list goes in, two of the doors of ``Ports`` come out."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from harness_hookspecs.errors import Cancelled, NotFound, Refused
from harness_hookspecs.host import CancelToken, Completed, FileFacts

__all__ = ["FakeFiles", "FakeHeldLock", "FakeProcesses"]


class FakeHeldLock:
    """An ``flock`` on an open file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def release(self) -> None:
        """Give it back."""
        self._file.close()


class FakeFiles:
    """``Files`` below one real folder."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def _path(self, path: str) -> Path:
        target = self.root / path
        place = target.parent.resolve() / target.name if target.name not in {"", "..", "."} else target.resolve()
        if target.is_symlink():
            place = target.resolve()
        if not place.is_relative_to(self.root.resolve()):
            raise Refused("The path leaves its root.", code="path.outside", where=path)
        return target

    def read_bytes(self, path: str, *, limit_bytes: int | None = None) -> bytes:
        """The file's bytes."""
        try:
            with self._path(path).open("rb") as file:
                return file.read(-1 if limit_bytes is None else limit_bytes)
        except FileNotFoundError as error:
            raise NotFound("There is no such file.", where=path) from error

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace the file in one step."""
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
        part = target.with_name(f".{target.name}.part")
        part.write_bytes(data)
        part.chmod(mode)
        part.replace(target)

    def append_bytes(self, path: str, data: bytes) -> None:
        """Add to the end of a file."""
        with self._path(path).open("ab") as file:
            file.write(data)

    def remove(self, path: str) -> None:
        """Remove a file."""
        try:
            self._path(path).unlink()
        except FileNotFoundError as error:
            raise NotFound("There is no such file.", where=path) from error

    def facts(self, path: str) -> FileFacts | None:
        """Facts of the path itself."""
        try:
            found = self._path(path).lstat()
        except FileNotFoundError:
            return None
        return FileFacts(_kind(found.st_mode), found.st_size, found.st_mtime_ns, stat.S_IMODE(found.st_mode))

    def walk(self, path: str = ".") -> Iterator[tuple[str, FileFacts]]:
        """Everything below, sorted."""
        for entry in sorted(self._path(path).rglob("*")):
            name = entry.relative_to(self.root).as_posix()
            facts = self.facts(name)
            if facts is not None:
                yield name, facts

    def make_directory(self, path: str) -> None:
        """Make the folder and its parents."""
        self._path(path).mkdir(parents=True, exist_ok=True)

    def try_lock(self, path: str) -> FakeHeldLock | None:
        """Take an exclusive lock, ``None`` when it is held."""
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return FakeHeldLock(file)


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symlink"
    if stat.S_ISDIR(mode):
        return "directory"
    return "file" if stat.S_ISREG(mode) else "other"


class FakeProcesses:
    """``Processes`` over ``subprocess``: a group of its own, killed at the end."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float = 60.0,
        cancel: CancelToken | None = None,
        limit_bytes: int = 1_048_576,
    ) -> Completed:
        """Run to the end, the timeout or the cancel."""
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            list(argv), cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        undo = cancel.on_cancel(lambda: _kill(child.pid)) if cancel else None
        timed_out = False
        try:
            out, err = child.communicate(stdin, timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            timed_out = True
            _kill(child.pid)
            out, err = child.communicate()
        finally:
            _kill(child.pid)
            if undo:
                undo()
        if cancel and cancel.cancelled():
            raise Cancelled(cancel.reason)
        truncated = len(out) > limit_bytes or len(err) > limit_bytes
        return Completed(child.returncode, out[:limit_bytes], err[:limit_bytes], timed_out, truncated)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
