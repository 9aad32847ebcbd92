"""A plan with thousands of branches in, the memory of the process that runs it out: it grows little with them."""

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
MOST_BLOCKS_EACH = 20
"""Of a branch that has ended: its item, its key, its outcome, what each of them consists of, and some to spare.

Python counts the blocks that it holds, whatever else the machine does."""

MOST_BYTES_EACH = 16_384
"""Of the memory that the process had at most, four times what it is where the machine has nothing else to do: on a busy
one more waits to be written."""

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
import gc
import sys
from collections import Counter
from re import search
from harness_core import Host

seen = Counter()

def look(event):
    seen[event.type] += 1
    if event.type == "artifact.proposed":  # all branches have ended, and nothing is forgotten yet
        gc.collect()
        print(seen["role.returned"], sys.getallocatedblocks())

with Host.open(".", on_event=look) as host:
    document = host.run(sys.stdin.read())
    assert document["status"] == "completed", document["failure"]
print(int(search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]) * 1024)
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


def held(site: Site, folder: Path, branches: int) -> tuple[int, int]:
    """How many blocks a process that runs the plan holds at its end, and how many bytes it took at most."""
    words = json.dumps({"items": [f"item {number}" for number in range(branches)]})
    command, env = [sys.executable, "-c", RUN], site.process_env(PYTHONPATH=str(folder))
    said = subprocess.run(command, cwd=site.project, env=env, input=words, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    count, blocks, peak = map(int, said.stdout.split())
    assert count == branches
    return blocks, peak


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_ten_thousand_branches_take_little_more_memory_than_a_thousand(tmp_path: Path, site_folder: Path) -> None:
    make_distribution(site_folder, "acme-looking-tools", provides=[{"kind": "tool", "name": "desk"}], code=TOOLS)
    site = write_site(tmp_path, stages=wide(), replies=[])
    few, many = held(site, site_folder, FEW), held(site, site_folder, MANY)
    blocks, peak = ((more - less) / (MANY - FEW) for less, more in zip(few, many, strict=True))
    assert blocks <= MOST_BLOCKS_EACH
    assert peak <= MOST_BYTES_EACH
