"""The Worker of contrib/cloudflare on the real runtime, asked by the role: it plans, and the default does the steps.

Run by ``tox -e workers``, which installs the runtime from npm's registry and says in HARNESS_TEST_WORKERS where it is;
without it these tests are left out. Everything stays on this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_executor_workflow.compiling.compiler import WorkflowCompiler
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.role import FakeRoleContext
from harness_hookspecs.errors import RoleError
from harness_hookspecs.role import DelegateToDefault, RoleHarness, parse_task
from harness_hookspecs.workflow import Workflow
from harness_role_remote import harness_provide_roles
from tests.compiling.there import surroundings
from tests.reference import one_stage, payloads, says, write_site

TOKEN = "sesame-open-sesame"
PLACE = os.environ.get("HARNESS_TEST_WORKERS")
OUTPUT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

_LACKS = "the runtime of Workers is not installed: tox -e workers" if shutil.which("node") else "there is no node"
pytestmark = pytest.mark.skipif(not PLACE, reason=_LACKS)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the Worker answers."""
    command = ["node", str(Path(str(PLACE)) / "serve.mjs")]
    env = {**os.environ, "TOKEN": TOKEN}
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        yield worker.stdout.readline().strip()
        worker.stdin.close()
        assert worker.wait(30) == 0


def role(url: str, folder: Path, *, token: str = TOKEN, **settings: Any) -> RoleHarness:
    [offer] = harness_provide_roles()
    assert offer.settings is not None
    given = offer.settings().model_validate({"url": url, "bearer": "env:ACME_TOKEN", **settings})
    built: RoleHarness = offer.build(given, FakeHost(folder, secrets={"env:ACME_TOKEN": token}))
    return built


def plan_task(output: Any = OUTPUT) -> Any:
    snapshot = {
        "workflowId": "tickets", "name": "tickets", "description": "Sum the ticket up.", "definitionHash": "0" * 64,
        "inputSchema": True, "outputSchema": output, "modelSlots": {"small": {"capabilities": []}}, "tools": [],
        "permissions": {"models": ["small"], "tools": []}, "planner": {"maxRepairs": 2}, "workers": {}, "memory": [],
        "limits": {},
    }  # fmt: skip
    return parse_task({"kind": "plan", "workflowSnapshot": snapshot, "input": {"ticket": 7}})


def step_task() -> Any:
    settings = {"model": "small", "prompt": "Judge it."}
    step = {"id": "judge", "uses": "ai.generate", "with": settings, "output": {"mode": "json"}}
    where = {"stepPath": "judge", "visitIndex": 0}
    return parse_task({"kind": "execute_step", "step": step, "stepInput": None, "stepContext": where})


@pytest.mark.req("A-15")
@pytest.mark.parametrize("output", [OUTPUT, True, {"type": "string"}])
def test_a_plan_task_driven_through_the_role_alone_is_answered_by_the_worker_with_a_plan(
    url: str, tmp_path: Path, output: Any
) -> None:
    ctx = FakeRoleContext(system="Be brief.", role="planner")
    found = role(url, tmp_path).run(plan_task(output), ctx).to_wire()
    plan = Workflow.from_wire(found["lwir"])
    compiled = WorkflowCompiler().compile(found["lwir"], surroundings(definition=plan_task(output).workflow_snapshot))
    assert compiled.ok, compiled.findings
    assert [(step.id, step.uses) for step in plan.steps] == [("answer", "ai.generate")]
    assert plan.permissions.models == ("small",)
    [note] = [noted.given for noted in ctx.noted if noted.what == "note"]
    assert note["remote"] and note["facts"] == {"text": "planned by a Worker", "system": "Be brief."}


@pytest.mark.req("A-15")
def test_an_execute_step_task_is_left_to_the_default(url: str, tmp_path: Path) -> None:
    assert role(url, tmp_path, tasks=["plan"]).run(step_task(), FakeRoleContext()) == DelegateToDefault()


@pytest.mark.parametrize(("token", "task", "status"), [("another-token", plan_task(), 401), (TOKEN, step_task(), 501)])
def test_who_is_not_known_or_asks_for_something_else_is_told_so(
    url: str, tmp_path: Path, token: str, task: Any, status: int
) -> None:
    with pytest.raises(RoleError) as caught:
        role(url, tmp_path, token=token).run(task, FakeRoleContext())
    assert (caught.value.code, caught.value.facts) == ("role.remote_status", {"status": status})


def test_a_question_that_is_larger_than_the_worker_reads_is_refused(url: str, tmp_path: Path) -> None:
    large = plan_task({**OUTPUT, "description": "x" * 1_100_000})
    with pytest.raises(RoleError) as caught:
        role(url, tmp_path, max_request_bytes=2_000_000).run(large, FakeRoleContext(role="planner"))
    assert caught.value.facts == {"status": 413}


@pytest.mark.req("A-13", "A-15")
def test_a_session_with_the_worker_bound_has_its_steps_done_by_the_default(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"url": url, "bearer": "env:ACME_TOKEN", "tasks": ["plan"]}
    harness = {
        "bind": {"planner": "remote", "worker.ai-generate": "remote"},
        "plugins": {"settings": {"remote": settings}},
    }
    site = write_site(tmp_path, stages=one_stage(), replies=[says("from here")], harness=harness).enter(monkeypatch)
    monkeypatch.setenv("ACME_TOKEN", TOKEN)
    with Host.open(site.project) as host:
        document = host.run("Go.")
        events = list(host.events("@last"))
    assert document["status"] == "completed"
    [delegated] = payloads(events, "role.delegated")
    assert (delegated["source"], delegated["target"]) == ("role-remote", "role-workflow")
