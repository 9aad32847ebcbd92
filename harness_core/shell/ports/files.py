"""Files below one root; a path that leaves it is refused at the time of use, component by component."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness_hookspecs.errors import HarnessError, NotFound, Refused, StoreError
from harness_hookspecs.host import FileFacts

__all__ = ["RealFiles"]

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO without a writer must not block
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "symlink"))
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_FILE = frozenset({errno.EISDIR, errno.ENXIO})


class RealFiles:
    """Every folder on the way is opened without following links, relative to the one before it: what was checked is
    what is used, also when someone swaps a folder for a link meanwhile (I-34). A link is refused even when it leads
    to a place inside.

    Besides ``path.outside`` a path may be refused as ``path.not_a_file``, ``path.not_a_folder`` or
    ``path.unusable`` (the system said no); what cannot be written for lack of space raises
    ``StoreError(code="store.full")`` and leaves the file as it was.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @property
    def root(self) -> Path:
        return self._root

    def read_bytes(self, path: str, *, limit_bytes: int | None = None) -> bytes:
        *folders, name = _named(path)
        with self._folder(folders) as folder, _typed(path):
            handle = os.open(name, _READ, dir_fd=folder)
            try:
                _must_be_file(os.fstat(handle), path)
                with os.fdopen(handle, "rb", closefd=False) as file:
                    return file.read(-1 if limit_bytes is None else limit_bytes)
            finally:
                os.close(handle)

    def write_bytes(self, path: str, data: bytes) -> None:
        *folders, name = _named(path)
        with self._folder(folders, make=True) as folder, _typed(path):
            mode = _mode_to_keep(folder, name, path)
            part = f".harness-{os.urandom(8).hex()}.part"
            handle = os.open(part, _CREATE, 0o666 if mode is None else 0o600, dir_fd=folder)
            try:
                _fill(handle, data, mode)
                os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=folder)
                raise
            with contextlib.suppress(OSError):  # the name too is to survive a power loss, where folders can be synced
                os.fsync(folder)

    def append_bytes(self, path: str, data: bytes) -> None:
        *folders, name = _named(path)
        with self._folder(folders) as folder, _typed(path):
            handle = os.open(name, _APPEND, 0o666, dir_fd=folder)
            try:
                _must_be_file(os.fstat(handle), path)
            except BaseException:
                os.close(handle)
                raise
            _fill(handle, data, None)
            with contextlib.suppress(OSError):
                os.fsync(folder)

    def remove(self, path: str) -> None:
        *folders, name = _named(path)
        with self._folder(folders) as folder, _typed(path):
            os.unlink(name, dir_fd=folder)

    def facts(self, path: str) -> FileFacts | None:
        *folders, name = _parts(path) or ["."]
        try:
            with self._folder(folders) as folder, _typed(path):
                return _facts(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except NotFound:
            return None

    def walk(self, path: str = ".") -> Iterator[tuple[str, FileFacts]]:
        """Folder by folder: first all that lies in one, sorted, then what lies in each of its folders. What vanishes
        or may not be read meanwhile is left out, but ``path`` itself must be a folder."""
        top = "/".join(_parts(path))
        waiting = [top]
        while waiting:
            current = waiting.pop()
            try:
                entries = self._entries(current)
            except (NotFound, Refused):
                if current == top:
                    raise
                continue
            inside = [(f"{current}/{name}" if current else name, facts) for name, facts in entries]
            yield from inside
            waiting += [name for name, facts in reversed(inside) if facts.kind == "directory"]

    def make_directory(self, path: str) -> None:
        with self._folder(_parts(path), make=True):
            return

    def try_lock(self, path: str) -> _Lock | None:
        *folders, name = _named(path)
        with self._folder(folders, make=True) as folder, _typed(path):
            handle = os.open(name, _LOCK, 0o600, dir_fd=folder)
            try:
                _must_be_file(os.fstat(handle), path)
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except BaseException:
                os.close(handle)
                raise
        return _Lock(handle)

    def _entries(self, path: str) -> list[tuple[str, FileFacts]]:
        found = []
        with self._folder(_parts(path)) as folder, _typed(path), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    found.append((entry.name, _facts(entry.stat(follow_symlinks=False))))
        return sorted(found)

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """The open folder at the end of ``parts``; on request what is missing is made on the way."""
        path = "/".join(parts)
        if make:
            with _typed(path):
                os.makedirs(self._root, exist_ok=True)
        with _typed(path):
            folder = os.open(self._root, _ROOT)
        try:
            for part in parts:
                outer, folder = folder, _enter(folder, part, path, make=make)
                os.close(outer)
            yield folder
        finally:
            os.close(folder)


class _Lock:
    """An flock; the file stays, so that two processes can never hold two different ones."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def release(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _parts(path: str) -> list[str]:
    try:
        unusable = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:  # half a surrogate pair is no name of any file
        unusable = True
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if unusable or path.startswith("/") or ".." in parts:
        raise Refused(f"{path!r} is not a path inside the folder", code="path.outside", path=_shown(path))
    return parts


def _named(path: str) -> list[str]:
    """The parts of a path that must name something inside the folder."""
    parts = _parts(path)
    if not parts:
        raise Refused(f"{path!r} is the folder itself", code="path.not_a_file", path=path)
    return parts


def _shown(path: str) -> str:
    """The path as text that strict JSON takes; bytes that are not UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def _enter(folder: int, name: str, path: str, *, make: bool) -> int:
    with _typed(path):
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=folder)
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except NotADirectoryError:  # what the system says of a link too
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise _outside(path) from None
            kind = Refused if make else NotFound
            raise kind(f"{_shown(path)}: {name!r} is no folder", code="path.not_a_folder", path=_shown(path)) from None


@contextlib.contextmanager
def _typed(path: str) -> Iterator[None]:
    """Our error for the system's."""
    try:
        yield
    except OSError as error:
        raise _error(path, error) from error


def _error(path: str, error: OSError) -> HarnessError:
    shown = _shown(path)
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"there is no file {shown}", code="path.not_found", path=shown)
    if error.errno == errno.ELOOP:
        return _outside(path)
    if error.errno in _NO_FILE:
        return Refused(f"{shown} is not a regular file", code="path.not_a_file", path=shown)
    if error.errno in _NO_ROOM:
        return StoreError(f"no space left to write {shown}: {error.strerror}", code="store.full", path=shown)
    return Refused(f"{shown}: {error.strerror}", code="path.unusable", path=shown)


def _outside(path: str) -> Refused:
    return Refused(f"{_shown(path)} goes through a link", code="path.outside", path=_shown(path))


def _must_be_file(found: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise _outside(path)
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{_shown(path)} is not a regular file", code="path.not_a_file", path=_shown(path))


def _facts(found: os.stat_result) -> FileFacts:
    kind = next((name for test, name in _KINDS if test(found.st_mode)), "other")
    return FileFacts(kind, found.st_size, found.st_mtime_ns, stat.S_IMODE(found.st_mode))


def _mode_to_keep(folder: int, name: str, path: str) -> int | None:
    """The mode of the file that is to be replaced; a new one gets what the umask leaves."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _must_be_file(found, path)
    return stat.S_IMODE(found.st_mode)


def _fill(handle: int, data: bytes, mode: int | None) -> None:
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        if mode is not None:
            os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)
