from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.tool import ToolContract
from harness_hookspecs.errors import HarnessError, Refused, ToolError
from harness_hookspecs.host import Completed
from harness_hookspecs.tool import TIERS, ToolContext, ToolResult
from harness_tool_filesystem import harness_provide_tools
from harness_tool_filesystem.settings import FilesystemSettings
from harness_tool_filesystem.tool import FilesystemTools, build


class TestFilesystem(ToolContract):
    set_name = "filesystem"

    def subject(self) -> FilesystemTools:
        return build(FilesystemSettings(), self.host)

    def prepare(self) -> None:
        (self.host.project_dir / "read.txt").write_text("one\ntwo\n")
        (self.host.project_dir / "edit.txt").write_text("a\n")

    def calls(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            "filesystem_read": {"path": "read.txt"},
            "filesystem_search": {"pattern": "t.o", "regex": True},
            "filesystem_list": {},
            "filesystem_edit": {"path": "edit.txt", "old_text": "a", "new_text": "ab"},  # again would be "abb"
            "filesystem_write": {"path": "new/file.txt", "content": "x\n"},
        }

    def impossible_calls(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [
            ("filesystem_read", {"path": "absent"}),
            ("filesystem_read", {"path": "../outside"}),
            ("filesystem_search", {"pattern": "(", "regex": True}),
            ("filesystem_list", {"path": "read.txt"}),
            ("filesystem_edit", {"path": "edit.txt", "old_text": "absent", "new_text": ""}),
            ("filesystem_write", {"path": ".git/hooks/pre-commit", "content": ""}),
            ("filesystem_write", {"path": "read.txt/below", "content": ""}),
        ]


class Workspace:
    """One workspace and one set over it."""

    def __init__(self, folder: Path, **settings: int) -> None:
        self.host = FakeHost(folder)
        self.root = self.host.project_dir
        self.tools = build(FilesystemSettings(**settings), self.host)

    def run(self, tool: str, key: str = "", **args: Any) -> ToolResult:
        ports = self.host.ports
        token, key = ports.wait.token(), key or ports.ids.ulid("call")
        result = self.tools.execute(f"filesystem_{tool}", args, ToolContext(token, ports, key, 10.0))
        json.dumps(result.value, allow_nan=False).encode()
        return result

    def refusal(self, tool: str, **args: Any) -> str:
        with pytest.raises(HarnessError) as caught:
            self.run(tool, **args)
        assert isinstance(caught.value, ToolError | Refused)
        return caught.value.code


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_the_offer_builds_the_set_and_the_manifest_has_its_settings(tmp_path: Path) -> None:
    [offer] = harness_provide_tools()
    assert (offer.kind, offer.name) == ("tool", "filesystem")
    assert offer.settings is not None
    assert isinstance(offer.build(offer.settings()(), FakeHost(tmp_path)), FilesystemTools)
    written = resources.files("harness_tool_filesystem").joinpath("settings.json").read_text()
    assert json.loads(written) == offer.settings().model_json_schema()


@pytest.mark.req("B-75")
def test_each_tool_has_one_of_the_five_tiers(workspace: Workspace) -> None:
    assert TIERS == ("T0", "T1", "T2", "T3", "T4")
    tiers = {spec.name.removeprefix("filesystem_"): spec.tier for spec in workspace.tools.specs()}
    assert tiers == {"read": "T1", "search": "T1", "list": "T1", "edit": "T2", "write": "T2"}


# ----------------------------------------------------------------------------------------- confinement


@pytest.mark.req("B-146")
@pytest.mark.inv("I-34")
@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc/passwd", "link/out", "leaf"])
@pytest.mark.parametrize("tool", ["read", "edit", "write"])
def test_nothing_outside_the_workspace_is_touched(workspace: Workspace, tool: str, path: str) -> None:
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "out").write_text("secret")
    (workspace.root / "link").symlink_to(outside)
    (workspace.root / "leaf").symlink_to(outside / "out")
    args = {"read": {}, "edit": {"old_text": "secret", "new_text": "mine"}, "write": {"content": "mine"}}[tool]
    assert workspace.refusal(tool, path=path, **args) in {"path.outside", "path.symlink"}
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"out": "secret"}


