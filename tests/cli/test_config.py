"""``harness config``, ``trust`` and ``init`` as a person and a script meet them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness_core.cli.main import main
from harness_core.cli.published import published_schema
from harness_hookspecs.contracts.distribution import make_distribution

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    case["id"]: case
    for case in map(json.loads, (ROOT / "tests" / "cases" / "config.jsonl").read_text("utf-8").splitlines())
}


class Place:
    """A project and a person's home; commands run in the project."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.project, self.home = root / "project", root / "home"
        self.user = self.home / ".config" / "harness"
        self.project.mkdir(parents=True)
        self.user.mkdir(parents=True)
        self._capsys = capsys

    def write(self, name: str, text: str, *, folder: Path | None = None) -> None:
        where = folder or self.project / ".harness"
        where.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text, encoding="utf-8")

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command that people read; give what it prints for them."""
        assert main(list(words)) == code
        out, err = self._capsys.readouterr()
        return out if code == 0 else err

    def document(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Run a command with --json; give its one document, checked against its published schema."""
        assert main([*words, "--json"]) == code
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        jsonschema.validate(found, published_schema(found["schema"]))
        return found

    def printed(self) -> dict[str, Any]:
        """The one document that a command has printed."""
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return found

    def value(self, key: str) -> Any:
        [explained] = self.document("config", "explain", key)["keys"]
        return explained["value"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    found = Place(tmp_path.resolve(), capsys)
    for name in list(os.environ):
        if name.startswith(("HARNESS_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(found.home))
    monkeypatch.chdir(found.project)
    return found


# ------------------------------------------------------------------------------------------- where it is


@pytest.mark.req("B-23")
def test_the_person_s_files_count_and_xdg_moves_them(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("harness.yaml", "run: {max_depth: 1}\n", folder=place.user)
    assert place.value("run.max_depth") == 1
    place.write("harness.yaml", "run: {max_depth: 2}\n", folder=place.home / "elsewhere" / "harness")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.home / "elsewhere"))
    assert place.value("run.max_depth") == 2


@pytest.mark.req("B-24")
def test_the_project_s_files_count_from_any_folder_inside(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("harness.yaml", "run: {max_depth: 1}\n")
    inner = place.project / "src" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert place.value("run.max_depth") == 1
    monkeypatch.chdir(place.home)
    assert place.value("run.max_depth") == 3
    [explained] = place.document("config", "explain", "run.max_depth", "--project", str(place.project))["keys"]
    assert explained["value"] == 1


@pytest.mark.req("B-25")
def test_the_project_wins_over_the_person_and_the_person_over_the_defaults(place: Place) -> None:
    place.write("harness.yaml", "run:\n  max_depth: 2\n  max_turns: 7\n", folder=place.user)
    place.write("harness.yaml", "run:\n  max_depth: 1\n")
    lines = dict(line.split(" = ", 1) for line in place.run("config", "show", "--origin").splitlines())
    assert lines["run.max_depth"] == "1   (.harness/harness.yaml:2:14)"
    assert lines["run.max_turns"] == "7   (~/.config/harness/harness.yaml:3:14)"
    assert lines["run.max_visits"] == "50   (built-in)"
    found = place.document("config", "show", "--origin")
    assert found["settings"]["harness"]["run"]["max_depth"] == 1
    assert found["origins"]["run.max_depth"] == {"layer": "project", "where": ".harness/harness.yaml:2:14"}
    assert found["origins"]["run.max_visits"] == {"layer": "built-in", "where": "built-in"}


@pytest.mark.req("B-26")
def test_mappings_merge_lists_replace_and_null_unsets(place: Place) -> None:
    place.write(
        "harness.yaml",
        "project: theirs\nrun: {max_depth: 1, max_turns: 4}\nplugins: {require: [a, b]}\n",
        folder=place.user,
    )
    place.write("harness.yaml", "project: null\nrun: {max_turns: 3}\nplugins: {require: [c]}\n")
    run = place.document("config", "show")["settings"]["harness"]
    assert (run["run"]["max_depth"], run["run"]["max_turns"]) == (1, 3)
    assert run["plugins"]["require"] == ["c"]
    assert run["project"] is None


@pytest.mark.req("B-27")
def test_each_of_the_six_files_may_be_missing_and_each_counts(place: Place) -> None:
    bare = place.document("config", "show")
    assert set(bare["settings"]) == {"harness", "models", "tools", "stages", "policies", "compression"}
    assert list(bare["settings"]["stages"]["stages"]) == ["main"]
    place.write("models.yaml", "models: {m: {provider: p}}\n", folder=place.user)
    place.write("tools.yaml", "tools: {t: {enabled: false}}\n", folder=place.user)
    place.write("stages.yaml", "stages: {s: {role: r, on_success: end}}\n")
    place.write("policies.yaml", "tiers: {T1: deny}\n")
    place.write("compression.yaml", "reserve_tokens: 9\n")
    found = place.document("config", "show")["settings"]
    assert list(found["models"]["models"]) == ["m"]
    assert found["tools"]["tools"]["t"]["enabled"] is False
    assert list(found["stages"]["stages"]) == ["s"]
    assert found["policies"]["tiers"]["T1"] == "deny"
    assert found["compression"]["reserve_tokens"] == 9
    assert place.document("config", "check")["files"] == [
        "~/.config/harness/models.yaml",
        "~/.config/harness/tools.yaml",
        ".harness/stages.yaml",
        ".harness/policies.yaml",
        ".harness/compression.yaml",
    ]


# ------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.req("B-28")
@pytest.mark.inv("I-35")
def test_an_unknown_key_is_an_error_with_its_place_and_the_nearest_key(place: Place) -> None:
    place.write(
        "stages.yaml",
        "stages:\n  a:\n    role: x\n    aproval: required\n    on_success: end\napprovals_requierd: true\n",
    )
    error = place.document("config", "check", code=3)
    assert error["schema"] == "harness.error/1"
    assert [(one["where"], one["path"], one["hint"]) for one in error["facts"]["problems"]] == [
        (".harness/stages.yaml:4:5", "stages.a.aproval", 'did you mean "approvals"?'),
        (".harness/stages.yaml:6:1", "approvals_requierd", "known: initial, stages, workflows, roles"),
    ]
    shown = place.run("config", "check", code=3)
    assert '.harness/stages.yaml:4:5  stages.a.aproval  unknown key "aproval"; did you mean "approvals"?' in shown
    assert shown.startswith("harness: 2 problems")


@pytest.mark.inv("I-24", "I-35")
@pytest.mark.parametrize("mode", ["deny", "prompt", "auto"])
def test_a_policy_rule_about_what_nothing_here_applies_is_refused_and_never_passed_over(
    place: Place, mode: str
) -> None:
    place.write("policies.yaml", f"rules:\n  - tool: filesystem\n    command: 'rm *'\n    mode: {mode}\n")
    for words in (("config", "check"), ("run", "Go.")):
        error = place.document(*words, code=3)
        [problem] = error["facts"]["problems"]
        assert (problem["where"], problem["path"]) == (".harness/policies.yaml:3:5", "rules[0].command")
        assert (problem["message"], problem["hint"]) == ('unknown key "command"', "known: tool, tier, stage, mode")


@pytest.mark.inv("I-35")
def test_names_and_rules_that_would_stop_a_run_are_found_by_a_check_all_at_once(place: Place) -> None:
    place.write("policies.yaml", "approver: [polcy]\n")
    rules = "[{when: 'artifact.status = 1', goto: end}, {when: 'artefact.status == 1', goto: end}]"
    place.write("stages.yaml", f"stages:\n  a:\n    role: r\n    artifact: txt\n    allowed_tools: [filesystm]\n"
                               f"    transitions: {rules}\n")  # fmt: skip
    place.run("trust", str(place.project))
    problems = place.document("config", "check", code=3)["facts"]["problems"]
    files = {problem["where"].partition(":")[0] for problem in problems}
    assert files == {".harness/policies.yaml", ".harness/stages.yaml"}
    said = " ".join(problem["message"] for problem in problems)
    assert all(word in said for word in ("approver polcy", "artifact txt", "tool filesystm", "artefact"))
    assert len(problems) == 5
    place.write("policies.yaml", "approver: [policy]\n")
    place.write("stages.yaml", "stages: {a: {role: r, artifact: text, on_success: end}}\n")
    place.run("trust", str(place.project))
    place.document("config", "check")


@pytest.mark.inv("I-35")
@pytest.mark.parametrize("case", ["BR-074", "BR-075"])
def test_what_a_parser_would_let_pass_is_refused_with_its_place(place: Place, case: str) -> None:
    place.write("stages.yaml", CASES[case]["input"])
    error = place.document("config", "check", code=3)
    assert error["where"].startswith(".harness/stages.yaml:")
    assert error["code"] in {"config.duplicate_key", "config.yaml_bomb"}


@pytest.mark.inv("I-35")
def test_a_text_that_looks_like_something_else_stays_that_text(place: Place) -> None:
    place.write("stages.yaml", "stages: {s: {role: NO, artifact: 1.10, task: 12:30:45, on_success: end}}\n")
    stage = place.document("config", "show")["settings"]["stages"]["stages"]["s"]
    assert (stage["role"], stage["artifact"], stage["task"]) == ("NO", "1.10", "12:30:45")
    place.write("stages.yaml", "stages: {s: {role: [NO], on_success: end}}\n")
    assert place.document("config", "check", code=3)["hint"] == "put the text in quotes"


@pytest.mark.inv("I-35")
def test_what_holds_depends_on_bytes_and_declared_environment_alone(place: Place) -> None:
    place.write("stages.yaml", "stages: {s: {role: ä, on_success: end}}\n")
    inner = place.project / "inner"
    inner.mkdir()

    def digest(folder: Path, **env: str) -> str:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "hookspecs")])
        words = [sys.executable, "-m", "harness_core.cli.main", "config", "show", "--json"]
        whole = {"HOME": str(place.home), "PATH": os.environ["PATH"], "PYTHONPATH": paths, **env}
        found = subprocess.run(words, cwd=folder, env=whole, capture_output=True, timeout=60, check=True)
        return str(json.loads(found.stdout)["digest"])

    first = digest(place.project, LC_ALL="C.UTF-8")
    assert digest(inner, LC_ALL="C", PYTHONUTF8="0", RUN__MAX_DEPTH="9", TZ="Asia/Tokyo") == first
    assert digest(inner, HARNESS__RUN__MAX_DEPTH="9") != first


