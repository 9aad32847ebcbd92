"""The index: plugins are found as they are installed, nothing of theirs runs, what changed on disk is read again."""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_core.shell.plugins.index import cache_folder, open_index
from harness_core.shell.plugins.names import normalise, plugin_id_of
from harness_core.shell.plugins.records import Record, record_from_json, record_to_json
from harness_core.shell.plugins.shipped import SHIPPED, origin_of
from harness_core.shell.ports_startup import replace_file
from harness_hookspecs.contracts.distribution import make_distribution, manifest_text

ROOT = Path(__file__).resolve().parents[2]
EXPLODES = "raise SystemError('nothing may import this')"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def find(site: Path, *more: Path, fresh: bool = False) -> dict[str, Record]:
    index = open_index([str(site), *map(str, more)], folder=str(site.parent / "cache"), fresh=fresh)
    return {record.id: record for record in index.records}


def test_a_plugin_is_found_without_running_it(site: Path) -> None:
    made = make_distribution(site, "Acme.Tool", module="acme_tool", plugin_id="acme-tool", code=EXPLODES, version="2.0")
    record = find(site)["acme-tool"]
    assert (record.distribution, record.version, record.module) == ("acme-tool", "2.0", "acme_tool")
    assert (record.manifest, record.flaw) == (str(made.manifest), None)
    assert [provided.name for provided in record.provides] == ["acme"]
    assert "acme_tool" not in sys.modules


def test_names_are_compared_in_their_normal_form(site: Path) -> None:
    assert normalise("  Acme__Tool.x ") == "acme-tool-x"
    assert (plugin_id_of("harness_tool_git"), plugin_id_of("Acme.Git")) == ("tool-git", "acme-git")
    make_distribution(site)
    record = find(site)["acme-tool"]
    assert all(record.is_called(name) for name in ("acme-tool", "ACME_TOOL", "acme.tool"))
    assert not record.is_called("acme")


def test_the_first_folder_that_has_a_distribution_wins(site: Path, tmp_path: Path) -> None:
    make_distribution(tmp_path / "later", version="1.0")
    make_distribution(site, version="2.0")
    assert find(site, tmp_path / "later")["acme-tool"].version == "2.0"


@pytest.mark.parametrize("folder", ["acme_tool.egg-info", "acme_tool-1.5-py3.11.egg-info"])
def test_an_egg_is_a_distribution_too(site: Path, folder: str) -> None:
    made = make_distribution(site)
    (made.metadata / "METADATA").rename(made.metadata / "PKG-INFO")
    made.metadata.rename(site / folder)
    assert (find(site)["acme-tool"].distribution, find(site)["acme-tool"].version) == ("acme-tool", "1.0")


def test_a_package_outside_the_folder_of_its_metadata_is_found(site: Path, tmp_path: Path) -> None:
    """An editable installation: metadata in one folder, the package in another one of the path."""
    made = make_distribution(tmp_path / "checkout")
    made.metadata.rename(site / made.metadata.name)
    assert find(site, tmp_path / "checkout")["acme-tool"].flaw is None


