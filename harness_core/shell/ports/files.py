"""Files below one root; a path that leaves it is refused at the time of use, component by component."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from harness_hookspecs.errors import NotFound, Refused, StoreError
from harness_hookspecs.host import FileFacts

__all__ = ["RealFiles"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "symlink"))


class RealFiles:
    """Every folder on the way is opened without following links, relative to the one before it: what was checked is
    what is used, also when someone swaps a folder for a link meanwhile (I-34)."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @property
    def root(self) -> Path:
        return self._root

    def read_bytes(self, path: str, *, limit_bytes: int | None = None) -> bytes:
        with self._parent(path) as (folder, name):
            handle = _open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, folder, path)
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise Refused(f"{path} is not a regular file", code="path.not_a_file", path=path)
                return file.read(limit_bytes if limit_bytes is not None else -1)

    def write_bytes(self, path: str, data: bytes) -> None:
        self.make_directory(str(Path(path).parent))
        with self._parent(path) as (folder, name):
            _replace(folder, name, data, path)

    def remove(self, path: str) -> None:
        with self._parent(path) as (folder, name), _named(path):
            os.unlink(name, dir_fd=folder)

    def facts(self, path: str) -> FileFacts | None:
        try:
            with self._parent(path) as (folder, name):
                return _facts(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError, NotFound):
            return None

    def walk(self, path: str = ".") -> Iterator[tuple[str, FileFacts]]:
        with self._parent(path) as (folder, name):
            top = _open(name, _DIRECTORY, folder, path)
        os.close(top)
        waiting = [] if path in (".", "") else [Path(path).as_posix()]
        waiting = waiting or [""]
        while waiting:
            current = waiting.pop()
            children = sorted(os.scandir(self._root / current), key=lambda entry: entry.name, reverse=True)
            for entry in reversed(children):
                relative = f"{current}/{entry.name}" if current else entry.name
                yield relative, _facts(entry.stat(follow_symlinks=False))
            waiting += [
                f"{current}/{entry.name}" if current else entry.name
                for entry in children
                if entry.is_dir(follow_symlinks=False)
            ]

    def make_directory(self, path: str) -> None:
        parts = _parts(path)
        for count in range(1, len(parts) + 1):
            with self._parent("/".join(parts[:count])) as (folder, name), contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=folder)

    def try_lock(self, path: str) -> _Lock | None:
        self.make_directory(str(Path(path).parent))
        with self._parent(path) as (folder, name):
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return _Lock(handle)

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The open folder that holds the path's last part, and that part."""
        parts = _parts(path) or ["."]
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                inner = _open(part, _DIRECTORY, folder, path)
                os.close(folder)
                folder = inner
            yield folder, parts[-1]
        finally:
            os.close(folder)


class _Lock:
    """An flock; the file stays, so that two processes can never hold two different ones."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def release(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _parts(path: str) -> list[str]:
    if "\0" in path or path.startswith("/"):
        raise Refused(f"{path!r} is not a path inside the folder", code="path.outside", path=path)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused(f"{path!r} leads out of the folder", code="path.outside", path=path)
    return parts


def _open(name: str, flags: int, folder: int, path: str) -> int:
    with _named(path):
        return os.open(name, flags, dir_fd=folder)


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}", code="path.not_found", path=path) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refused(f"{path} goes through a link or a file", code="path.outside", path=path) from error
        if error.errno == errno.ENOSPC:
            raise StoreError(f"no space left to write {path}", code="store.full", path=path) from error
        raise Refused(f"{path}: {error.strerror}", code="path.unusable", path=path) from error


def _facts(found: os.stat_result) -> FileFacts:
    kind = next((name for test, name in _KINDS if test(found.st_mode)), "other")
    return FileFacts(kind, found.st_size, found.st_mtime_ns, stat.S_IMODE(found.st_mode))


def _replace(folder: int, name: str, data: bytes, path: str) -> None:
    temporary = f".{name[:80]}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    with _named(path):
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                raise Refused(f"{path} is not a regular file", code="path.not_a_file", path=path)
            mode = stat.S_IMODE(found.st_mode)
        except FileNotFoundError:
            mode = 0o666 & ~_umask()
        handle = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder
        )
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(handle, mode)
                os.fsync(handle)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _umask() -> int:
    # There is no call that only reads it; the two swaps are the known way.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