@pytest.mark.req("B-146")
@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".git", "sub/.git/hooks/post-checkout", ".GIT/config", ".git./config", ".git /config",
        ".g\u200cit/config", "\uff0egit/config", "GIT~1/config", ".git::$INDEX_ALLOCATION/config",
        ".harness/policies.yaml", ".Harness/harness.yaml", "./.harness/x", "bytes:.git/config", "bytes:%2Egit/x",
    ],
)  # fmt: skip
def test_what_decides_what_runs_later_is_never_written(workspace: Workspace, path: str) -> None:
    for tool, args in {"write": {"content": "x"}, "edit": {"old_text": "", "new_text": "x"}}.items():
        assert workspace.refusal(tool, path=path, **args) == "path.protected"
    assert list(workspace.root.iterdir()) == []


def test_a_link_to_a_protected_folder_is_no_way_in(workspace: Workspace) -> None:
    (workspace.root / ".git").mkdir()
    (workspace.root / "alias").symlink_to(".git")
    assert workspace.refusal("write", path="alias/config", content="x") == "path.symlink"
    assert list((workspace.root / ".git").iterdir()) == []


@pytest.mark.parametrize("path", [".gitignore", ".github/x", "git", "a.git", "harness", ".harness.md"])
def test_names_that_only_look_protected_are_free(workspace: Workspace, path: str) -> None:
    assert workspace.run("write", path=path, content="x").value["created"]


def test_a_special_file_is_not_opened(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")  # reading it would wait for ever
    for tool, args in {"read": {}, "search": {"pattern": "x"}, "write": {"content": "x"}}.items():
        assert workspace.refusal(tool, path="pipe", **args) == "file.special"
    assert workspace.run("search", pattern="x").value["searched_files"] == 0


NAMES = ["a\u202fb.md", "a b.md", "\u00e9.txt", "e\u0301.txt", "new\nline", "quo\"te'", "-rf", "\udcff\udcfe.bin",
         "bytes:x", "ü b/ü.txt", "tab\t", " lead", "trail ", "\\x41", "%41"]  # fmt: skip


@pytest.mark.inv("I-34")
def test_exactly_the_named_file_is_touched_whatever_its_name(workspace: Workspace) -> None:
    for name in NAMES:
        place = workspace.root / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"content of {name!a}\n")
    listed = [
        entry["path"] for entry in workspace.run("list", recursive=True).value["entries"] if entry["kind"] == "file"
    ]
    assert len(listed) == len(NAMES)
    for path in json.loads(json.dumps(listed)):
        text = workspace.run("read", path=path).value["text"]
        [found] = workspace.run("search", pattern=text.rstrip("\n"), path=path).value["matches"]
        assert found["path"] == path
        diff = workspace.run("edit", path=path, old_text="content", new_text="CONTENT").value["diff"]
        assert diff.count("\n") == 5  # two heads, a hunk, one line out, one line in
    assert sorted(place.read_text() for place in workspace.root.rglob("*") if place.is_file()) == sorted(
        f"CONTENT of {name!a}\n" for name in NAMES
    )


# --------------------------------------------------------------------------------------------- reading