def test_a_package_that_an_import_hook_finds_is_found(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other kind of editable installation: the package lies outside the path, a finder knows where."""
    from importlib.machinery import PathFinder

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> object:
            return PathFinder.find_spec(name, [str(tmp_path / "checkout")]) if name == "acme_tool" else None

    made = make_distribution(tmp_path / "checkout")
    made.metadata.rename(site / made.metadata.name)
    assert find(site)["acme-tool"].flaw is not None
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert find(site, *map(Path, filter(None, sys.path)))["acme-tool"].flaw is None


def test_where_it_was_installed_from_is_told(site: Path) -> None:
    make_distribution(site)
    make_distribution(site, "acme-local", direct_url={"url": "file:///src/acme", "dir_info": {"editable": True}})
    make_distribution(site, "acme-web", direct_url={"url": "https://acme.example/a.whl", "archive_info": {}})
    make_distribution(site, "harness-tool-git", direct_url={"url": "file:///src/git", "dir_info": {}})
    found = find(site)
    assert {name: (record.source, record.origin) for name, record in found.items()} == {
        "acme-tool": ("index", "third-party"),
        "acme-local": ("editable file:///src/acme", "local"),
        "acme-web": ("https://acme.example/a.whl", "third-party"),
        "tool-git": ("file:///src/git", "built-in"),
    }


def test_a_stranger_cannot_call_itself_built_in() -> None:
    assert origin_of("tool-git", "harness-tool-git", "index") == "built-in"
    assert origin_of("tool-git", "acme-git", "index") == "third-party"


def test_every_plugin_of_the_project_is_known_as_shipped() -> None:
    folders = {folder.name.removeprefix("harness-") for folder in (ROOT / "plugins").glob("harness-*/")}
    assert folders <= SHIPPED


# ------------------------------------------------------------------------------------------------- flaws

BROKEN = {
    "no manifest": ({"manifest": ""}, "HP001"),
    "no TOML": ({"manifest": "manifest ="}, "HP002"),
    "a flaw of the manifest": ({"manifest": 'manifest = 1\nid = "acme-tool"'}, "HP005"),
    "another contract": ({"spec": ">=0.2"}, "HP011"),
    "another id": ({"manifest_id": "acme-other"}, "HP012"),
}


@pytest.mark.parametrize(("words", "code"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plugin_stays_known_with_its_flaw(site: Path, words: dict[str, str], code: str) -> None:
    make_distribution(site, code=EXPLODES, **words)  # type: ignore[arg-type]
    make_distribution(site, "acme-good", provides=[{"kind": "tool", "name": "good"}])
    found = find(site)
    assert found["acme-tool"].flaw is not None
    assert found["acme-tool"].flaw.code == code
    assert found["acme-good"].flaw is None


def test_entry_points_that_mean_nothing_are_flaws(site: Path) -> None:
    made = make_distribution(site)
    points = made.metadata / "entry_points.txt"
    for text, code in {
        "[harness.plugins]\nacme-tool = acme_tool:thing\n[harness.manifest]\nacme-tool = acme_tool": "HP015",
        "[harness.manifest]\nacme-tool = acme_tool": "HP015",
        "[harness.plugins]\nacme-tool = gone\n[harness.manifest]\nacme-tool = gone": "HP016",
        "[harness.plugins]\nacme-tool = acme_tool\n[harness.manifest]\nacme-tool = acme_tool:../x.toml": "HP001",
    }.items():
        points.write_text(text)
        flaw = find(site, fresh=True)["acme-tool"].flaw
        assert flaw is not None
        assert flaw.code == code


def test_a_package_is_described_by_the_manifest_in_it_without_another_entry_point(site: Path) -> None:
    made = make_distribution(site, code=EXPLODES)
    (made.metadata / "entry_points.txt").write_text("[harness.plugins]\nacme-tool = acme_tool\n")
    assert (find(site)["acme-tool"].flaw, find(site)["acme-tool"].manifest) == (None, str(made.manifest))
    text = made.manifest.read_text()
    made.manifest.unlink()
    flaw = find(site)["acme-tool"].flaw
    assert flaw is not None
    assert (flaw.code, flaw.message) == ("HP001", "there is no manifest acme_tool:harness-plugin.toml")
    made.manifest.write_text(text)  # it is looked for where it was missed
    assert find(site)["acme-tool"].flaw is None


def test_a_single_file_carries_its_manifest_as_a_literal(site: Path) -> None:
    made = make_distribution(site, manifest="")
    for file in made.package.iterdir():
        file.unlink()
    made.package.rmdir()
    (made.metadata / "entry_points.txt").write_text("[harness.plugins]\nacme-tool = acme_tool\n")
    table = {
        "manifest": 1, "id": "acme-tool", "summary": "One file.", "spec": ">=0.1",
        "provides": [{"kind": "tool", "name": "acme"}],
    }  # fmt: skip
    (site / "acme_tool.py").write_text(f"HARNESS = {table!r}\n{EXPLODES}\n")
    assert find(site)["acme-tool"].summary == "One file."
    (site / "acme_tool.py").write_text("HARNESS = dict(manifest=1)\n")
    flaw = find(site)["acme-tool"].flaw
    assert flaw is not None
    assert flaw.code == "HP002"


def test_a_schema_file_cannot_lie_outside_the_package(site: Path) -> None:
    provides = [{"kind": "tool", "name": "acme", "config_file": "../outside.json"}]
    (site / "outside.json").write_text('{"type": "object"}')
    make_distribution(site, provides=provides, code="")
    flaw = find(site)["acme-tool"].flaw
    assert flaw is not None
    assert flaw.code == "HP009"


# ------------------------------------------------------------------------------------------------ caching


@pytest.fixture
def cached(site: Path) -> Path:
    make_distribution(site)
    find(site)
    return site


def _touch(file: Path, text: str, *, later_ns: int) -> None:
    """Write a file whose times are as close to the old ones as they can be."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + later_ns))


def test_an_edit_within_the_same_microsecond_is_seen(cached: Path) -> None:
    made = make_distribution(cached)
    find(cached)
    text = made.manifest.read_text()
    _touch(made.manifest, text.replace("Made for a test.", "Made for a TEST."), later_ns=1)
    assert find(cached)["acme-tool"].summary == "Made for a TEST."


def test_an_edit_that_keeps_the_time_but_not_the_size_is_seen(cached: Path) -> None:
    made = make_distribution(cached)
    find(cached)
    _touch(made.manifest, made.manifest.read_text().replace("a test", "another test"), later_ns=0)
    assert find(cached)["acme-tool"].summary == "Made for another test."


def test_what_is_installed_and_removed_is_seen(cached: Path) -> None:
    other = make_distribution(cached, "acme-other")
    assert set(find(cached)) == {"acme-tool", "acme-other"}
    (other.metadata / "entry_points.txt").unlink()
    assert set(find(cached)) == {"acme-tool"}


def test_a_manifest_that_appears_is_seen(site: Path) -> None:
    made = make_distribution(site, manifest="")
    assert find(site)["acme-tool"].flaw is not None
    made.manifest.write_text(manifest_text("acme-tool", [{"kind": "tool", "name": "acme"}]))
    assert find(site)["acme-tool"].flaw is None


def test_a_schema_file_that_changes_is_seen(site: Path) -> None:
    made = make_distribution(site, provides=[{"kind": "tool", "name": "acme", "config_file": "a.json"}], code="")
    (made.package / "a.json").write_text('{"type": "object"}')
    find(site)
    (made.package / "a.json").write_text('{"type": "object", "required": ["url"]}')
    assert find(site)["acme-tool"].provides[0].config == {"type": "object", "required": ["url"]}


def test_an_unchanged_path_is_read_from_the_index_alone(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = find(cached)
    monkeypatch.setitem(sys.modules, "harness_core.shell.plugins.reading", None)  # importing it would fail
    assert find(cached) == before
    with pytest.raises(ImportError):
        find(cached, fresh=True)


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b"[]", b'{"key": 1}', b"\xff", b'{"key": 1, "read": []}'])
def test_a_damaged_index_is_made_again(cached: Path, damage: bytes) -> None:
    [file] = (cached.parent / "cache").iterdir()
    key = json.loads(file.read_bytes())["key"]
    for bad in (damage, json.dumps({"key": key, "read": {"x": 1}, "verdicts": [], "facts": None}).encode()):
        file.write_bytes(bad)
        assert set(find(cached)) == {"acme-tool"}


