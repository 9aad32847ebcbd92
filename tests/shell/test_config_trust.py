"""A cloned project's files come from strangers: they may tighten, anything more waits for ``harness trust``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from pwd import getpwuid
from typing import Any

import pytest

from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.config.folders import find_project, folders_of
from harness_core.shell.config.load import load_config
from harness_core.shell.config.stricter import is_stricter
from harness_core.shell.config.trust import remember_trust
from harness_core.shell.ports import make_ports
from harness_hookspecs.errors import ConfigError, NotFound

FILES_AT = make_ports("threads").files


class Place:
    """A project and a person's home in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.project, self.home = root / "project", root / "home"
        (self.project / ".harness").mkdir(parents=True)
        (self.home / ".config" / "harness").mkdir(parents=True)

    def write(self, name: str, text: str, *, user: bool = False) -> None:
        folder = self.home / ".config" / "harness" if user else self.project / ".harness"
        (folder / name).write_text(text, encoding="utf-8")

    def load(self, flags: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None) -> EffectiveConfig:
        schemas = {
            ("tool", "filesystem"): {
                "properties": {
                    "limit": {"type": "integer", "default": 9, "x-untrusted": "tighten", "x-tighten": "smaller"},
                    "mode": {"type": "string", "x-untrusted": "ok"},
                    "root": {"type": "string"},
                }
            }
        }
        return load_config(
            self.project, FILES_AT, env={"HOME": str(self.home), **(env or {})}, flags=flags, schemas=schemas
        )

    def trust(self) -> None:
        found = self.load()
        assert found.folders is not None
        remember_trust(FILES_AT, found.folders.state, self.project, found.untrusted_leaves)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def needing(found: EffectiveConfig) -> list[str]:
    return [leaf.document()["path"] for leaf in found.untrusted_leaves]


TIGHTER = {
    "harness.yaml": "run: {max_depth: 1, budget: {tokens: 10}}\nplugins: {mode: explicit, disable: [a, b]}\n",
    "policies.yaml": (
        "tiers: {T1: prompt, T3: deny}\nproviders: {deny: [x, y]}\n"
        "rules:\n  - {tool: shell, mode: deny}\n  - {tool: u, mode: prompt}\n"
    ),
    "tools.yaml": "tools: {filesystem: {enabled: false, tier: T4, limit: 3, mode: x}}\n",
    "stages.yaml": "stages: {s: {role: x, on_success: end, timeout_sec: 5}}\nroles: {x: {prompt: hello}}\n",
    "compression.yaml": "reserve_tokens: 90\n",
}
USER = {
    "harness.yaml": "plugins: {disable: [a]}\n",
    "policies.yaml": "rules:\n  - {tool: u, mode: prompt}\nproviders: {deny: [x]}\n",
}


def test_a_project_that_only_tightens_and_chooses_stages_needs_no_trust(place: Place) -> None:
    for name, text in USER.items():
        place.write(name, text, user=True)
    for name, text in TIGHTER.items():
        place.write(name, text)
    found = place.load()
    assert (found.trusted, needing(found)) == (True, [])
    found.require_trust()
    assert found.policies.tiers.T3 == "deny"
    assert found.tools.tools["filesystem"].own == {"limit": 3, "mode": "x"}


@pytest.mark.parametrize(
    ("file", "text", "path"),
    [
        ("models.yaml", "models: {m: {provider: acme}}", "models.m.provider"),
        ("models.yaml", "routes: {coding: mine}", "routes.coding"),
        ("harness.yaml", "bind: {fixer: acme}", "bind.fixer"),
        ("harness.yaml", "store: {path: /srv/x}", "store.path"),
        ("harness.yaml", "run: {max_depth: 9}", "run.max_depth"),
        ("harness.yaml", "run: {budget: {tokens: 2000000}}", "run.budget.tokens"),
        ("harness.yaml", "run: {max_turns: null}", "run.max_turns"),
        ("harness.yaml", "plugins: {disable: []}", "plugins.disable"),
        ("harness.yaml", "plugins: {settings: {acme: {a: b}}}", "plugins.settings.acme.a"),
        ("tools.yaml", "tools: {filesystem: {limit: 10}}", "tools.filesystem.limit"),
        ("tools.yaml", "tools: {filesystem: {root: /}}", "tools.filesystem.root"),
        ("tools.yaml", "tools: {filesystem: {tier: T1}}", "tools.filesystem.tier"),
        ("tools.yaml", "tools: {shell: {enabled: true}}", "tools.shell.enabled"),
        ("policies.yaml", "tiers: {T4: auto}", "tiers.T4"),
        ("policies.yaml", "tiers: {T2: auto}", "tiers.T2"),
        ("policies.yaml", "rules: []", "rules"),
        ("policies.yaml", "rules: [{tool: u, mode: prompt}, {tool: '*', mode: deny}]", "rules"),
        ("policies.yaml", "rules: [{tool: '*', mode: prompt}, {tool: u, mode: prompt}]", "rules"),
        ("policies.yaml", "allow_tier_lowering: true", "allow_tier_lowering"),
        ("policies.yaml", "approver: [mine]", "approver"),
    ],
)
def test_anything_that_reaches_further_stops_a_run_and_names_its_place(
    place: Place, file: str, text: str, path: str
) -> None:
    place.write("harness.yaml", "plugins: {disable: [a]}", user=True)
    place.write("policies.yaml", "rules: [{tool: u, mode: prompt}]", user=True)
    place.write("tools.yaml", "tools: {shell: {enabled: false}}", user=True)
    place.write("models.yaml", "models: {mine: {provider: local}}", user=True)
    plain = place.load()
    place.write(file, text)
    found = place.load()
    assert (found.trusted, needing(found)) == (False, [path])
    assert found.six == plain.six  # it does not count, whatever command reads it
    with pytest.raises(ConfigError) as caught:
        found.require_trust()
    assert caught.value.code == "config.untrusted"
    assert (caught.value.where or "").startswith(f".harness/{file}:1:")
    assert f"harness trust {place.project}" in (caught.value.hint or "")
    place.trust()
    assert place.load().trusted
    place.load().require_trust()


