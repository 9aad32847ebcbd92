"""The catalogue: only what is asked for is imported, what is broken says why, roles answer as they are bound."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness_core.shell.parts import Need, Parts
from harness_core.shell.plugins.binding import answer_for, candidates_for
from harness_core.shell.plugins.catalogue import Catalogue, complaint
from harness_core.shell.plugins.index import open_index
from harness_core.shell.plugins.opening import remembered_selection
from harness_core.shell.plugins.policy import Named, Selection
from harness_core.shell.plugins.switch import disabled_in, with_disabled
from harness_core.shell.redaction import Redactor
from harness_hookspecs.contracts.distribution import make_distribution, offers_code
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.errors import ConfigError, NotFound, PluginError
from harness_hookspecs.offer import KINDS

MARK = "from harness_hookspecs.markers import hookimpl\n"
ROLES = ["planner", "worker.ai-generate"]
LACKING = {
    "provider": ("complete", "close"), "tool": ("specs", "execute"), "role": ("run",), "compression": ("compress",),
    "validator": ("validate",), "artifact": ("schema", "parse"), "executor": ("start", "apply", "next"),
    "engine": ("run",), "rules": ("compile", "condition"), "store": ("append", "read", "head", "take", "close"),
    "sandbox": ("isolation", "run"), "mount": ("mounts", "skills", "realise"), "approver": ("ask",),
    "broker": ("handle",), "surface": ("commands",), "observer": ("on_event", "close"),
}  # fmt: skip
"""The methods that are missed first, by kind."""
URL = {"type": "object", "properties": {"url": {"type": "string"}}}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; what is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    for name in [name for name in sys.modules if name.startswith(("acme", "other"))]:
        monkeypatch.delitem(sys.modules, name)  # another test's plugin of that name is none of ours
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.startswith(("acme", "other")):
            del sys.modules[name]


def catalogue_of(site: Path, selection: Selection = Selection()) -> Catalogue:
    """The plugins of one folder; first imports are not tried in a child."""
    return Catalogue(open_index([str(site)], folder=str(site.parent / "cache")), selection)


def test_an_offer_imports_its_plugin_and_no_other(site: Path) -> None:
    make_distribution(site)
    make_distribution(site, "acme-other", provides=[{"kind": "tool", "name": "other"}])
    catalogue = catalogue_of(site)
    assert not {"acme_tool", "acme_other"} & set(sys.modules)
    offer = catalogue.offer("tool", "acme")
    assert (offer.kind, offer.name) == ("tool", "acme")
    assert "acme_tool" in sys.modules
    assert "acme_other" not in sys.modules
    assert catalogue.offer("tool", "acme-tool:acme") is offer


def test_a_plugin_that_breaks_in_the_host_itself_is_known_from_then_on(site: Path) -> None:
    make_distribution(site, code="raise ValueError('here')")
    catalogue = catalogue_of(site)
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            catalogue.offer("tool", "acme", where="tools.yaml:2:3")
        assert (caught.value.code, caught.value.where) == ("plugin.bound_broken", "tools.yaml:2:3")
        assert "acme-tool 1.0" in str(caught.value)
        assert "ValueError: here" in str(caught.value)
    assert [row.status for row in catalogue.rows] == ["broken"]


@pytest.mark.parametrize(
    "code",
    [
        f"{MARK}@hookimpl\ndef harness_provide_tools(wrong): return []\n@hookimpl\ndef harness_on_event(event): pass",
        offers_code([{"kind": "tool", "name": "else"}]),
    ],
    ids=["a wrong signature", "another offer"],
)
def test_nothing_is_half_registered(site: Path, code: str) -> None:
    make_distribution(site, code=code)
    catalogue = catalogue_of(site)
    with pytest.raises(PluginError):
        catalogue.offer("tool", "acme")
    assert catalogue.listeners("harness_on_event") == []


def test_what_a_plugin_prints_at_import_is_kept_from_documents(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_distribution(site, code=f"print('hello')\n{offers_code([{'kind': 'tool', 'name': 'acme'}])}")
    catalogue_of(site).offer("tool", "acme")
    assert capsys.readouterr() == ("", "hello\n")


def test_an_import_leaves_standard_output_to_every_other_thread_and_puts_it_back(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stream belongs to the program that embeds the host, which may open several and write meanwhile."""
    names, stdout = ("acme-a", "acme-b"), sys.stdout
    events = {f"{name} {step}": threading.Event() for name in names for step in ("begun", "may end")}
    monkeypatch.setitem(sys.modules, "acme_events", cast(Any, SimpleNamespace(events=events)))
    for name in names:
        waits = f"events['{name} begun'].set(); print('{name}'); events['{name} may end'].wait(10)\n"
        provides = [{"kind": "tool", "name": name}]
        code = f"from acme_events import events\n{waits}{offers_code(provides)}"
        make_distribution(site, name, provides=provides, code=code)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(catalogue_of(site).offer, "tool", "acme-a")
        assert events["acme-a begun"].wait(10)
        second = pool.submit(catalogue_of(site).offer, "tool", "acme-b")
        events["acme-b begun"].wait(0.2)  # it may come to that, or wait for the first one's end
        print("the program's")
        for name, offer in zip(names, (first, second), strict=True):
            events[f"{name} may end"].set()
            offer.result(10)
    assert sys.stdout is stdout
    assert capsys.readouterr() == ("the program's\n", "acme-a\nacme-b\n")


