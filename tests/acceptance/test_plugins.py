"""Plugins from outside: whatever is installed, help, doctor, list and disable work, and the culprit is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from harness_core import Host
from harness_core.cli.main import main
from harness_core.shell.plugins.checking import check_rows, folder_row, try_rows
from harness_core.shell.ports import make_ports
from harness_hookspecs.contracts.distribution import make_distribution, offers_code
from harness_hookspecs.host import Processes
from tests.reference import cases, one_stage, says, write_site

CASES = Path(__file__).parents[1] / "cases"
PLUGINS = Path(__file__).parents[2] / "plugins"
PROCESSES: Processes = make_ports("threads").processes
TOOL = ({"kind": "tool", "name": "acme"},)
PROVIDER = ({"kind": "provider", "name": "acme"},)
GOOD = offers_code(TOOL)


class Ran(NamedTuple):
    """How a command went; ``document`` is what stood on standard output."""

    exit_code: int
    document: dict[str, Any]
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, and a person's own empty folders."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.delenv("HARNESS_DISABLE_PLUGINS", raising=False)
    folder = tmp_path / "site"
    folder.mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def command(site: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a command with ``--json``; its standard output must be one document, whatever happens."""

    def run(*words: str) -> Ran:
        capfd.readouterr()
        code = main([*words, "--json"])
        out, err = capfd.readouterr()
        return Ran(code, json.loads(out), err)

    return run


def configure(site: Path, **files: str) -> None:
    """Write the person's own configuration."""
    folder = site.parent / "config" / "harness"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def listed(command: Command, *words: str) -> dict[str, dict[str, Any]]:
    ran = command(*words, "plugins", "list")
    assert ran.exit_code == 0, ran.err
    return {item["id"]: item for item in ran.document["items"]}


# ------------------------------------------------------------------------------------- bad at their import

BAD_IMPORTS = {
    "raises ImportError": "import nothing_there",
    "raises SyntaxError": "def (",
    "raises SystemExit": "raise SystemExit(3)",
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
    "calls os._exit": "import os\nos._exit(0)",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "prints": f"print('hello')\n{GOOD}",
    "has a wrong signature": GOOD.replace("_tools():", "_tools(config):"),
    "misspells a hook": GOOD.replace("hooks.harness_provide_tools", "hooks.harness_provide_roles").replace(
        "@implements(hooks.harness_provide_roles)\ndef harness_provide_tools",
        "from harness_hookspecs.markers import hookimpl\n@hookimpl\ndef harness_provide_tolls",
    ),
    "offers another kind": GOOD.replace("kind='tool'", "kind='role'"),
}


@pytest.mark.inv("I-37")
@pytest.mark.parametrize("code", BAD_IMPORTS.values(), ids=BAD_IMPORTS)
def test_a_plugin_that_breaks_at_import_stops_nobody_and_is_named(site: Path, command: Command, code: str) -> None:
    assert "help, doctor, list and disable work" in cases("runtime")["BR-111"]["right"].lower()
    make_distribution(site, "acme-bad", plugin_id="bad", provides=TOOL, code=code)
    assert main(["--help"]) == main(["plugins", "--help"]) == 0
    command("config", "check")
    assert listed(command)["bad"]["status"] == "ok"  # nobody has run it yet
    told = [check for check in command("doctor").document["checks"] if check["facts"].get("plugin") == "bad"]
    assert [(check["state"], check["facts"]["distribution"]) for check in told] == [("warning", "acme-bad")]
    assert "harness plugins disable bad" in told[0]["fix"]
    ran = command("plugins", "list", "--status", "broken")
    assert (ran.exit_code, [item["distribution"] for item in ran.document["items"]]) == (0, ["acme-bad"])
    [line] = ran.err.splitlines()
    assert "acme-bad 1.0" in line
    assert "harness plugins disable bad" in line
    assert command("plugins", "disable", "bad").exit_code == 0
    assert listed(command)["bad"]["status"] == "disabled"


@pytest.mark.inv("I-37")
def test_an_import_that_never_ends_does_not_stop_what_needs_no_plugin(site: Path, command: Command) -> None:
    make_distribution(site, "acme-bad", code="while True:\n    pass")
    assert main(["--help"]) == 0
    assert "acme-bad" in listed(command)
    assert command("plugins", "why", "tool:acme").exit_code == 0
    assert command("plugins", "disable", "acme-bad").exit_code == 0
    assert command("doctor").document["schema"] == "harness.doctor/1"


