"""A process is killed while its session has children: none is begun twice, and what one came to is not done again."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from tests.orchestra import chief, lead, planner, start, worker
from tests.reference import HARNESS, Site, notes, payloads, write_site

NOTES = ("one", "two", "three")
KILLS = {
    "the first reservation": "child.requested@1",
    "a later reservation": "child.requested@3",
    "before the first begins": "child.granted@1",
    "before the last begins": "child.granted@3",
    "as a child is begun": "session.created@2",
    "as another one is begun": "session.created@4",
    "within a child": "stage.left@1",
    "at the end of a child": "session.ending@1",
    "after that, before its parent knows": "head.copied@1",
    "after the last, before its parent knows": "head.copied@3",
    "when its parent knows of one": "child.completed@1",
    "when its parent knows of all": "child.completed@3",
    "when the role call waits": "role.suspended@1",
}


def written(root: Path) -> Site:
    jobs = [one for note in NOTES for one in (worker(note, ("keyed", {"note": note})), worker(note, turn=2))]
    replies = [planner(), chief(1, *map(start, NOTES)), chief(2, text="all"), *jobs]
    return write_site(root, stages=lead(), replies=replies)


def run(site: Site, *words: str, **env: str) -> Any:
    return subprocess.run(
        [*HARNESS, *words], cwd=site.project, env=site.process_env(**env), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def test_killed_before_a_child_is_ended_that_was_given_up_whoever_goes_on_with_its_parent_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = worker("one", ("network", {"note": "sent"}))
    replies = [planner(), chief(1, start("one")), chief(2, text="all"), asks, worker("one", turn=2)]
    site = write_site(tmp_path, stages=lead(), replies=replies)
    assert run(site, "run", "Go.", "--on-ask", "suspend").returncode == 10
    with Host.open(site.enter(monkeypatch).project) as host:
        [first] = [one["id"] for one in host.sessions() if one["parent_id"]]
    site.write("stages", {**lead(), "roles": {"chief": {"prompt": "You lead."}}})
    on = ("resume", "@last", "--on-ask", "suspend", "--accept-drift")
    killed = run(site, *on, HARNESS_FAILPOINT="child.failed@1:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert run(site, *on).returncode == 10
    with Host.open(site.project) as host:
        assert host.session(first)["status"] == "cancelled"
        assert sorted(one["status"] for one in host.sessions()) == ["active", "awaiting_approval", "cancelled"]


@pytest.mark.req("A-91")
@pytest.mark.inv("I-16")
@pytest.mark.parametrize("when", KILLS)
def test_killed_at_any_point_of_a_child_it_is_begun_once_and_comes_to_the_same(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = written(tmp_path)
    killed = run(site, "run", "Go.", HARNESS_FAILPOINT=f"{KILLS[when]}:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = run(site, "resume", "@last", "--json")
    assert resumed.returncode == 0, resumed.stderr
    with Host.open(site.enter(monkeypatch).project) as host:
        document = json.loads(resumed.stdout)
        sessions = host.sessions()
        assert [one["status"] for one in sessions] == ["completed"] * 4
        asked = payloads(host.events(document["id"]), "child.requested")
        assert {one["child_id"] for one in asked} == {one["id"] for one in sessions} - {document["id"]}
        assert sorted(notes(site)) == sorted(NOTES)
        for one in sessions:
            assert host.replay(one["id"], "full")["equal"]
        assert host.replay(document["id"], "simulate")["equal"], host.replay(document["id"], "simulate")["diverged"]
