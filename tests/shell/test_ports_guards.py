"""What guards commands on Linux: it ends with its host and with nobody else, and nothing that befalls it lasts."""

from __future__ import annotations

import errno
import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness_core.shell.ports import HostPorts, guarded, make_ports
from harness_hookspecs.errors import Cancelled, HarnessError
from tests.commands import LINUX_ONLY, QUICK_SECONDS, TREE, guard_of, host, lives, shell, until

pytestmark = LINUX_ONLY

GUARD = Path(guarded.__file__).with_name("guard.py")
SLEEPS = "note $$; exec sleep 300"


def server_of(ports: HostPorts) -> psutil.Process:
    """The process whose forks are the guards; it is begun for this if there is none."""
    return psutil.Process(int(ports.processes.run(["sh", "-c", "cut -d' ' -f4 /proc/$PPID/stat"]).stdout))


def descriptors_of(server: psutil.Process) -> dict[int, str]:
    """What a server that has nothing to do has open."""
    until(lambda: not server.children() and server.status() == psutil.STATUS_SLEEPING)
    return {int(fd.name): str(fd.readlink()) for fd in Path(f"/proc/{server.pid}/fd").iterdir()}


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that does not stop as it is told gets no seconds for it; the server has the time that it needs."""
    monkeypatch.setattr("harness_core.shell.ports.processes._STOP_SECONDS", 0.05)


@pytest.fixture
def impatient(hurried: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a server."""
    monkeypatch.setattr("harness_core.shell.ports.guarded._END_SECONDS", 0.05)


# ------------------------------------------------------------------------------------------------ beginning and end


def test_ports_that_go_or_are_closed_leave_no_process(threads: HostPorts) -> None:
    gone = make_ports("threads")
    servers = [server_of(threads), server_of(gone)]
    threads.close()
    del gone
    gc.collect()
    until(lambda: not any(lives(server.pid) for server in servers))
    assert threads.processes.run(["true"]).returncode == 0  # by another one


def test_a_killed_host_takes_its_commands_with_it(pids: Callable[[], list[int]], tmp_path: Path) -> None:
    code = (
        "ports.processes.run(['true'])\n"
        "if (pid := os.fork()) == 0:\n    os.write(1, b'%d\\n' % os.getpid())\n    signal.pause()\n"
        "ports.processes.run(['sh', '-c', sys.argv[1]])\n"
    )
    script = ': > "$PIDS/$$"; setsid sh -c \': > "$PIDS/$$"; sleep 300; true\' >/dev/null 2>&1'
    with host(code, script, folder=tmp_path) as process:
        assert process.stdout is not None
        outlives = psutil.Process(int(process.stdout.readline()))  # with everything open that the host had
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        process.kill()
        until(lambda: not pids())
        assert outlives.is_running()


def test_a_fork_that_has_all_the_host_has_disturbs_neither_a_command_nor_the_end(tmp_path: Path) -> None:
    """It is taken amid the start of the first command, under every lock; it runs commands of its own, and stays."""
    code = (
        "import psutil, time\nfrom harness_core.shell.ports import guarded\nforks = []\n"
        "def fork(event, args):\n"
        "    if event != 'subprocess.Popen' or forks:\n        return\n"
        "    forks.append(os.fork())\n"
        "    if forks == [0]:\n"
        "        try:\n"
        "            os.write(1, ports.processes.run(['echo', 'fork']).stdout)\n"
        "            signal.pause()\n"
        "        finally:\n            os._exit(1)\n"
        "sys.addaudithook(fork)\n"
        "done = ports.processes.run(['echo', 'host'], timeout_seconds=20)\n"
        "[server] = [one for one in psutil.Process().children() if one.pid not in forks]\n"
        "guarded._END_SECONDS, began = 10, time.monotonic()\n"
        "ports.close()\n"
        "told = time.monotonic() - began < guarded._END_SECONDS\n"  # to end, and not killed for not hearing it
        "sys.stdout.write(f'{done.stdout} {done.returncode} {done.timed_out} {server.is_running()} {told}\\n')\n"
    )
    with host(code, folder=tmp_path) as process:
        assert process.stdout is not None
        said = {process.stdout.readline(), process.stdout.readline()}
        assert said == {b"fork\n", b"b'host\\n' 0 False False True\n"}


def test_the_commands_of_a_fork_end_with_it_and_not_with_its_host(
    pids: Callable[[], list[int]], tmp_path: Path
) -> None:
    code = (
        "ports.processes.run(['true'])\n"
        "pid = os.fork()\n"
        "if pid:\n    os.write(1, b'%d\\n' % pid)\n    signal.pause()\n"
        "ports.processes.run(['sh', '-c', ': > \"$PIDS/$$\"; exec sleep 300'])\n"
    )
    with host(code, folder=tmp_path) as process:
        assert process.stdout is not None
        fork = psutil.Process(int(process.stdout.readline()))
        until(pids)
        fork.kill()
        until(lambda: not pids())
        assert process.poll() is None


# ------------------------------------------------------------------------------------------------- what befalls it