def test_an_index_that_cannot_be_written_harms_nobody(site: Path) -> None:
    make_distribution(site)
    (site.parent / "cache").write_text("a file where a folder should be")
    assert set(find(site)) == {"acme-tool"}


def test_an_index_that_many_threads_write_at_once_is_always_one_of_theirs(tmp_path: Path) -> None:
    file, texts = tmp_path / "index.json", [bytes([65 + number]) * 300_000 for number in range(8)]
    for _ in range(5):
        together = threading.Barrier(len(texts))

        def write(text: bytes, together: threading.Barrier = together) -> bool:
            together.wait()
            return replace_file(str(file), text)

        with ThreadPoolExecutor(len(texts)) as pool:
            assert all(pool.map(write, texts))
        assert file.read_bytes() in texts
        assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_replaced_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "folder" / "below").mkdir(parents=True)
    assert not replace_file(str(tmp_path / "folder"), b"text")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_a_relative_cache_variable_counts_as_unset() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == "/c/harness"
    assert cache_folder({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == "/h/.cache/harness"


def test_a_record_survives_the_index(site: Path) -> None:
    make_distribution(site, conflicts={"other": "why"}, spec=">=9")
    record = find(site)["acme-tool"]
    assert record_from_json(json.loads(json.dumps(record_to_json(record)))) == record
