"""Which engine runs the code of steps, from when to when, and what ends it, through whole sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.contracts.engine_world import children
from tests.acceptance.listing import listed, outcomes, replays_equal, step
from tests.acceptance.test_steps import manifests

ONE = "async def main(input, tools):\n    return 1\n"
ENDLESS = "async def main(input, tools):\n    await tools.effects_pure(note='a')\n    while True:\n        pass\n"


def workers() -> int:
    """Of the engine monty, that are children of this process."""
    return sum(b"monty" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children())


def runs_code(play: Any, source: str = ONE, *, harness: Any = None, **more: Any) -> Any:
    files = {} if harness is None else {"harness": harness}
    with_ = {"language": "python", "source": source, "tools": ["effects.pure"]}
    return play(stages=listed(step("code", "code.run", with_, **more)), **files)


def test_what_runs_code_is_begun_at_its_first_use_and_ends_with_its_host(play: Any) -> None:
    before = workers()
    session = runs_code(play)
    assert workers() == before
    session.run()
    assert outcomes(session) == [{"ok": True, "value": 1}]
    assert workers() == before + 1
    replays_equal(session, roles=1)
    assert workers() == before + 1, "a replay ends what it began"
    session.host.close()
    assert workers() == before


@pytest.mark.parametrize(("chosen", "label"), [("plain", "plain@0.1.0"), ("executor-listed:plain", "plain@0.1.0")])
def test_the_engine_of_the_configuration_runs_code_that_names_none(play: Any, chosen: str, label: str) -> None:
    session = runs_code(play, harness={"engine": chosen})
    session.run()
    assert [one["engine"] for one in manifests(session)] == [label]


def test_an_engine_of_the_configuration_that_is_not_there_is_named_with_its_line(play: Any) -> None:
    session = runs_code(play, harness={"engine": "gone"})
    session.run()
    [ended] = outcomes(session)
    assert (ended["ok"], ended["error"]["code"]) == (False, "engine.not_available")
    assert ended["error"]["message"] == "no installed plugin offers the engine gone"
    assert "harness.yaml:" in ended["error"]["details"]["where"]


def test_an_engine_that_has_no_sandbox_fails_the_step_with_the_reason_and_runs_nothing(play: Any) -> None:
    calls = "async def main(input, tools):\n    return await tools.effects_pure(note='a')\n"
    session = runs_code(play, calls, harness={"engine": "sandbox"})
    session.run()
    [ended] = outcomes(session)
    assert (ended["ok"], ended["error"]["code"]) == (False, "engine.not_available")
    assert "of which this version has none" in ended["error"]["message"]
    assert "engine: monty" in ended["error"]["details"]["hint"]
    assert session.effects() == []
    assert all(session.host.replay("@last", mode)["equal"] for mode in ("skip-inference", "simulate"))


def test_without_an_engine_it_is_said_what_to_install(play: Any, site_folder: Path) -> None:
    session = runs_code(play, harness={"plugins": {"disable": ["engine-monty"]}})
    session.run()
    assert [one["engine"] for one in manifests(session)] == ["plain@0.1.0"], "the only one that runs any"
    make_distribution(site_folder, "acme-engine", provides=[{"kind": "engine", "name": "acme"}])
    session = runs_code(play, harness={"plugins": {"disable": ["engine-monty"]}})
    session.run()
    [ended] = outcomes(session)
    assert ended["error"]["code"] == "engine.not_available"
    assert "acme" in ended["error"]["message"] and "plain" in ended["error"]["message"]
    assert "harness.yaml" in ended["error"]["details"]["hint"]


def test_code_that_does_not_end_in_its_time_is_a_failure_of_its_step(play: Any) -> None:
    session = runs_code(play, ENDLESS, timeoutMs=300)
    session.run()
    [ended] = outcomes(session)
    assert (ended["ok"], ended["error"]["code"]) == (False, "engine.timeout")
    assert all(session.host.replay("@last", mode)["equal"] for mode in ("skip-inference", "simulate"))


def test_code_that_waits_for_a_person_is_ended_and_runs_again_on_its_recorded_calls(play: Any) -> None:
    source = """async def main(input, tools):
    said = []
    for note in ("a", "b"):
        try:
            said.append((await tools.effects_network(note=note))["note"])
        except BaseException:
            said.append("caught")
    return said
"""
    with_ = {"language": "python", "source": source, "tools": ["effects.network"]}
    session = play(stages=listed(step("code", "code.run", with_)))
    assert session.run()["status"] == "awaiting_approval"
    for _ in range(2):
        session.reopen()
        session.answer(session.pending()[0])
        session.resume()
    assert outcomes(session) == [{"ok": True, "value": ["a", "b"]}]
    assert session.effects() == ["a", "b"]
    replays_equal(session, roles=1)


def test_a_cancel_ends_code_that_runs(play: Any) -> None:
    session = runs_code(play, ENDLESS)
    session_id = session.host.start("Go.")
    session.until("harness.tool_call.started")
    session.host.cancel(session_id)
    assert session.host.wait(session_id)["status"] == "cancelled"
    session.host.close()
    assert workers() == 0
