"""The door of the process's own streams: the words of a plugin's import go in, and none of them reaches stdout."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["quiet_stdout"]

_TURN = threading.RLock()  # who puts back must find what they themselves put there; an import may import another plugin


@contextmanager
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


class _Diverted:
    """Standard output for every thread but the one that made this, for which it is standard error, or nowhere."""

    def __init__(self, stdout: Any) -> None:
        self._stdout, self._thread, self._nowhere = stdout, threading.get_ident(), io.StringIO()

    def __getattr__(self, name: str) -> Any:
        mine = threading.get_ident() == self._thread
        return getattr((sys.stderr or self._nowhere) if mine else self._stdout, name)
