"""A PostgreSQL server of the tests' own: nothing goes in, one that listens on a socket in a temporary folder comes out.

Its programs are Debian's or those of the path; there is no TCP port, and it waits for the disk as any other does. Where
there are no programs the tests are skipped, unless ``HARNESS_TEST_POSTGRES=required``.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost

SOCKET = ".s.PGSQL.5432"
_COMMIT = b"; COMMIT\x00"
_ROOM_BYTES = 1_000_000_000
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
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all locked scram-sha-256\n{rules.read_text(encoding='utf-8')}", encoding="utf-8")

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
        """By a program that becomes the server: it ends with the tests, and is not root, which it would refuse."""
        become: tuple[str, ...] = ("setpriv", "--pdeathsig=QUIT") if shutil.which("setpriv") else ()
        if self.user is not None:
            become = (*become, f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups")
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


def _folder() -> str | None:
    """Where its files lie: in memory where there is room, since no test pulls the plug; else as usual."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM_BYTES else None


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The one server of all tests."""
    missing, programs = _missing(), _programs()
    if missing is not None or programs is None:
        (pytest.fail if REQUIRED else pytest.skip)(str(missing))
    # The path of a socket has a hundred letters at most.
    with tempfile.TemporaryDirectory(prefix="pg-", dir=_folder()) as folder:
        made = Server(Path(folder), programs)
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture
def required() -> bool:
    """Whether what is missing fails the tests instead of leaving them out."""
    return REQUIRED


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


_numbers = itertools.count(1)


@pytest.fixture
def schema() -> str:
    """The name of a schema that is not there yet."""
    return f"log_{next(_numbers)}"


@pytest.fixture
def settings(schema: str) -> Any:
    """Settings for a log of the test's own; it need not wait for the disk."""
    from harness_store_postgres.settings import Settings

    return Settings(schema_name=schema, synchronous="NORMAL")


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def opened(settings: Any, host: FakeHost) -> Iterator[Any]:
    """Opens the log, as often as it is asked to; what was opened is closed."""
    from harness_store_postgres.store import open_store

    stores: list[Any] = []

    def more() -> Any:
        stores.append(open_store(settings, host))
        return stores[-1]

    yield more
    for store in stores:
        store.close()


@pytest.fixture
def log(psql: Any, schema: str) -> Any:
    """Executes a statement in the log's schema, beside the store, and gives the rows."""

    def execute(statement: str) -> Any:
        psql.execute(f"SET search_path = {schema}")
        cursor = psql.execute(statement)
        return cursor.fetchall() if cursor.description else []

    return execute


class Wire:
    """A way to the server that breaks on purpose: it cuts a connection that says COMMIT.

    Attributes:
        cuts: ``before`` the server hears of the COMMIT, ``after`` it has answered, or ``None``: not at all.
        ends: Whether it leads nowhere once it was cut, until it is mended.
    """

    def __init__(self, folder: Path, server: Path) -> None:
        self.cuts: str | None = None
        self.ends = False
        self.count = 0
        self._server = server
        self._place = folder / SOCKET
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._place))
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def mend(self) -> None:
        """Let it lead to the server again."""
        self._place.with_suffix(".cut").rename(self._place)

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        threads = []
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threads.append(threading.Thread(target=self._lead, args=(near,)))
                threads[-1].start()
        for thread in threads:
            thread.join()

    def _lead(self, near: socket.socket) -> None:
        with near, socket.socket(socket.AF_UNIX) as far:
            far.connect(str(self._server / SOCKET))
            back = threading.Thread(target=_pump, args=(far, near))
            back.start()
            self._forth(near, far)
            for end in (near, far):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            back.join()

    def _forth(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while data := near.recv(65_536):
                if self.cuts and data.endswith(_COMMIT):
                    cuts, self.cuts, self.count = self.cuts, None, self.count + 1
                    if self.ends:
                        self._place.rename(self._place.with_suffix(".cut"))
                    if cuts == "before":
                        return
                    near.shutdown(socket.SHUT_WR)  # the answer reaches nobody
                    far.sendall(data)
                    far.shutdown(socket.SHUT_WR)
                    while near.recv(65_536):
                        pass
                    return
                far.sendall(data)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            with suppress(OSError):
                target.sendall(data)


@pytest.fixture
def wire(server: Server, libpq: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """The environment of libpq leads to the server by a wire of the test's own."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        made = Wire(Path(folder), server.folder)
        monkeypatch.setenv("PGHOST", folder)
        yield made
        made.close()
