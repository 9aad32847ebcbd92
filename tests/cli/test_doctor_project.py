"""``harness doctor`` in a project: it finds what would stop a run, and what it advises helps and destroys nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from tests.reference import Site, one_stage, says, write_site

Ask = Callable[..., tuple[int, dict[str, list[tuple[str, str, str | None]]]]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return write_site(tmp_path, stages=one_stage(), replies=[says("done")]).enter(monkeypatch)


@pytest.fixture
def ask(site: Site, capfd: pytest.CaptureFixture[str]) -> Ask:
    """Asks the doctor; gives its exit and, by what was looked at, each state, message and advice."""

    def run() -> tuple[int, dict[str, list[tuple[str, str, str | None]]]]:
        capfd.readouterr()
        code = main(["doctor", "--json"])
        found: dict[str, list[tuple[str, str, str | None]]] = {}
        for check in json.loads(capfd.readouterr().out)["checks"]:
            found.setdefault(check["name"], []).append((check["state"], check["message"], check["fix"]))
        return code, found

    return run


def checked(capfd: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The problems that ``harness config check`` names."""
    capfd.readouterr()
    assert main(["config", "check", "--json"]) == 3
    error = json.loads(capfd.readouterr().out)
    return error["facts"].get("problems") or [error]


def test_the_doctor_names_what_config_check_names(site: Site, ask: Ask, capfd: pytest.CaptureFixture[str]) -> None:
    assert ask()[1]["config"] == [("ok", f"the configuration of {site.project} is valid", None)]
    rules = [{"when": "artefact.status == 1", "goto": "end"}]
    site.write("stages", one_stage(artifact="nope", on_success=None, transitions=rules))
    code, found = ask()
    named = [(f"{one['where']}: {one['message']}", one["hint"]) for one in checked(capfd)]
    assert (code, len(named)) == (3, 2)
    assert sorted(found["config"]) == sorted(("problem", said, hint) for said, hint in named)
    assert main(["run", "x"]) == 3


@pytest.mark.parametrize(
    ("script", "said"),
    [(None, "The script cannot be read: No such file or directory."), ("replies: 1", "schema")],
    ids=["absent", "no script"],
)
def test_a_script_that_cannot_be_used_is_found_before_a_run(
    script: str | None, said: str, site: Site, ask: Ask
) -> None:
    code, found = ask()
    assert (code, found["model"]) == (
        0, [("ok", "scripted: by provider-scripted, 32768 tokens; script.yaml has 1 reply", None)]
    )  # fmt: skip
    (site.project / "script.yaml").unlink()
    if script is not None:
        (site.project / "script.yaml").write_text(script)
    code, found = ask()
    [(state, message, _)] = found["model"]
    assert (code, state) == (3, "problem")
    assert said in message
    assert main(["run", "x"]) == 3


def test_a_model_that_no_stage_uses_stops_nothing(site: Site, ask: Ask) -> None:
    entry = {"provider": "scripted", "script": "script.yaml"}
    models = {"used": entry, "spare": {**entry, "script": "gone.yaml"}, "far": {**entry, "path": "gone.gguf"}}
    site.write("models", {"default": "used", "models": models})
    site.write("stages", one_stage(allowed_tools=[]))
    code, found = ask()
    assert code == 0
    assert [(state, message.partition(":")[0]) for state, message, _ in found["model"]] == [
        ("warning", "far"), ("warning", "spare"), ("ok", "used")
    ]  # fmt: skip
    assert main(["run", "x"]) == 0


def test_a_project_that_is_not_trusted_is_told_to_be_trusted_and_nothing_else(
    site: Site, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(site.project, copied)
    monkeypatch.chdir(copied)
    code, found = ask()
    waits = "models.yaml names scripted; models do not count before the project is trusted"
    [about_config], [about_model], [about_layer] = found["config"], found["model"], found["layer"]
    assert (code, about_model[:2], about_layer[:2]) == (
        0, ("warning", waits), ("warning", f"inference: {waits}")
    )  # fmt: skip
    assert {fix for _, _, fix in (about_config, about_model, about_layer)} == {
        "read what it sets (harness trust --dry-run), then: harness trust"
    }
    main(["trust", "--dry-run", "--json"])
    paths = [leaf["path"] for leaf in json.loads(capfd.readouterr().out)["leaves"]]
    assert len(paths) > 1
    assert about_config[1].endswith(f": {', '.join(paths)}")
    assert main(["models"]) == 0
    assert capfd.readouterr().out.splitlines()[0] == waits
    main(["trust"])
    assert ask()[1]["model"][0][0] == "ok"


def test_without_a_project_the_way_to_one_is_told(
    site: Site, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    monkeypatch.chdir(bare)
    code, found = ask()
    nothing = "models.yaml names no model"
    said = f"there is no project here (no .harness from {bare} upwards)"
    assert (code, found["config"], found["model"], found["layer"]) == (
        0,
        [("warning", said, "harness init makes one here")],
        [("warning", nothing, "harness init")],
        [("warning", f"inference: {nothing}", "harness init")],
    )
    own = Path(site.env["XDG_CONFIG_HOME"]) / "harness"
    own.mkdir(parents=True)
    (own / "harness.yaml").write_text("run: {max_depth: 1}\n")
    assert ask()[1]["config"][0][1] == f"{said}; your own files are valid"
    (bare / ".harness").mkdir()
    assert ask()[1]["model"] == [("warning", nothing, "name one in .harness/models.yaml")]
    assert main(["models"]) == 0
    assert capfd.readouterr().out.splitlines() == [nothing, "  name one in .harness/models.yaml"]
