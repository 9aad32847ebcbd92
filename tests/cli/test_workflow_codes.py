"""``harness workflows check`` refuses each broken plan with the code that is meant, at its place and with a hint."""

from __future__ import annotations

import copy
import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_executor_workflow.compiling.findings import CODES
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.value import thaw
from tests.compiling.test_codes import COMPILER, LETTERS, VARIANTS, plan_of
from tests.compiling.there import MODELS, PLANS, TOOLS, surroundings
from tests.reference import Site, scripted_models, write_site

ELSEWHERE = frozenset(
    {
        "binding.input_schema_mismatch", "binding.name_mismatch", "binding.output_schema_mismatch",
        "bind.permission_exceeded", "expr.refused", "limits.exceeded", "sketch.invalid",
    }
)  # fmt: skip
"""What only a plan for a workflow, another rules engine or a sketch is refused with."""

DESK = '''
from harness_hookspecs import Offer, ToolResult, ToolSpec, hookimpl

SPECS = {specs!r}


class Desk:
    def specs(self):
        return [ToolSpec(**spec) for spec in SPECS]

    def execute(self, name, args, ctx):
        return ToolResult(None)


@hookimpl
def harness_provide_tools():
    return [Offer(kind="tool", name="desk", build=lambda settings, host: Desk())]
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A project with the tools and models that the sample plans ask for."""
    told = ("name", "description", "input_schema", "output_schema", "tier")
    specs = [{part: thaw(getattr(tool.spec, part)) for part in told} for name, tool in TOOLS.items() if "." in name]
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    make_distribution(folder, "acme-plan-desk", provides=[{"kind": "tool", "name": "desk"}],
                      code=DESK.format(specs=specs))  # fmt: skip
    stage = {"role": "worker", "task": "Do it.", "allowed_tools": ["desk"], "on_success": "completed"}
    stages = {"initial": "work", "stages": {"work": stage}}
    return write_site(tmp_path, stages=stages, replies=[], models=scripted_models(*MODELS)).enter(monkeypatch)


def checked(project: Site, source: Any, capsys: pytest.CaptureFixture[str]) -> tuple[int, Mapping[str, Any]]:
    """The exit code and the document."""
    file = project.project / "plan.json"
    file.write_bytes(source if isinstance(source, bytes) else json.dumps(source).encode())
    code = main(["workflows", "check", str(file), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.req("A-10")
def test_each_code_is_said_with_its_place_and_its_hint(project: Site, capsys: pytest.CaptureFixture[str]) -> None:
    for plan in PLANS.values():
        code, document = checked(project, plan, capsys)
        assert (code, document["ok"]) == (0, True), document["findings"]
    said, wrong = set(), {}
    sources = [(code, plan_of(**copy.deepcopy(change)), path) for code, change, path in VARIANTS]
    letters = [(code, source) for code, source in LETTERS if isinstance(source, bytes)]
    sources += [(code, source, "") for code, source in letters if not source.startswith(BOM_UTF8)]  # of a file, no part
    for meant, source, path in sources:
        exits, document = checked(project, source, capsys)
        errors = [one for one in document["findings"] if one["severity"] == "error"]
        known = [one.to_wire() for one in COMPILER.compile(source, surroundings()).findings]
        hints = {(one["code"], one["path"]): one.get("hint") for one in known}
        found = [one for one in errors if (one["code"], one["path"]) == (meant, path)]
        hinted = bool(found) and bool(found[0]["hint"]) == bool(hints.get((meant, path)))  # its words may name others
        if exits != 14 or document["ok"] or not hinted:
            wrong[f"{meant} {path}"] = exits, [(one["code"], one["path"], one["hint"]) for one in errors][:3]
        said |= {one["code"] for one in found}
    assert not wrong, wrong
    assert said == set(CODES) - ELSEWHERE