def test_lines_are_read_by_number_and_what_is_missing_is_marked(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("".join(f"line {n}\n" for n in range(1, 3001)))
    value = workspace.run("read", path="f", start_line=10, line_count=2).value
    assert (value["text"], value["start_line"], value["total_lines"]) == ("line 10\nline 11\n", 10, 3000)
    assert not value["truncated"]
    whole = workspace.run("read", path="f")
    assert (whole.truncated, whole.value["truncated"], whole.value["line_count"]) == (True, True, 2000)
    assert workspace.run("read", path="f", start_line=5000).value["text"] == ""


def test_big_output_is_cut_at_a_line_and_marked(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, result_limit_bytes=256, file_limit_bytes=1024)
    (workspace.root / "lines").write_text("é" * 50 + "\n" + "x" * 300 + "\n")
    result = workspace.run("read", path="lines")
    assert (result.truncated, result.value["text"]) == (True, "é" * 50 + "\n")
    long = workspace.run("read", path="lines", start_line=2)
    assert (long.truncated, long.value["text"]) == (True, "x" * 256)
    (workspace.root / "huge").write_text("0123456789\n" * 1000)
    huge = workspace.run("read", path="huge", start_line=90)
    assert (huge.truncated, huge.value["digest"], huge.value["size_bytes"]) == (True, None, 11000)
    assert workspace.refusal("edit", path="huge", old_text="0", new_text="1") == "file.too_large"
    assert workspace.run("list").truncated is False
    for number in range(20):
        (workspace.root / f"{number}").touch()
    listed = workspace.run("list")
    assert listed.truncated and listed.value["truncated"] and len(listed.value["entries"]) < 22


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", {"encoding": "utf-8", "bom": True, "eol": "crlf", "text": "a\r\nb\r\n"}),
        (b"caf\xe9\n", {"encoding": "unknown", "bom": False, "eol": "lf", "text": "caf\\xe9\n"}),
        (b"\x7fELF\0\1", {"encoding": "binary", "text": "", "hex": "7f454c460001", "truncated": False}),
        (b"\0" * 1000, {"encoding": "binary", "hex": "00" * 256, "truncated": True}),
        (b"", {"encoding": "utf-8", "eol": "none", "text": "", "total_lines": 0}),
        (b"a\nb\r\nc", {"eol": "mixed", "text": "a\nb\r\nc", "total_lines": 3}),
    ],
)
def test_a_file_that_is_no_plain_text_is_marked(workspace: Workspace, data: bytes, expected: dict[str, Any]) -> None:
    (workspace.root / "f").write_bytes(data)
    value = workspace.run("read", path="f").value
    assert {name: value[name] for name in expected} == expected


def test_a_folder_is_listed_one_level_deep_or_whole(workspace: Workspace) -> None:
    (workspace.root / "d" / "e").mkdir(parents=True)
    (workspace.root / "d" / "e" / "f").write_text("xy")
    (workspace.root / "l").symlink_to("d")
    shallow = workspace.run("list").value["entries"]
    assert [(entry["path"], entry["kind"]) for entry in shallow] == [("d", "directory"), ("l", "symlink")]
    assert [entry["path"] for entry in workspace.run("list", path="d").value["entries"]] == ["d/e"]
    deep = workspace.run("list", path="d", recursive=True).value["entries"]
    assert [(entry["path"], entry["size_bytes"]) for entry in deep if entry["kind"] == "file"] == [("d/e/f", 2)]
    assert workspace.run("list", recursive=True, limit=1).truncated


# ------------------------------------------------------------------------------------------- searching


def test_a_search_names_file_and_line_and_skips_what_is_no_text(workspace: Workspace) -> None:
    (workspace.root / "a.py").write_text("one\ntwo needle two\r\nthree\nneedle")
    (workspace.root / "b.md").write_text("needle\n")
    (workspace.root / "bin").write_bytes(b"needle\0")
    (workspace.root / ".git").mkdir()
    (workspace.root / ".git" / "x").write_text("needle")
    for regex in (False, True):
        value = workspace.run("search", pattern="needle", regex=regex).value
        found = [(match["path"], match["line"], match["text"]) for match in value["matches"]]
        assert found == [("a.py", 2, "two needle two"), ("a.py", 4, "needle"), ("b.md", 1, "needle")]
        assert (value["searched_files"], value["skipped_files"], value["stopped"]) == (2, 1, None)
    only = workspace.run("search", pattern="^ne+dle$", regex=True, glob="*.py").value["matches"]
    assert [match["line"] for match in only] == [4]
    assert workspace.run("search", pattern="n.*e").value["matches"] == []
    assert len(workspace.run("search", pattern="needle", path=".git/x").value["matches"]) == 1