# ---------------------------------------------------------------------------------- bad before their import

BAD_METADATA: dict[str, tuple[dict[str, Any], str, str]] = {
    "no manifest": ({"manifest": ""}, "broken", "there is no manifest"),
    "a manifest that is no TOML": ({"manifest": "manifest = "}, "broken", "not readable TOML"),
    "an unknown kind": ({"provides": [{"kind": "tol", "name": "a"}], "code": ""}, "broken", "is not a kind"),
    "another id": ({"manifest_id": "else"}, "broken", "the manifest's id is else"),
    "another contract": ({"spec": ">=9"}, "skipped", "made for contract >=9"),
}


@pytest.mark.inv("I-37")
@pytest.mark.parametrize(("words", "status", "reason"), BAD_METADATA.values(), ids=BAD_METADATA)
def test_a_plugin_that_is_badly_described_is_listed_with_the_reason(
    site: Path, command: Command, words: dict[str, Any], status: str, reason: str
) -> None:
    make_distribution(site, "acme-bad", **words)
    make_distribution(site, "acme-good")
    found = listed(command)
    assert found["acme-bad"]["status"] == status
    assert reason in found["acme-bad"]["reason"]
    assert found["acme-good"]["status"] == "ok"
    assert main(["--help"]) == 0
    [told] = [one for one in command("doctor").document["checks"] if one["facts"].get("plugin") == "acme-bad"]
    assert told["state"] == "warning"


@pytest.mark.inv("I-37")
def test_names_that_collide_are_refused_until_a_line_settles_them(site: Path, command: Command) -> None:
    for name in ("acme-one", "acme-two"):
        make_distribution(site, name, provides=PROVIDER)
    configure(site, models="models:\n  m: {provider: acme}\n")
    found = listed(command)
    assert [found[name]["status"] for name in ("acme-one", "acme-two")] == ["doubled", "doubled"]
    assert found["acme-one"]["reason"] == "provider:acme is offered by acme-one and acme-two"
    ran = command("models", "probe", "m")
    assert (ran.exit_code, ran.document["code"]) == (3, "plugin.doubled")
    assert "acme-one and acme-two" in ran.document["message"]
    configure(site, models="models:\n  m: {provider: 'acme-two:acme'}\n")
    assert [listed(command)[name]["status"] for name in ("acme-one", "acme-two")] == ["ok", "ok"]
    why = command("plugins", "why", "provider:acme").document["items"]
    assert [(one["plugin"], one["answers"]) for one in why] == [("acme-two", True), ("acme-one", False)]


@pytest.mark.inv("I-37")
def test_one_id_in_two_distributions_is_refused_and_both_are_named(site: Path, command: Command) -> None:
    for name in ("acme-one", "acme-two"):
        make_distribution(site, name, plugin_id="acme", module=name.replace("-", "_"))
    ran = command("plugins", "list")
    items = [item for item in ran.document["items"] if item["id"] == "acme"]
    assert [item["status"] for item in items] == ["broken", "broken"]
    assert "acme-one and acme-two" in items[0]["reason"]
    assert command("plugins", "disable", "acme-two").exit_code == 0
    statuses = {item["distribution"]: item["status"] for item in command("plugins", "list").document["items"]}
    assert (statuses["acme-one"], statuses["acme-two"]) == ("ok", "disabled")


# ------------------------------------------------------------------------------------- what it depends on


@pytest.mark.inv("I-37")
def test_a_broken_plugin_that_is_needed_ends_with_exit_3(site: Path, command: Command) -> None:
    make_distribution(site, "acme-bad", provides=PROVIDER, code="raise ValueError('no')")
    configure(site, models="models:\n  m: {provider: acme}\n")
    assert command("plugins", "list").exit_code == 0
    ran = command("models", "probe", "m")
    assert (ran.exit_code, ran.document["code"]) == (3, "plugin.bound_broken")
    assert "acme-bad 1.0" in ran.document["message"]
    assert "ValueError: no" in ran.document["message"]


def test_being_installed_changes_nothing(site: Path, command: Command) -> None:
    before = command("config", "show").document
    workflow = [{"kind": "role", "name": "workflow", "roles": ["planner"], "default": True}]
    make_distribution(site, "harness-role-workflow", plugin_id="role-workflow", provides=workflow)
    answers = command("plugins", "why", "planner").document["items"]
    pushy = [
        {"kind": "role", "name": "pushy", "roles": ["planner"], "default": True},
        {"kind": "tool", "name": "pushy", "default": True, "config": {"type": "object", "properties": {}}},
    ]
    make_distribution(site, "acme-pushy", provides=pushy, code=GOOD)
    assert command("config", "show").document == before
    assert command("plugins", "why", "planner").document["items"][0] == answers[0]


