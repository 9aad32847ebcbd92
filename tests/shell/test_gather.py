"""Facts for a context: names that are not UTF-8, git that does not answer, answers that are too long, and a cancel."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness_core.settings.stages import ContextSource
from harness_core.shell.gather import Gathered, GatherSite, gather
from harness_core.shell.ports import make_ports
from harness_hookspecs.errors import Cancelled, HarnessError
from harness_hookspecs.host import Completed, Ports
from harness_hookspecs.kit.codec import dumps

PORTS = make_ports("threads")
SAID = Completed(0, b"", b"", timed_out=False, truncated=False)


class Doors(NamedTuple):
    """Doors whose processes answer git as a test wants, where it wants anything."""

    real: Ports
    answers: Callable[[list[str]], Completed | None]

    @property
    def files(self) -> Any:
        return self.real.files

    @property
    def processes(self) -> Doors:
        return self

    def run(self, argv: list[str], **more: Any) -> Completed:
        answer = self.answers(argv)
        return self.real.processes.run(argv, **more) if answer is None else answer


def site(folder: Path, answers: Callable[[list[str]], Completed | None] = lambda _: None) -> GatherSite:
    doors: Any = Doors(PORTS, answers)
    return GatherSite(doors, folder, PORTS.wait.token(), lambda _: None, lambda *_: None)


def facts(where: GatherSite, kind: str, **more: Any) -> list[Gathered]:
    return gather([("stages.yaml:3:5", ContextSource(kind=kind, **more))], where)


def refused(where: GatherSite, kind: str, **more: Any) -> HarnessError:
    with pytest.raises(HarnessError) as caught:
        facts(where, kind, **more)
    return caught.value


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, subject: str, *names: str) -> None:
    for name in names:
        (folder / name).write_text(f"{subject}\n", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", subject)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits without a tag."""
    git(tmp_path, "init", "-q")
    commit(tmp_path, "first", "a.txt")
    commit(tmp_path, "second", "b.txt")
    return tmp_path


# ------------------------------------------------------------------------------------------------------- names

ODD = os.fsdecode(b"n\xff.txt")


@pytest.mark.parametrize(("kind", "glob"), [("tree", None), ("files", "*.txt")])
def test_a_name_that_is_not_utf8_is_told_as_the_tools_write_it(tmp_path: Path, kind: str, glob: str | None) -> None:
    (tmp_path / ODD).write_text("content", encoding="utf-8")
    [fact] = facts(site(tmp_path), kind, glob=glob)
    dumps([fact.title, fact.text, fact.source])
    assert "bytes:n%FF.txt" in (fact.text, fact.title)


def test_a_changed_file_keeps_its_name_when_it_is_not_utf8(repository: Path) -> None:
    commit(repository, "third", ODD, "\u00fc.txt")
    [fact] = facts(site(repository), "git_diff", range="HEAD~1..HEAD")
    assert fact.facts["changed_files"] == ["bytes:n%FF.txt", "\u00fc.txt"]
    dumps([fact.text, dict(fact.facts)])


@pytest.mark.parametrize("kind", ["git_log", "git_diff"])
def test_a_tag_whose_name_is_not_utf8_is_told_as_a_file_is(repository: Path, kind: str) -> None:
    git(repository, "tag", os.fsdecode(b"v\xff"), "HEAD^")
    [fact] = facts(site(repository), kind)
    assert fact.source == {"git": "bytes:v%FF..HEAD"}
    assert "second" in fact.text


def test_a_file_that_goes_while_it_is_looked_for_is_left_out(tmp_path: Path) -> None:
    class Going(NamedTuple):
        files: Any

        def walk(self) -> Any:
            for path, found in list(self.files.walk()):
                (tmp_path / "gone.txt").unlink(missing_ok=True)
                yield path, found

        def read_bytes(self, path: str, **more: Any) -> bytes:
            content: bytes = self.files.read_bytes(path, **more)
            return content

    (tmp_path / "gone.txt").touch()
    (tmp_path / "kept.txt").touch()

    class Walking(Doors):
        @property
        def files(self) -> Any:
            return lambda root: Going(PORTS.files(root))

    doors: Any = Walking(PORTS, lambda _: None)
    where = GatherSite(doors, tmp_path, PORTS.wait.token(), lambda _: None, lambda *_: None)
    assert [fact.title for fact in facts(where, "files", glob="*.txt")] == ["kept.txt"]


# ------------------------------------------------------------------------------------------- git says it or not


def to_describe(answer: Completed) -> Callable[[list[str]], Completed | None]:
    return lambda argv: answer if "describe" in argv else None


STOPPED = {
    "killed": (SAID._replace(returncode=-signal.SIGKILL), "ended by signal 9"),
    "too slow": (SAID._replace(returncode=-signal.SIGTERM, timed_out=True), "no answer in 30 s"),
    "too slow, though it had said so": (
        SAID._replace(returncode=128, stderr=b"fatal: No names found, cannot", timed_out=True),
        "no answer in 30 s",
    ),
    "a silent failure": (SAID._replace(returncode=3), "it failed with code 3"),
    "something else": (SAID._replace(returncode=128, stderr=b"warning: x\nfatal: bad object HEAD^\nadvice\n"), "bad"),
}