@pytest.mark.parametrize("gone", ["stdout", "stderr"])
def test_a_plugin_may_print_at_import_where_the_process_has_no_such_stream(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], gone: str
) -> None:
    make_distribution(site, code=f"print('hello')\n{offers_code([{'kind': 'tool', 'name': 'acme'}])}")
    with monkeypatch.context() as patch:
        patch.setattr(sys, gone, None)
        catalogue_of(site).offer("tool", "acme")
    assert capsys.readouterr() == ("", "")


def test_listeners_come_in_the_order_of_their_ids_not_of_their_loading(site: Path) -> None:
    for name in ("acme-b", "acme-a"):
        listens = "\n\n@implements(hooks.harness_on_event)\ndef told(event):\n    pass\n"
        code = offers_code([{"kind": "tool", "name": name}]) + listens
        make_distribution(site, name, provides=[{"kind": "tool", "name": name}], code=code)
    catalogue = catalogue_of(site)
    for name in ("acme-b", "acme-a"):
        catalogue.offer("tool", name)
    assert [plugin for plugin, _ in catalogue.listeners("harness_on_event")] == ["acme-a", "acme-b"]


def test_whom_nobody_offers_the_nearest_is_named(site: Path) -> None:
    make_distribution(site)
    with pytest.raises(PluginError) as caught:
        catalogue_of(site).offer("tool", "acne")
    assert (caught.value.code, caught.value.hint) == ("plugin.missing", "did you mean acme?")
    with pytest.raises(NotFound, match='no installed plugin is called "nobody"'):
        catalogue_of(site).row("nobody")


def test_a_tool_belongs_to_the_longest_set_that_fits_also_where_that_may_not_be_used(site: Path) -> None:
    make_distribution(site, "acme-git", provides=[{"kind": "tool", "name": "git"}])
    make_distribution(site, "acme-hub", provides=[{"kind": "tool", "name": "git_hub"}])
    catalogue = catalogue_of(site, Selection(disable=(Named("acme-hub", "harness.yaml:2:3"),)))
    assert catalogue.set_of("git_log") == "git"
    with pytest.raises(PluginError, match="tool git_hub is needed, but the plugin acme-hub") as caught:
        catalogue.set_of("git_hub_search")
    assert caught.value.code == "plugin.bound_broken"
    assert catalogue_of(site).set_of("git_hub_search") == "git_hub"


def test_a_doubled_name_is_an_error_until_a_line_settles_it(site: Path) -> None:
    for name in ("acme-one", "acme-two"):
        make_distribution(site, name, provides=[{"kind": "tool", "name": "git", "config": URL}])
    with pytest.raises(PluginError) as caught:
        catalogue_of(site).offer("tool", "git")
    assert caught.value.code == "plugin.doubled"
    assert "acme-one and acme-two" in str(caught.value)
    assert set(catalogue_of(site).manifest_schemas()) == {("tool", "acme-one:git"), ("tool", "acme-two:git")}
    settled = catalogue_of(site, Selection(chosen=(("tool", "acme-two:git", "tools.yaml:1:1"),)))
    assert settled.resolve("tool", "git").row.record.id == "acme-two"
    assert [one.row.record.id for one in settled.offers_of("tool")] == ["acme-two"]
    assert settled.manifest_schemas()["tool", "git"] == URL


