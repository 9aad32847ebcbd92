"""A PostgreSQL server of the tests' own: nothing goes in, one that listens on a socket in a temporary folder comes out.

Its programs are Debian's or those of the path; there is no TCP port, and it waits for the disk as any other does. Where
there are no programs the tests are skipped, unless ``HARNESS_TEST_POSTGRES=required``.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

REQUIRED = os.environ.get("HARNESS_TEST_POSTGRES") == "required"


class Server:
    """One server.

    Attributes:
        folder: Holds its files and its socket.
        env: The environment of libpq that leads to it.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self.programs = folder, programs
        self.user = _user()
        self.env = {"PGHOST": str(folder), "PGUSER": "harness", "PGDATABASE": "postgres"}
        self._process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make its files."""
        _give(self.folder, self.user)
        arguments = ("--pgdata", str(self.folder / "data"), "--username", "harness", "--auth", "trust")
        self._run("initdb", *arguments, "--encoding", "UTF8", "--locale", "C")

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = ("listen_addresses=", f"unix_socket_directories={self.folder}", "shared_buffers=16MB")
        command = self._command("postgres", "-D", str(self.folder / "data"), *(f"--{option}" for option in options))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        while self._ping() != 0:
            assert self._process.poll() is None, (self.folder / "log").read_text(encoding="utf-8")

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: at once, without any farewell to those who are connected, unless told otherwise."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def _ping(self) -> int:
        call = [str(self.programs / "pg_isready"), "--quiet", "--timeout", "1"]
        return subprocess.run(call, env={**os.environ, **self.env}, check=False).returncode

    def _run(self, program: str, *arguments: str) -> None:
        call = self._command(program, *arguments)
        ended = subprocess.run(call, cwd=self.folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr

    def _command(self, program: str, *arguments: str) -> Sequence[str]:
        """The server refuses to run as root; another user is taken then, by a program that becomes the server."""
        become: tuple[str, ...] = ()
        if self.user is not None:
            become = ("setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups")
        return (*become, str(self.programs / program), *arguments)


def _user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _give(folder: Path, user: pwd.struct_passwd | None) -> None:
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)


def _programs() -> Path | None:
    """The newest programs there are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda file: int(file.parts[-3]))
    on_path = shutil.which("postgres")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


def _missing() -> str | None:
    """Why there can be no server."""
    if _programs() is None:
        return "no PostgreSQL server is installed (postgres, initdb)"
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return "a PostgreSQL server does not run as root, and there is no setpriv"
    return None


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The one server of all tests."""
    missing, programs = _missing(), _programs()
    if missing is not None or programs is None:
        (pytest.fail if REQUIRED else pytest.skip)(str(missing))
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:  # a path of a socket has a hundred letters at most
        made = Server(Path(folder), programs)
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture(autouse=True)
def libpq(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of libpq leads to that server, and nowhere else."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def psql(libpq: None) -> Iterator[Any]:
    """A connection beside the store's, as whoever keeps the server has one."""
    import psycopg

    with psycopg.connect(autocommit=True) as connection:
        yield connection
