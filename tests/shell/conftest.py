"""Ports of both kinds, and which of the processes that commands have noted still live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness_core.shell.ports import HostPorts, make_ports
from tests.commands import kill_noted, lives, noted


@pytest.fixture(params=["threads", "simulated"])
def ports(request: pytest.FixtureRequest) -> Iterator[HostPorts]:
    made = make_ports(request.param)
    yield made
    made.close()


@pytest.fixture
def threads() -> Iterator[HostPorts]:
    """Those of a host, where it makes no difference which."""
    made = make_ports("threads")
    yield made
    made.close()


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Callable[[], list[int]]]:
    """Commands write ``$$`` into files in ``$PIDS``; gives these numbers as far as such processes still live."""
    yield lambda: list(filter(lives, noted(tmp_path)))
    kill_noted(tmp_path)
