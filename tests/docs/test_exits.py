"""The page of exit codes has a line for each that a command ends with, and each error code in the line of its exit."""

from __future__ import annotations

import re

from harness_core.cli import door, interrupt, session_text
from harness_core.cli.errors import EXITS, INTERNAL, INTERRUPTED, USAGE
from tests.docs.test_examples import ROOT

ROW = re.compile(r"^\| (\d+) \| (.*) \| (.*?) ?\| (.*?) ?\|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "exits.md").read_text(encoding="utf-8"))
BY_HAND = {0, USAGE, INTERNAL, INTERRUPTED, door._READER_GONE}
OF_SESSIONS = {session_text._SUSPENDED, session_text._BUDGET, session_text._FAILED}
OF_SIGNALS = {128 + number for number in interrupt._SIGNALS}


def test_each_exit_has_one_line_that_says_what_it_means_and_what_to_do() -> None:
    assert [int(row[0]) for row in ROWS] == sorted({*EXITS.values(), *BY_HAND, *OF_SESSIONS, *OF_SIGNALS})
    for number, meaning, _, next_step in ROWS:
        assert meaning.strip()
        assert next_step.strip() or number == "0"


def test_each_error_code_stands_in_the_line_of_its_exit() -> None:
    assert {code: int(row[0]) for row in ROWS for code in re.findall(r"`([\w.]+)`", row[2])} == EXITS
