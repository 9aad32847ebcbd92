"""The console script of a surface: it calls the one host that is installed, under its own name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness_hookspecs.launch import main

HOST = "seen = []\n\n\ndef main(arguments):\n    seen.append(arguments)\n    return 5\n"


def install(folder: Path, name: str) -> None:
    (folder / f"{name}.py").write_text(HOST)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[harness.host]\nhost = {name}:main\n")


def test_the_host_is_called_with_the_scripts_name_as_its_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "some_launched_host")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/harness-runner", "start", "--slots", "2"])
    assert main() == 5
    assert sys.modules.pop("some_launched_host").seen == [["runner", "start", "--slots", "2"]]


@pytest.mark.parametrize("hosts", [[], ["one_host", "another_host"]])
def test_without_exactly_one_host_nothing_is_called(
    hosts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in hosts:
        install(tmp_path, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert main() == 3
    assert f"found {len(hosts)}" in capsys.readouterr().err
    assert not {*hosts} & {*sys.modules}
