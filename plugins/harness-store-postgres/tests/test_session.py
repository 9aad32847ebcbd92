"""A whole session in this store: the command runs it, is killed, goes on and proves what is there."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

NEEDED = (
    "harness_executor_workflow", "harness_provider_scripted", "harness_role_workflow", "harness_rules_cel",
    "harness_tool_effects",
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, schema: str, required: bool) -> Any:
    """The reference session, bound to this store; its neighbours are missing where a plugin is tested alone."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        (pytest.fail if required else pytest.skip)(f"a session needs other plugins too: {', '.join(missing)}")
    from tests.reference import write_reference

    return write_reference(tmp_path, harness={"store": {"plugin": "postgres", "schema_name": schema}})


def harness(site: Any, *words: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    from tests.reference import HARNESS

    environment = site.process_env(**({"HARNESS_FAILPOINT": failpoint} if failpoint else {}))
    return subprocess.run(
        [*HARNESS, *words, "--json"], cwd=site.project, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def said(ended: subprocess.CompletedProcess[str]) -> Any:
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.req("B-134")
def test_a_session_that_is_killed_goes_on_in_another_process_and_does_nothing_twice(site: Any, log: Any) -> None:
    from tests.reference import REFERENCE, notes

    killed = harness(site, "run", REFERENCE, "--yolo", failpoint="intent.committed@4:kill")
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    again = harness(site, "resume", "@last", failpoint="append.inside@2:kill")
    assert (again.returncode, again.stdout) == (-signal.SIGKILL, "")
    assert said(harness(site, "resume", "@last"))["status"] == "completed"
    assert sorted({"a", *notes(site)}) == ["a", "b", "c", "d", "e"]
    assert len([note for note in notes(site) if note != "a"]) == 4  # "a" may be done again, it is pure
    assert said(harness(site, "replay", "@last", "--mode", "skip-inference"))["equal"]
    assert said(harness(site, "events", "verify", "@last"))
    assert log("SELECT count(*) > 20 FROM events") == [(True,)]
    assert not list(site.project.parent.rglob("harness.db"))


@pytest.mark.inv("I-5")
def test_what_another_process_delivers_is_had_once_over_a_kill(site: Any, log: Any) -> None:
    from tests.acceptance.test_workflows import MODELS, plan_of, planned

    waits = [{"id": name, "uses": "wait", "with": {"event": "paid"}} for name in ("a", "b")]
    site.write("stages", planned(plan_of(waits, {"text": "{{ steps.a.output }} {{ steps.b.output }}"})))
    site.write("models", MODELS)
    assert harness(site, "run", "Go.").returncode == 10
    for delivery_id in ("1", "1", "2"):
        data = ("--data", json.dumps(f"no {delivery_id}"), "--id", delivery_id)
        assert said(harness(site, "sessions", "deliver", "@last", "paid", *data))
    killed = harness(site, "resume", "@last", failpoint="external.delivered:kill")
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    assert said(harness(site, "resume", "@last"))["status"] == "completed"
    assert said(harness(site, "events", "verify", "@last"))
    assert log("SELECT count(*) FROM inbox WHERE taken_seq IS NOT NULL") == [(2,)]
    assert said(harness(site, "replay", "@last", "--mode", "skip-inference"))["equal"]


def test_the_doctor_says_whether_the_log_opens_and_makes_none(site: Any, schema: str, log: Any) -> None:
    ended = harness(site, "doctor")
    assert f"schema {schema} is not there yet, made when needed" in ended.stdout
    assert log(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'") == [(0,)]


def test_a_log_that_cannot_be_reached_ends_the_command_with_its_own_exit(
    site: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    ended = harness(site, "run", "Go.")
    assert ended.returncode == 6
    assert "store.unreachable" in ended.stdout + ended.stderr
    assert "hunter2" not in ended.stdout + ended.stderr
