"""A session is killed, broken or stopped at every boundary there is; whoever goes on comes to the same end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness_core.shell.ports.failpoints import FAILPOINTS
from tests.crash.killing import Driver, Reference
from tests.crash.workflows import ALIKE, WORKFLOWS
from tests.reference import HARNESS, REFERENCE, Site, one_stage, says, write_reference, write_site

DEEP = os.environ.get("HARNESS_TEST_PROFILE") == "deep"
INSTANTS = 40 if DEEP else 2
"""So many kills at random in each phase."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    with Driver(write_reference(tmp_path_factory.mktemp("reference"), probes=False)) as driver:
        yield Reference(driver)


@pytest.fixture(scope="module", params=WORKFLOWS)
def shape(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    """A session of each shape."""
    with Driver(WORKFLOWS[request.param](tmp_path_factory.mktemp(request.param))) as driver:
        yield Reference(driver, alike=ALIKE.get(request.param, 1))


def test_the_reference_session_reaches_every_failpoint_but_those_of_other_shapes(
    reference: Reference, tmp_path: Path
) -> None:
    of_children = {name for name in FAILPOINTS if name.startswith("child.")}  # see test_children
    assert boundaries(reference) == {*FAILPOINTS} - {"timer.elapsed", "external.delivered", *of_children}
    with Driver(WORKFLOWS["timers"](tmp_path)) as driver:
        assert "timer.elapsed" in boundaries(Reference(driver))


def boundaries(reference: Reference) -> set[str]:
    """What it reaches in any phase."""
    return {name for reached in reference.reached.values() for name in reached}


def chosen(count: int) -> list[int]:
    """Which of the times a boundary is reached are tried: all of them in the deep profile, else both ends and some
    between, so that every boundary is tried in every phase within the minutes a submission has."""
    every = list(range(1, count + 1))
    return every if DEEP else sorted({*every[:1], *every[6::7], *every[-1:]})


@pytest.mark.gate("G1")
@pytest.mark.req("A-83", "B-16")
@pytest.mark.inv("I-1", "I-16")
@pytest.mark.parametrize("name", FAILPOINTS)
def test_killed_at_any_boundary_it_ends_the_same(shape: Reference, name: str, record_property: Any) -> None:
    kills = 0
    for phase in shape.reached:
        for nth in chosen(shape.reached[phase].get(name, 0)):
            ended = shape.disturbed(phase, f"{name}@{nth}:kill")
            # Side by side calls may share a commit, then there are fewer of them than in the undisturbed run.
            assert ended["killed"] == signal.SIGKILL or nth > 1, ended
            kills += ended["killed"] == signal.SIGKILL
            shape.check(1)
    record_property("kills", kills)


@pytest.mark.gate("G1")
@pytest.mark.inv("I-1", "I-16")
def test_killed_at_any_instant_it_ends_the_same(shape: Reference, record_property: Any) -> None:
    chance, kills = Random(1), 0
    for phase in shape.reached:
        seconds = shape.disturbed(phase)["seconds"]
        for _ in range(INSTANTS):
            ended = shape.disturbed(phase, seconds=chance.uniform(0.0, seconds))
            kills += ended["killed"] == signal.SIGKILL
            shape.check(1)
    record_property("kills", kills)


@pytest.mark.inv("I-18", "I-20")
def test_killed_after_each_commit_it_still_comes_to_its_end(reference: Reference) -> None:
    reference.driver.restore("begin")
    kills = 0
    # Every other process comes one commit further: the intent of an effect that is started anew is a commit of its own,
    # and who always dies right after it, with a tool that cannot tell what became of it, gets nowhere.
    while reference.driver(phase="finish", failpoint=f"append.committed@{1 + kills % 2}:kill")["killed"]:
        kills += 1
        assert kills < 80
    assert kills > 20
    reference.check(kills)


@pytest.mark.inv("I-15", "I-16")
@pytest.mark.parametrize(("boundary", "outcome"), [("intent.committed", "never_happened"), ("effect.done", "happened")])
def test_an_unkeyed_effect_without_a_result_is_in_doubt_until_somebody_says(
    reference: Reference, boundary: str, outcome: str
) -> None:
    doubted = 0
    for nth in range(1, reference.reached["begin"][boundary] + 1):
        reference.disturbed("begin", f"{boundary}@{nth}:kill")
        before = [line["key"] for line in reference.driver.site.effects()]
        stopped = reference.driver(phase="resume")["document"]
        waiting = [one["id"] for one in stopped["waiting"] if one["kind"] == "in_doubt"]
        if waiting:
            doubted += 1
            assert stopped["status"] == "active"
            assert (waiting[0] in before) == (outcome == "happened")
            assert [line["key"] for line in reference.driver.site.effects()] == before
            assert reference.driver(phase="resume")["document"]["waiting"] == stopped["waiting"]
            assert [line["key"] for line in reference.driver.site.effects()] == before
        reference.check(1)
    assert doubted == 1  # the one unkeyed effect before the approval


@pytest.mark.inv("I-20")
@pytest.mark.parametrize("name", FAILPOINTS)
def test_an_error_at_any_boundary_is_told_and_the_session_goes_on_later(reference: Reference, name: str) -> None:
    for phase in reference.reached:
        for nth in chosen(min(1, reference.reached[phase].get(name, 0))):
            ended = reference.disturbed(phase, f"{name}@{nth}:raise")
            assert ended["error"] == "failpoint.raised"
            reference.check(1)


@pytest.mark.req("A-85")
@pytest.mark.inv("I-20")
def test_a_stopped_owner_still_owns_its_session(reference: Reference) -> None:
    ended = reference.disturbed("begin", "intent.committed@3:stop", meanwhile={"phase": "resume"})
    assert ended["stopped"]
    assert ended["meanwhile"]["error"] == "run.locked"
    assert ended["document"]["status"] == "awaiting_approval"
    reference.check(0)


# -------------------------------------------------------------------------------------------------- the command line


@pytest.mark.inv("I-16")
def test_the_result_of_an_unkeyed_effect_is_kept_before_the_role_goes_on(tmp_path: Path) -> None:
    bind = {"bind": {"worker.ai-generate": "dying"}}
    tools = {"tools": {"effects": {"probes": False}}}
    site = write_site(tmp_path, stages=one_stage(), replies=[says("unused")], harness=bind, tools=tools)
    killed = subprocess.run(
        [*HARNESS, "run", "Go."], cwd=site.project, env=site.process_env(HARNESS_PROBE_DIES="1"),
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=30,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    resumed = command(site, "resume", "@last")
    assert (resumed.returncode, json.loads(resumed.stdout)["status"]) == (0, "completed")
    assert len(site.effects()) == 1


def command(site: Site, *words: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    environment = site.process_env(**({"HARNESS_FAILPOINT": failpoint} if failpoint else {}))
    return subprocess.run(
        [*HARNESS, *words, "--json"], cwd=site.project, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip


def test_the_command_says_how_it_ended_and_another_one_goes_on_at_once(tmp_path: Path) -> None:
    site = write_reference(tmp_path)
    killed = command(site, "run", REFERENCE, "--yolo", failpoint="intent.committed@4:kill")
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    broken = command(site, "resume", "@last", failpoint="append.committed:raise")
    assert broken.returncode == 70
    assert json.loads(broken.stdout)["code"] == "failpoint.raised"
    wrong = command(site, "resume", "@last", failpoint="nowhere:kill")
    assert (wrong.returncode, json.loads(wrong.stdout)["code"]) == (3, "failpoint.form")
    resumed = command(site, "resume", "@last")
    assert (resumed.returncode, json.loads(resumed.stdout)["status"]) == (0, "completed")
    assert sorted({line["args"]["note"] for line in site.effects()}) == ["a", "b", "c", "d", "e"]
