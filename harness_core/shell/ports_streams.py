"""The door of the process's own streams: the words of plugins go in, and none of them reaches who reads results.

A program that embeds the host keeps its standard output, and only what an import prints is led past it. A process of
our own has nothing to print but results, so it takes the descriptor itself: what else is printed there, by a plugin's
threads, its libraries or its children, goes to standard error.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final

__all__ = [
    "drop_unwritable_results",
    "give_stdout_back",
    "keep_stdout_for_results",
    "quiet_stdout",
    "results",
    "writable_results",
]

_STDOUT: Final = 1
_STDERR: Final = 2

_TURN = threading.RLock()  # who puts back must find what they themselves put there; an import may import another plugin
_KEPT: Final[list[Any]] = []  # the stream of results, while descriptor 1 leads elsewhere


@contextlib.contextmanager
def quiet_stdout() -> Iterator[None]:
    """Send what this thread writes to standard output to standard error meanwhile; other threads write as before.

    Documents go to standard output, nothing else may. The stream belongs to the whole process, which may be somebody
    else's program with threads of its own, so it is back in its place afterwards whoever does this at the same time.
    """
    with _TURN:
        before: Any = sys.stdout
        diverted: Any = before if before is None else _Diverted(before)  # without a stream nothing can reach it
        sys.stdout = diverted
        try:
            yield
        finally:
            if sys.stdout is diverted:  # else somebody has put a stream of their own there
                sys.stdout = before


def results() -> Any:
    """The stream of results: standard output as the process was given it; ``None`` without one."""
    return _KEPT[0] if _KEPT else sys.stdout


def writable_results() -> None:
    """Let standard output of our own process take any text; what its encoding has not is shown escaped, as stderr does.

    Called before anything is printed. An error handler stays that somebody chose, and not Python for the locale.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        with contextlib.suppress(OSError):  # what waits there already cannot be written: whoever prints next says so
            sys.stdout.reconfigure(errors="backslashreplace")


def keep_stdout_for_results() -> None:
    """Lead descriptor 1 of our own process to standard error, and keep what it was for :func:`results`.

    Called before the code of plugins runs, once or more often; it stays so until the process ends, since a thread may
    print later than anybody waits for it.
    """
    stream = sys.stdout
    if _KEPT or not isinstance(stream, io.TextIOWrapper) or stream.fileno() != _STDOUT:
        return
    stream.flush()
    unbuffered = stream.write_through
    file: Any = os.fdopen(os.dup(_STDOUT), "wb", 0 if unbuffered else -1)  # the copy is inherited by no child
    _lead_to_stderr()
    stream.reconfigure(line_buffering=True)
    _KEPT.append(io.TextIOWrapper(file, stream.encoding, stream.errors, write_through=unbuffered))


def give_stdout_back() -> None:
    """Make descriptor 1 what it was: a command of a plugin prints its results there itself."""
    while _KEPT:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        kept = _KEPT.pop()
        os.dup2(kept.fileno(), _STDOUT)
        kept.close()


def drop_unwritable_results() -> None:
    """Forget what was kept for results and cannot be written any more; called as the process ends."""
    for kept in _KEPT:
        try:
            kept.flush()
        except OSError:
            _lead(kept.fileno(), os.devnull)


def _lead_to_stderr() -> None:
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # the process was started without
        _lead(_STDOUT, os.devnull)


def _lead(descriptor: int, path: str) -> None:
    there = os.open(path, os.O_WRONLY)
    os.dup2(there, descriptor)
    os.close(there)


class _Diverted:
    """Standard output for every thread but the one that made this, for which it is standard error, or nowhere."""

    def __init__(self, stdout: Any) -> None:
        self._stdout, self._thread, self._nowhere = stdout, threading.get_ident(), io.StringIO()

    def __getattr__(self, name: str) -> Any:
        mine = threading.get_ident() == self._thread
        return getattr((sys.stderr or self._nowhere) if mine else self._stdout, name)