def test_a_required_plugin_that_does_not_take_part_is_a_problem(site: Path) -> None:
    make_distribution(site, manifest="")
    selection = Selection(require=(Named("acme-tool", "harness.yaml:2:3"), Named("gone", "harness.yaml:2:9")))
    unknown, broken = catalogue_of(site, selection).problems()
    assert (unknown.code, broken.code) == ("plugin.unknown", "plugin.bound_broken")
    assert "harness.yaml:2:3 requires the plugin acme-tool" in str(broken)


def test_a_complaint_names_distribution_cause_and_cure(site: Path) -> None:
    make_distribution(site, manifest="", version="1.2")
    [line] = catalogue_of(site).complaints()
    assert line == complaint(catalogue_of(site).rows[0])
    assert line == (
        "harness: plugin acme-tool (acme-tool 1.2) is broken: there is no manifest acme_tool [HP001]; "
        "to go on without it: harness plugins disable acme-tool"
    )


# ------------------------------------------------------------------------------------------------- roles


def role(site: Path, name: str, *, default: bool = False, distribution: str | None = None, roles: Any = ROLES) -> None:
    entry = {"kind": "role", "name": name, "roles": roles, "default": default}
    make_distribution(site, distribution or f"acme-{name}", provides=[entry])


def test_a_role_is_bound_at_its_persona_then_by_itself_then_by_default(site: Path) -> None:
    role(site, "workflow", default=True, distribution="harness-role-workflow")
    role(site, "acme")
    role(site, "review")
    where = "harness.yaml:2:3"
    bind = {"planner": Named("acme", where), "planner@reviewer": Named("acme-review:review", where)}
    catalogue = catalogue_of(site, Selection(bind=bind))
    assert [
        (answer.provider.row.record.id, answer.where)
        for answer in (
            answer_for(catalogue, "planner", "reviewer"),
            answer_for(catalogue, "planner", "coder"),
            answer_for(catalogue, "planner"),
            answer_for(catalogue, "worker.ai-generate", "reviewer"),
        )
    ] == [
        ("acme-review", f"{where} (bind.planner@reviewer)"),
        ("acme-acme", f"{where} (bind.planner)"),
        ("acme-acme", f"{where} (bind.planner)"),
        ("role-workflow", "default"),
    ]


def test_being_installed_makes_nobody_the_default(site: Path) -> None:
    role(site, "workflow", default=True, distribution="harness-role-workflow")
    role(site, "pushy", default=True)
    assert answer_for(catalogue_of(site), "planner").provider.row.record.id == "role-workflow"


def test_without_a_default_there_is_an_error_that_says_so(site: Path) -> None:
    role(site, "acme")
    with pytest.raises(PluginError, match="no default role harness for planner") as caught:
        answer_for(catalogue_of(site), "planner")
    assert caught.value.code == "plugin.no_default_role"
    role(site, "one", default=True)
    role(site, "two", default=True)
    with pytest.raises(PluginError, match="acme-one and acme-two are both the default") as caught:
        answer_for(catalogue_of(site), "planner")
    assert caught.value.code == "plugin.doubled"


def test_a_role_that_is_not_served_cannot_be_bound(site: Path) -> None:
    role(site, "acme", roles=["fixer"])
    catalogue = catalogue_of(site, Selection(bind={"planner": Named("acme", "harness.yaml:2:3")}))
    with pytest.raises(PluginError, match="serves only fixer") as caught:
        answer_for(catalogue, "planner")
    assert (caught.value.code, caught.value.where) == ("plugin.role_not_served", "harness.yaml:2:3")


