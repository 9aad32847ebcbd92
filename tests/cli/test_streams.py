"""The streams of a process that runs one command: results on stdout, all that plugins print beside them on stderr."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pexpect
import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from tests.reference import HARNESS, Site, calls, one_stage, says, write_reference, write_site

CODE = """
import atexit
import os
import subprocess

import click

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer
from harness_hookspecs.tool import ToolResult, ToolSpec

SCHEMA = {"type": "object", "properties": {"note": {"type": "string"}}}


class Loud:
    def __init__(self, settings, host):
        self.shout("built")
        atexit.register(self.shout, "ended")

    def shout(self, when):
        print("printed, " + when)
        os.write(1, f"written, {when}\\n".encode())
        subprocess.run(["echo", "from a child, " + when])

    def specs(self):
        return [ToolSpec(name="loud", description="L", input_schema=SCHEMA, tier="T1", effect="pure")]

    def execute(self, name, args, ctx):
        self.shout("run")
        return ToolResult("done")


@click.command("greet")
@click.option("--json", is_flag=True)
@click.pass_obj
def greet(host, json):
    print("{}")


class Surface:
    def __init__(self, settings, host):
        print("a surface is built")

    def commands(self):
        return (greet,)


@implements(hooks.harness_provide_tools)
def harness_provide_tools():
    return [Offer(kind="tool", name="loud", build=Loud)]


@implements(hooks.harness_provide_surfaces)
def harness_provide_surfaces():
    return [Offer(kind="surface", name="greeter", build=Surface)]
"""
LOUD = {f"{how}, {when}" for how in ("printed", "written", "from a child") for when in ("built", "run", "ended")}
UMLAUT = "Grüße ✓"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A project with a tool that prints in every way there is, and a surface."""
    first = calls(("loud", {"note": UMLAUT}))
    first["tool_calls"][0]["name"] = "loud"
    found = write_site(tmp_path, stages=one_stage(allowed_tools=["loud"]), replies=[first, says("done")])
    provides = [{"kind": "tool", "name": "loud"}, {"kind": "surface", "name": "greeter"}]
    make_distribution(tmp_path / "site", "acme-loud", provides=provides, code=CODE)
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
    return found.enter(monkeypatch)


def command(site: Site, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HARNESS, *words], cwd=site.project, env=site.process_env(**env), stdin=subprocess.DEVNULL, check=False,
        capture_output=True, encoding=env.get("PYTHONIOENCODING", "utf-8").split(":")[0], errors="replace", timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_what_a_plugin_its_children_and_its_last_words_print_leaves_stdout_to_the_document(
    site: Site, unbuffered: str
) -> None:
    done = command(site, "run", "Go.", "--json", PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "completed")
    assert set(done.stderr.splitlines()) >= LOUD


def test_what_a_plugin_prints_leaves_stdout_to_the_result_for_people_too(site: Site) -> None:
    done = command(site, "run", "Go.")
    assert done.stdout.startswith("work: text, status success\n  text  done\n")
    assert not set(done.stdout.splitlines()) & LOUD


def test_a_surface_prints_its_result_and_nothing_before(site: Site) -> None:
    done = command(site, "greet", "--json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "a surface is built\n")
    done = command(site, "gret", "--json")
    assert json.loads(done.stdout)["code"] == "usage"


def test_the_help_of_every_command_is_on_stdout(site: Site) -> None:
    for words in (["run"], ["events"], ["config", "show"], ["greet"]):
        assert command(site, *words, "--help").stdout.startswith("Usage: harness ")


def test_who_is_asked_at_a_terminal_is_asked_there_also_where_stderr_leads_elsewhere(
    tmp_path: Path, usual_signals: None
) -> None:
    asking = {"tiers": {"T2": "auto"}, "approver": ["policy", "terminal"]}
    place = write_reference(tmp_path, policies=asking)
    child = pexpect.spawn(
        "sh", ["-c", 'exec "$@" 2>said', "sh", *HARNESS, "run", "Go."], cwd=str(place.project),
        env=place.process_env(), encoding="utf-8", timeout=30, dimensions=(40, 120),
    )  # fmt: skip
    child.expect("effects_network")
    child.expect("\n> ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "stopping" in (place.project / "said").read_text()


@pytest.mark.parametrize("stream", ["latin-1", "ascii", "ascii:surrogateescape"])
def test_a_stdout_that_has_not_every_character_shows_the_others_escaped(site: Site, stream: str) -> None:
    encoding = stream.partition(":")[0]
    site.write("script", {"schema": "harness.script/1", "replies": [says(UMLAUT)]})
    shown = UMLAUT.encode(encoding, "backslashreplace").decode(encoding)
    for words in (("run", UMLAUT), ("sessions",), ("events", "--expand"), ("sessions", "show", "@last")):
        done = command(site, *words, PYTHONIOENCODING=stream)
        assert (done.returncode, "internal" in done.stderr) == (0, False)
        assert shown in done.stdout or words[0] == "events"


def test_a_session_whose_result_nobody_reads_has_its_own_exit_and_says_where_it_is_shown(site: Site) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    call: list[Any] = [*HARNESS, "run", "Go."]
    done = subprocess.run(
        call, cwd=site.project, env=site.process_env(), stdin=subprocess.DEVNULL, stdout=writing,
        stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 0
    assert "nobody read the result; harness sessions show " in done.stderr
    assert "Exception ignored" not in done.stderr
