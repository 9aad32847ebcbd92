"""Takes the marked tests and how they ended, gives for each requirement whether it is borne: pass, fail, shared, none.

    python -m tests.requirements                     runs the marked tests, prints every row
    python -m tests.requirements --report JUNIT      reads a report instead of running (may be given several times)
    python -m tests.requirements --prove B-28        names the function that, emptied, makes a test of the row fail
    python -m tests.requirements --require A-1,B-2   fails when a listed row is not borne

A row is ``none`` when no test bears it or none of them ran, and ``shared`` when each of its tests bears more than three
rows, since such a test hardly shows any one of them. A test that bears a row must reach the product from outside
(``tests/bearing.py``); a mark on another one is refused, and so the command fails.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.bearing import reaches_product
from tests.proving import Function, prove

__all__ = ["Case", "main", "read_report", "read_rows", "status"]

ROOT = Path(__file__).resolve().parent.parent
rows_shared_limit, rows_at_once = 3, 4


@dataclass(frozen=True)
class Case:
    """A marked test: its node id, how it ended (passed, failed, skipped) and the rows that it bears."""

    test: str
    outcome: str
    rows: tuple[str, ...]


def read_rows(file: Path = ROOT / "tests" / "requirements.csv") -> dict[str, str]:
    """Give each row's title by its id, in the table's order."""
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["id"]: row["title"] for row in csv.DictReader(lines)}


def read_report(file: Path) -> Iterator[Case]:
    """Read the marked tests out of a JUnit report, where ``conftest.py`` has put their marks."""
    for case in ET.parse(file).iter("testcase"):
        properties = [(one.get("name", ""), one.get("value", "")) for one in case.iter("property")]
        rows = tuple(value for name, value in properties if name in {"req", "inv"})
        test = next((value for name, value in properties if name == "test"), "")
        if test and rows:
            yield Case(test, _outcome(case), rows)


def _outcome(case: ET.Element) -> str:
    found = {child.tag for child in case}
    return "failed" if found & {"failure", "error"} else "skipped" if "skipped" in found else "passed"


def status(cases: Iterable[Case]) -> str:
    """Give the word for a row whose tests these are."""
    ran = [case for case in cases if case.outcome != "skipped"]
    if not ran:
        return "none"
    if any(case.outcome == "failed" for case in ran):
        return "fail"
    return "shared" if all(len(set(case.rows)) > rows_shared_limit for case in ran) else "pass"


def run_marked() -> list[Case]:
    """Run the marked tests and read their report."""
    parallel = ["-n", "2"] if importlib.util.find_spec("xdist") else []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        call = [sys.executable, "-m", "pytest", "-q", "-m", "req or inv", *parallel, "--junitxml", str(report)]
        subprocess.call(call, cwd=ROOT, stdout=sys.stderr)
        return list(read_report(report))


def print_rows(rows: dict[str, str], borne: dict[str, list[Case]], *, summary: bool) -> None:
    """Print the table, or only how many rows of each source have which status."""
    statuses = {row: status(borne[row]) for row in rows}
    if not summary:
        for row, title in rows.items():
            print(f"{row:6} {statuses[row]:7} {title} [{len(borne[row])}]")
    for source in dict.fromkeys(row[0] for row in rows):
        count = Counter(word for row, word in statuses.items() if row[0] == source)
        print(f"{source}: " + ", ".join(f"{count[word]} {word}" for word in ("pass", "shared", "fail", "none")))


def print_proofs(wanted: Sequence[str], borne: dict[str, list[Case]]) -> int:
    """Print for each row the function that matters, several proved at a time; gives how many rows have none."""
    unproved = 0
    with ThreadPoolExecutor(rows_at_once) as threads:
        for row, found in zip(wanted, threads.map(lambda row: _proof(row, borne), wanted), strict=True):
            unproved += found is None
            print(f"{row:6} {found[0]} -> {found[1]}" if found else f"{row:6} unproved", flush=True)
    return unproved


def _proof(row: str, borne: dict[str, list[Case]]) -> tuple[Function, str] | None:
    tests = sorted({case.test for case in borne[row] if case.outcome == "passed"})
    files = {test.split("::")[0] for test in tests}
    beside = sorted({case.test for cases in borne.values() for case in cases if case.test.split("::")[0] in files})
    return prove(tests, beside=beside) if tests else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for; gives 1 when a row fails, a mark is refused, or what was required or proved is not."""
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--report", action="append", type=Path, default=[], metavar="JUNIT")
    parser.add_argument("--summary", action="store_true", help="only the counts")
    parser.add_argument("--require", default="", metavar="ROW,...")
    parser.add_argument("--prove", default="", metavar="ROW,...|all")
    chosen = parser.parse_args(arguments)

    rows = read_rows()
    cases = [case for report in chosen.report for case in read_report(report)] if chosen.report else run_marked()
    borne = {row: [case for case in cases if row in case.rows] for row in rows}
    required, wanted = _listed(chosen.require, rows), _listed(chosen.prove, [row for row in rows if borne[row]])
    if chosen.prove:
        return 1 if print_proofs(wanted, borne) else 0
    print_rows(rows, borne, summary=chosen.summary)
    return _judge(cases, borne, required)


def _listed(text: str, rows: Iterable[str]) -> list[str]:
    known = list(rows)
    listed = known if text == "all" else [row.strip() for row in text.split(",") if row.strip()]
    unknown = [row for row in listed if row not in known]
    if unknown:
        raise SystemExit(f"no such row, or no test bears it: {', '.join(unknown)}")
    return listed


def _judge(cases: list[Case], borne: dict[str, list[Case]], required: list[str]) -> int:
    refused = sorted({case.test for case in cases if not reaches_product(ROOT, case.test)})
    for test in refused:
        print(f"refused: {test} bears a row, but uses neither the command line, the Host, a store nor the contract")
    missing = [row for row in required if status(borne[row]) in {"none", "fail"}]
    if missing:
        print(f"required, but not borne: {', '.join(missing)}")
    failed = any(status(of_row) == "fail" for of_row in borne.values())
    return 1 if refused or missing or failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