def test_trust_holds_for_what_was_trusted_and_for_nothing_else(place: Place) -> None:
    place.write("models.yaml", "models: {m: {provider: acme}}\n")
    place.trust()
    place.write("models.yaml", "# moved down\n\nmodels:\n  m:\n    provider: acme\n")
    place.write("stages.yaml", "stages: {s: {role: x, on_success: end}}")
    assert place.load().trusted
    place.write("models.yaml", "models: {m: {provider: acme, base_url: 'http://x'}}\n")
    assert not place.load().trusted


def test_trust_is_the_project_s_own(place: Place) -> None:
    place.write("models.yaml", "models: {m: {provider: acme}}\n")
    place.trust()
    twin = Place(place.project / "inner")
    twin.home = place.home
    twin.write("models.yaml", "models: {m: {provider: acme}}\n")
    assert not twin.load().trusted


@pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b"\xff", b'{"schema": "harness.trust_record/1"}'])
def test_a_damaged_record_trusts_nothing(place: Place, record: bytes) -> None:
    place.write("models.yaml", "models: {m: {provider: acme}}\n")
    place.trust()
    [file] = (place.home / ".local" / "state" / "harness" / "trust").iterdir()
    file.write_bytes(record)
    assert not place.load().trusted


def test_flags_and_variables_are_the_person_s_own_word(place: Place) -> None:
    found = place.load({"tiers.T4": "auto"}, {"HARNESS__STORE__PATH": "x"})
    assert (found.trusted, found.policies.tiers.T4, found.harness.store.own) == (True, "auto", {"path": "x"})


def test_what_does_not_hold_without_the_untrusted_part_is_left_out_whole(place: Place) -> None:
    place.write("models.yaml", "default: m\nmodels: {m: {provider: acme}}\n")
    place.write("stages.yaml", "stages: {s: {role: x, on_success: end, model: m}}\n")
    found = place.load({"models.m.context_size": 9})
    assert not found.trusted
    assert dict(found.models.models) == {}
    [provider, *_] = found.explain("models.m.provider")
    assert provider.voices[2].reason.startswith("ignored: untrusted project")


def test_a_stage_cannot_ask_for_more_turns_than_a_run_may_have(place: Place) -> None:
    place.write("stages.yaml", "stages: {s: {role: x, on_success: end, max_turns: 99}}\n")
    with pytest.raises(ConfigError, match=r"more than run\.max_turns"):
        place.load()


def test_an_unknown_comparator_is_never_stricter() -> None:
    assert not is_stricter(None, 1, 2)
    assert not is_stricter("wider", 1, 2)
    assert not is_stricter("mode", "never", "auto")
    assert not is_stricter("smaller", True, 2)


# --------------------------------------------------------------------------------------------- folders


def test_the_project_is_found_from_a_folder_inside_it(place: Place) -> None:
    inner = place.project / "a" / "b"
    inner.mkdir(parents=True)
    assert find_project(inner) == place.project
    assert find_project(place.home) == place.home
    assert find_project(inner, exact=True) == inner
    assert find_project(place.project / ".harness", exact=True) == place.project
    with pytest.raises(NotFound):
        find_project(place.project / "nowhere", exact=True)


def test_the_folders_follow_xdg_and_ignore_relative_ones() -> None:
    found = folders_of({"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "rel", "XDG_DATA_HOME": ""})
    assert [str(path) for path in (found.config, found.state, found.data, found.cache)] == [
        "/c/harness",
        "/h/.local/state/harness",
        "/h/.local/share/harness",
        "/h/.cache/harness",
    ]


def test_a_person_may_keep_a_file_elsewhere_and_link_it_and_a_project_may_not(place: Place) -> None:
    elsewhere = place.home / "dotfiles.yaml"
    elsewhere.write_text("run: {max_depth: 1}")
    (place.home / ".config" / "harness" / "harness.yaml").symlink_to(elsewhere)
    assert place.load().harness.run.max_depth == 1
    (place.project / ".harness" / "harness.yaml").symlink_to(elsewhere)
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert caught.value.code == "config.unreadable"


def test_a_file_whose_name_ends_otherwise_is_not_silently_ignored(place: Place) -> None:
    place.write("policies.yml", "tiers: {T1: deny}")
    with pytest.raises(ConfigError) as caught:
        place.load()
    assert (caught.value.code, caught.value.where) == ("config.file_name", ".harness/policies.yml")


@pytest.mark.parametrize("home", [{}, {"HOME": ""}, {"HOME": "."}, {"HOME": "~"}])
def test_without_a_home_that_is_one_nothing_is_kept_where_somebody_stands(home: dict[str, str]) -> None:
    assert folders_of(home).home == Path(getpwuid(os.getuid()).pw_dir)
    assert folders_of(home).data.is_absolute()


def test_a_user_without_any_home_is_told_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(ConfigError, match="has no home") as caught:
        folders_of({})
    assert caught.value.code == "config.no_home"
    assert "HOME" in str(caught.value.hint)
    kept = {f"XDG_{name}_HOME": f"/kept/{name}" for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    assert folders_of(kept).data == Path("/kept/DATA/harness")
