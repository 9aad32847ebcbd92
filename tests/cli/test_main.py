"""The command line's door: exits, documents, shared options, and a version that costs nothing."""

from __future__ import annotations

import configparser
import errno
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import harness_core
from harness_core.cli import group
from harness_core.cli.errors import EXITS, error_document, exit_of, exit_of_code, limit_of
from harness_core.cli.main import main
from harness_core.cli.options import GlobalOptions, UsageError, split_globals
from harness_core.cli.output import emit, json_option, options_of, say
from harness_hookspecs import errors
from harness_hookspecs.errors import ConfigError, HarnessError, NotFound
from harness_hookspecs.events import CATEGORIES

ROOT = Path(__file__).resolve().parents[2]


@click.command()
@click.option("--raise", "wanted", default="")
@json_option
@click.pass_context
def probe(ctx: click.Context, wanted: str) -> int | None:
    """Raise what is asked for, or say who is asking."""
    failures: dict[str, BaseException] = {
        "config": ConfigError("wrong", where="a.yaml:1:2", hint="mend it"),
        "locked": errors.Locked("busy"),
        "internal": RuntimeError("oops"),
        "generator": GeneratorExit("oops"),
        "interrupt": KeyboardInterrupt(),
        "pipe": BrokenPipeError(),
        "full": OSError(errno.ENOSPC, "No space left on device"),
        "another file": OSError(errno.ENOSPC, "No space left on device", "a.txt"),
        "files": OSError(errno.EMFILE, "Too many open files", "a.txt"),
        "files of all": OSError(errno.ENFILE, "Too many open files in system"),
        "memory": MemoryError(),
        "memory of a call": OSError(errno.ENOMEM, "Cannot allocate memory"),
        "threads": RuntimeError("can't start new thread"),
        "click": click.ClickException("it failed"),
        "click's file": click.FileError("a.txt", "not there"),
        "left": SystemExit(4),
        "left with words": SystemExit("it failed"),
        "left for good": SystemExit(),
        "left far out": SystemExit(1000),
    }
    if wanted == "files of a child":
        raise HarnessError("git cannot be started: Too many open files") from failures["files"]
    if wanted in failures:
        raise failures[wanted]
    say(ctx, "for people")
    options = options_of(ctx)
    emit(
        ctx,
        {"schema": "harness.probe/1", "project": options.project, "plain": options.plain},
        lambda one: str(one["project"]),
    )
    return 10 if wanted == "ten" else None


