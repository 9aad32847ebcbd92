"""The engine that has no sandbox: it refuses when it is looked at and when it runs, and nothing of the code happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness_engine_sandbox import harness_provide_engines
from harness_hookspecs.contracts.engine import EPOCH_MS, LIMITS
from harness_hookspecs.contracts.engine_world import children
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.role_context import FakeTool
from harness_hookspecs.contracts.waiting import FakeToken
from harness_hookspecs.engine import Engine
from harness_hookspecs.errors import Cancelled, PluginError


def run(engine: Engine, source: str, cancel: Any = None, **tools: Any) -> Any:
    token = FakeToken() if cancel is None else cancel
    return engine.run(source, None, tools=tools, limits=LIMITS, seed=1, epoch_ms=EPOCH_MS, cancel=token)


def test_it_says_that_it_runs_nothing_before_it_is_built(tmp_path: Path) -> None:
    [offer] = harness_provide_engines()
    assert (offer.kind, offer.name) == ("engine", "sandbox")
    assert offer.look is not None
    with pytest.raises(PluginError, match="of which this version has none") as caught:
        offer.look(None, FakeHost(tmp_path))
    assert caught.value.code == "engine.not_available"
    assert "engine: monty" in str(caught.value.hint)


@pytest.mark.parametrize("code", ["open('FILE', 'w').close()", "import os; os.system('touch FILE')", "no Python ("])
def test_code_is_refused_and_nothing_of_it_happens(tmp_path: Path, code: str) -> None:
    [offer] = harness_provide_engines()
    engine, before, target = offer.build(None, FakeHost(tmp_path)), children(), tmp_path / "made"
    tool = FakeTool(1)
    with pytest.raises(PluginError) as caught:
        run(engine, code.replace("FILE", str(target)), ats=tool)
    assert caught.value.code == "engine.not_available"
    assert not target.exists()
    assert not tool.runs
    assert children() == before
    engine.close()
    engine.close()


def test_a_cancel_comes_before_the_refusal(tmp_path: Path) -> None:
    [offer] = harness_provide_engines()
    token = FakeToken()
    token.cancel("stop")
    with pytest.raises(Cancelled):
        run(offer.build(None, FakeHost(tmp_path)), "", token)
