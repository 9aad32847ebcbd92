"""``harness doctor``: each thing that can be wrong with an installation is found, named and told how to mend."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_core.cli.main import main
from harness_core.shell.doctor import (
    check_command,
    check_disk,
    check_folders,
    check_python,
    check_sqlite,
    is_affected,
    sqlite_in_use,
)
from harness_hookspecs.contracts.distribution import make_distribution, offers_code
from harness_hookspecs.role import EXECUTOR_ROLES
from tests.reference import one_stage, write_site

LAYERS: list[tuple[str, dict[str, Any]]] = [
    ("harness-store-sqlite", {"kind": "store", "name": "sqlite"}),
    ("harness-rules-cel", {"kind": "rules", "name": "cel"}),
    ("harness-executor-agent", {"kind": "executor", "name": "agent"}),
    ("harness-role-workflow", {"kind": "role", "name": "workflow", "roles": [*EXECUTOR_ROLES], "default": True}),
    ("acme-provider", {"kind": "provider", "name": "acme"}),
    ("acme-tools", {"kind": "tool", "name": "acme"}),
]
COMPILES = "return lambda *args, **kwargs: type('Program', (), {'roots': frozenset()})()"
"""What each method of the fake rules engine is: the check of a configuration compiles the rules of its stages."""


@pytest.fixture
def _fakes_are_imported() -> Iterator[None]:
    """The fakes bear names of plugins that other tests import; each is forgotten where the other is meant."""

    def forgotten() -> dict[str, ModuleType]:
        fakes = tuple(name.replace("-", "_") for name, _ in LAYERS)
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(fakes)}

    real = forgotten()
    yield
    forgotten()
    sys.modules.update(real)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _fakes_are_imported: None) -> Path:
    """A whole installation made of fakes, a configured model, and empty folders of the person."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folder = tmp_path / "site"
    for name, entry in LAYERS:
        code = offers_code([entry])
        if entry["kind"] == "rules":
            code = code.replace("return lambda *args, **kwargs: None", COMPILES)
        make_distribution(folder, name, provides=[entry], code=code)
    config = tmp_path / "config" / "harness"
    config.mkdir(parents=True)
    (config / "models.yaml").write_text("models:\n  big: {provider: acme}\n", encoding="utf-8")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def ask(site: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    def run(*words: str) -> tuple[int, dict[str, Any]]:
        code = main([*words, "--json"])
        return code, json.loads(capfd.readouterr().out)

    return run


def problems(document: dict[str, Any]) -> list[str]:
    """The problems, but for the library of the machine that runs the test."""
    return [one["message"] for one in document["checks"] if one["state"] == "problem" and one["name"] != "sqlite"]


def states(document: dict[str, Any], name: str) -> list[tuple[str, str]]:
    return [(check["state"], check["message"]) for check in document["checks"] if check["name"] == name]


@pytest.mark.req("B-12")
def test_each_layer_has_a_plugin_that_is_named(ask: Any) -> None:
    code, document = ask("doctor")
    assert (problems(document), document["ok"]) == ([], code == 0)
    layers = {layer["layer"]: layer["plugins"] for layer in document["layers"]}
    assert list(layers) == [
        "user", "router", "kernel", "stage runtime", "context processor", "agent runtime", "inference", "tools"
    ]  # fmt: skip
    assert all(layers.values()), layers
    assert layers["kernel"] == ["harness-host", "store-sqlite", "rules-cel"]
    assert layers["context processor"][0] == "harness-host"
    assert layers["stage runtime"] == ["executor-agent"]
    assert layers["agent runtime"] == ["role-workflow"]
    assert layers["inference"] == ["acme-provider"]
    assert "acme-tools" in layers["tools"]
    _, schema = ask("config", "schema", "harness.doctor/1")
    Draft202012Validator(schema["json_schema"]).validate(document)


def test_a_layer_without_a_plugin_is_a_problem(ask: Any) -> None:
    code, document = ask("--no-plugin", "role-workflow", "doctor")
    assert code == 3
    [(state, message)] = states(document, "layer")
    assert state == "problem"
    assert message.startswith(
        "agent runtime: no default role harness for worker.ai-generate: role-workflow is disabled"
    )


def test_people_read_a_line_for_each_thing(ask: Any, capfd: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("ok  python: Python 3.")
    assert "kernel             harness-host, store-sqlite, rules-cel" in lines


def test_a_configuration_with_mistakes_is_a_problem_and_stops_nothing(site: Path, ask: Any) -> None:
    (site.parent / "config" / "harness" / "harness.yaml").write_text("run:\n  max_dept: 1\n", encoding="utf-8")
    code, document = ask("doctor")
    [(state, message)] = states(document, "config")
    assert (code, state) == (3, "problem")
    assert "max_dept" in message
    assert states(document, "plugins")[0][0] == "ok"


def test_a_project_that_needs_trust_is_told(site: Path, ask: Any) -> None:
    project = site.parent / "work" / ".harness"
    project.mkdir()
    (project / "harness.yaml").write_text("store: {plugin: sqlite}\n", encoding="utf-8")
    _, document = ask("doctor")
    [(state, message)] = states(document, "config")
    assert (problems(document), state) == ([], "warning")
    assert "store.plugin" in message


def test_models_are_found_or_missed(site: Path, ask: Any) -> None:
    (site.parent / "config" / "harness" / "models.yaml").write_text(
        "models:\n  big: {provider: acme}\n  gone: {provider: acme, path: /nowhere/a.gguf}\n  odd: {provider: no}\n"
    )
    _, document = ask("doctor")
    assert [state for state, _ in states(document, "model")] == ["ok", "warning", "warning"]
    assert "/nowhere/a.gguf is not there" in states(document, "model")[1][1]


@pytest.mark.parametrize("content", ["junk " * 100, "", None], ids=["junk", "empty", "absent"])
def test_a_log_that_would_not_open_is_a_problem_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    site = write_site(tmp_path, stages=one_stage(), replies=[]).enter(monkeypatch)
    file = Path(site.env["XDG_DATA_HOME"]) / "harness" / "harness.db"
    if content is not None:
        file.parent.mkdir(parents=True)
        file.write_text(content)
    code = main(["doctor", "--json"])
    [(state, message)] = states(json.loads(capsys.readouterr().out), "store")
    assert message.startswith(str(file))
    assert (state, code) == ("ok", 0) if content is None else ("problem", 3)
    assert (file.read_text() if file.exists() else None) == content


def test_a_log_that_only_opening_it_tells_of_is_not_opened(ask: Any) -> None:
    _, document = ask("doctor")
    assert states(document, "store") == []


def test_a_look_that_breaks_is_a_problem_of_its_plugin(site: Path, ask: Any) -> None:
    provides = [LAYERS[0][1]]
    code = offers_code(provides).replace("build=", "look=lambda settings, host: 1 / 0, build=")
    make_distribution(site, LAYERS[0][0], provides=provides, code=code)
    _, document = ask("doctor")
    [(state, message)] = states(document, "store")
    assert state == "problem"
    assert "store-sqlite cannot be looked at: ZeroDivisionError" in message


def test_missing_folders_are_made_when_asked(site: Path, ask: Any) -> None:
    data = site.parent / "data" / "harness"
    ask("doctor")
    assert not data.exists()
    ask("doctor", "--fix")
    assert data.is_dir()


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    [found] = check_folders({"data": tmp_path / "file" / "harness"}, fix=True)
    assert found.state == "problem"


@pytest.mark.parametrize("fix", [False, True])
@pytest.mark.parametrize("name", ["config", "data", "state", "cache"])
def test_a_folder_that_is_a_file_is_a_problem(name: str, fix: bool, tmp_path: Path) -> None:
    (tmp_path / "harness").write_text("")
    [found] = check_folders({name: tmp_path / "harness"}, fix=fix)
    assert (found.state, found.name) == ("problem", f"{name} folder")
    assert "is a file" in found.message


# ------------------------------------------------------------------------------------------- single checks

AFFECTED = {
    "3.6.23": False, "3.7.0": True, "3.40.1": True, "3.44.5": True, "3.44.6": False, "3.45.0": True, "3.50.6": True,
    "3.50.7": False, "3.51.2": True, "3.51.3": False, "3.53.4": False, "4.0.0": False,
}  # fmt: skip


@pytest.mark.parametrize(("version", "affected"), AFFECTED.items())
def test_libraries_that_can_lose_commits_are_known(version: str, affected: bool) -> None:
    assert is_affected(version) is affected


def test_an_affected_library_is_a_problem() -> None:
    found = check_sqlite("sqlite3", "3.40.1")
    assert (found.state, found.facts["affected"]) == ("problem", True)
    assert check_sqlite(*sqlite_in_use()).facts["version"] == sqlite_in_use()[1]


def test_the_interpreter_is_named() -> None:
    assert (check_python().state, check_python().facts["executable"]) == ("ok", sys.executable)


def program(folder: Path, text: str) -> str:
    folder.mkdir(parents=True)
    file = folder / "harness"
    file.write_text(text)
    file.chmod(0o755)
    return str(folder)


def test_a_foreign_harness_earlier_on_the_path_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = program(tmp_path / "own", "#!python\nfrom harness_core.cli.main import main\n")
    foreign = program(tmp_path / "foreign", "#!/bin/sh\n")
    other = program(tmp_path / "other", "#!python\nfrom harness_core.cli.main import main\n")
    monkeypatch.setattr(sys, "executable", os.path.join(own, "python"))

    def path(*folders: str) -> tuple[str, str, bool | None]:
        found = check_command({"PATH": os.pathsep.join(folders)})
        return found.state, found.message, found.facts.get("foreign")

    assert path(own, foreign)[0] == "ok"
    assert path(foreign, own) == (
        "warning",
        f"a foreign program called harness comes first on the PATH: {foreign}/harness",
        True,
    )
    assert path(other, own)[1].startswith("another installation of Harness")
    assert path(str(tmp_path))[1] == "no harness on the PATH"


def test_little_space_is_a_warning(tmp_path: Path) -> None:
    assert check_disk(tmp_path / "not" / "there").facts["free_bytes"] > 0
    assert check_disk(tmp_path, low_bytes=1 << 62).state == "warning"
