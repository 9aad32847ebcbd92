"""Pydantic's plugins in a command's own process: what is installed takes part, what is not is not looked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOOK = "from harness_core.cli.pydantic_plugins import look_for_none_where_none_is as look; look(); "
MODEL = "import sys, pydantic; pydantic.TypeAdapter(int); "
PLUGIN = """
class Plugin:
    def new_schema_validator(self, *details):
        print("took part")
        return None, None, None

plugin = Plugin()
"""


def said(code: str, *path: Path) -> str:
    more = f"import sys; sys.path[:0] = {[str(folder) for folder in path]!r}; "
    return subprocess.run([sys.executable, "-c", more + code], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a plugin for pydantic."""
    metadata = tmp_path / "seen-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: seen\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[pydantic]\nseen = seen:plugin\n", encoding="utf-8")
    (tmp_path / "seen.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path


def test_a_first_model_does_not_load_what_finds_distributions() -> None:
    assert said(f"{LOOK}{MODEL}print('importlib.metadata' in sys.modules)") == "False\n"


def test_a_plugin_of_pydantic_that_is_installed_takes_part(installed: Path) -> None:
    assert said(LOOK + MODEL, installed) == "took part\n"


def test_whatever_else_the_module_holds_is_still_found() -> None:
    assert said(f"{LOOK}{MODEL}from pydantic.plugin._loader import entry_points; print(entry_points.__name__)") == (
        "entry_points\n"
    )


def test_a_command_spares_its_own_process_the_look(tmp_path: Path) -> None:
    found = "print(sys.modules['pydantic.plugin._loader'].get_plugins is tuple)"
    code = f"import sys; from harness_core.cli.main import main; main(); {found}"
    command = [sys.executable, "-c", code, "init"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stderr == "True\n"
