"""One guard and one server of guards, talked with by hand: what a host does only by mishap, or in the wrong moment."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness_core.shell.ports import HostPorts, guarded
from harness_core.shell.ports.guarded import GuardedCommand, Guards
from tests.commands import LINUX_ONLY, QUICK_SECONDS, guard_of, host, lives, until

pytestmark = LINUX_ONLY

GUARD = Path(guarded.__file__).with_name("guard.py")


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., GuardedCommand]]:
    """Begins a command of one server, which notes itself and sleeps, and tells it all but the last bytes."""
    with ExitStack() as then:
        guards = Guards()
        then.callback(guards.close)

        def one(cut_bytes: int = 0) -> GuardedCommand:
            env = {"PATH": os.environ["PATH"], "PIDS": str(tmp_path)}
            command = guards.start(["sh", "-c", ': > "$PIDS/$$"; exec sleep 300'], None, env)
            assert command.orders is not None
            pipe, told = command.orders
            for one in (pipe, *command.pipes, command):
                then.callback(one.close)
            pipe.write(told[: len(told) - cut_bytes])
            pipe.close()
            return command

        yield one


def ended(command: GuardedCommand, seconds: float = QUICK_SECONDS) -> bool:
    assert command.end_fd is not None
    return command.look(bool(select.select([command.end_fd], [], [], seconds)[0]))


@pytest.mark.parametrize("cut_bytes", [1, 12, 10_000])
def test_a_command_that_was_not_told_to_its_end_is_not_run(
    begin: Callable[..., GuardedCommand], tmp_path: Path, cut_bytes: int
) -> None:
    """As by a host that is killed while it tells."""
    command = begin(cut_bytes)
    assert ended(command)
    assert (command.returncode(), list(tmp_path.iterdir())) == (-signal.SIGKILL, [])


def test_a_command_whose_server_is_dead_needs_no_telling(
    begin: Callable[..., GuardedCommand], pids: Callable[[], list[int]]
) -> None:
    command = begin()
    until(pids)
    server = guard_of(pids()[0]).parent()
    assert server is not None
    server.kill()
    assert ended(command)
    for end in (command.kill, command.force, command.close):
        end()


def test_what_is_forced_takes_none_with_it_that_another_server_guards(
    begin: Callable[..., GuardedCommand], pids: Callable[[], list[int]]
) -> None:
    first, second = begin(), begin()
    first.force()
    assert ended(first) and ended(second)
    third = begin()
    until(lambda: len(pids()) == 1)
    for end in (second.stop, second.kill, second.force):
        end()
    assert not ended(third, 0) and pids()


def test_a_server_that_takes_no_more_orders_is_replaced_and_ended(
    begin: Callable[..., GuardedCommand], pids: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "_END_SECONDS", 0.05)
    first = begin()
    until(pids)
    server = guard_of(pids()[0]).parent()
    assert server is not None
    server.suspend()
    for _ in range(5_000):  # far more than it has room for
        first.stop()
    begin()
    until(lambda: not lives(server.pid))  # and waited for, where the machine comes to it in so short a time
    assert ended(first)
    until(lambda: len(pids()) == 1)


def test_nobody_waits_for_the_end_of_a_server_who_needs_another(
    begin: Callable[..., GuardedCommand],
    pids: Callable[[], list[int]],
    threads: HostPorts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarded, "_END_SECONDS", 2 * QUICK_SECONDS)
    first = begin()
    until(pids)
    before = pids()
    server = guard_of(before[0]).parent()
    assert server is not None
    server.suspend()
    closing = threads.spawn(first.force)
    until(lambda: first._guards._server is None)
    begin()
    until(lambda: set(pids()) - set(before))
    server.resume()
    assert closing.join(QUICK_SECONDS) and ended(first)


def test_a_fork_ends_no_command_of_its_host(tmp_path: Path) -> None:
    code = (
        "import select\nfrom harness_core.shell.ports.guarded import Guards\nguards = Guards()\n"
        "def begin(*argv):\n"
        "    command = guards.start(argv, None, None)\n"
        "    command.orders[0].write(command.orders[1])\n"
        "    return command\n"
        "def ended(command, seconds):\n"
        "    return command.look(bool(select.select([command.end_fd], [], [], seconds)[0]))\n"
        "command = begin('sleep', '300')\n"
        "pid = os.fork()\n"
        "if not pid:\n    command.stop()\n    guards.close()\n    sys.exit()\n"
        "os.waitpid(pid, 0)\n"
        "told = ended(begin('true'), 10)\n"  # so the server has heard whatever the fork said
        "sys.stdout.write(f'{told} {ended(command, 0)}\\n')\n"
    )
    with host(code, folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True False\n"


# --------------------------------------------------------------------------------------------------- without a host


@pytest.fixture
def channel() -> Iterator[Callable[[int], socket.socket]]:
    """Begins a server for the host of a number; gives the socket to tell it by. It must end in order."""
    servers: list[subprocess.Popen[bytes]] = []
    with ExitStack() as then:

        def begun(host_pid: int) -> socket.socket:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            argv = [sys.executable, "-I", "-S", str(GUARD), str(theirs.fileno()), str(host_pid)]
            servers.append(then.enter_context(subprocess.Popen(argv, pass_fds=(theirs.fileno(),))))
            then.enter_context(ours)  # closed first, at which it ends
            theirs.close()
            ours.settimeout(QUICK_SECONDS)
            return ours

        yield begun
    assert {server.returncode for server in servers} == {0}


def test_a_server_whose_host_died_before_it_began_serves_nobody(channel: Callable[[int], socket.socket]) -> None:
    assert channel(os.getppid()).recv(64) == b""


def test_a_server_ends_when_it_is_told_to_though_somebody_holds_the_channel(
    channel: Callable[[int], socket.socket]
) -> None:
    server = channel(os.getpid())
    assert server.recv(64) == b"ready"
    server.send(b"end")
    assert server.recv(64) == b""


def test_a_server_goes_on_when_nobody_wants_to_know_that_a_guard_could_not_be(
    channel: Callable[[int], socket.socket]
) -> None:
    server = channel(os.getpid())
    assert server.recv(64) == b"ready"
    for wanted in (False, True):
        told, status = os.pipe()
        with open(told, "rb") as pipe:
            if not wanted:
                pipe.close()
            socket.send_fds(server, [b"run 1"], [status])  # and none of the others
            os.close(status)
            assert not wanted or pipe.read() == b"error %d" % errno.EMFILE


ALONE = {
    "whose server died as it began": ("os.getppid()", "", f"ended {int(signal.SIGKILL)}"),
    "that can have no process": ("os.getpid()", "os.fork = fail", f"error {errno.EAGAIN}"),
}


@pytest.mark.parametrize(("server_pid", "change", "told"), ALONE.values(), ids=ALONE)
def test_a_guard_starts_nothing(tmp_path: Path, server_pid: str, change: str, told: str) -> None:
    code = (
        "import runpy\nguard = runpy.run_path(sys.argv[1])['_guard']\n"
        f"def fail():\n    raise BlockingIOError({errno.EAGAIN}, '')\n"
        f"server_pid = {server_pid}\n"
        "status, tell = os.pipe()\nspec, orders = os.pipe()\n"
        "words = b'touch\\0' + os.fsencode(sys.argv[2]) + b'\\0'\n"
        "os.write(orders, b'%d 2\\n' % len(words) + words)\n"
        "if not os.fork():\n"
        f"    {change or 'pass'}\n"
        "    guard(server_pid, tell, spec, [os.open('.', os.O_PATH), 0, 1, 2])\n    os._exit(0)\n"
        "os.wait()\n"
        "os.write(1, os.read(status, 64) + b'\\n')\n"
    )
    with host(code, str(GUARD), str(tmp_path / "begun"), folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == told.encode() + b"\n"
    assert list(tmp_path.iterdir()) == []