@pytest.mark.parametrize("kind", ["git_log", "git_diff"])
@pytest.mark.parametrize(("answer", "reason"), STOPPED.values(), ids=STOPPED)
def test_a_tag_that_git_did_not_look_for_is_not_taken_for_none(
    repository: Path, kind: str, answer: Completed, reason: str
) -> None:
    error = refused(site(repository, to_describe(answer)), kind)
    assert error.message.startswith(f"context source 1 ({kind}, stages.yaml:3:5): git describe: ")
    assert reason in error.message


@pytest.mark.parametrize("tagged", [False, True])
def test_only_where_git_knows_no_tag_before_the_last_commit_the_whole_history_is_told(
    repository: Path, tagged: bool
) -> None:
    if tagged:
        git(repository, "tag", "v1", "HEAD^")
    [log] = facts(site(repository), "git_log")
    assert log.text == ("- second" if tagged else "- second\n- first")


def test_a_first_commit_with_a_tag_has_no_tag_before_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    commit(tmp_path, "first", "a.txt")
    git(tmp_path, "tag", "v1")
    assert facts(site(tmp_path), "git_diff")[0].facts["changed_files"] == ["a.txt"]


def test_a_folder_without_a_repository_is_said_with_the_place_and_what_to_do(tmp_path: Path) -> None:
    error = refused(site(tmp_path), "git_log")
    said = "context source 1 (git_log, stages.yaml:3:5): the project lies in no git repository"
    assert (error.code, error.message) == ("context.source_missing", said)
    assert error.hint is not None and "git init" in error.hint


@pytest.mark.parametrize("kind", ["git_log", "git_diff"])
@pytest.mark.parametrize("range_", ["v9..HEAD", "HEAD", f"{'1' * 40}..HEAD", "HEAD~9..HEAD", "HEAD..HEAD:none"])
def test_a_range_that_is_not_there_is_missing(repository: Path, kind: str, range_: str) -> None:
    assert refused(site(repository), kind, range=range_).code == "context.source_missing"


def test_a_repository_without_a_commit_has_no_log_yet(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert refused(site(tmp_path), "git_log").code == "context.source_missing"


@pytest.mark.parametrize("said", [b"fatal: Out of memory, malloc failed", b"fatal: unable to read tree", b""])
def test_what_git_fails_at_otherwise_is_asked_for_again(repository: Path, said: bytes) -> None:
    failed = SAID._replace(returncode=128, stderr=said)
    answers = site(repository, lambda argv: failed if "log" in argv else None)
    assert refused(answers, "git_log").code == "context.source"


# --------------------------------------------------------------------------------------------------- long answers


def too_long(words: set[str], stdout: bytes) -> Callable[[list[str]], Completed | None]:
    answer = SAID._replace(stdout=stdout, truncated=True)
    return lambda argv: answer if words <= set(argv) else None


def test_names_that_are_not_all_there_are_an_error_and_no_fact(repository: Path) -> None:
    error = refused(site(repository, too_long({"diff", "-z"}, b"a.txt\0b.t")), "git_diff")
    assert (error.code, "longer than" in error.message) == ("context.source", True)


def test_more_than_a_mebibyte_of_names_is_all_there(repository: Path) -> None:
    many = [f"{'x' * 200}{number:05}.txt" for number in range(6_000)]
    blob = subprocess.run(["git", "rev-parse", "HEAD:a.txt"], cwd=repository, check=True, capture_output=True).stdout
    index = "".join(f"100644 {blob.decode().strip()}\t{name}\n" for name in many).encode()
    subprocess.run(["git", "update-index", "--add", "--index-info"], cwd=repository, check=True, input=index)
    git(repository, "commit", "-q", "-m", "third")
    [fact] = facts(site(repository), "git_diff", range="HEAD~1..HEAD")
    assert fact.facts["changed_files"] == many


@pytest.mark.parametrize(
    ("kind", "words", "mark"),
    [("git_log", {"log"}, "[cut: there are more commits]"), ("git_diff", {"-U1"}, "[cut: there are more changes]")],
)
def test_a_text_that_is_cut_ends_with_a_whole_line_and_says_so(
    repository: Path, kind: str, words: set[str], mark: str
) -> None:
    lines = b"+ a line of it\n" * 70_000
    [fact] = facts(site(repository, too_long(words, lines[:1_048_576])), kind)
    *whole, last = fact.text.splitlines()
    assert (set(whole), last) == ({"+ a line of it"}, mark)


# --------------------------------------------------------------------------------------------------------- cancel


@pytest.mark.req("A-31")
def test_a_cancel_ends_git_at_once(repository: Path) -> None:
    os.mkfifo(repository / ".git" / "refs" / "tags" / "stuck")  # git waits for somebody to write there
    started = threading.Event()

    def answer(argv: list[str]) -> None:
        started.set()

    where = site(repository, answer)

    def cancel() -> None:
        assert started.wait(60)
        where.cancel.cancel("enough")  # type: ignore[attr-defined]  # the token of the doors can be set

    worker = threading.Thread(target=cancel)
    worker.start()
    with pytest.raises(Cancelled):
        facts(where, "git_log")
    worker.join()


@pytest.mark.parametrize(("kind", "glob"), [("tree", None), ("files", "*"), ("git_log", None)])
def test_what_is_cancelled_gathers_nothing_more(repository: Path, kind: str, glob: str | None) -> None:
    where = site(repository)
    where.cancel.cancel("enough")  # type: ignore[attr-defined]
    with pytest.raises(Cancelled):
        facts(where, kind, glob=glob)
