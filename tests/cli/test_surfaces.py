"""A surface adds commands: found by their word, given the host, and imported for nothing else."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_hookspecs import launch
from harness_hookspecs.contracts.distribution import make_distribution
from tests.reference import Site, one_stage, says, write_site

CODE = """
import os
from pathlib import Path

import click

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

Path(os.environ["SURFACE_IMPORTED"]).touch()


@click.command("greet")
@click.argument("name")
@click.pass_obj
def greet(host, name):
    document = host.run(f"Greet {name}.")
    click.echo(f"{name}: {document['status']}")
    return 7


@click.command("stages")
def stages():
    click.echo("not the host's")


class Acme:
    def commands(self):
        return (greet, stages)


@implements(hooks.harness_provide_surfaces)
def harness_provide_surfaces():
    return [Offer(kind="surface", name="NAME", build=lambda settings, host: Acme())]
"""


def install(site: Site, name: str, code: str = CODE) -> None:
    provides = [{"kind": "surface", "name": name}]
    make_distribution(site.project / "site", f"acme-{name}", provides=provides, code=code.replace("NAME", name))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A project with a surface installed, which nobody has imported yet."""
    found = write_site(tmp_path, stages=one_stage(), replies=[says("hello")]).enter(monkeypatch)
    monkeypatch.setenv("SURFACE_IMPORTED", str(tmp_path / "imported"))
    monkeypatch.syspath_prepend(str(found.project / "site"))
    install(found, "greeter")
    yield found
    for name in ("acme_greeter", "acme_second", "acme_broken"):
        sys.modules.pop(name, None)


def test_a_word_that_a_surface_adds_runs_its_command_with_the_host(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["greet", "Ann"]) == 7
    assert capsys.readouterr().out == "Ann: completed\n"
    assert main(["sessions", "--json"]) == 0
    assert [one["title"] for one in json.loads(capsys.readouterr().out)["items"]] == ["Greet Ann."]


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["plugins", "list"], ["sessions"], ["stages", "explain"]])
def test_nothing_else_imports_a_surface_or_gives_way_to_it(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    main(words)
    assert not (tmp_path / "imported").exists()
    assert "not the host's" not in capsys.readouterr().out


def test_a_word_that_nobody_has_is_still_a_wrong_word(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gret"]) == 2
    assert 'there is no command "gret"' in capsys.readouterr().err


BAD_FILES = {
    "one mistake": ({"run": {"max_vists": 7}}, ["harness.yaml:3:3", 'unknown key "max_vists"']),
    "two mistakes": ({"run": {"max_vists": 7}, "sotre": {}}, ['unknown key "max_vists"', 'unknown key "sotre"']),
}


@pytest.mark.parametrize("word", ["gret", "greet", "sesions"])
@pytest.mark.parametrize(("bad", "said"), BAD_FILES.values(), ids=list(BAD_FILES))
def test_a_word_that_harness_does_not_have_is_a_wrong_word_also_where_a_broken_file_hides_the_surfaces(
    site: Site, capsys: pytest.CaptureFixture[str], word: str, bad: Any, said: list[str]
) -> None:
    (site.project / ".harness/harness.yaml").write_text(json.dumps(bad, indent=1))
    assert main([word, "Ann"]) == 2
    shown = capsys.readouterr().err
    wrong = f'there is no command "{word}" among those of harness'
    for part in (wrong, "those of plugins cannot be looked up: ", *said):
        assert shown.count(part) == 1
    assert ("sessions" in shown) == (word == "sesions")
    assert main([word, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "usage"


def test_a_word_in_a_folder_that_is_none_is_answered_with_both(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--project", "nowhere", "gret"]) == 2
    assert re.search('no command "gret".*\n.*cannot be looked up: .*nowhere', capsys.readouterr().err)


def test_a_name_that_two_surfaces_add_is_an_error_with_both(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "second")
    assert main(["greet", "Ann", "--json"]) == 3
    out = capsys.readouterr().out
    assert json.loads(out)["code"] == "plugin.doubled"
    assert "greeter, second" in out
    assert main(["--no-plugin", "acme-second", "greet", "Ann"]) == 7


BROKEN = {
    "raises": ("raise RuntimeError('boom')", "surface broken raised RuntimeError: boom"),
    "leaves": ("raise SystemExit(0)", "surface broken raised SystemExit: 0"),
    "breaks off": ("yield greet; raise RuntimeError('boom')", "surface broken raised RuntimeError: boom"),
    "gives no list": ("return 5", "surface broken raised TypeError: 'int' object is not iterable"),
    "gives numbers": ("return (1,)", "surface broken gives int where a click.Command belongs"),
    "gives functions": ("return [lambda: 0]", "surface broken gives function where a click.Command belongs"),
    "gives one wrong thing": ("return (greet, 'stages')", "surface broken gives str where a click.Command belongs"),
}


@pytest.mark.parametrize(("body", "said"), BROKEN.values(), ids=list(BROKEN))
def test_a_surface_that_breaks_is_named_and_stops_no_other(
    site: Site, capsys: pytest.CaptureFixture[str], body: str, said: str
) -> None:
    install(site, "broken", CODE.replace("return (greet, stages)", body))
    assert main(["greet", "Ann"]) == 7
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("built", ["None", "object()"])
def test_a_surface_that_is_none_is_named_and_stops_no_other(
    site: Site, capsys: pytest.CaptureFixture[str], built: str
) -> None:
    install(site, "broken", CODE.replace("Acme())", f"{built})"))
    assert main(["greet", "Ann"]) == 7
    assert "surface broken of the plugin acme-broken has no method commands\n" in capsys.readouterr().err


def test_a_console_script_of_a_surface_is_the_hosts_command_line_with_its_word(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/harness-greet", "Ann"])
    assert launch.main() == 7
    assert capsys.readouterr().out == "Ann: completed\n"


def test_the_host_is_closed_when_the_command_has_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_core.shell.host import Host

    closed: list[Any] = []
    close = Host.close

    def seen(self: Host) -> None:
        closed.append(self)
        close(self)

    monkeypatch.setattr(Host, "close", seen)
    main(["greet", "Ann"])
    assert len(closed) == 1
