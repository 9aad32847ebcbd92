"""How the tests of a gate ended in, a line for each gate in ``deep.jsonl`` out: what the deep profile last did.

A gate is a promise that is kept under many disturbances (crashes, faults, seeds, bytes), and how many there must be.
Tests marked ``gate("G1")`` belong to it; what one of them counts it adds with pytest's ``record_property``. Whole
numbers are summed over the tests of a gate, of other numbers the largest stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

__all__ = ["FILE", "GATES", "Gate", "Recorder", "lines", "short", "write"]

FILE = Path(__file__).with_name("deep.jsonl")


class Gate(NamedTuple):
    """What is tried, and how much of it there must be at least."""

    what: str
    must: Mapping[str, int]


GATES: Mapping[str, Gate] = {
    "G1": Gate("a session is killed at each boundary and at random instants", {"kills": 500}),
    "G2": Gate("the plug is pulled after each operation of a disk", {"images": 20_000}),
    "G3": Gate("a disk fails at each write, truncation and sync", {"points": 500}),
    "G4": Gate("sessions are simulated, each under a seed, in every weather", {"seeds": 5_000}),
    "G5": Gate("bugs are put in on purpose, and found", {"canaries": 20}),
    "G6": Gate("processes append side by side, commands run beside a busy host", {"appends": 16_000, "commands": 100}),
    "G7": Gate("readers are fed bytes that are nearly right", {"targets": 8, "inputs": 100_000}),
    "G11": Gate("one process runs sessions one after another", {"sessions": 1_000}),
    "G12": Gate("sessions that a released version has recorded are replayed", {"histories": 30}),
}


class Recorder:
    """Told of every test's end by pytest, in the process that hands the tests out; writes at the end of a whole run."""

    def __init__(self, file: Path = FILE) -> None:
        self.file = file
        self.found: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what one step of one test says to its gate."""
        given = dict(report.user_properties)
        gate = str(given.get("gate", ""))
        if gate not in GATES:
            return
        line = self.found.setdefault(gate, {"tests": 0, "failures": 0, "seconds": 0.0})
        line["failures"] += report.failed
        line["seconds"] += report.duration
        if report.when == "call":
            line["tests"] += 1
            _count(line, {name: value for name, value in given.items() if isinstance(value, int | float)})

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write a line for each gate that ran; one that did not do what it must is a failure."""
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return  # somebody has broken it off
        done = [_line(name, found) for name, found in self.found.items()]
        write(done, self.file)
        if any(line["failures"] or short(line) for line in done):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _count(line: dict[str, Any], counts: Mapping[str, float]) -> None:
    for name, value in counts.items():
        before = line.get(name, 0)
        line[name] = before + value if isinstance(value, int) else max(before, value)


def _line(gate: str, found: Mapping[str, Any]) -> dict[str, Any]:
    rounded = {name: round(value, 3) for name, value in found.items()}
    return {"gate": gate, "what": GATES[gate].what, **rounded, "must": GATES[gate].must}


def short(line: Mapping[str, Any]) -> list[str]:
    """The names of what a line has less of than it must."""
    return [name for name, count in line["must"].items() if line.get(name, 0) < count]


def lines(file: Path = FILE) -> list[dict[str, Any]]:
    """What the file says, a gate a line."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def write(done: list[dict[str, Any]], file: Path = FILE) -> None:
    """Put each line in the place of the one that told of the same before, or behind the others."""
    told = {(line["gate"], line["what"]): line for line in [*lines(file), *done]}
    ordered = sorted(told.values(), key=lambda line: (int(line["gate"][1:]), line["what"]))
    file.write_text("".join(json.dumps(line) + "\n" for line in ordered), "utf-8")
