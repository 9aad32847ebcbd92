"""Child processes: bounded output, exact bytes, an end at the timeout or the cancel, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness_core.shell.ports import HostPorts, make_ports
from harness_hookspecs.errors import Cancelled, HarnessError, NotFound
from harness_hookspecs.host import Completed
from tests.commands import LINUX_ONLY, QUICK_SECONDS, TREE, lives, shell, until

ROOT = Path(__file__).resolve().parents[2]
CASES = {case["id"]: case for case in map(json.loads, (ROOT / "tests/cases/ports.jsonl").read_text().splitlines())}


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


def test_a_signal_that_a_python_ignores_ends_a_command(ports: HostPorts) -> None:
    for name in ("PIPE", "XFSZ"):
        done = ports.processes.run(["sh", "-c", f"kill -{name} $$; echo deaf"])
        assert (done.returncode, done.stdout) == (-getattr(signal, f"SIG{name}"), b"")


@pytest.mark.parametrize("timeout_seconds", [float("inf"), 1e9])
def test_a_command_may_be_given_any_time(ports: HostPorts, timeout_seconds: float) -> None:
    assert ports.processes.run(["true"], timeout_seconds=timeout_seconds).returncode == 0


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
    "no program at all": ([], {}, HarnessError, "process.not_started"),
    "a program without a name": ([""], {}, HarnessError, "process.not_started"),
    "a variable without a name": (["true"], {"env": {"": "x"}}, HarnessError, "process.not_started"),
    "a variable whose name is none": (["true"], {"env": {"A=B": "x"}}, HarnessError, "process.not_started"),
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
    "a tree": TREE,
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
    script = f"echo before; {TREE}"
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
        for argv, options, kind, _ in BROKEN.values():
            with pytest.raises(kind):
                ports.processes.run(argv, **options)
    until(lambda: no_more_than(before))  # a guard is reaped a moment after the end of what it guarded


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
    until(lambda: not any(map(lives, pids())))
    for argv, options, kind, code in BROKEN.values():
        with pytest.raises(kind) as caught:
            ports.processes.run(argv, **options)
        assert caught.value.code == code