@pytest.fixture(autouse=True)
def _with_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(group.COMMANDS, "probe", (f"{__name__}:probe", "A probe."))
    monkeypatch.setitem(group.COMMANDS, "absent", ("harness_core.cli.nowhere:absent", "Not there."))


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        ("", 0, None),
        ("ten", 10, None),
        ("config", 3, "config.invalid"),
        ("locked", 5, "run.locked"),
        ("internal", 70, "internal"),
        ("generator", 70, "internal"),
        ("interrupt", 130, "interrupted"),
        ("pipe", 141, None),
        ("full", 1, None),
        ("another file", 70, "internal"),
        ("click", 1, "command.failed"),
        ("click's file", 1, "command.failed"),
        ("left", 4, None),
        ("left with words", 1, None),
        ("left for good", 0, None),
        ("left far out", 70, None),
    ],
)
def test_what_a_command_raises_becomes_an_exit_and_one_document(
    wanted: str, code: int, said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", "--json", "--raise", wanted]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    if said or wanted in ("", "ten"):
        document = json.loads(out)
        assert document["schema"] == ("harness.error/1" if said else "harness.probe/1")
        assert document.get("code") == said
    else:
        assert out == ""


LIMITS = {
    "files": ("by this process", "ulimit -n"),
    "files of all": ("on this machine", "fs.file-max"),
    "files of a child": ("git cannot be started", "ulimit -n"),
    "memory": ("not enough memory", "ulimit -v"),
    "memory of a call": ("not enough memory", "ulimit -v"),
    "threads": ("no further thread", "ulimit -u"),
}


def test_causes_that_run_in_a_circle_are_looked_at_once() -> None:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__context__ = second, first
    assert limit_of(first) is None
    second.__cause__ = MemoryError()
    limit = limit_of(first)
    assert limit is not None
    assert limit.code == "machine.limit"


@pytest.mark.parametrize("wanted", LIMITS)
def test_a_limit_of_the_machine_is_named_with_what_can_be_done_and_is_no_error_of_ours(
    wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message, hint = LIMITS[wanted]
    assert main(["probe", "--json", "--raise", wanted]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["code"] == ("harness.error" if wanted == "files of a child" else "machine.limit")
    assert message in document["message"] and hint in document["hint"]
    assert message in err and hint in err and "internal" not in err


def test_what_click_says_of_a_failure_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    said = {"click": "it failed", "click's file": "Could not open file 'a.txt': not there"}
    for wanted, message in {**said, "left with words": "it failed"}.items():
        assert main(["probe", "--raise", wanted]) == 1
        assert capsys.readouterr() == ("", f"harness: {message}\n")


@pytest.mark.parametrize(
    ("returned", "code"),
    [(None, 0), (0, 0), (255, 255), (256, 70), (-1, 70), (10**30, 70), (True, 0), ("3", 0), (3.5, 0), ([1], 0)],
)
def test_what_a_command_returns_is_an_exit_only_where_a_process_can_have_it(
    returned: object, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "callback", lambda **_: returned)
    assert main(["probe"]) == code
    said = f"harness: the command ended with {returned}, which is no exit code\n"
    assert capsys.readouterr().err == (said if code == 70 else "")


def test_an_error_says_what_where_and_what_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--raise", "config"]) == 3
    out, err = capsys.readouterr()
    assert (out, err) == ("", "harness: a.yaml:1:2: wrong\n  mend it\n")


@pytest.mark.parametrize("wanted", ["config", "internal"])
def test_a_traceback_comes_only_when_asked_for(wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["probe", "--raise", wanted, "--debug"])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["probee"], ["probe", "--nothing"], ["probe", "x"], ["probe", "--project"]])
def test_wrong_usage_is_exit_2_and_a_document_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"] if words[-1] != "--project" else ["--json", *words]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["code"] == "usage"
    assert "--help" in err


def test_wrong_usage_names_the_help_of_what_was_typed_and_what_may_stand_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, typed in ((["events"], "events"), (["events", "verify", "--nothing"], "events verify")):
        assert main([*words, "--category", "nope"]) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"  see: harness {typed} --help"
    assert main(["events", "--category", "nope"]) == 2
    said = capsys.readouterr().err
    assert all(f"'{name}'" in said for name in CATEGORIES)
    assert main(["artifacts", "--nothing"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "  see: harness artifacts --help"


def test_a_mistyped_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prob"]) == 2
    assert 'did you mean "probe"?' in capsys.readouterr().err


def test_people_s_text_leaves_stdout_to_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)
    assert err == "for people\n"
    assert main(["probe"]) == 0
    assert capsys.readouterr().out == "for people\nNone\n"


@pytest.mark.parametrize("words", [["--project", "X", "--plain", "probe"], ["probe", "--plain", "--project=X"]])
def test_shared_options_stand_before_or_after_the_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["project"], document["plain"]) == ("X", True)


def test_shared_options_are_taken_out_and_what_follows_the_dashes_is_left_alone() -> None:
    env = {"HARNESS_DISABLE_PLUGINS": "a, b,", "NO_COLOR": "1"}
    words = ["--no-plugin", "c", "run", "text", "--no-plugins", "--no-plugin=d", "--", "--debug"]
    options, rest = split_globals(words, env)
    disabled = (
        ("a", "HARNESS_DISABLE_PLUGINS"),
        ("b", "HARNESS_DISABLE_PLUGINS"),
        ("c", "--no-plugin"),
        ("d", "--no-plugin"),
    )
    assert options == GlobalOptions(disabled=disabled, no_plugins=True, plain=True)
    assert rest == ["run", "text", "--", "--debug"]
    with pytest.raises(UsageError):
        split_globals(["--project"], {})


@pytest.mark.parametrize(("words", "shown"), [(["--plain"], "red"), ([], "\x1b[31mred\x1b[0m")])
def test_plain_takes_the_colour_from_what_any_command_prints(
    words: list[str], shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(probe, "callback", lambda **_: click.secho("red", fg="red"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["probe", *words]) == 0
    assert capsys.readouterr().out == f"{shown}\n"


def test_the_package_is_the_command() -> None:
    found = _python("-m", "harness_core", "--version")
    assert (found.returncode, found.stdout) == (0, f"harness {harness_core.__version__}\n")
    assert _python("-m", "harness_core", "nope").returncode == 2


def test_the_help_lists_only_commands_that_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    bare = capsys.readouterr().out
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == bare
    assert "probe" in bare
    assert "absent" not in bare
    assert main(["absent"]) == 2


EVERY_ERROR = [getattr(errors, name) for name in errors.__all__ if name != "Suspend"]
TABLE = {
    "ConfigError": 3,
    "PluginError": 3,
    "Drift": 3,
    "NotFound": 4,
    "Locked": 5,
    "StoreError": 6,
    "StoreConflict": 6,
    "StoreCorrupt": 6,
    "Refused": 11,
    "BudgetExhausted": 12,
    "ProviderError": 13,
    "ValidationFailed": 14,
    "Diverged": 15,
    "InternalError": 70,
}


@pytest.mark.parametrize("kind", EVERY_ERROR, ids=lambda kind: kind.__name__)
def test_every_error_has_the_exit_of_the_table(kind: type[HarnessError]) -> None:
    assert exit_of(kind()) == TABLE.get(kind.__name__, 1)
    assert set(error_document(kind())) == {"schema", "code", "message", "hint", "where", "facts"}


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("config.untrusted", 3),
        ("config.drift", 3),
        ("plugin.drift", 4),
        ("not_found", 4),
        ("run.locked", 5),
        ("store.corrupt", 6),
        ("suspended", 10),
        ("approval.denied_unattended", 11),
        ("budget.exhausted", 12),
        ("provider.swap_timeout", 13),
        ("artifact.invalid_after_retries", 14),
        ("replay.diverged", 15),
        ("internal", 70),
        ("transition.none", None),
        ("role.failed", None),
    ],
)
def test_the_code_of_a_failed_session_has_an_exit(code: str, number: int | None) -> None:
    assert exit_of_code(code) == number


def test_a_code_is_stronger_than_its_class() -> None:
    assert exit_of(NotFound("x", code="config.invalid")) == 3
    assert exit_of(ConfigError("x", code="nothing.known")) == 3


def test_the_exits_are_those_that_are_published() -> None:
    assert set(EXITS.values()) <= {1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 70}


def _python(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    more = options.pop("env", {})
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "hookspecs")]), **more}
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run([sys.executable, *words], env=env, text=True, timeout=60, check=False, **{**piped, **options})


