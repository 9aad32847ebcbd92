"""A plan with thousands of branches in, the memory of the process that runs it out: it does not grow with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from tests.reference import Site, write_site

FEW, MANY = 1_000, 10_000
MOST_BYTES_EACH = 16_384
"""Of a branch that has ended: its item, its key, its envelope, its outcome, and what a list of each of them takes.

Four times what it is where the machine has nothing else to do: on a busy one what waits to be written is more."""

TOOLS = """
from harness_hookspecs import Offer, ToolResult, ToolSpec, hookimpl


class Desk:
    def specs(self):
        return [ToolSpec(name="look", description="Looks.", input_schema={"type": "object"}, tier="T1", effect="pure")]

    def execute(self, name, args, ctx):
        return ToolResult({"seen": args["at"]})


@hookimpl
def harness_provide_tools():
    return [Offer(kind="tool", name="desk", build=lambda settings, host: Desk())]
"""
RUN = """
import sys
from re import search
from harness_core import Host
with Host.open(".") as host:
    document = host.run(sys.stdin.read())
    assert document["status"] == "completed", document["failure"]
    print(int(search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]) * 1024)
    print(sum(event.type == "role.returned" for event in host.events("@last")))
"""


def wide() -> dict[str, Any]:
    """A stages.yaml whose plan makes a tool call for each item, a hundred side by side."""
    settings = {
        "items": "{{ input.items }}", "itemKey": "{{ item }}", "maxBranches": MANY, "maxConcurrency": 100,
        "failureMode": "all_settled",
    }  # fmt: skip
    look = {"id": "look", "uses": "tool.call", "with": {"tool": "look", "args": {"at": "{{ item }}"}}}
    plan = {
        "apiVersion": "harness.lwir/v1",
        "kind": "Workflow",
        "metadata": {"name": "wide"},
        "input": {"schema": {"type": "object", "required": ["items"], "properties": {"items": {"type": "array"}}}},
        "output": {"schema": True, "value": {"text": "done"}},
        "permissions": {"models": [], "tools": ["look"], "maxTier": "T1"},
        "steps": [
            {"id": "all", "uses": "parallel", "with": settings, "steps": [{**look, "output": {"mode": "json"}}]},
        ],
    }
    stage = {
        "role": "worker", "executor": "workflow", "plan": plan, "allowed_tools": ["desk"], "on_success": "completed",
        "on_failure": "failed",
    }  # fmt: skip
    return {"initial": "run", "stages": {"run": stage}}


def peak_bytes(site: Site, folder: Path, branches: int) -> int:
    """What a process that runs the plan takes at most."""
    words = json.dumps({"items": [f"item {number}" for number in range(branches)]})
    command, env = [sys.executable, "-c", RUN], site.process_env(PYTHONPATH=str(folder))
    said = subprocess.run(command, cwd=site.project, env=env, input=words, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    peak, count = map(int, said.stdout.split())
    assert count == branches
    return peak


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_ten_thousand_branches_take_little_more_memory_than_a_thousand(tmp_path: Path, site_folder: Path) -> None:
    make_distribution(site_folder, "acme-looking-tools", provides=[{"kind": "tool", "name": "desk"}], code=TOOLS)
    site = write_site(tmp_path, stages=wide(), replies=[])
    few, many = peak_bytes(site, site_folder, FEW), peak_bytes(site, site_folder, MANY)
    assert (many - few) / (MANY - FEW) <= MOST_BYTES_EACH
