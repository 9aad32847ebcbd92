"""Takes the tests of every distribution, gives them one random profile and writes their marks into the report.

Two profiles for property tests: the usual one draws the same examples each time and prints how to repeat a failure;
``HARNESS_TEST_PROFILE=deep`` draws many new ones, and what the gates did then is written into ``tests/deep.jsonl``.
"""

from __future__ import annotations

import csv
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deep import GATES, Recorder

ROWS = Path(__file__).parent / "tests" / "requirements.csv"


def pytest_configure(config: pytest.Config) -> None:
    """Choose the profile of property tests, where they can run at all."""
    if os.environ.get("HARNESS_TEST_PROFILE") == "deep" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
    try:
        from hypothesis import HealthCheck, settings
    except ImportError:  # the law needs no property tests
        return
    common: dict[str, Any] = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("usual", derandomize=True, database=None, max_examples=50, **common)
    settings.register_profile("deep", max_examples=2_000, **common)
    settings.load_profile(os.environ.get("HARNESS_TEST_PROFILE", "usual"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Carry each ``req``, ``inv`` and ``gate`` mark into the report; a row that does not exist is an error."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        known = {row["id"] for row in csv.DictReader(file)}
    for item in items:
        marked = [(mark.name, row) for name in ("req", "inv") for mark in item.iter_markers(name) for row in mark.args]
        gates = [("gate", gate) for mark in item.iter_markers("gate") for gate in mark.args]
        unknown = sorted(row for _, row in marked if row not in known) + [g for _, g in gates if g not in GATES]
        if unknown:
            raise pytest.UsageError(f"{item.nodeid} bears rows that do not exist: {', '.join(unknown)}")
        if marked:
            item.user_properties += [("test", item.nodeid), *marked]
        item.user_properties += gates


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """The signals as a person's terminal has them, here and in children; the tests may run where they are ignored."""
    usual: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