REMOTE = {
    "type": "object",
    "properties": {
        "base_url": {"type": "string", "pattern": "^https?://"},
        "retries": {"type": "integer", "maximum": 9},
    },
    "required": ["base_url"],
    "additionalProperties": False,
}


@pytest.fixture
def with_remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider called faraway is installed."""
    made = tmp_path / "site-packages"
    make_distribution(made, "acme-faraway", provides=[{"kind": "provider", "name": "faraway", "config": REMOTE}])
    monkeypatch.syspath_prepend(str(made))


@pytest.mark.req("B-36")
@pytest.mark.usefixtures("with_remote")
def test_a_key_that_means_nothing_to_the_provider_is_reported(place: Place) -> None:
    text = "models:\n  m:\n    provider: faraway\n    base_url: http://x\n    gpu: {layers: 3}\n    context_size: 9\n"
    place.write("models.yaml", text, folder=place.user)
    found = place.document("config", "check")
    assert [(one["code"], one["path"], one["where"]) for one in found["warnings"]] == [
        ("config.no_meaning", "models.m.gpu", "~/.config/harness/models.yaml:5:10")
    ]
    place.write("models.yaml", text.replace("    gpu: {layers: 3}\n", ""), folder=place.user)
    assert place.document("config", "check")["warnings"] == []


@pytest.mark.req("B-28")
@pytest.mark.usefixtures("with_remote")
def test_a_plugin_adds_the_schema_of_its_own_section(place: Place) -> None:
    text = "models:\n  m:\n    provider: faraway\n    base_url: ftp://x\n    retires: 3\n"
    place.write("models.yaml", text, folder=place.user)
    problems = place.document("config", "check", code=3)["facts"]["problems"]
    assert [(one["where"], one["path"], one["hint"]) for one in problems] == [
        ("~/.config/harness/models.yaml:4:15", "models.m.base_url", None),
        ("~/.config/harness/models.yaml:5:5", "models.m.retires", 'did you mean "retries"?'),
    ]
    place.write("models.yaml", text.replace("ftp", "http").replace("retires", "retries"), folder=place.user)
    model = place.document("config", "show")["settings"]["models"]["models"]["m"]
    assert (model["base_url"], model["retries"]) == ("http://x", 3)


def test_the_keys_of_a_provider_that_is_not_installed_are_kept_with_a_warning(place: Place) -> None:
    place.write("models.yaml", "models: {m: {provider: acme, depth: 3}}\n", folder=place.user)
    found = place.document("config", "check")
    assert [(one["path"], one["where"]) for one in found["warnings"]] == [
        ("models.m.depth", "~/.config/harness/models.yaml:1:30")
    ]


@pytest.mark.req("B-05")
@pytest.mark.parametrize(
    "limit", ["max_visits", "max_turns", "max_parallel_tools", "budget.tokens", "budget.seconds", "budget.calls"]
)
def test_a_limit_can_be_changed_and_never_taken_away(place: Place, limit: str) -> None:
    built_in = place.value(f"run.{limit}")
    key, _, inner = limit.partition(".")
    place.write("harness.yaml", f"run: {{{key}: {f'{{{inner}: null}}' if inner else 'null'}}}\n", folder=place.user)
    assert place.value(f"run.{limit}") == built_in > 0
    for value in ("0", "-1", ".inf", "99999999999"):
        place.write(
            "harness.yaml", f"run: {{{key}: {f'{{{inner}: {value}}}' if inner else value}}}\n", folder=place.user
        )
        assert place.document("config", "check", code=3)["facts"]["problems"][0]["path"] == f"run.{limit}"


@pytest.mark.req("B-50")
@pytest.mark.parametrize("name", ["retry", "failed", "completed", "cancelled", "end"])
def test_a_stage_cannot_have_the_name_of_a_target(place: Place, name: str) -> None:
    place.write("stages.yaml", f"stages:\n  {name}: {{role: x, on_success: end}}\n")
    error = place.document("config", "check", code=3)
    assert error["where"] == f".harness/stages.yaml:2:{len(name) + 5}"
    assert "reserved target" in error["message"]


@pytest.mark.req("B-131")
def test_a_rule_that_waits_for_more_failures_than_there_are_attempts_is_warned_about(place: Place) -> None:
    rules = "[{when: 'artifact.status == \"success\"', goto: end}, {when: 'retries OP 3', goto: failed}]"
    text = f"stages: {{s: {{role: x, retry: {{max_attempts: 3}}, transitions: {rules}}}}}\n"
    place.write("stages.yaml", text.replace("OP", ">"))
    [warning] = place.document("config", "check")["warnings"]
    assert (warning["code"], warning["path"]) == ("config.never_fires", "stages.s.transitions[1]")
    place.write("stages.yaml", text.replace("OP", ">="))
    assert place.document("config", "check")["warnings"] == []


# --------------------------------------------------------------------------------------- trust, init, rest


def test_trust_lists_what_it_trusts_and_config_says_what_is_not(place: Place) -> None:
    place.write("models.yaml", "models:\n  m: {provider: acme}\n")
    assert "project NOT trusted" in place.run("config", "check")
    leaf = {
        "path": "models.m.provider",
        "value": "acme",
        "where": ".harness/models.yaml:2:17",
        "reason": "only a trusted project may set it",
        "new": True,
    }
    assert place.document("config", "check")["untrusted"] == [leaf]
    assert "ignored: untrusted project" in place.run("config", "explain", "models.m.provider")
    dry = place.document("trust", "--dry-run")
    assert (dry["trusted"], dry["changed"], dry["leaves"]) == (False, False, [leaf])
    assert not place.document("config", "check")["trusted"]
    assert place.document("trust")["changed"]
    assert place.document("config", "check")["trusted"]
    assert place.value("models.m.provider") == "acme"
    assert place.run("trust", str(place.home)).strip().endswith("sets nothing that needs trust")
    assert place.document("trust", str(place.home / "nowhere"), code=4)["code"] == "project.not_found"


@pytest.mark.parametrize("trusted", [False, True])
def test_a_rule_that_can_never_compile_is_named_whether_the_project_is_trusted_or_not(
    place: Place, trusted: bool
) -> None:
    place.write("models.yaml", "models:\n  m: {provider: acme}\n")
    rules = "[{when: 'foo(1)', goto: end}]"
    place.write("stages.yaml", f"stages:\n  s: {{role: x, transitions: {rules}}}\n")
    if trusted:
        place.run("trust")
    error = place.document("config", "check", code=3)
    assert error["code"] == "config.rule"
    assert error["where"].startswith(".harness/stages.yaml:2:")
    assert main(["doctor", "--json"]) == 3
    wrong = [one for one in place.printed()["checks"] if one["facts"].get("code") == "config.rule"]
    assert [one["state"] for one in wrong] == ["problem"]


def test_init_writes_a_project_that_is_valid_and_trusted(place: Place) -> None:
    first = place.document("init")
    assert [name for name in first["files"] if "schemas" not in name] == [
        ".harness/harness.yaml",
        ".harness/models.yaml",
        ".harness/tools.yaml",
        ".harness/stages.yaml",
        ".harness/policies.yaml",
        ".harness/compression.yaml",
        ".harness/demo-replies.yaml",
    ]
    check = place.document("config", "check")
    assert (check["ok"], check["trusted"]) == (True, True)
    settings = place.document("config", "show")["settings"]
    assert settings["policies"]["tiers"] == {"T0": "auto", "T1": "auto", "T2": "prompt", "T3": "prompt", "T4": "deny"}
    assert settings["models"]["default"] == first["default_model"]
    assert first["default_model"] in settings["models"]["models"]
    for name in ("harness", "models", "tools", "stages", "policies", "compression"):
        head = (place.project / ".harness" / f"{name}.yaml").read_text().splitlines()[0]
        modeline = head.removeprefix("# yaml-language-server: $schema=")
        assert json.loads((place.project / ".harness" / modeline).read_text()) == published_schema(name)


def test_what_init_shows_of_a_workflow_is_one_when_its_comment_signs_are_taken_away(place: Place) -> None:
    place.document("init")
    file = place.project / ".harness" / "stages.yaml"
    before, begins, shown = file.read_text().partition("# workflows:")
    assert begins
    file.write_text(before + "workflows:" + shown.replace("\n# ", "\n"))
    place.document("trust")
    assert [one["name"] for one in place.document("workflows")["workflows"]] == ["greet"]


@pytest.mark.parametrize("words", [["sessions"], ["config", "check"], ["workflows"], ["plugins", "list"], ["run", "x"]])
def test_who_stands_in_a_folder_that_was_removed_is_told_so(
    place: Place, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = place.document(*words, code=4)
    assert said["code"] == "project.not_found" and "not there any more" in said["message"]


def test_init_is_idempotent_and_writes_only_what_is_missing(place: Place) -> None:
    place.document("init")
    assert place.document("init")["files"] == []
    place.write("tools.yaml", "tools: {}\n")
    (place.project / ".harness" / "stages.yaml").unlink()
    found = place.document("init")
    assert (found["files"], found["kept"]) == ([".harness/stages.yaml"], [".harness/tools.yaml"])
    assert (place.project / ".harness" / "tools.yaml").read_text() == "tools: {}\n"
    assert ".harness/tools.yaml is different and stays as it is" in place.run("init")


def test_init_by_force_keeps_what_it_replaces_and_what_it_kept_earlier(place: Place) -> None:
    place.document("init")
    file = place.project / ".harness" / "tools.yaml"
    for text, aside in (("# mine\n", "tools.yaml.orig"), ("# again\n", "tools.yaml.orig2")):
        file.write_text(text)
        file.chmod(0o600)
        found = place.document("init", "--force")
        assert found["files"] == [".harness/tools.yaml"]
        assert found["replaced"] == [{"file": ".harness/tools.yaml", "original": f".harness/{aside}"}]
        assert file.with_name(aside).read_text() == text
        assert file.with_name(aside).stat().st_mode & 0o777 == 0o600
    assert file.with_name("tools.yaml.orig").read_text() == "# mine\n"
    assert "filesystem" in file.read_text()


def test_a_dry_init_says_what_it_would_do_and_does_nothing(place: Place) -> None:
    dry = place.document("init", "--dry-run")
    assert (dry["dry_run"], dry["trusted"], len(dry["files"])) == (True, None, 13)
    assert not (place.project / ".harness").exists()
    assert place.document("init")["files"] == dry["files"]
    place.write("tools.yaml", "# mine\n")
    dry = place.document("init", "--force", "--dry-run")
    assert dry["replaced"] == [{"file": ".harness/tools.yaml", "original": ".harness/tools.yaml.orig"}]
    assert (place.project / ".harness" / "tools.yaml").read_text() == "# mine\n"
    assert not (place.project / ".harness" / "tools.yaml.orig").exists()
    assert "would be written" in place.run("init", "--force", "--dry-run")


def test_init_trusts_what_it_wrote_and_never_what_it_found(place: Place) -> None:
    place.write("models.yaml", "default: m\nmodels:\n  m: {provider: acme}\n")
    found = place.document("init")
    assert (found["trusted"], found["kept"]) == (False, [".harness/models.yaml"])
    said = place.run("init")
    assert "those of the models.yaml that stays" in said and "demo" not in said, "what is not in it is no model of it"
    assert not place.document("config", "check")["trusted"]
    assert "written, but not trusted" not in place.run("init")
    place.document("trust")
    (place.project / ".harness" / "policies.yaml").unlink()
    assert place.document("init")["trusted"]
    assert place.document("config", "check")["trusted"]
    place.write("models.yaml", "models: [\n")
    (place.project / ".harness" / "stages.yaml").unlink()
    found = place.document("init")
    assert (found["files"], found["trusted"]) == ([".harness/stages.yaml"], False)


def test_what_init_says_to_type_next_has_something_to_do(place: Place) -> None:
    assert place.document("init", "--dry-run")["next"] == "harness init"
    place.document("init")
    assert place.document("init", "--dry-run")["next"] == "harness config check"
    assert place.document("init", "--force", "--dry-run")["next"] == "harness config check"
    place.write("policies.yaml", "approver: [terminal]\n")
    assert place.document("init")["next"] == "harness trust --dry-run"
    assert place.document("init", "--force", "--dry-run")["next"] == "harness init --force"
    place.write("policies.yaml", "approver: [\n")
    assert place.document("init")["next"] == "harness config check"
    assert "Next     harness config check" in place.run("init")


def test_init_inside_a_project_says_that_there_is_one_around_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.document("init")["inside"] is None
    inner = place.project / "src"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert place.document("init", "--dry-run")["inside"] == str(place.project)
    assert f"Inside   the project {place.project}:" in place.run("init")
    assert place.document("init")["inside"] is None  # there it is no news


def test_what_init_says_to_type_next_names_no_model_that_is_the_default_anyway(place: Place) -> None:
    assert place.document("init")["next"] == 'harness run "what is in this folder?"'


def test_a_project_that_was_trusted_and_changed_says_what_is_new_and_where(place: Place) -> None:
    place.document("init")
    place.write("policies.yaml", "approver: [policy, terminal]\nallow_tier_lowering: false\n")
    place.document("trust")
    place.write("policies.yaml", "approver: [terminal]\n")
    error = place.document("run", "hi", code=3)
    assert error["where"] == ".harness/policies.yaml:1:11"
    assert error["message"] == (
        f"{place.project} was trusted and has changed since: its files now set approver: "
        "only a trusted project may set it"
    )
    assert [leaf["path"] for leaf in error["facts"]["leaves"] if leaf["new"]] == ["approver"]
    dry = place.run("trust", "--dry-run").splitlines()
    assert dry[0] == f"{place.project} was trusted and has changed since; its files set (+ is new)"
    assert [line for line in dry if line.startswith("+")] == ['+ .harness/policies.yaml:1:11  approver = ["terminal"]']
    assert "+ .harness/policies.yaml:1:11  approver:" in place.run("config", "check")
    assert "was trusted and has changed since; it sets: approver\n" in place.run("doctor")
    place.write("policies.yaml", "")
    error = place.document("run", "hi", code=3)
    assert error["facts"]["gone"] == ["approver"]
    assert error["message"].endswith("has changed since: its files no longer set approver")
    assert place.document("trust", "--dry-run")["gone"] == ["approver"]
    assert "- approver is no longer set" in place.run("trust", "--dry-run")


def test_a_value_that_would_command_the_terminal_is_shown_and_not_obeyed(place: Place) -> None:
    place.write("stages.yaml", 'stages: {s: {role: "\\e[2J\\u202ex", on_success: end}}\n')
    for words in (["config", "show"], ["config", "explain", "stages.s.role"]):
        shown = place.run(*words)
        assert "\x1b" not in shown
        assert "\u202e" not in shown


WIRE_TYPES = """
    WorkflowDefinitionSnapshot OuterLoopContext ResolvedModel ToolReference MemoryMount ScratchMount SkillDescriptor
    HarnessRuntimeMount WorkflowBashCapabilities ArtifactRef Message ChatInput OracleResponse ToolCallRequest
    ErrorEnvelope PlannerManifest OrchestratorManifest WorkerManifest FixerManifest
