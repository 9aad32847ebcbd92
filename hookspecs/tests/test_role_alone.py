"""A role harness can be written and tried with the contract alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness_hookspecs import PlanResult, parse_result

ALONE = """
import sys

class Contract:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("harness_") and name.partition(".")[0] != "harness_hookspecs":
            raise ImportError(f"{name} is not installed here")

sys.meta_path.insert(0, Contract())

from harness_hookspecs import (
    DelegateToDefault, ExecuteStepResult, ExecuteStepTask, FixStepResult, FixStepTask, OrchestrateResult,
    OrchestrateTask, PlanResult, PlanTask, RoleContext, RoleHarness, Scope, parse_result, parse_task, role_of,
)
from harness_hookspecs.contracts.role import FakeRoleContext

class Custom:
    def run(self, task: PlanTask | ExecuteStepTask, ctx: RoleContext):
        return PlanResult(lwir={"for": ctx.scope.role}) if task.kind == "plan" else DelegateToDefault()

snapshot = {
    "workflowId": "w", "name": "W", "definitionHash": "0" * 64, "inputSchema": True, "outputSchema": True,
    "modelSlots": {}, "tools": [], "permissions": {"models": [], "tools": []}, "planner": {"maxRepairs": 1},
    "workers": {}, "memory": [], "limits": {},
}
plan = parse_task({"kind": "plan", "workflowSnapshot": snapshot, "input": {}})
harness: RoleHarness = Custom()
print(harness.run(plan, FakeRoleContext(role=role_of(plan))).to_json_bytes().decode())
"""


@pytest.mark.req("A-17")
def test_a_harness_of_ones_own_needs_nothing_but_the_contract_and_no_private_name() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert parse_result(json.loads(done.stdout)) == PlanResult(lwir={"for": "planner"})