@pytest.mark.inv("I-33")
@pytest.mark.parametrize("blow", ["KILL", "STOP"])
def test_a_command_that_puts_its_guard_out_of_action_ends_all_the_same(
    ports: HostPorts, pids: Callable[[], list[int]], tmp_path: Path, blow: str, hurried: None
) -> None:
    other = "setsid sh -c ': > \"$PIDS/$$\"; : > \"$PIDS/there\"; sleep 300; true' &"
    script = f"note $$; {other} until test -e $PIDS/there; do :; done; kill -{blow} $PPID; sleep 300"
    done = shell(ports, tmp_path, script, timeout_seconds=0.8)
    assert done.returncode == -signal.SIGKILL
    until(lambda: not pids())
    assert len(list(tmp_path.iterdir())) == 3
    assert shell(ports, tmp_path, "echo next").stdout == b"next\n"


@pytest.mark.inv("I-33")
def test_what_a_stopped_guard_guarded_ends_with_the_ports(pids: Callable[[], list[int]], tmp_path: Path) -> None:
    ports = make_ports("threads")
    script = "note $$; setsid sh -c ': > \"$PIDS/$$\"; kill -STOP $0; sleep 300; true' $PPID"
    task = ports.spawn(lambda: shell(ports, tmp_path, script))
    until(lambda: len(pids()) == 2 and guard_of(pids()[0]).status() == psutil.STATUS_STOPPED)
    ports.close()
    assert task.join(QUICK_SECONDS) and pids() == []


def killed_with_the_guard_stopped(server: psutil.Process, guard: psutil.Process) -> None:
    guard.suspend()
    until(lambda: guard.status() == psutil.STATUS_STOPPED)
    server.kill()


def killed_with_the_guard_first(server: psutil.Process, guard: psutil.Process) -> None:
    server.suspend()
    guard.kill()
    server.kill()


BLOWS: dict[str, tuple[str, Callable[[psutil.Process, psutil.Process], Any]]] = {
    "alone": (TREE, lambda server, guard: server.kill()),
    "with its group": (TREE, lambda server, guard: os.killpg(server.pid, signal.SIGKILL)),
    "while the guard is stopped": (TREE, killed_with_the_guard_stopped),
    "with the guard": (SLEEPS, killed_with_the_guard_first),
}


@pytest.mark.inv("I-33")
@pytest.mark.parametrize(("script", "blow"), BLOWS.values(), ids=BLOWS)
def test_commands_end_with_the_process_that_guards_them_and_the_next_one_gets_another(
    threads: HostPorts, pids: Callable[[], list[int]], tmp_path: Path, script: str, blow: Callable[..., Any]
) -> None:
    server = server_of(threads)
    task = threads.spawn(lambda: shell(threads, tmp_path, script))
    until(lambda: len(list(tmp_path.iterdir())) == (3 if script is TREE else 1))
    blow(server, guard_of(pids()[0]))
    assert task.join(QUICK_SECONDS)
    until(lambda: not any(map(lives, [server.pid, *pids()])))
    assert shell(threads, tmp_path, "echo next").stdout == b"next\n"


def test_a_server_that_cannot_be_begun_anew_at_once_is_with_the_next_command(
    threads: HostPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_of(threads)
    server.kill()
    until(lambda: not lives(server.pid))

    def fail(*_: Any, **__: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", fail)
        with pytest.raises(HarnessError) as caught:
            threads.processes.run(["true"])
    assert caught.value.code == "process.not_started"
    assert threads.processes.run(["echo", "next"]).stdout == b"next\n"


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/python"])
def test_a_command_that_cannot_be_guarded_is_not_started_and_leaves_nothing(
    threads: HostPorts, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    own = psutil.Process()
    gc.collect()  # what an earlier test left may go at any time
    fds, children = own.num_fds(), set(own.children())
    with pytest.raises(HarnessError, match="its guard") as caught:
        threads.processes.run(["true"])
    assert (type(caught.value), caught.value.code) == (HarnessError, "process.not_started")
    del caught
    gc.collect()
    assert own.num_fds() <= fds and set(own.children()) <= children


class Impatient:
    """A token that is cancelled as soon as somebody heeds it."""

    def __init__(self, token: Any) -> None:
        self._token = token

    def __getattr__(self, name: str) -> Any:
        return getattr(self._token, name)

    def on_cancel(self, call: Callable[[], None]) -> Any:
        forget = self._token.on_cancel(call)
        self._token.cancel("enough")
        return forget


@pytest.mark.parametrize("by", ["timeout", "cancel"])
def test_a_server_that_is_stopped_holds_up_no_command_beyond_its_time(
    threads: HostPorts, impatient: None, by: str
) -> None:
    server = server_of(threads)
    server.suspend()
    argv = ["echo", *["x" * 100_000] * 5]  # more than fits into a pipe
    limits = {"timeout_seconds": 0.05} if by == "timeout" else {"cancel": Impatient(threads.wait.token())}
    task = threads.spawn(lambda: threads.processes.run(argv, **limits))
    if by == "timeout":
        assert task.join(QUICK_SECONDS)
    else:
        with pytest.raises(Cancelled):
            task.join(QUICK_SECONDS)
    until(lambda: not lives(server.pid))  # that it was waited for too, a busy machine may not come to in that time
    assert threads.processes.run(["echo", "next"]).stdout == b"next\n"


def test_a_command_that_stops_who_would_end_it_is_back_five_seconds_after_its_time(threads: HostPorts) -> None:
    began = time.monotonic()
    script = "kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat); sleep 300"
    assert threads.processes.run(["sh", "-c", script], timeout_seconds=0.2).timed_out
    assert time.monotonic() - began < 0.2 + 5.0


def test_a_server_without_descriptors_says_so_and_goes_on(threads: HostPorts) -> None:
    server = server_of(threads)
    taken = descriptors_of(server)
    usual = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    few = [number for number in range(len(taken) + 4) if number not in taken][3]
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (few, usual[1]))
    with pytest.raises(HarnessError, match="open files") as caught:
        threads.processes.run(["echo", *["x" * 100_000] * 5])
    assert caught.value.code == "process.not_started"
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, usual)
    assert server_of(threads) == server
    assert descriptors_of(server) == taken


def test_a_host_without_descriptors_starts_nothing_and_keeps_none(threads: HostPorts) -> None:
    server, usual = server_of(threads), resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()
    before = psutil.Process().num_fds()
    with ExitStack() as then:
        then.callback(resource.setrlimit, resource.RLIMIT_NOFILE, usual)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, usual[1]))
        taken = []
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        then.callback(lambda: list(map(os.close, taken)))
        for _ in range(13):  # it takes as many
            with pytest.raises(HarnessError, match="open files") as caught:
                threads.processes.run(["sleep", "300"], timeout_seconds=5)
            assert caught.value.code == "process.not_started"
            del caught
            os.close(taken.pop())
    gc.collect()
    assert psutil.Process().num_fds() <= before
    assert server_of(threads) == server
    until(lambda: not server.children())