HARNESS = ("-m", "harness_core.cli.main")
PRINTING = [["--version"], ["--help"], ["run", "--help"], ["plugins", "list"], ["plugins", "list", "--json"]]
buffers = pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@buffers
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_where_stdout_is_full_one_line_says_so_and_the_exit_is_1(words: list[str], unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        found = _python(*HARNESS, *words, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
    said = "harness: what was to be printed cannot be written: No space left on device\n"
    assert (found.returncode, found.stderr) == (1, said)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@buffers
@pytest.mark.parametrize(("words", "code"), [(["plugins", "list"], 0), (["nope"], 2), (["nope", "--json"], 2)])
def test_where_stderr_is_full_the_exit_is_what_it_would_be(words: list[str], code: int, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        found = _python(*HARNESS, *words, stderr=full, env={"PYTHONUNBUFFERED": unbuffered})
    assert found.returncode == code
    assert found.stdout or "--json" not in words


@buffers
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_where_nobody_reads_stdout_nothing_is_said_and_the_exit_is_a_signal_s(
    words: list[str], unbuffered: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    found = _python(*HARNESS, *words, stdout=writing, env={"PYTHONUNBUFFERED": unbuffered})
    os.close(writing)
    assert (found.returncode, found.stderr) == (141, "")


@pytest.mark.parametrize("words", [["plugins", "list", "--json"], ["nope", "--json"], ["--version"]], ids=" ".join)
def test_a_process_without_streams_runs_its_command(words: list[str]) -> None:
    shut = f"import os; os.close(1); os.close(2); os.execv({sys.executable!r}, {[sys.executable, *HARNESS, *words]!r})"
    assert _python("-c", shut).returncode == (2 if "nope" in words else 0)


def test_the_version_is_told_without_importing_anything() -> None:
    found = _python("-X", "importtime", "-m", "harness_core.cli.main", "--version")
    assert (found.returncode, found.stdout) == (0, f"harness {harness_core.__version__}\n")
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in found.stderr.splitlines()}
    assert not imported & {"click", "yaml", "pydantic", "attrs", "attr", "harness_hookspecs", "pluggy", "json"}


def test_help_imports_no_command_and_nothing_heavy() -> None:
    found = _python("-X", "importtime", "-m", "harness_core.cli.main", "--help")
    assert found.returncode == 0
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in found.stderr.splitlines()}
    assert not imported & {"pydantic", "yaml", "jsonschema_rs", "pluggy", "rich", "peewee", "pysqlite3", "orjson"}


def test_a_list_of_sessions_makes_no_models_of_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # of another's sessions one might be damaged, and is read then
    found = _python("-X", "importtime", *HARNESS, "sessions", "list", cwd=tmp_path)
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert (found.returncode, found.stdout[:11]) == (0, "no sessions")
    assert "harness_store_sqlite.reader" in imported and "harness_hookspecs.events" not in imported


def test_a_caller_s_process_keeps_its_own_garbage_collection(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    assert main(["plugins", "list"]) == 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_the_version_is_the_distribution_s() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    assert parser["metadata"]["version"] == harness_core.__version__


def test_the_help_says_which_command_prints_lines() -> None:
    for words, said in {
        ("--help",): "only events prints JSON Lines",
        ("events", "show", "--help"): "Print JSON Lines, one document a line.",
        ("report", "--help"): "Print one JSON document.",
    }.items():
        found = _python("-m", "harness_core.cli.main", *words)
        assert said in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    "words", [["run", "x", "--seed"], ["events", "--from"], ["prompt", "show", "--seq"], ["sessions", "show", "--at"]]
)
def test_what_is_no_number_is_said_to_be_none(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "x"]) == 2
    assert f"Invalid value for '{words[-1]}': 'x' is not a valid whole number." in capsys.readouterr().err