""".split()


@pytest.mark.req("A-103")
def test_schemas_of_files_documents_and_wire_types_are_listed_and_printed(place: Place) -> None:
    names = [item["name"] for item in place.document("config", "schema")["items"]]
    assert {"harness", "stages", "harness.config/1", "harness.error/1", *WIRE_TYPES} <= set(names)
    assert place.run("config", "schema").splitlines() == names
    for name in names:
        found = json.loads(place.run("config", "schema", name))
        jsonschema.Draft202012Validator.check_schema(found)
        assert found == place.document("config", "schema", name)["json_schema"]
    assert place.document("config", "schema", "stage", code=4)["hint"] == (
        'did you mean "stages"? harness config schema lists the names'
    )
    assert place.document("config", "schema", "nope", code=4)["hint"] == "harness config schema lists the names"


def test_a_key_that_is_none_is_not_found(place: Place) -> None:
    assert place.document("config", "explain", "run.max_dept", code=4)["hint"] == 'did you mean "max_depth"?'
    assert place.document("config", "explain", "run..", code=3)["code"] == "config.path"
    assert place.document("config", "show", "--project", "nowhere", code=4)["code"] == "project.not_found"


def test_trusting_does_not_warn_that_nothing_is_trusted(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.write("models.yaml", "models:\n  m: {provider: acme}\n")
    for words in (["run", "hi", "--model", "m"], ["trust", "--dry-run"], ["trust"]):
        assert main(words) == (3 if words[0] == "run" else 0)
        assert "warning" not in capsys.readouterr().err


def test_outside_a_project_a_run_says_so(place: Place) -> None:
    error = place.document("run", "hi", code=3)
    assert error["message"] == f"there is no project here (no .harness from {place.project} upwards)"
    assert error["hint"].startswith("harness init")


def test_a_folder_that_cannot_be_made_is_an_error_with_its_place(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = place.home / "taken"
    taken.write_text("")
    assert place.document("demo", str(taken / "x"), code=3)["code"] == "folder.unusable"
    monkeypatch.setenv("XDG_CACHE_HOME", str(taken))
    error = place.document("demo", code=3)
    assert (error["code"], error["where"]) == ("folder.unusable", str(taken / "harness" / "demo"))
    assert "harness doctor" in error["hint"]
    monkeypatch.setenv("XDG_STATE_HOME", str(taken))
    assert place.document("init", code=3)["where"] == str(taken / "harness")
    (place.project / "inner").mkdir()
    (place.project / "inner" / ".harness").write_text("")
    error = place.document("init", "--project", "inner", code=3)
    assert (error["code"], error["where"]) == ("folder.unusable", str(place.project / "inner" / ".harness"))


def test_a_data_folder_that_is_a_file_is_answered_with_what_to_do(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.document("init")
    (place.home / "data").mkdir()
    (place.home / "data" / "harness").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(place.home / "data"))
    error = place.document("sessions", code=6)
    assert "harness doctor" in error["hint"] and "XDG_DATA_HOME" in error["hint"]


def test_a_check_outside_a_project_says_so_and_checks_the_person_s_own_files(place: Place) -> None:
    said = f"there is no project here (no .harness from {place.project} upwards)"
    error = place.document("config", "check", code=4)
    assert (error["code"], error["message"], error["hint"]) == (
        "project.not_found", said, "harness init makes one here"
    )  # fmt: skip
    place.write("harness.yaml", "run: {max_depth: 1}\n", folder=place.user)
    assert place.run("config", "check").splitlines() == [
        f"1 config file valid; {said}", "  harness init makes one here"
    ]  # fmt: skip
    assert place.document("config", "check")["project"] is None
    place.write("harness.yaml", "run: {max_dept: 1}\n", folder=place.user)
    assert place.document("config", "check", code=3)["code"] == "config.unknown_key"
    place.write("harness.yaml", "", folder=place.user)
    place.write("harness.yaml", "")
    assert place.run("config", "check").endswith("valid, project trusted\n")
    assert place.document("config", "check")["project"] == str(place.project)