# ----------------------------------------------------------------------------------------------------- what it is


def test_a_command_inherits_nothing_that_its_hosts_thread_has_blocked(
    threads: HostPorts, pids: Callable[[], list[int]], tmp_path: Path
) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    try:
        mask = threads.processes.run(["grep", "SigBlk", "/proc/self/status"]).stdout.split()[1]
        assert shell(threads, tmp_path, TREE, timeout_seconds=0.3).timed_out
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert (int(mask, 16), pids()) == (0, [])


def test_a_command_has_the_umask_that_its_host_had_for_the_first_one(threads: HostPorts) -> None:
    first, usual = threads.processes.run(["sh", "-c", "umask"]).stdout, os.umask(0o077)
    try:
        os.umask(~usual & 0o777)
        assert threads.processes.run(["sh", "-c", "umask"]).stdout == first == b"%04o\n" % usual
    finally:
        os.umask(usual)


def test_a_command_sees_nothing_of_its_hosts_environment_in_its_guard(
    threads: HostPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_TEST_SECRET", "inherited")
    own, guards = (threads.processes.run(["sh", "-c", f"cat /proc/${who}/environ"]).stdout for who in ("$", "PPID"))
    assert (b"HARNESS_TEST_SECRET" in own, b"HARNESS_TEST_SECRET" in guards) == (True, False)


def test_an_environment_with_a_variable_without_a_name_is_handed_on_without_it() -> None:
    code = "from harness_core.shell.ports import make_ports; print(make_ports('threads').processes.run(['env']))"
    env = {**os.environb, b"PYTHONPATH": os.pathsep.join(sys.path).encode(), b"=::": b"::"}
    told, tell = os.pipe()
    with open(told, "rb") as out:
        actions = [(os.POSIX_SPAWN_DUP2, tell, 1)]
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], env, file_actions=actions)
        os.close(tell)
        said = out.read()
    assert (os.waitpid(pid, 0)[1], b"returncode=0" in said, b"PATH=" in said) == (0, True, True)


def test_what_a_terminal_sends_to_the_group_of_the_host_reaches_no_server(threads: HostPorts) -> None:
    assert os.getsid(server_of(threads).pid) != os.getsid(0)


def test_a_server_runs_nothing_of_what_is_installed_or_lies_beside_it(
    threads: HostPorts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    installed = tmp_path / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    installed.mkdir(parents=True)
    (installed / "hook.pth").write_text(f"import os; open({str(tmp_path / 'ran')!r}, 'w')\n")
    shutil.copy(GUARD, tmp_path / "guard.py")
    (tmp_path / "ctypes.py").write_text("raise ImportError\n")
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(guarded, "_GUARD", str(tmp_path / "guard.py"))
    assert threads.processes.run(["echo", "guarded"]).stdout == b"guarded\n"
    assert not (tmp_path / "ran").exists()


def test_a_guard_holds_nothing_that_its_server_or_another_guard_has_open(threads: HostPorts) -> None:
    held = threads.processes.run(["sh", "-c", "readlink /proc/$PPID/fd/*"]).stdout.decode().split("\n")
    assert set(descriptors_of(server_of(threads)).values()) & set(held) == {"/dev/null"}
