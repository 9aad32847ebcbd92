"""``harness workflows check``: what is wrong with a plan is a finding with its place, and nothing comes of it."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from jsonschema import Draft202012Validator

from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from tests.reference import Site, one_stage, write_site

Check = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Site]:
    """A project with one scripted model and two stages: the first may use the tools of the effects set."""
    stages = one_stage()
    stages["stages"]["look"] = {**stages["stages"]["work"], "allowed_tools": []}
    with pytest.MonkeyPatch.context() as patch:
        yield write_site(tmp_path, stages=stages, replies=[]).enter(patch)


@pytest.fixture
def check(project: Site, capsys: pytest.CaptureFixture[str]) -> Check:
    """Checks what stands in a file and gives the document, which fits its schema."""

    def run(source: bytes | Mapping[str, Any], *words: str, exits: int = 0) -> Any:
        file = project.project / "plan.json"
        file.write_bytes(source if isinstance(source, bytes) else json.dumps(source).encode())
        capsys.readouterr()
        assert main(["workflows", "check", str(file), *words, "--json"]) == exits
        document = json.loads(capsys.readouterr().out)
        Draft202012Validator(published_schema("harness.plan_check/1")).validate(document)
        return document

    return run


def plan(**changes: Any) -> dict[str, Any]:
    """A sound plan of one step for the project's model, with some of its parts changed."""
    step = {"id": "look", "uses": "ai.generate", "with": {"model": "scripted", "prompt": "Say {{ input.word }}"}}
    return {
        "apiVersion": "harness.lwir/v1",
        "kind": "Workflow",
        "metadata": {"name": "say.it"},
        "input": {"schema": {"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}},
        "output": {"schema": {"type": "string"}, "value": "{{ steps.look.output }}"},
        "permissions": {"models": ["scripted"], "tools": []},
        "steps": [{**step, "output": {"mode": "text"}}],
        **changes,
    }


def step(**settings: Any) -> dict[str, Any]:
    """Its step, with other settings."""
    [found] = plan()["steps"]
    return {**found, "with": {**found["with"], **settings}}


@pytest.mark.req("A-87")
def test_a_sound_plan_is_named_by_the_hash_of_its_canonical_form_however_it_is_written(check: Check) -> None:
    written = plan()
    document = check(json.dumps(written, indent=4, sort_keys=True).encode())
    expected = hashlib.sha256(rfc8785.dumps(written)).hexdigest()
    assert (document["ok"], document["lwir_hash"]) == (True, expected)
    assert document["workflow_version_id"] == f"wfv_{expected[:32]}"
    assert document["lock"]["models"] == [{"slot": "scripted", "provider": "scripted", "modelId": "scripted"}]
    assert document["plan"] == written
    assert check(written)["workflow_version_id"] == document["workflow_version_id"]


REFUSED: Mapping[str, tuple[bytes | Mapping[str, Any], str, str]] = {
    "no JSON": (b"{", "lwir.non_hashable", ""),
    "words around it": (b"Here is the plan:\n" + json.dumps(plan()).encode(), "lwir.non_hashable", ""),
    "a key twice": (b'{"kind": "Workflow", "kind": "Workflow"}', "lwir.non_hashable", ""),
    "no number": (b'{"kind": NaN}', "lwir.non_hashable", ""),
    "no UTF-8": (b'{"kind": "\xff"}', "lwir.non_hashable", ""),
    "too deep": (b'{"a":' * 40 + b"1" + b"}" * 40, "lwir.too_large", ""),
    "over a mebibyte": (b'"' + b"x" * 1_048_577 + b'"', "lwir.too_large", ""),
    "a list": (b"[]", "schema.invalid", ""),
    "an unknown key": (plan(comment="mine"), "schema.invalid", "/comment"),
    "an unknown model": (
        plan(steps=[step(model="gpt")], permissions={"models": ["gpt"], "tools": []}),
        "bind.unknown_model",
        "/permissions/models/0",
    ),
    "an unknown tool": (
        plan(steps=[step(tools=["rm"])], permissions={"models": ["scripted"], "tools": ["rm"]}),
        "bind.tool_missing",
        "/permissions/tools/0",
    ),
    "an unknown name": (plan(steps=[step(prompt="{{ secrets.key }}")]), "expr.unknown_root", "/steps/0/with/prompt"),
    "no such field": (plan(steps=[step(prompt="{{ input.wrod }}")]), "ref.no_such_field", "/steps/0/with/prompt"),
}


@pytest.mark.req("A-10")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_with_a_plan_is_a_finding_with_its_place(check: Check, name: str) -> None:
    source, code, pointer = REFUSED[name]
    document = check(source, exits=14)
    assert (code, pointer) in [(one["code"], one["path"]) for one in document["findings"]]
    assert (document["ok"], document["workflow_version_id"], document["lock"], document["plan"]) == (
        False, None, None, None,
    )  # fmt: skip


def test_findings_of_one_kind_come_together_and_are_shown_with_place_and_hint(
    check: Check, project: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = plan(steps=[step(prompt="{{ secrets.key }} {{ env.HOME }}")])
    assert [one["code"] for one in check(twice, exits=14)["findings"]] == ["expr.unknown_root"] * 2
    assert main(["workflows", "check", str(project.project / "plan.json")]) == 14
    shown = capsys.readouterr().out
    assert shown.startswith("error  expr.unknown_root  /steps/0/with/prompt (step look)\n    `secrets`")
    assert shown.endswith("refused: 2 errors; nothing was registered\n")
    check(plan())
    assert main(["workflows", "check", str(project.project / "plan.json")]) == 0
    shown = capsys.readouterr().out
    assert re.fullmatch(r"say\.it is sound: wfv_[0-9a-f]{32}\nat most 1 step would run in stage work\n", shown)


def test_a_plan_is_read_from_stdin_too(
    project: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(plan()).encode())))
    assert main(["workflows", "check", "-"]) == 0
    assert "say.it is sound" in capsys.readouterr().out


@pytest.mark.parametrize("written", [b"\xef\xbb\xbf%s", b"%s\r\n"])
def test_what_an_editor_puts_around_a_plan_is_none_of_it(
    project: Site, capsys: pytest.CaptureFixture[str], written: bytes
) -> None:
    (project.project / "plan.json").write_bytes(written % json.dumps(plan()).encode())
    assert main(["workflows", "check", "plan.json"]) == 0
    assert "say.it is sound" in capsys.readouterr().out


def test_the_tools_of_a_plan_are_those_of_its_stage(check: Check) -> None:
    asks = plan(steps=[step(tools=["effects_pure"])], permissions={"models": ["scripted"], "tools": ["effects_pure"]})
    assert check(asks, "--stage", "work")["lock"]["tools"][0]["name"] == "effects_pure"
    assert check(asks, "--stage", "look", exits=14)["findings"][0]["code"] == "bind.tool_missing"


def test_a_plan_s_code_may_name_an_engine_that_is_installed_and_no_other(check: Check) -> None:
    code = {"language": "python", "source": "async def main(input, tools):\n    return 1\n"}
    [said] = plan()["steps"]
    runs = [{**said, "uses": "code.run", "with": {**code, "engine": name}} for name in ("monty", "v8")]
    assert check(plan(steps=[runs[0]]))["lock"]["engines"][0]["name"] == "monty"
    assert check(plan(steps=[runs[1]]), exits=14)["findings"][0]["code"] == "bind.unknown_engine"


def test_code_that_names_no_engine_is_locked_to_the_one_that_runs_it(check: Check, project: Site) -> None:
    settings = {"language": "python", "source": "async def main(input, tools):\n    return 'x'\n"}
    step = {"id": "look", "uses": "code.run", "with": settings, "output": {"mode": "text"}}
    [engine] = check(plan(steps=[step]))["lock"]["engines"]
    assert engine["name"] == "monty"
    project.write("harness", {"engine": "nobody"})
    [found] = check(plan(steps=[step]), exits=14)["findings"]
    assert (found["code"], found["path"]) == ("bind.unknown_engine", "/steps/0/with")


def test_a_plan_for_an_engine_that_runs_nothing_here_is_refused_with_the_reason(check: Check, project: Site) -> None:
    settings = {"language": "python", "source": "async def main(input, tools):\n    return 'x'\n"}
    step = {"id": "look", "uses": "code.run", "with": settings, "output": {"mode": "text"}}
    boxed = {**step, "with": {**settings, "engine": "sandbox"}}
    [found] = check(plan(steps=[boxed]), exits=14)["findings"]
    assert (found["code"], found["path"]) == ("bind.unknown_engine", "/steps/0/with/engine")
    assert "runs CPython inside a sandbox, of which this version has none" in found["message"]
    assert found["hint"] == "let monty, plain run it"
    project.write("harness", {"engine": "sandbox"})
    [found] = check(plan(steps=[step]), exits=14)["findings"]
    assert (found["code"], found["path"]) == ("bind.unknown_engine", "/steps/0/with")
    assert "The engine sandbox runs nothing here" in found["message"]


def test_a_stage_that_is_not_there_is_named_with_those_that_are(
    project: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.project / "plan.json").write_text(json.dumps(plan()))
    assert main(["workflows", "check", "plan.json", "--stage", "nope", "--json"]) == 4
    assert "stages: work, look" in json.loads(capsys.readouterr().out)["message"]


def test_a_sketch_is_made_into_a_plan_and_checked(check: Check) -> None:
    prompt = {"id": "say", "uses": "ai.generate", "prompt": "Say it.", "inputs": ["input.word"]}
    document = check({"steps": [prompt]}, "--sketch")
    made = document["plan"]
    assert made["steps"][0]["with"]["prompt"].startswith("Say it.")
    assert "{{ input.word }}" in made["steps"][0]["with"]["prompt"]
    assert document["workflow_version_id"] == f"wfv_{hashlib.sha256(rfc8785.dumps(made)).hexdigest()[:32]}"
    assert check({"steps": [{**prompt, "inputs": ["{{ steps.later.output }}"]}]}, "--sketch", exits=14)["findings"]


def test_what_is_no_file_is_wrong_usage(project: Site, capsys: pytest.CaptureFixture[str]) -> None:
    for named in ("nope.json", "."):
        assert main(["workflows", "check", named, "--json"]) == 2
        assert json.loads(capsys.readouterr().out)["code"] == "usage"


def test_without_who_checks_plans_the_distribution_is_named(project: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (project.project / "plan.json").write_text(json.dumps(plan()))
    words = ["--no-plugin", "executor-workflow", "workflows", "check", "plan.json", "--json"]
    assert main(words) == 3
    assert "harness-executor-workflow" in json.loads(capsys.readouterr().out)["message"]
