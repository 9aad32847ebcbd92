"""What people read on a terminal of 80 columns fits it, and nothing that goes to a pipe is broken or left out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from harness_core.cli.group import COMMANDS
from harness_core.cli.group import harness as whole_program
from harness_core.cli.main import main
from tests.reference import REFERENCE, Site, one_stage, says, write_reference, write_site

Look = Callable[..., list[str]]

COLUMNS = 80
SUMMARY = "What was found and why it matters to whoever reads this, in one long sentence, " * 3


@pytest.fixture
def look(capsys: pytest.CaptureFixture[str]) -> Look:
    """Gives the lines that a command prints to a pipe."""

    def lines(*words: str, exits: int = 0) -> list[str]:
        capsys.readouterr()
        assert main([*words]) == exits
        return capsys.readouterr().out.splitlines()

    return lines


@pytest.fixture
def on_screen(look: Look, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Gives the lines that a command prints on a terminal of 80 columns."""

    def lines(*words: str, exits: int = 0) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", str(COLUMNS))
            patch.setattr(sys.stdout, "isatty", lambda: True)
            return look(*words, exits=exits)

    return lines


WIDE = [
    "sessions show @last", "events", "report", "artifacts", "replay --mode skip-inference", "approvals history",
    "events trace @last:9", "events verify",
    "plugins list", "plugins info tool-filesystem",
]  # fmt: skip
LOOKS = [*WIDE, "sessions", "transitions", "approvals grants", "stages", "models"]


@pytest.mark.parametrize("words", LOOKS)
def test_each_look_fits_the_terminal(words: str, done: Site, on_screen: Look) -> None:
    assert max(map(len, on_screen(*words.split()))) <= COLUMNS


@pytest.mark.parametrize("words", WIDE)
def test_what_goes_to_a_pipe_is_as_wide_as_it_is(words: str, done: Site, on_screen: Look, look: Look) -> None:
    assert max(map(len, look(*words.split()))) > COLUMNS


@pytest.mark.parametrize("words", LOOKS)
def test_a_document_is_the_same_on_a_terminal(words: str, done: Site, on_screen: Look, look: Look) -> None:
    assert on_screen(*words.split(), "--json") == look(*words.split(), "--json")


