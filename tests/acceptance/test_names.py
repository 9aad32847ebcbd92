"""The stages of the projects that come along: the kernel's source knows none of them by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

import harness_core.kernel
from harness_core import Host
from tests.reference import write_site

KERNEL = Path(harness_core.kernel.__path__[0])
PROJECTS = ("harness_core.shell.example", "harness_core.shell.config.templates")


def constants(file: Path) -> Iterator[str]:
    """Every text that stands in the program."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.req("B-115")
@pytest.mark.parametrize("project", PROJECTS)
def test_the_kernel_knows_no_stage_by_its_name(project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = resources.files(project).joinpath("stages.yaml").read_text(encoding="utf-8")
    site = write_site(tmp_path, stages=text, replies=[]).enter(monkeypatch)  # type: ignore[arg-type]  # as it is
    with Host.open(site.project) as host:
        names = {*host.config.stages.stages}
    assert names
    files = sorted(KERNEL.rglob("*.py"))
    assert len(files) > 20
    assert {file.name: found for file in files if (found := names.intersection(constants(file)))} == {}