def test_why_tells_the_whole_chain(site: Path) -> None:
    role(site, "workflow", default=True, distribution="harness-role-workflow")
    role(site, "acme")
    make_distribution(site, "acme-gone", provides=[{"kind": "role", "name": "gone", "roles": ROLES}], spec=">=9")
    catalogue = catalogue_of(site, Selection(bind={"planner": Named("acme", "harness.yaml:2:3")}))
    assert [(one.plugin, one.answers, one.why) for one in candidates_for(catalogue, "planner")] == [
        ("acme-acme", True, "bound in harness.yaml:2:3 (bind.planner)"),
        ("acme-gone", False, "skipped: made for contract >=9, this is 0.1.0"),
        ("role-workflow", False, "harness.yaml:2:3 (bind.planner) names acme"),
    ]
    assert [one.why for one in candidates_for(catalogue, "role:workflow")] == ["the only one that takes part"]
    with pytest.raises(PluginError, match="no installed plugin offers tool:nothing"):
        candidates_for(catalogue, "tool:nothing")
    with pytest.raises(PluginError, match="no default role harness for fixer"):
        candidates_for(catalogue, "fixer")


# ------------------------------------------------------------------------------------------------- parts


def parts_of(site: Path, settings: Mapping[str, Any] = {}) -> Parts:
    host = FakeHost(site)
    return Parts(catalogue_of(site), lambda need, schema: settings, lambda need: host, Redactor())


def test_a_thing_is_built_once_with_its_checked_settings(site: Path) -> None:
    make_distribution(site, provides=[{"kind": "tool", "name": "acme", "config": URL}])
    parts = parts_of(site, {"url": "x"})
    parts.build([Need("tool", "acme")])
    thing = parts.get(Need("tool", "acme"))
    assert thing.settings.url == "x"
    assert parts.get(Need("tool", "acme-tool:acme")) is thing
    assert [(part.plugin_id, part.plugin_version) for part in parts.built()] == [("acme-tool", "1.0")]


def test_entries_of_one_offer_are_different_things(site: Path) -> None:
    make_distribution(site, provides=[{"kind": "provider", "name": "acme"}])
    parts = parts_of(site)
    big, small = Need("provider", "acme", "big"), Need("provider", "acme", "small")
    assert parts.get(big) is not parts.get(small)


def test_what_only_watches_may_fail_and_what_is_bound_may_not(site: Path) -> None:
    code = offers_code([{"kind": "observer", "name": "acme"}]).replace("return Thing(", "raise OSError('x')\n    (")
    make_distribution(site, provides=[{"kind": "observer", "name": "acme"}], code=code)
    parts = parts_of(site)
    parts.build([Need("observer", "acme", optional=True)])
    [failed] = parts.failed
    payload = failed.payload()
    assert (payload["plugin"], payload["offer"], payload["error"]["code"]) == (
        "acme-tool",
        "acme",
        "plugin.bound_broken",
    )
    with pytest.raises(PluginError, match="OSError: x"):
        parts.build([Need("observer", "acme")])


@pytest.mark.parametrize("kind", LACKING)
def test_a_thing_that_lacks_a_method_of_its_kind_is_named_with_it_before_anything_runs(site: Path, kind: str) -> None:
    provides = [{"kind": kind, "name": "acme", "roles": ["planner"] if kind == "role" else []}]
    code = offers_code(provides).replace("return Thing(settings)", "return object()")
    make_distribution(site, f"acme-{kind}", provides=provides, code=code)
    with pytest.raises(PluginError) as caught:
        parts_of(site).build([Need(kind, "acme", where="harness.yaml:3:1")])
    assert (caught.value.code, caught.value.where) == ("plugin.bound_broken", "harness.yaml:3:1")
    assert caught.value.facts["plugin"] == f"acme-{kind}"
    start = f"{kind} acme of the plugin acme-{kind} has no method "
    assert caught.value.message.startswith(start)
    assert set(LACKING[kind]) <= set(caught.value.message.removeprefix(start).split(", "))


def test_a_workflow_that_is_no_definition_is_named_with_its_plugin(site: Path) -> None:
    assert set(KINDS) - set(LACKING) == {"workflow"}, "it builds a value, which is not called"
    make_distribution(site, "acme-flow", provides=[{"kind": "workflow", "name": "acme"}])
    with pytest.raises(PluginError, match="workflow acme of the plugin acme-flow is no WorkflowDefinition"):
        parts_of(site).build([Need("workflow", "acme")])