def test_the_terminal_s_own_width_is_what_columns_says(
    done: Site, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    assert 50 < max(map(len, look("plugins", "list"))) <= 60
    monkeypatch.setenv("COLUMNS", "3000")
    wide = look("plugins", "list")
    monkeypatch.undo()
    assert wide == look("plugins", "list")


def test_columns_that_say_nothing_are_left_out_on_a_terminal_only(done: Site, on_screen: Look, look: Look) -> None:
    assert "waits for" in look("sessions")[0]
    assert "waits for" not in on_screen("sessions")[0]
    assert any("reasoning" in line.split() for line in look("report"))
    assert not any("reasoning" in line.split() for line in on_screen("report"))


def test_the_list_of_plugins_shows_who_takes_part_and_info_the_rest(done: Site, look: Look) -> None:
    assert look("plugins", "list")[0].split() == ["id", "version", "status", "origin", "provides"]
    known = "\n".join(look("plugins", "info", "tool-filesystem"))
    assert all(re.search(rf"^{key} ", known, re.MULTILINE) for key in ("spec", "lock", "capabilities"))


def test_settings_of_a_plugin_are_a_line_each(done: Site, look: Look) -> None:
    told = [line.split(maxsplit=1)[1] for line in look("plugins", "info", "tool-filesystem") if line[:8] == "settings"]
    assert [line.split("  ")[0] for line in told] == [
        "tool:filesystem file_limit_bytes = 8388608", "tool:filesystem result_limit_bytes = 65536",
    ]  # fmt: skip


def test_every_event_stands_in_the_columns_of_the_head_and_none_loses_a_word(
    done: Site, on_screen: Look, look: Look
) -> None:
    head, *lines = on_screen("events")
    assert head.split() == ["seq", "time", "UTC", "type", "what"]
    what = head.index("what")
    piped = look("events")[1:]
    assert all(line[:what].strip() == "" or line[:what].split()[0].isdecimal() for line in lines)
    assert [line[:what].rstrip() for line in lines if line[:what].strip()] == [line[:what].rstrip() for line in piped]
    assert all(line[what - 2 : what].strip() == "" for line in lines)
    assert not any("effect_class=" in line or "scope=  " in line for line in piped)
    assert "".join("".join(lines).split()) == "".join("".join(piped).split()), "nothing is left out"


def test_on_a_narrow_terminal_every_text_of_an_event_stands_below(
    done: Site, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    _, *lines = look("events")
    assert max(map(len, lines)) <= 60
    below = [line for line in lines if not line[:17].strip()]
    assert below and all(len(line.split()) == 3 for line in lines if line not in below)


def test_the_history_of_approvals_is_one_table_that_breaks_in_its_last_column(
    done: Site, on_screen: Look, look: Look
) -> None:
    head, *lines = on_screen("approvals", "history")
    assert head.split() == ["id", "session", "tier", "status", "asked", "(UTC)", "what"]
    what = head.index("what")
    rows = [line for line in lines if line[:what].strip()]
    assert len(rows) == len(json.loads("\n".join(look("approvals", "history", "--json")))["items"])
    assert all(line[what] != " " and line[what - 1] == " " for line in lines)
    answered = look("approvals", "history")[1]
    told = " ".join(" ".join(line[what:] for line in lines).split())
    assert all(word in told.replace(" ", "") for word in (answered.split()[4], answered.split()[-1].rstrip("}")))


def test_what_a_run_made_breaks_between_words_and_keeps_its_indent(
    tmp_path_factory: pytest.TempPathFactory, on_screen: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_site(tmp_path_factory.mktemp("result"), stages=one_stage(), replies=[says(SUMMARY)]).enter(monkeypatch)
    lines = on_screen("run", "W")
    assert max(map(len, lines)) <= COLUMNS
    first = next(number for number, line in enumerate(lines) if line.startswith("  text  "))
    told = lines[first : first + 4]
    assert " ".join(line[8:] for line in told).split() == SUMMARY.split()
    assert all(line.startswith("        ") for line in told[1:])


# -- naming things ---


def test_a_run_says_on_a_terminal_what_the_short_id_of_its_result_is_and_how_to_read_it(
    tmp_path: Path, on_screen: Look, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_site(tmp_path, stages=one_stage(), replies=[says("Made."), says("Made.")]).enter(monkeypatch)
    lines = on_screen("run", "W")
    short = json.loads("\n".join(look("sessions", "show", "--json")))["artifacts"][0][-8:]
    assert f"  artifact {short}" in lines
    for shown in (lines, look("run", "W")):
        hint = next(line for line in shown if "artifacts get" in line)
        assert look(*hint.split()[1:])


def test_a_session_shows_each_artifact_with_its_stage(done: Site, look: Look) -> None:
    stages = [line.split()[1] for line in look("sessions", "show") if line.startswith("artifact ")]
    assert stages == ["work:", "check:"]
    assert not any(line.startswith("artifact ") for line in look("sessions", "show", "--at", "3"))


def test_the_short_id_on_the_screen_gets_the_artifact(done: Site, on_screen: Look, look: Look) -> None:
    ref = json.loads("\n".join(look("artifacts", "--json")))["items"][0]["ref"]
    shown = on_screen("artifacts")[1].split()[-1]
    assert ref.endswith(shown) and len(shown) == 8
    assert look("artifacts", "get", shown) == look("artifacts", "get", ref)
    assert look("artifacts", "get", ref[:26]) == look("artifacts", "get", ref)
    assert json.loads("\n".join(look("artifacts", "get", shown.upper(), "--json")))["ref"] == ref


NEWEST = ["sessions show", "replay", "prompt show", "events verify", "prompt show --seq SEQ"]


@pytest.mark.parametrize("words", NEWEST)
def test_without_a_session_a_look_is_at_the_newest(words: str, done: Site, look: Look) -> None:
    called = json.loads(look("events", "--type", "harness.model.called", "--json")[0])["seq"]
    noun, *rest = words.replace("SEQ", str(called)).split()
    before = 0 if noun == "replay" else 1
    named = [noun, *rest[:before], "@last", *rest[before:]]
    assert look(noun, *rest) == look(*named) != []


def test_resume_without_a_session_means_the_newest(done: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume"]) == 1
    assert "is completed" in capsys.readouterr().err


# -- help ---


def _commands(ctx: click.Context) -> Iterator[click.Context]:
    yield ctx
    if isinstance(ctx.command, click.Group):
        for name in ctx.command.list_commands(ctx):
            found = ctx.command.get_command(ctx, name)
            assert found is not None
            yield from _commands(click.Context(found, parent=ctx, info_name=name))


PROGRAM = click.Context(whole_program, info_name="harness")
EVERY = {ctx.command_path: ctx.command for ctx in _commands(PROGRAM)}


def _help(path: str) -> str:
    command = EVERY[path]
    return command.get_help(click.Context(command, info_name=path, terminal_width=COLUMNS - 2))


@pytest.mark.parametrize("path", EVERY)
def test_each_help_lists_its_commands_in_whole_sentences_of_one_line(path: str) -> None:
    text = _help(path)
    assert max(map(len, text.splitlines())) <= COLUMNS
    listed = text.partition("\nCommands:\n")[2].splitlines()
    assert all(re.fullmatch(r"  \S+ +\S.*[^.]\.", line) for line in listed)
    assert bool(listed) == isinstance(EVERY[path], click.Group) or path == "harness stages"


@pytest.mark.parametrize("name", [name for name in COMMANDS if f"harness {name}" in EVERY])
def test_a_command_s_line_in_the_list_is_the_first_of_its_help(name: str) -> None:
    assert (EVERY[f"harness {name}"].help or "").split("\n\n")[0] == COMMANDS[name][1]


@pytest.mark.parametrize("path", EVERY)
def test_what_an_argument_means_is_said_wherever_it_may_stand(path: str) -> None:
    text = _help(path)
    usage = set(re.findall(r"[A-Z]\w*", text.partition("\n\n")[0].replace("OPTIONS", "")))
    said = " ".join(text.split())
    meant = {"S": "S is a session: its id", "A": "A is an approval: its id", "EFFECT": "EFFECT is an effect in doubt"}
    assert all(words in said for name, words in meant.items() if name in usage)
    assert not re.search(r"^  \[S\]", text, re.MULTILINE)


def test_the_help_of_the_list_of_sessions_says_what_its_mark_means() -> None:
    assert "+? after them says that not every call reported" in " ".join(_help("harness sessions").split())


def test_the_program_s_help_says_what_s_and_last_are(look: Look) -> None:
    assert "S is a session: its id" in " ".join(look("--help"))
    assert "@last, the newest" in " ".join(" ".join(look("--help")).split())


@pytest.mark.parametrize("noun", ["context", "prompt"])
def test_a_group_without_one_of_its_commands_shows_its_help(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([noun]) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", f"Usage: harness {noun} [OPTIONS] COMMAND [ARGS]...")
    assert "harness: " not in err


# -- what to type next ---


def test_the_limit_that_is_hinted_at_is_enough_to_go_on(
    tmp_path_factory: pytest.TempPathFactory, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reference(tmp_path_factory.mktemp("budget")).enter(monkeypatch)
    ended = look("run", REFERENCE, "--yolo", "--budget", "calls=2", exits=12)
    hint = next(line for line in ended if "--budget" in line)
    assert "--budget calls=5  # in total; 2 used" in hint
    assert hint in look("sessions", "show")
    words = hint.partition("#")[0].replace("next", "").split()
    assert words[:2] == ["harness", "resume"]
    assert "--budget" in "\n".join(look(*words[1:], exits=12)), "five of the six calls"
    assert look(*words[1:-1], "tokens=100000,calls=50")


def test_what_waits_is_listed_within_the_terminal_and_whole_in_a_pipe(
    tmp_path_factory: pytest.TempPathFactory, on_screen: Look, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reference(tmp_path_factory.mktemp("waits")).enter(monkeypatch)
    look("run", REFERENCE, "--on-ask", "suspend", exits=10)
    for words in (["approvals"], ["sessions"], ["sessions", "show"]):
        shown, piped = on_screen(*words), look(*words)
        assert max(map(len, shown)) <= COLUMNS
        assert len(piped) <= len(shown)
    assert "approval" in "\n".join(on_screen("sessions"))
    assert "..." not in "\n".join(look("approvals"))