@pytest.mark.req("B-45")
def test_a_strangers_provider_appears_in_the_list(site: Path, command: Command) -> None:
    make_distribution(site, "acme-provider", provides=PROVIDER)
    item = listed(command, "--no-plugin", "acme_provider")["acme-provider"]
    assert (item["provides"][0]["kind"], item["status"], item["reason"]) == (
        "provider", "disabled", "disabled by --no-plugin"
    )  # fmt: skip
    ran = command("plugins", "list", "--kind", "provider")
    assert "acme-provider" in [one["id"] for one in ran.document["items"]]
    assert all(any(offer["kind"] == "provider" for offer in one["provides"]) for one in ran.document["items"])


@pytest.mark.parametrize("way", ["flag", "variable", "all", "file"])
def test_a_plugin_is_left_out_in_every_way(
    site: Path, command: Command, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    make_distribution(site)
    words = {"flag": ["--no-plugin=Acme.Tool"], "all": ["--no-plugins"]}.get(way, [])
    if way == "variable":
        monkeypatch.setenv("HARNESS_DISABLE_PLUGINS", "acme_tool")
    if way == "file":
        configure(site, harness="plugins: {disable: [ACME-tool]}\n")
    assert listed(command, *words)["acme-tool"]["status"] == "disabled"


@pytest.mark.parametrize("way", ["flag", "variable", "file"])
def test_a_name_that_nobody_has_is_an_error_with_its_place(
    site: Path, command: Command, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    make_distribution(site)
    if way == "variable":
        monkeypatch.setenv("HARNESS_DISABLE_PLUGINS", "acme-tol")
    if way == "file":
        configure(site, harness="plugins:\n  disable: [acme-tol]\n")
    ran = command(*(["--no-plugin", "acme-tol"] if way == "flag" else []), "plugins", "list")
    assert (ran.exit_code, ran.document["code"]) == (3, "plugin.unknown")
    assert ran.document["hint"] == "did you mean acme-tool?"
    where = {"flag": "--no-plugin", "variable": "HARNESS_DISABLE_PLUGINS", "file": "harness.yaml:2:"}[way]
    assert where in ran.document["where"]
    assert command("doctor").document["schema"] == "harness.doctor/1"


def test_mode_explicit_takes_only_who_is_allowed_and_declares(site: Path, command: Command) -> None:
    make_distribution(site, "acme-a")
    make_distribution(site, "acme-b", provides=[{"kind": "tool", "name": "b"}], capabilities=None)
    make_distribution(site, "acme-c", provides=[{"kind": "tool", "name": "c"}])
    configure(site, harness="plugins: {mode: explicit, allow: [acme-a, acme_b]}\n")
    found = listed(command)
    assert [found[f"acme-{one}"]["status"] for one in "abc"] == ["ok", "skipped", "disabled"]
    assert found["acme-b"]["capabilities"] == "undeclared"


def test_what_is_switched_off_can_be_switched_on_again(site: Path, command: Command) -> None:
    make_distribution(site)
    work = site.parent / "work" / ".harness"
    work.mkdir()
    (work / "harness.yaml").write_text("# mine\nproject: x\n", encoding="utf-8")
    ran = command("plugins", "disable", "acme_tool")
    assert (ran.document["changed"], ran.document["disable"]) == (True, ["acme-tool"])
    assert (work / "harness.yaml").read_text() == "# mine\nproject: x\nplugins:\n  disable: [acme-tool]\n"
    assert command("plugins", "disable", "acme-tool").document["changed"] is False
    assert command("plugins", "enable", "ACME.tool").document["disable"] == []
    assert listed(command)["acme-tool"]["status"] == "ok"
    assert command("plugins", "disable", "nobody").exit_code == 4
    assert command("plugins", "enable", "nobody").exit_code == 4


# ---------------------------------------------------------------------------------- list, check and cost


def test_the_document_of_a_list_is_the_golden_one(site: Path, command: Command) -> None:
    touches = {"network": ["api.acme.example"], "filesystem": ["read:${models_dir}"], "threads": True}
    role = {"kind": "role", "name": "acme.reviewer", "roles": ["planner"], "config": {"type": "object"}}
    make_distribution(site, "acme-good", version="1.2", provides=[*TOOL, role], capabilities=touches)
    make_distribution(site, "acme-bad", manifest="", direct_url={"url": "file:///src/acme", "dir_info": {}})
    make_distribution(site, "acme-old", spec="<0.1", provides=PROVIDER, capabilities=None)
    document = command("plugins", "list").document
    ours = [item for item in document["items"] if item["id"].startswith("acme-")]
    golden = json.loads((CASES / "plugins_list.json").read_text(encoding="utf-8"))
    assert {**document, "items": ours} == golden
    Draft202012Validator(command("config", "schema", "harness.plugins/1").document["json_schema"]).validate(document)
    assert document["items"] == sorted(document["items"], key=lambda item: item["id"])


def test_info_shows_what_a_plugin_touches_and_why_it_goes_with_another_or_not(
    site: Path, command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    lists = {"network": ["api.acme.example", "b.example"], "subprocess": ["git"], "environment": ["ACME"]}
    conflicts = {"acme-bad": "both hold the door"}
    make_distribution(site, "acme-good", capabilities={**lists, "gpu": True}, conflicts=conflicts)
    make_distribution(site, "acme-pure", provides=PROVIDER)
    assert main(["plugins", "info", "acme-good"]) == 0
    words = [" ".join(line.split()) for line in capfd.readouterr().out.splitlines()]
    assert [line.partition(" ")[2] for line in words if line.startswith("capabilities")] == [
        "network: api.acme.example, b.example", "subprocess: git", "environment: ACME", "gpu",
    ]  # fmt: skip
    assert "conflicts acme-bad: both hold the door" in words
    assert main(["plugins", "info", "acme-pure"]) == 0
    assert "capabilities none" in " ".join(capfd.readouterr().out.split())


def test_check_finds_what_is_wrong_by_code_and_ends_with_exit_3(site: Path, command: Command) -> None:
    make_distribution(site, "acme-bad", code="import nothing_there", capabilities=None)
    schema = {"type": "object", "properties": {"url": {"type": "text"}}}
    make_distribution(site, "acme-odd", plugin_id="odd", provides=[{"kind": "tool", "name": "o", "config": schema}])
    make_distribution(site, "acme-good", provides=[{"kind": "tool", "name": "good"}])
    gone = {"type": "object", "properties": {"url": {"$ref": "https://example.org/s.json"}}}
    make_distribution(site, "acme-far", plugin_id="acme-far", provides=[{"kind": "tool", "name": "f", "config": gone}])
    ran = command("plugins", "check", "acme-bad")
    assert (ran.exit_code, [one["code"] for one in ran.document["items"]]) == (3, ["HP014"])
    assert [one["code"] for one in command("plugins", "check", "odd").document["items"]] == ["HP009", "HP013"]
    [far] = command("plugins", "check", "acme-far").document["items"]
    assert (far["code"], "https://example.org/s.json" in far["message"]) == ("HP009", True)
    codes = [one["code"] for one in command("plugins", "check", "acme-bad", "--import").document["items"]]
    assert codes == ["HP014", "HP030"]
    assert listed(command)["acme-bad"]["status"] == "broken"  # what was learnt is kept
    assert command("plugins", "check", "acme-good", "--import").exit_code == 0
    absent = command("plugins", "check", "./acme-good")
    assert (absent.exit_code, absent.document["message"]) == (4, "there is no folder ./acme-good")
    assert command("plugins", "check", "nobody").exit_code == 4


def test_a_folder_that_is_not_installed_can_be_checked(tmp_path: Path, command: Command) -> None:
    made = make_distribution(tmp_path / "src" / "acme-tool")
    (made.package.parent / "pyproject.toml").write_text('[project]\nname = "acme-tool"\n', encoding="utf-8")
    for folder in (made.package, made.package.parent):
        ran = command("plugins", "check", str(folder), "--import")
        assert (ran.exit_code, ran.document["items"]) == (0, []), folder
    (made.package / "__init__.py").write_text("def harness_provide_tools(): return []", encoding="utf-8")
    ran = command("plugins", "check", str(made.package.parent), "--import")
    assert (ran.exit_code, [one["code"] for one in ran.document["items"]]) == (3, ["HP040"])


def test_a_single_file_that_is_not_installed_can_be_checked(tmp_path: Path, command: Command) -> None:
    folder = tmp_path / "src" / "acme-tool"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project]\nname = "acme-tool"\n', encoding="utf-8")
    (folder / "a_test.py").write_text("import nothing_there\n", encoding="utf-8")
    head = {"manifest": 1, "id": "acme-tool", "summary": "S.", "spec": ">=0.1"}
    table = {**head, "provides": list(TOOL), "capabilities": {}}
    (folder / "acme_tool.py").write_text(f"HARNESS = {table!r}\n{GOOD}", encoding="utf-8")
    ran = command("plugins", "check", str(folder), "--import")
    assert (ran.exit_code, ran.document["items"]) == (0, [])
    wrong = {**table, "summary": 5, "spec": "none"}
    (folder / "acme_tool.py").write_text(f"HARNESS = {wrong!r}\nprint('hello')\n{GOOD}", encoding="utf-8")
    ran = command("plugins", "check", str(folder), "--import")
    assert (ran.exit_code, [one["code"] for one in ran.document["items"]]) == (3, ["HP005", "HP010"])
    (folder / "acme_tool.py").unlink()
    ran = command("plugins", "check", str(folder))
    assert (ran.exit_code, ran.document["code"]) == (3, "HP001")


def test_a_folder_without_a_plugin_says_so_whatever_lies_below_it(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "src" / "acme-tool"
    for name in ("locked", "tests"):
        (folder / name).mkdir(parents=True)
    (folder / "tests" / "t.py").write_text("HARNESS = None\nHARNESS: int = 5\nHARNESS == {}\n", encoding="utf-8")
    for look in (os.listdir, os.scandir):
        monkeypatch.setattr(os, look.__name__, refusing(look, str(folder / "locked")))
    ran = command("plugins", "check", str(folder))
    assert (ran.exit_code, ran.document["code"]) == (3, "HP001")
    assert "there is no harness-plugin.toml" in ran.document["message"]


def refusing(look: Callable[..., Any], locked: str) -> Callable[..., Any]:
    """The same look into folders, of which one refuses it; rights hold nobody up who runs tests as root."""

    def refused(path: Any = ".") -> Any:
        if str(path) == locked:
            raise PermissionError(13, "no", locked)
        return look(path)

    return refused


BAD_TOOLS = {
    "ToolSpec(name='acme_add', description='It.', input_schema={}, tier='T9')": "the tool acme_add with the tier 'T9'",
    "ToolSpec(name='acme-add', description='It.', input_schema={}, tier='T1')": "a tool called 'acme-add'",
    "5": "int where a ToolSpec belongs",
    "1 / 0": "cannot say what its tools are: ZeroDivisionError",
}


@pytest.mark.parametrize(("tool", "said"), BAD_TOOLS.items())
def test_check_finds_tools_that_break_the_contract(site: Path, command: Command, tool: str, said: str) -> None:
    code = GOOD.replace("return ()", f"from harness_hookspecs.tool import ToolSpec; return [{tool}]")
    make_distribution(site, "acme-odd", provides=TOOL, code=code)
    ran = command("plugins", "check", "acme-odd", "--import")
    assert (ran.exit_code, [one["code"] for one in ran.document["items"]]) == (3, ["HP048"])
    assert said in ran.document["items"][0]["message"]
    assert listed(command)["acme-odd"]["status"] == "ok"  # the run refuses what it is used for


LACKS = "from harness_hookspecs.errors import HarnessError; raise HarnessError('no server')"
NEEDS = "from pydantic import TypeAdapter; return TypeAdapter(int).validate_python('no url')"


@pytest.mark.parametrize("does", ["raise OSError('not here')", LACKS, NEEDS])
def test_a_tool_set_that_lacks_something_here_is_no_finding(site: Path, command: Command, does: str) -> None:
    code = GOOD.replace("    return Thing(settings)", f"    {does}")
    make_distribution(site, "acme-far", provides=TOOL, code=code)
    assert command("plugins", "check", "acme-far", "--import").exit_code == 0


@pytest.mark.parametrize(("does", "said"), [("len(5)", "TypeError"), ("raise SystemExit(3)", "SystemExit: 3")])
def test_a_tool_set_whose_building_breaks_is_a_finding(site: Path, command: Command, does: str, said: str) -> None:
    code = GOOD.replace("    return Thing(settings)", f"    {does}")
    make_distribution(site, "acme-odd", provides=TOOL, code=code)
    ran = command("plugins", "check", "acme-odd", "--import")
    assert (ran.exit_code, [one["code"] for one in ran.document["items"]]) == (3, ["HP048"])
    assert f"tool set acme cannot be built: {said}" in ran.document["items"][0]["message"]


BAD_WORKFLOWS = {
    "return 5": "workflow acme is no WorkflowDefinition",
    "from harness_hookspecs import define_workflow; return define_workflow(planner={'max_repairs': 99})":
        "workflow acme is none: /planner/max_repairs: This is not a definition of a workflow",
    "1 / 0": "workflow acme cannot be built: ZeroDivisionError",
}  # fmt: skip


@pytest.mark.parametrize(("does", "said"), BAD_WORKFLOWS.items())
def test_check_finds_workflows_that_are_none(site: Path, command: Command, does: str, said: str) -> None:
    provides = [{"kind": "workflow", "name": "acme"}]
    code = offers_code(provides).replace("    return Thing(settings)", f"    {does}")
    make_distribution(site, "acme-flow", provides=provides, code=code)
    ran = command("plugins", "check", "acme-flow", "--import")
    assert (ran.exit_code, [one["code"] for one in ran.document["items"]]) == (3, ["HP049"])
    assert said in ran.document["items"][0]["message"]
    assert command("plugins", "check", "acme-flow").exit_code == 0
    assert listed(command)["acme-flow"]["status"] == "ok"


def test_a_tool_set_that_is_tried_is_given_empty_folders_of_its_own(site: Path, command: Command) -> None:
    used = "(host.project_dir, host.state_dir, host.data_dir)"
    looks = f"assert not any(list(f.iterdir()) for f in {used})"
    marks = f"[(f / 'mark').write_text(str(f)) for f in {used}]"
    code = GOOD.replace("    return Thing(settings)", f"    {looks}\n    {marks}\n    return Thing(settings)")
    make_distribution(site, "acme-writes", provides=TOOL, code=code)
    (site.parent / "work" / "mine").touch()
    assert command("plugins", "check", "acme-writes", "--import").exit_code == 0
    assert list(site.parent.rglob("mark")) == []


def test_every_plugin_of_the_project_keeps_what_its_manifest_promises() -> None:
    found = [folder_row(str(folder)) for folder in sorted(PLUGINS.glob("harness-*/"))]
    rows = [row for row, _ in found]
    tried = try_rows(rows, [*(folder for _, folders in found for folder in folders), *sys.path], PROCESSES)
    assert check_rows(rows, tried) == []
    assert len(tried) == len(list(PLUGINS.glob("*/*/harness-plugin.toml"))) > 0


HEAVY = ("attr", "pydantic", "yaml", "pluggy", "orjson", "jsonschema_rs", "requests", "peewee", "pysqlite3",
         "llama_cpp", "tomllib", "importlib.metadata", "subprocess", "dummy_0", "dummy_99")  # fmt: skip


def environment(site: Path) -> dict[str, str]:
    """As for a person: compiled files are written, once."""
    folder = site.parent
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    return {**kept, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(folder / "pyc"), "COVERAGE_PROCESS_START": ""}


@pytest.mark.inv("I-37")
def test_a_list_imports_no_plugin_and_little_else(site: Path) -> None:
    for number in range(100):
        make_distribution(site, f"dummy-{number}", provides=[{"kind": "tool", "name": f"t{number}"}])
    code = (
        "import sys; from harness_core.cli.main import main; main(['plugins', 'list', '--json']);"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    for warm in (False, True):
        done = subprocess.run([sys.executable, "-c", code], env=environment(site), capture_output=True, check=True)
        assert len([one for one in json.loads(done.stdout)["items"] if one["id"].startswith("dummy-")]) == 100
        imported = done.stderr.decode().strip().splitlines()[-1]
        assert not warm or imported == "[]"
        assert "dummy_" not in imported


def test_what_is_new_is_tried_in_one_child_once_however_many_commands_follow(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    note = f"import os, sys\nwith open({str(told)!r}, 'a') as file: file.write(f'{{os.getpid()}} ')\n"
    for name in ("acme-one", "acme-two"):
        offer = ({"kind": "tool", "name": name.removeprefix("acme-")},)
        make_distribution(site, name, provides=offer, code=f"{note}{offers_code(offer)}")
    place = write_site(tmp_path / "place", stages=one_stage(), replies=[says("done"), says("done")]).enter(monkeypatch)
    with Host.open(place.project) as early:
        for _ in range(2):
            with Host.open(place.project) as host:
                assert host.run("Go.")["status"] == "completed"
            assert len(early.sessions()) > 0  # who opened before the trial writes the index too
    first, *others = told.read_text().split()
    assert (int(first) != os.getpid(), others) == (True, [first])
