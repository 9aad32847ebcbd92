"""A session is killed, broken or stopped at every boundary there is; whoever goes on comes to the same end.

What happened is judged from outside: by the lines that the tools leave in a file of their own, by what the process had
said to be committed, and by how often the model was asked.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.shell.ports.failpoints import FAILPOINTS
from tests.reference import HARNESS, REFERENCE, Site, one_stage, says, write_reference, write_site

PHASES = ("begin", "answer", "resume")
KEPT = ("data", "state", "effects.jsonl", "project/acks", "project/asked", "project/settled")


class Driver:
    """The process that plays phases, and the place it plays them in."""

    def __init__(self, site: Site) -> None:
        self.site, self.root = site, site.project.parent
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("driver.py"))],
            cwd=site.project, env=site.process_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def keep(self, name: str) -> None:
        """Remember how everything is now."""
        _copy(self.root, self.root / "kept" / name)

    def restore(self, name: str) -> None:
        """Make everything as it was then."""
        for part in KEPT:
            shutil.rmtree(self.root / part, ignore_errors=True)
            (self.root / part).unlink(missing_ok=True)
        _copy(self.root / "kept" / name, self.root)

    def lines(self, name: str) -> list[Any]:
        """What children wrote outside, a line each."""
        file = self.site.project / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def close(self) -> None:
        self.process.communicate()


def _copy(source: Path, target: Path) -> None:
    for part in KEPT:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part)
        elif (source / part).exists():
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / part, target / part)


class Reference:
    """The session undisturbed: its end, and how often each phase reaches each boundary."""

    def __init__(self, root: Path) -> None:
        self.driver = Driver(write_reference(root, probes=False))
        self.reached: dict[str, dict[str, int]] = {}
        for phase in PHASES:
            self.driver.keep(phase)
            played = self.driver(phase=phase)
            assert "document" in played, played
            self.reached[phase] = played["reached"]
            self.driver(**{"import": played["modules"]})
        looked = self.driver(phase="look")
        self.driver(**{"import": looked["modules"]})
        self.end = looked["document"]
        assert self.end["status"] == "completed"
        assert all(replayed["equal"] for replayed in self.end["replayed"].values())

    def disturbed(self, phase: str, failpoint: str, **more: Any) -> dict[str, Any]:
        """How the child ended that plays a phase with that failpoint."""
        self.driver.restore(phase)
        return self.driver(phase=phase, failpoint=failpoint, **more)

    def check(self, disturbances: int) -> None:
        """Somebody goes on, at once, to the same end; nothing was lost and nothing happened too often."""
        ended = self.driver(phase="finish")
        assert "document" in ended, ended
        assert ended["seconds"] < 10.0  # hundredths on a quiet machine; a lease would have to run out first
        document = ended["document"]
        assert (document["status"], document["state_hash"]) == ("completed", self.end["state_hash"])
        assert document["verified"]
        assert document["replayed"]["skip-inference"]["equal"]
        self._check_simulated(document["replayed"]["simulate"]["diverged"])
        stored = [tuple(event) for event in document["events"]]
        assert {tuple(line) for line in self.driver.lines("acks")} <= set(stored)
        assert _failed_tools(document) == _failed_tools(self.end)  # what stops a session is no result of a call
        self._check_effects(disturbances)
        asked = Counter(map(tuple, self.driver.lines("asked")))
        assert len(asked) == 6 and all(count <= 1 + disturbances for count in asked.values())

    def _check_simulated(self, diverged: Any) -> None:
        """A boundary that raises belongs to no program: where the log tells of it, a simulation cannot follow."""
        assert diverged is None or diverged["recorded"]["payload"]["error"]["code"] == "failpoint.raised", diverged

    def _check_effects(self, disturbances: int) -> None:
        effects = self.driver.site.effects()
        for note in "abcde":
            lines = [line for line in effects if line["args"]["note"] == note]
            assert len({line["key"] for line in lines}) == 1
            assert len(lines) <= (1 + disturbances if lines[0]["tool"] == "effects_pure" else 1)


def _failed_tools(document: Mapping[str, Any]) -> int:
    return sum(event_type == "harness.tool_call.failed" for _, _, event_type, _ in document["events"])


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reference]:
    root = tmp_path_factory.mktemp("reference")
    played = Reference(root)
    yield played
    played.driver.close()


def test_the_reference_session_reaches_every_failpoint(reference: Reference) -> None:
    assert {name for reached in reference.reached.values() for name in reached} == set(FAILPOINTS)


def chosen(count: int) -> list[int]:
    """Which of the times a boundary is reached are tried: all of them in the deep profile, else both ends and some
    between, so that every boundary is tried in every phase within the minutes a submission has."""
    every = list(range(1, count + 1))
    if os.environ.get("HARNESS_TEST_PROFILE") == "deep":
        return every
    return sorted({*every[:2], *every[4::5], *every[-1:]})


@pytest.mark.req("A-83")
@pytest.mark.inv("I-1", "I-16")
@pytest.mark.parametrize("name", FAILPOINTS)
def test_killed_at_any_boundary_it_ends_the_same(reference: Reference, name: str) -> None:
    for phase in PHASES:
        for nth in chosen(reference.reached[phase].get(name, 0)):
            ended = reference.disturbed(phase, f"{name}@{nth}:kill")
            # Side by side calls may share a commit, then there are fewer of them than in the undisturbed run.
            assert ended["killed"] == signal.SIGKILL or nth > 1, ended
            reference.check(1)


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
    for phase in PHASES:
        for nth in chosen(min(1, reference.reached[phase].get(name, 0))):
            ended = reference.disturbed(phase, f"{name}@{nth}:raise")
            assert ended["error"] == "failpoint.raised"
            reference.check(1)


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