def test_a_name_that_is_no_method_is_none(site: Path) -> None:
    provides = [{"kind": "observer", "name": "acme"}]
    code = offers_code(provides).replace("self.settings = settings", "self.close = None")
    make_distribution(site, provides=provides, code=code)
    with pytest.raises(PluginError, match="has no method close"):
        parts_of(site).build([Need("observer", "acme")])


def test_settings_that_the_class_refuses_are_a_mistake_of_the_configuration(site: Path) -> None:
    code = offers_code([{"kind": "tool", "name": "acme", "config": URL}]).replace("extra='allow'", "extra='forbid'")
    make_distribution(site, provides=[{"kind": "tool", "name": "acme", "config": URL}], code=code)
    with pytest.raises(ConfigError, match="settings of tool acme: url"):
        parts_of(site, {"url": 1}).build([Need("tool", "acme", where="tools.yaml:1:1")])


# --------------------------------------------------------------------------------- harness.yaml, selection


def test_a_selection_is_remembered_until_what_it_is_made_of_changes(site: Path, tmp_path: Path) -> None:
    index = open_index([str(site)], folder=str(tmp_path / "cache"))
    loaded: list[Selection] = []

    def ask(env: Mapping[str, str]) -> Selection:
        def load() -> Selection:
            loaded.append(Selection(disable=(Named(f"n{len(loaded)}", "x"),), bind={"planner": Named("a", "y")}))
            return loaded[-1]

        again = open_index([str(site)], folder=str(tmp_path / "cache"))
        return remembered_selection(again if loaded else index, str(tmp_path), load, env=env)

    env = {"HOME": str(tmp_path), "HARNESS__RUN__MAX_DEPTH": "1", "OTHER": "1"}
    assert ask(env) == ask({**env, "OTHER": "2"}) == loaded[0]
    assert ask({**env, "HARNESS__RUN__MAX_DEPTH": "2"}) == loaded[1]
    (tmp_path / ".harness").mkdir()
    (tmp_path / ".harness" / "tools.yaml").write_text("tools: {}\n")
    assert ask(env) == loaded[2]
    (tmp_path / ".local" / "state" / "harness" / "trust").mkdir(parents=True)
    assert ask(env) == loaded[3]
    (tmp_path / ".harness" / "policies.yaml").write_text("tiers: {T4: auto}\n")  # a project may lose its trust by it
    assert ask(env) == loaded[4]
    relative = {**env, "XDG_CONFIG_HOME": "config"}  # which counts as unset
    assert ask(relative) == loaded[4]
    (tmp_path / ".config" / "harness").mkdir(parents=True)
    (tmp_path / ".config" / "harness" / "harness.yaml").write_text("bind: {}\n")
    assert ask(relative) == loaded[5]


FILES = {
    "": "plugins:\n  disable: [acme]\n",
    "# only a comment": "# only a comment\nplugins:\n  disable: [acme]\n",
    "project: x\n": "project: x\nplugins:\n  disable: [acme]\n",
    "plugins:\n": "plugins: {disable: [acme]}\n",
    "plugins: {mode: open}\n": "plugins: {disable: [acme], mode: open}\n",
    "{project: x}\n": "{plugins: {disable: [acme]}, project: x}\n",
    "plugins:\n  mode: open # so\nrun: {}\n": "plugins:\n  disable: [acme]\n  mode: open # so\nrun: {}\n",
    "plugins:\n  disable: [b,\n    c] # why\n": "plugins:\n  disable: [acme] # why\n",
    "plugins:\n  disable:\n  - b # one\n# two\nrun: {}\n": "plugins:\n  disable: [acme] # one\n# two\nrun: {}\n",
    "plugins:\n  disable: null\n": "plugins:\n  disable: [acme]\n",
}


@pytest.mark.parametrize(("before", "after"), FILES.items())
def test_a_list_is_written_and_the_rest_of_the_file_stays(before: str, after: str) -> None:
    assert with_disabled(before, ["acme"]) == after
    assert disabled_in(after) == ["acme"]


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize("text", ["plugins: &a\n  mode: open\n", "[1]\n", "a: [\n", "plugins: 3\n", BOMB])
def test_a_file_that_cannot_be_changed_in_place_is_left_alone(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_disabled(text, ["no"])
    assert caught.value.hint == 'write by hand: plugins: {disable: ["no"]}'
