"""Child processes: bounded output, exact bytes, an end at the timeout or the cancel, and nothing left behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness_core.shell.ports import HostPorts, guarded, make_ports
from harness_hookspecs.errors import Cancelled, HarnessError, NotFound
from harness_hookspecs.host import Completed

ROOT = Path(__file__).resolve().parents[2]
CASES = {case["id"]: case for case in map(json.loads, (ROOT / "tests/cases/ports.jsonl").read_text().splitlines())}
QUICK_SECONDS = 10.0  # far below the sleeps of the commands, far above what a busy machine needs


@pytest.fixture(params=["threads", "simulated"])
def ports(request: pytest.FixtureRequest) -> Iterator[HostPorts]:
    made = make_ports(request.param)
    yield made
    made.close()


@pytest.fixture
def pids(tmp_path: Path) -> Callable[[], list[int]]:
    """Commands write ``$$`` into files in ``$PIDS``; gives these numbers as far as such processes still live."""

    def living() -> list[int]:
        noted = [int(file.name) for file in tmp_path.iterdir() if file.name.isdecimal()]
        return [pid for pid in noted if psutil.pid_exists(pid)]

    return living


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + QUICK_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def shell(ports: HostPorts, folder: Path, script: str, **options: Any) -> Completed:
    note = 'note() { : > "$PIDS/$1"; }\nnoted() { until ls "$PIDS" | grep -q .; do :; done; }\n'
    env = {"PATH": os.environ["PATH"], "PIDS": str(folder)}
    return ports.processes.run(["sh", "-c", note + script], env=env, **options)


# ---------------------------------------------------------------------------------------------- what goes in and out


def test_a_command_gets_its_input_and_gives_both_outputs_and_its_code(ports: HostPorts, tmp_path: Path) -> None:
    done = shell(ports, tmp_path, "cat; echo problem >&2; pwd; exit 7", stdin=b"in\0put\n", cwd="/")
    assert done == Completed(7, b"in\0put\n/\n", b"problem\n", timed_out=False, truncated=False)
    assert shell(ports, tmp_path, "kill -ABRT $$").returncode == -signal.SIGABRT


def test_output_that_is_not_text_comes_back_byte_by_byte(ports: HostPorts, tmp_path: Path) -> None:
    case = CASES["BR-092"]
    assert "I-33" in case["invariants"]
    every_byte = bytes(range(256)) * 16
    assert ports.processes.run(["cat"], stdin=every_byte).stdout == every_byte
    done = shell(ports, tmp_path, r"printf '\377\376'; printf '\351\033[31m' >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"\xff\xfe", b"\xe9\x1b[31m")


def test_output_beyond_the_limit_is_dropped_marked_and_does_not_block_the_command(ports: HostPorts) -> None:
    code = "import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('e' * 50); sys.exit(5)"
    done = ports.processes.run([sys.executable, "-c", code], limit_bytes=100)
    assert done == Completed(5, b"x" * 100, b"e" * 50, timed_out=False, truncated=True)
    exact = ports.processes.run(["printf", "12345"], limit_bytes=5)
    assert (exact.stdout, exact.truncated) == (b"12345", False)


def test_a_command_may_ignore_its_input_or_read_much_of_it(ports: HostPorts) -> None:
    assert ports.processes.run(["true"], stdin=b"x" * 3_000_000).returncode == 0
    assert ports.processes.run(["wc", "-c"], stdin=b"x" * 3_000_000).stdout.strip() == b"3000000"


ENVIRONMENTS: dict[str, Mapping[str, str]] = {
    "nothing": {},
    "one": {"ONE": "1"},
    "odd values": {"EMPTY": "", "LINES": "a\nb=c", "BYTES": os.fsdecode(b"\xff")},
    "a language": {"LC_ALL": "C"},
}


@pytest.mark.parametrize("env", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_the_environment_is_replaced_wholly(
    ports: HostPorts, env: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_TEST_SECRET", "inherited")
    printed = ports.processes.run(["env", "-0"], env=env).stdout.split(b"\0")[:-1]
    assert dict(entry.split(b"=", 1) for entry in printed) == {
        name.encode(): os.fsencode(value) for name, value in env.items()
    }
    assert b"HARNESS_TEST_SECRET=inherited" in ports.processes.run(["env", "-0"]).stdout.split(b"\0")


BROKEN: dict[str, tuple[list[str], dict[str, Any], type[HarnessError], str]] = {
    "no such program": (["harness-no-such-program"], {}, NotFound, "process.no_program"),
    "not on the path given": (["sh"], {"env": {"PATH": "/nowhere"}}, NotFound, "process.no_program"),
    "no such folder": (["true"], {"cwd": "/no/such/folder"}, NotFound, "process.no_folder"),
    "not executable": (["/etc/passwd"], {}, HarnessError, "process.not_started"),
    "a zero byte": (["true", "a\0b"], {}, HarnessError, "process.not_started"),
    "a folder as a program": (["/"], {}, HarnessError, "process.not_started"),
}


@pytest.mark.parametrize(("argv", "options", "kind", "code"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_started_is_a_typed_error(
    ports: HostPorts, argv: list[str], options: dict[str, Any], kind: type[HarnessError], code: str
) -> None:
    with pytest.raises(kind) as caught:
        ports.processes.run(argv, **options)
    assert caught.value.code == code


# --------------------------------------------------------------------------------------------------------- ends


LEFT_BEHIND = {
    "a child in the background that holds the pipe": "sleep 300 & note $!",
    "a child in a session of its own that holds the pipe": "setsid sh -c 'note $$; exec sleep 300' & noted",
    "a child in a session of its own, its output elsewhere": (
        "setsid sh -c 'note $$; exec sleep 300' >/dev/null 2>&1 </dev/null & noted"
    ),
    "a daemon: two forks and a session": "(setsid sh -c '(note $$; exec sleep 300) & ' >/dev/null 2>&1 &); noted",
    "a server that survives a hang-up": "nohup sleep 300 >/dev/null 2>&1 & note $!",
    "one that ignores being asked": "sh -c 'trap \"\" TERM HUP INT; note $$; sleep 300; sleep 300' & noted",
}
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to a process of ours")


@LINUX_ONLY
@pytest.mark.inv("I-33")
@pytest.mark.parametrize("script", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_what_a_command_leaves_behind_ends_with_it_at_once(
    ports: HostPorts, pids: Callable[[], list[int]], tmp_path: Path, script: str
) -> None:
    assert "I-33" in CASES["BR-090"]["invariants"]
    started = time.monotonic()
    script = script.replace("note $$", ': > "$PIDS/$$"')  # functions are not inherited
    done = shell(ports, tmp_path, f"{script}\necho said")
    assert done == Completed(0, b"said\n", b"", timed_out=False, truncated=False)
    assert time.monotonic() - started < QUICK_SECONDS
    assert list(tmp_path.iterdir()) and pids() == []


TREES = {
    "alone": "note $$; exec sleep 300",
    "a tree": "note $$; sh -c ': > \"$PIDS/$$\"; sleep 300; true' & setsid sh -c ': > \"$PIDS/$$\"; sleep 300; true'",
    "endless output": "note $$; exec yes",
    "deaf": "trap '' TERM INT HUP; note $$; sleep 300; sleep 300",
}


@pytest.mark.parametrize("script", TREES.values(), ids=TREES)
def test_a_cancel_ends_everything(pids: Callable[[], list[int]], tmp_path: Path, script: str) -> None:
    ports = make_ports("threads")
    token = ports.wait.token()
    task = ports.spawn(lambda: shell(ports, tmp_path, script, cancel=token))
    until(lambda: len(list(tmp_path.iterdir())) == script.count(">") + script.count("note"))
    token.cancel("enough")
    with pytest.raises(Cancelled, match="enough"):
        task.join(QUICK_SECONDS)
    assert pids() == []


def test_a_timeout_ends_everything_and_keeps_what_was_said(
    ports: HostPorts, pids: Callable[[], list[int]], tmp_path: Path
) -> None:
    script = f"echo before; {TREES['a tree']}"
    done = shell(ports, tmp_path, script, timeout_seconds=0.8, limit_bytes=7)
    assert (done.timed_out, done.returncode, done.stdout) == (True, -signal.SIGKILL, b"before\n")
    assert list(tmp_path.iterdir()) and pids() == []


def test_a_cancel_before_starts_nothing_and_one_after_the_end_changes_nothing(ports: HostPorts, tmp_path: Path) -> None:
    token = ports.wait.token()
    assert shell(ports, tmp_path, "echo done", cancel=token).stdout == b"done\n"
    token.cancel("later")
    with pytest.raises(Cancelled):
        shell(ports, tmp_path, "note $$", cancel=token)
    assert list(tmp_path.iterdir()) == []


@LINUX_ONLY
def test_a_killed_host_takes_its_commands_with_it(pids: Callable[[], list[int]], tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nfrom harness_core.shell.ports import make_ports\n"
        "ports = make_ports('threads')\nports.processes.run(['true'])\n"
        "if (pid := os.fork()) == 0:\n    print(os.getpid(), flush=True)\n    time.sleep(300)\n"
        "ports.processes.run(['sh', '-c', sys.argv[1]])\n"
    )
    script = ': > "$PIDS/$$"; setsid sh -c \': > "$PIDS/$$"; sleep 300; true\' >/dev/null 2>&1'
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PIDS": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code, script], env=env, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        outlives = psutil.Process(int(host.stdout.readline()))  # with everything open that the host had
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        host.kill()
        until(lambda: not pids())
        assert outlives.is_running()
        outlives.kill()


@LINUX_ONLY
@pytest.mark.inv("I-33")
@pytest.mark.parametrize("blow", ["KILL", "STOP"])
def test_a_command_that_puts_its_guard_out_of_action_ends_all_the_same(
    ports: HostPorts, pids: Callable[[], list[int]], tmp_path: Path, blow: str
) -> None:
    other = "setsid sh -c ': > \"$PIDS/$$\"; : > \"$PIDS/there\"; sleep 300; true' &"
    script = f"note $$; {other} until test -e $PIDS/there; do :; done; kill -{blow} $PPID; sleep 300"
    done = shell(ports, tmp_path, script, timeout_seconds=0.8)
    assert done.returncode == -signal.SIGKILL
    until(lambda: not pids())
    assert len(list(tmp_path.iterdir())) == 3
    assert shell(ports, tmp_path, "echo next").stdout == b"next\n"


@LINUX_ONLY
@pytest.mark.inv("I-33")
def test_commands_end_with_the_process_that_guards_them_and_the_next_one_gets_another(
    pids: Callable[[], list[int]], tmp_path: Path
) -> None:
    ports = make_ports("threads")
    task = ports.spawn(lambda: shell(ports, tmp_path, TREES["a tree"]))
    until(lambda: len(list(tmp_path.iterdir())) == 3)
    server = psutil.Process(pids()[0])
    while (parent := server.parent()) is not None and parent.pid != os.getpid():
        server = parent
    server.kill()
    assert task.join(QUICK_SECONDS) and pids() == []
    assert shell(ports, tmp_path, "echo next").stdout == b"next\n"


@LINUX_ONLY
@pytest.mark.parametrize("cut_bytes", [1, 12, 10_000])
def test_a_command_that_was_not_told_to_its_end_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_bytes: int
) -> None:
    """As by a host that is killed while it tells."""
    whole = guarded._spec
    monkeypatch.setattr(guarded, "_spec", lambda argv, env: whole(argv, env)[:-cut_bytes])
    done = shell(make_ports("threads"), tmp_path, "note $$")
    assert (done.returncode, list(tmp_path.iterdir())) == (-signal.SIGKILL, [])


@LINUX_ONLY
def test_ports_that_go_leave_no_process() -> None:
    before = set(psutil.Process().children())
    ports = make_ports("threads")
    assert ports.processes.run(["true"]).returncode == 0
    assert set(psutil.Process().children()) - before
    del ports
    gc.collect()
    assert not set(psutil.Process().children()) - before


def test_calls_leave_no_descriptor_thread_or_zombie(tmp_path: Path) -> None:
    ports = make_ports("threads")
    own = psutil.Process()

    def counts() -> tuple[int, int, int]:
        return own.num_fds(), own.num_threads(), len(own.children(recursive=True))

    def no_more_than(before: tuple[int, int, int]) -> bool:  # fewer when something of an earlier test has ended
        return all(now <= then for now, then in zip(counts(), before, strict=True))

    shell(ports, tmp_path, "true")
    before = counts()
    for _ in range(3):
        shell(ports, tmp_path, "sleep 300 & echo")
        shell(ports, tmp_path, "sleep 300", timeout_seconds=0.05)
        with pytest.raises(NotFound):
            ports.processes.run(["harness-no-such-program"])
    until(lambda: no_more_than(before))  # a guard is reaped a moment after its end


def test_calls_run_side_by_side(tmp_path: Path) -> None:
    ports = make_ports("threads")
    results = dict[int, bytes]()

    def one(number: int) -> None:
        results[number] = shell(ports, tmp_path, f"sleep 0.2; echo {number}; sleep 300 &").stdout

    tasks = [ports.spawn(one, number) for number in range(8)]
    for task in tasks:
        assert task.join(3 * QUICK_SECONDS)
    assert results == {number: f"{number}\n".encode() for number in range(8)}


# ------------------------------------------------------------------------------------------------ without a guard


def test_without_a_guard_the_group_and_the_tree_at_the_end_are_ended(
    pids: Callable[[], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What systems other than Linux get."""
    monkeypatch.setattr("harness_core.shell.ports.processes._GUARDED", False)
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    ports = make_ports("threads")
    assert shell(ports, tmp_path, "sleep 300 & note $!; echo said; exit 4")[:2] == (4, b"said\n")
    script = "note $$; setsid sh -c ': > \"$PIDS/$$\"; sleep 300; true'"
    done = shell(ports, tmp_path, script, timeout_seconds=0.8)
    assert (done.timed_out, done.returncode) == (True, -signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) == 3
    until(lambda: all(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE for pid in pids()))  # of whoever adopted it
    for argv, options, kind, code in BROKEN.values():
        with pytest.raises(kind) as caught:
            ports.processes.run(argv, **options)
        assert caught.value.code == code
