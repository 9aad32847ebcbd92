"""Things of the host that code must not reach: a folder goes in, secrets all around and what was reached come out."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["WORLD_PROBES", "World", "children"]

_VARIABLE: Final = "HARNESS_ENGINE_PROBE"


def _tried(*lines: str) -> tuple[str, ...]:
    return ("try:", *(f"    {line}" for line in lines), "except BaseException:", "    return 'refused'")


WORLD_PROBES: Final = (
    _tried("return open(input['file']).read()"),
    _tried("from pathlib import Path", "return Path(input['file']).read_text()"),
    _tried("import io", "return io.open(input['file']).read()"),
    _tried("with open(input['made'], 'w') as file:", "    file.write('x')", "return 'written'"),
    _tried("import os", "return [os.environ[input['variable']]]"),
    _tried("import os", "return os.getenv(input['variable'])"),
    _tried("import os", "return [open(one).read() for one in os.listdir(input['folder'])]"),
    _tried("import os", "os.mkdir(input['made'])", "return 'made'"),
    _tried("import os", "return os.system('touch ' + input['made'])"),
    _tried("import subprocess", "return subprocess.run(['touch', input['made']]).returncode"),
    _tried("import socket", "return str(socket.create_connection(('127.0.0.1', input['port']), 1))"),
    _tried("import urllib.request", "return str(urllib.request.urlopen('http://127.0.0.1:' + str(input['port'])))"),
    _tried("return eval(\"__import__('os').environ\")[input['variable']]"),
)
"""Bodies of ``main``; each returns what it got."""



class World:
    """Secrets in a file, a variable and a name of this process, a port that listens, and streams that are watched.

    Attributes:
        secret: What must not be seen.
        places: Where the secrets are, as the code is told.
    """

    def __init__(self, folder: Path) -> None:
        self.secret = "e3b0c44298fc1c14"
        self._made, self._streams = folder / "made", folder / "streams"
        (folder / "file").write_text(self.secret, encoding="utf-8")
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(0)
        self.places = {
            "file": str(folder / "file"),
            "made": str(self._made),
            "folder": str(folder),
            "variable": _VARIABLE,
            "port": self._server.getsockname()[1],
        }
        self._kept: list[int] = []
        self._python = sys.stdout, sys.stderr

    def __enter__(self) -> Self:
        os.environ[_VARIABLE] = self.secret
        sys.stdout.flush()
        sys.stderr.flush()
        self._kept = [os.dup(1), os.dup(2)]
        caught = os.open(self._streams, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(caught, 1)
        os.dup2(caught, 2)
        os.close(caught)
        self._python = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self._streams.open("a", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout.close()
        sys.stdout, sys.stderr = self._python
        for stream, kept in zip((1, 2), self._kept, strict=True):
            os.dup2(kept, stream)
            os.close(kept)
        os.environ.pop(_VARIABLE, None)
        self._server.close()

    def reached(self, found: Any) -> bool:
        """Whether the code got hold of something, by what it returned or by what it left."""
        sys.stdout.flush()
        said = str(found) + self._streams.read_text(encoding="utf-8")
        return self.secret in said or self._made.exists() or self._called()

    def _called(self) -> bool:
        try:
            self._server.accept()[0].close()
        except BlockingIOError:
            return False
        return True


def children() -> set[int]:
    """The processes that are children of this one, where the system tells; else none."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text(encoding="ascii").split()}