def test_a_search_stops_at_its_limit_and_says_so(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("needle\n" * 10)
    for regex in (False, True):
        cut = workspace.run("search", pattern="needle", regex=regex, limit=3)
        assert (cut.truncated, cut.value["stopped"], len(cut.value["matches"])) == (True, "matches", 3)
        assert not workspace.run("search", pattern="needle", regex=regex, limit=10).truncated
    (workspace.root / "long").write_text("x" * 5000 + "needle" + "x" * 5000)
    [match] = workspace.run("search", pattern="needle", path="long").value["matches"]
    assert match["clipped"] and "needle" in match["text"] and len(match["text"]) == 400


@pytest.mark.req("B-149")
def test_an_expression_that_never_ends_is_ended(workspace: Workspace) -> None:
    (workspace.root / "a").write_text("first ab\n" + "a" * 60 + "\n")
    ports = workspace.host.ports
    ctx = ToolContext(ports.wait.token(), ports, "key", 1.0)
    args = {"pattern": "(a+)+b", "regex": True}
    started = time.monotonic()
    result = workspace.tools.execute("filesystem_search", args, ctx)
    assert time.monotonic() - started < 20  # its second, and patience with a busy machine
    assert (result.truncated, result.value["stopped"]) == (True, "time")
    assert [match["text"] for match in result.value["matches"]] == ["first ab"]  # what was found before still counts


def test_an_expression_that_is_none_is_said_to_be_none(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("x")
    assert workspace.refusal("search", pattern="(", regex=True) == "search.pattern"


@pytest.mark.parametrize(("returncode", "said"), [(-9, "killed from outside (signal 9)"), (1, "The search broke off")])
def test_a_search_whose_process_did_not_end_in_order_says_why(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, returncode: int, said: str
) -> None:
    (workspace.root / "f").write_text("x")
    ended = Completed(returncode, b"", b"", timed_out=False, truncated=False)
    monkeypatch.setattr(type(workspace.host.ports.processes), "run", lambda *_, **__: ended)
    with pytest.raises(ToolError, match=re.escape(said)) as caught:
        workspace.run("search", pattern="x", regex=True)
    assert (caught.value.code, "plain text" in str(caught.value.hint)) == ("search.failed", returncode > 0)


# -------------------------------------------------------------------------------------------- changing


@pytest.mark.inv("I-34")
def test_a_change_keeps_the_mode_and_says_what_it_did(workspace: Workspace) -> None:
    script = workspace.root / "run.sh"
    script.write_text("#!/bin/sh\necho one\n")
    script.chmod(0o750)
    value = workspace.run("edit", path="run.sh", old_text="one", new_text="two").value
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert value["diff"] == "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo one\n+echo two\n"
    assert (value["created"], value["changed"], value["size_bytes"]) == (False, True, 19)
    read = workspace.run("read", path="run.sh").value
    assert read["digest"] == value["digest_after"] != value["digest_before"]


def test_an_empty_old_text_makes_a_file_and_never_overwrites_one(workspace: Workspace) -> None:
    value = workspace.run("edit", path="new/a.txt", old_text="", new_text="x\n").value
    assert (value["created"], value["digest_before"]) == (True, None)
    assert value["diff"] == "--- /dev/null\n+++ b/new/a.txt\n@@ -0,0 +1,1 @@\n+x\n"
    assert workspace.refusal("edit", path="new/a.txt", old_text="", new_text="y") == "edit.exists"
    (workspace.root / "empty").touch()
    assert not workspace.run("edit", path="empty", old_text="", new_text="y").value["created"]
    assert workspace.refusal("edit", path="absent", old_text="x", new_text="y") == "file.not_found"
    assert workspace.refusal("write", path="new", content="x") == "file.is_folder"


def test_writing_what_is_there_changes_nothing(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("x")
    before = (workspace.root / "f").stat()
    value = workspace.run("write", path="f", content="x").value
    assert (value["changed"], value["diff"]) == (False, "")
    assert (workspace.root / "f").stat().st_ino == before.st_ino


def test_a_diff_too_long_to_show_is_cut_and_marked(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, result_limit_bytes=256)
    args = {"path": "f", "content": "line\n" * 1000}
    preview = workspace.tools.preview("filesystem_write", args)
    assert preview is not None and preview.endswith("[cut here]\n") and len(preview) < 300
    result = workspace.run("write", **args)
    assert result.truncated and result.value["truncated"] and len(result.value["diff"]) <= 256


def test_a_preview_is_the_diff_or_why_there_will_be_none(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("one\n")
    args = {"path": "f", "old_text": "one", "new_text": "two"}
    assert workspace.tools.preview("filesystem_edit", args) == workspace.run("edit", **args).value["diff"]
    assert workspace.tools.preview("filesystem_edit", args) == (
        "It will fail: The old text does not occur in the file."
    )
    assert workspace.tools.preview("filesystem_read", {"path": "f"}) is None


def test_a_preview_of_no_change_says_so(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("one\n")
    said = "No change: f has this content already.\n"
    assert workspace.tools.preview("filesystem_write", {"path": "f", "content": "one\n"}) == said
    assert workspace.tools.preview("filesystem_write", {"path": "g", "content": ""}) == "--- /dev/null\n+++ b/g\n"


# ---------------------------------------------------------------------------------- after a crash


def test_a_call_repeated_after_a_crash_gives_the_result_it_gave(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("a\n")
    args = {"path": "f", "old_text": "a", "new_text": "ab"}
    first = workspace.run("edit", "k", **args)
    again = Workspace(workspace.root.parent)
    assert again.run("edit", "k", **args) == first
    assert again.tools.probe("filesystem_edit", args, "k").value == first.value
    assert (workspace.root / "f").read_text() == "ab\n"
    assert again.run("edit", "another", **args).value["changed"]
    assert (workspace.root / "f").read_text() == "abb\n"


def test_a_call_that_crashed_before_its_effect_happens_once(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("a\n")
    args = {"path": "f", "old_text": "a", "new_text": "ab"}
    workspace.run("edit", "k", **args)
    (workspace.root / "f").write_text("a\n")  # as if the record had been written and the file not
    assert workspace.tools.probe("filesystem_edit", args, "k").outcome == "never_happened"
    workspace.run("edit", "k", **args)
    assert (workspace.root / "f").read_text() == "ab\n"


def test_a_file_that_someone_else_changed_meanwhile_is_left_alone(workspace: Workspace) -> None:
    (workspace.root / "f").write_text("a\n")
    args = {"path": "f", "old_text": "a", "new_text": "ab"}
    workspace.run("edit", "k", **args)
    (workspace.root / "f").write_text("someone's a\n")
    assert workspace.tools.probe("filesystem_edit", args, "k").outcome == "unknown"
    assert workspace.refusal("edit", key="k", **args) == "file.changed"
    assert (workspace.root / "f").read_text() == "someone's a\n"


def test_a_lost_record_is_not_taken_for_knowledge(workspace: Workspace) -> None:
    args = {"path": "f", "content": "x"}
    assert workspace.tools.probe("filesystem_write", args, "k").outcome == "unknown"
    workspace.run("write", "other", path="g", content="x")
    assert workspace.tools.probe("filesystem_write", args, "k").outcome == "never_happened"
    for record in (workspace.host.state_dir / "tool-filesystem").iterdir():
        record.write_text("{")
    assert workspace.tools.probe("filesystem_write", {"path": "g", "content": "x"}, "other").outcome != "happened"


def test_only_the_newest_records_are_kept(workspace: Workspace) -> None:
    folder = workspace.host.state_dir / "tool-filesystem"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.json").touch()
        os.utime(folder / f"{number}.json", (number, number))
    workspace.run("write", path="f", content="x")
    left = {record.stem for record in folder.iterdir()}
    assert len(left) == 256 and "299" in left and "44" not in left
    # the record of a call may be among those that were dropped
    assert workspace.tools.probe("filesystem_write", {"path": "g", "content": "x"}, "k").outcome == "unknown"
