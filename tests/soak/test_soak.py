"""A host that runs session after session takes no more than it did, and commands beside it meet no lock."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import linear_regression
from typing import Any

import pytest

from harness_core import Host
from tests.reference import HARNESS, PATIENCE_SECONDS, REFERENCE, Site, write_reference

DEEP = os.environ.get("HARNESS_TEST_PROFILE") == "deep"
SESSIONS = 10_000 if DEEP else 20
WARM = SESSIONS // 2
"""So many sessions fill what is filled once: pools, caches, the pages that each connection to the store keeps.

The allocator gives back and takes again some ten MiB every few hundred sessions: a few of them show no slope."""

BUSY_SECONDS = 60.0 if DEEP else 3.0
AT_ONCE = os.cpu_count() or 1
"""Commands side by side: more would wait for a core and not for each other."""

COMMANDS: Sequence[Sequence[str]] = (
    ("run", REFERENCE, "--yolo"), ("sessions", "list"), ("sessions", "show", "@last"), ("events", "@last"),
    ("report", "@last"), ("approvals", "list"), ("db", "stats"), ("events", "verify", "@last"),
)  # fmt: skip
MIN_COMMANDS = 100 if DEEP else len(COMMANDS)


def serving(site: Site, count: int) -> subprocess.Popen[str]:
    """A process that runs so many sessions, or, for none, goes on until its stdin is closed."""
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("serving.py")), str(count)], cwd=site.project,
        env=site.process_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def served(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it says when it has ended."""
    said = process.communicate()[0]
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(said)
    return found


@pytest.mark.gate("G11")
@pytest.mark.inv("I-13", "I-39")
def test_a_host_that_runs_many_sessions_takes_no_more_than_it_did(tmp_path: Path, record_property: Any) -> None:
    found = served(serving(write_reference(tmp_path, probes=False), SESSIONS))
    assert found["broken"] == []
    held: Mapping[str, list[float]] = found["held"]
    assert set(held["children"]) == {1}  # the guard of processes
    assert set(held["zombies"]) == {0}
    for pooled, most in (("threads", 4), ("files", 4)):  # a connection to the store holds two files
        assert max(held[pooled]) - min(held[pooled]) <= most  # a pool grows with what was side by side at the most
    assert max(held["log_bytes"]) <= 64 * 2**20
    assert found["file_bytes"] <= 1.2 * found["payload_bytes"] + 512 * found["events"]
    slope = linear_regression(range(SESSIONS - WARM), held["mebibytes"][WARM:]).slope * 1_000
    assert slope < 1.0 or not DEEP, "MiB for each 1,000 sessions"  # a few sessions are all warming up
    record_property("sessions", SESSIONS)
    record_property("mebibytes_per_1000_sessions", round(slope, 3))
    record_property("mebibytes", max(held["mebibytes"]))
    record_property("log_mebibytes", max(held["log_bytes"]) / 2**20)
    record_property("file_bytes_per_event", found["file_bytes"] / found["events"])


# ---------------------------------------------------------------------------------------------------- a busy host


class Beside:
    """Commands that are begun beside a host, as many as fit."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.env = site.process_env(HARNESS_EFFECTS_FILE=str(site.effects_file.with_name("beside.jsonl")))
        self.begun, self.turn = itertools.count(), threading.Lock()
        self.ended: list[tuple[float, subprocess.CompletedProcess[str]]] = []
        self.start = time.monotonic()

    def go_on(self) -> None:
        """One after another until the time is over and enough were begun."""
        for number in self.begun:
            if number >= MIN_COMMANDS and time.monotonic() > self.start + BUSY_SECONDS:
                return
            begin = time.perf_counter()
            ended = subprocess.run(
                [*HARNESS, *COMMANDS[number % len(COMMANDS)], "--json"], cwd=self.site.project, env=self.env,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
            )  # fmt: skip
            with self.turn:
                self.ended.append((time.perf_counter() - begin, ended))


@pytest.mark.gate("G6")
@pytest.mark.inv("I-3", "I-4", "I-9")
def test_commands_beside_a_busy_host_meet_no_lock_and_every_log_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    site = write_reference(tmp_path, probes=False)
    host = serving(site, 0)
    site.wait_for_effects(lambda: host.poll() is None)
    beside = Beside(site)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for done in [threads.submit(beside.go_on) for _ in range(AT_ONCE)]:
            done.result()
    took_seconds = time.monotonic() - beside.start
    found = served(host)
    assert [(ended.args, ended.stdout, ended.stderr) for _, ended in beside.ended if ended.returncode != 0] == []
    assert found["broken"] == []
    sessions_run = len(found["held"]["files"])
    assert sessions_run > 1
    assert len(beside.ended) >= MIN_COMMANDS
    site.enter(monkeypatch)
    with Host.open(site.project) as looking:
        sessions = looking.sessions()
        assert len(sessions) > sessions_run  # and those of the commands
        assert [one["id"] for one in sessions if looking.verify(one["id"])["broken"]] == []
    slowest = sorted(seconds for seconds, _ in beside.ended)
    record_property("commands", len(slowest))
    record_property("commands_per_second", round(len(slowest) / took_seconds, 3))
    record_property("command_p99_seconds", slowest[len(slowest) * 99 // 100])
    record_property("sessions_beside", sessions_run)
    record_property("busy_append_p99_seconds", found["append_p99_seconds"])
