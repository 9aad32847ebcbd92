"""The quickstart where something is missing: it says what, where, why and what next. All of it is ``tox -e main``."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from first_run import EXAMPLE, Setup, Stop, closing, document_of, main, make_environment, make_repository, reason_of
from harness_core.cli.main import main as harness
from harness_core.cli.published import published_schema

QUICKSTART = Path(__file__).parent.parent / "contrib" / "quickstart.py"


class Ran(NamedTuple):
    """How the quickstart went, with ``--json``."""

    exit_code: int
    document: dict[str, Any]
    err: str


def quickstart(folder: Path, *words: str, before: str = "", **environment: str) -> Ran:
    """Run it in a process of its own, after some code that takes something away."""
    code = f"import runpy, sys\n{before}\nsys.argv = ['quickstart.py', *{[*words, '--json']!r}]\n"
    code += f"sys.path.insert(0, {str(QUICKSTART.parent)!r})\nrunpy.run_path({str(QUICKSTART)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return Ran(done.returncode, json.loads(done.stdout), done.stderr)


@pytest.mark.parametrize("version", [(3, 6), (3, 10), (3, 14)])
def test_another_python_is_told_which_one_is_needed(tmp_path: Path, version: tuple[int, int]) -> None:
    ran = quickstart(tmp_path, before=f"sys.version_info = {(*version, 0, 'final', 0)}")
    assert (ran.exit_code, ran.document["code"]) == (1, "quickstart.python")
    assert f"this is {version[0]}.{version[1]}" in ran.err
    assert ran.document["where"] == sys.executable
    assert "python3.13 contrib/quickstart.py" in ran.document["hint"]


def test_an_old_python_can_read_the_quickstart() -> None:
    tree = ast.parse(QUICKSTART.read_text(encoding="utf-8"), feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.FunctionDef)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"]


MISSING = {
    "git": ({"PATH": "/nowhere"}, "", "git was not found", "install git"),
    "venv": ({}, "sys.modules['ensurepip'] = None", "this Python has no ensurepip", "-venv"),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_the_machine_lacks_is_found_before_anything_is_made(tmp_path: Path, what: str) -> None:
    environment, before, message, hint = MISSING[what]
    ran = quickstart(tmp_path, "--venv", "new", before=before, **environment)
    assert (ran.exit_code, ran.document["code"]) == (1, f"quickstart.{what}")
    assert (ran.document["message"], hint in ran.document["hint"]) == (message, True)
    assert message in ran.err
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine")
    assert main(["--venv", str(tmp_path), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["code"] == "quickstart.venv"
    assert "--venv DIR" in err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_a_broken_environment_is_named_with_the_command_that_removes_it(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("")
    with pytest.raises(Stop) as caught:
        make_environment(Setup(tmp_path, print))
    assert f"rm -r {tmp_path}" in caught.value.hint


REASONS = {
    "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution": "network",
    "ProxyError('Cannot connect to proxy.')": "network",
    "OSError: [Errno 28] No space left on device": "disk",
    "[Errno 13] Permission denied: '/x'": "permission",
    "ERROR: No matching distribution found for xllamacpp": "install",
}


@pytest.mark.parametrize(("output", "code"), REASONS.items())
def test_the_reason_is_read_out_of_what_pip_said(output: str, code: str) -> None:
    found, hint = reason_of(output, "install")
    assert found == code
    assert hint


def test_a_program_that_fails_is_shown_with_its_last_words_and_the_log(tmp_path: Path) -> None:
    call = [sys.executable, "-c", "print('one'); print('Errno 28'); raise SystemExit(3)"]
    with pytest.raises(Stop) as caught:
        Setup(tmp_path, print).call(call, "install", "it failed")
    log = tmp_path / "quickstart.log"
    assert caught.value.text() == (
        f"quickstart: it failed\n  where  {log}\n  | one\n  | Errno 28\n  next   free about 700 MB, then again"
    )
    assert log.read_text().endswith("one\nErrno 28\n")


def git(project: Path, *words: str) -> str:
    environment = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    call = ["git", *words]
    return subprocess.run(call, cwd=project, env=environment, capture_output=True, text=True, check=True).stdout


def test_the_example_is_the_same_repository_each_time_whatever_git_is_set_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "[init]\n defaultBranch = other\n[core]\n autocrlf = true\n[commit]\n gpgSign = true\n"
    (tmp_path / ".gitconfig").write_text(own)
    monkeypatch.setenv("HOME", str(tmp_path))
    setup = Setup(tmp_path / "venv", print)
    heads = []
    for _ in range(2):
        make_repository(setup)
        heads.append(git(setup.project, "rev-parse", "HEAD", "HEAD^{tree}"))
        (setup.project / "left over").write_text("")
    assert heads[0] == heads[1]
    assert git(setup.project, "log", "-1", "--format=%an %as").strip() == "Ada Example 2025-01-04"
    assert git(setup.project, "status", "--porcelain") == '?? "left over"\n'
    names = git(setup.project, "diff", "--name-only", "v1.0", "HEAD").split()
    assert names == ["README.md", "tally.py", "test_tally.py"]
    assert (setup.project / "LICENSE").is_file()


def test_the_example_is_a_valid_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    assert harness(["--project", str(EXAMPLE), "config", "check"]) == 0


def test_people_are_told_what_to_try_next_and_what_the_model_is_worth(tmp_path: Path) -> None:
    setup = Setup(tmp_path / "an env", print)
    done = {"project": str(setup.project), "session": "s", "status": "completed", "seconds": 9.5}
    text = closing(setup, done)
    assert "9.5 s" in text
    assert "nothing about judgement" in text
    for command in ("source '", "harness prompt show @last", "harness replay @last", "harness demo", "python -m tox"):
        assert command in text
    assert "judgement" not in closing(setup, {**done, "project": None})


def test_the_document_is_the_published_one() -> None:
    schema = published_schema("harness.quickstart/1")
    for document in (document_of("/p", "s", "completed", 9.5), document_of(None, None, "installed", 0.0)):
        Draft202012Validator(schema).validate(document)
