"""``harness prompt show --role orchestrator``: what the one who runs workflows is told, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_core.cli.main import main
from tests.orchestra import lead
from tests.reference import write_site


@pytest.mark.req("A-47")
def test_what_an_orchestrator_is_told_stands_in_its_order_with_the_tools_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stages = {**lead(allowed_tools=["effects_pure"]), "roles": {"chief": {"prompt": "You lead."}}}
    write_site(tmp_path, stages=stages, replies=[]).enter(monkeypatch)
    assert main(["prompt", "show", "--role", "orchestrator", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["persona"], document["stage"]) == ("chief", "lead")
    first, second, last = document["parts"]
    assert (first["label"], first["text"]) == ("developer system", "You lead.")
    assert (second["label"], second["id"].partition("/")[0]) == ("role addendum", "orchestrator")
    assert last["label"] == "tools"
    named = ("plan_workflow", "run_workflow", "start_workflow", "jobs", "effects_pure")
    assert [name for name in named if name not in last["text"]] == []
