"""What the deep profile last did is committed, and it was enough."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.deep import GATES, Recorder, lines, short, write


@pytest.mark.parametrize("line", lines(), ids=lambda line: f"{line['gate']} {line['what']}")
def test_a_gate_last_did_what_it_must_and_nothing_failed(line: dict[str, Any]) -> None:
    assert (line["failures"], short(line)) == (0, [])


def test_each_gate_has_last_done_what_it_must() -> None:
    """Nothing else would say that a gate was never run, or that its line was lost."""
    enough = {line["gate"] for line in lines() if not line["failures"] and not short(line)}
    wanted = {*GATES, "G16"}  # the last one is counted by contrib.cover
    assert enough >= wanted, f"no line: {sorted(wanted - enough)}"


def test_a_gate_that_was_counted_by_other_rules_is_to_be_run_again() -> None:
    told = {line["gate"]: (line["what"], line["must"]) for line in lines() if line["gate"] in GATES}
    assert told == {name: GATES[name] for name in told}


def _report(gate: str, when: str, *, failed: bool = False, **counts: float) -> Any:
    properties = [("gate", gate), ("test", "a"), *counts.items()]
    return SimpleNamespace(user_properties=properties, when=when, failed=failed, duration=1.5)


def _ended(folder: Path, *reports: Any, exitstatus: int = 0) -> tuple[int, list[dict[str, Any]]]:
    recorder, session = Recorder(folder / "deep.jsonl"), SimpleNamespace(exitstatus=exitstatus)
    for report in reports:
        recorder.pytest_runtest_logreport(report)
    recorder.pytest_sessionfinish(session, exitstatus)  # type: ignore[arg-type]
    return session.exitstatus, lines(folder / "deep.jsonl")


def test_what_the_tests_of_a_gate_count_is_summed_and_their_slowest_is_kept(tmp_path: Path) -> None:
    counted = [_report("G2", "call", images=20_000, p99_seconds=worst) for worst in (0.5, 0.75, 0.25)]
    status, [line] = _ended(tmp_path, _report("G2", "setup"), *counted, _report("", "call", images=7))
    assert (status, line["gate"], line["tests"], line["failures"]) == (0, "G2", 3, 0)
    assert (line["images"], line["p99_seconds"], line["seconds"]) == (60_000, 0.75, 6.0)


def test_a_gate_that_does_less_than_it_must_fails_and_says_so(tmp_path: Path) -> None:
    status, [line] = _ended(tmp_path, _report("G2", "call", images=19_999))
    assert (status, short(line)) == (pytest.ExitCode.TESTS_FAILED, ["images"])


def test_a_test_that_fails_is_told_and_a_run_that_was_broken_off_tells_nothing(tmp_path: Path) -> None:
    status, [line] = _ended(tmp_path, _report("G2", "setup", failed=True), exitstatus=1)
    assert (status, line["failures"], line["tests"]) == (pytest.ExitCode.TESTS_FAILED, 1, 0)
    assert _ended(tmp_path, _report("G2", "call", images=1), exitstatus=pytest.ExitCode.INTERRUPTED)[1] == [line]


def test_a_line_takes_the_place_of_the_one_before_it_and_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "deep.jsonl"
    for gate, what, count in (("G11", "a", 1), ("G2", "b", 1), ("G11", "a", 2)):
        write([{"gate": gate, "what": what, "n": count}], file)
    assert lines(file) == [{"gate": "G2", "what": "b", "n": 1}, {"gate": "G11", "what": "a", "n": 2}]
