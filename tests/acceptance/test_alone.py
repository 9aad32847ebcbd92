"""The contract and the core without a plugin: every module of both is imported where there is no other of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import harness_core
import harness_hookspecs
from tests.reference import PATIENCE_SECONDS

HOMES = [str(Path(str(package.__file__)).parents[1]) for package in (harness_hookspecs, harness_core)]
IMPORTS = """
import importlib, pkgutil, sys

def modules(name):
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, name + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)

modules("harness_hookspecs")
alone = {name.partition(".")[0] for name in sys.modules if name.startswith("harness_")}
modules("harness_core")
both = {name.partition(".")[0] for name in sys.modules if name.startswith("harness_")}
print(sorted(alone), sorted(both))
"""


@pytest.mark.req("A-95")
def test_the_contract_and_the_core_are_imported_whole_where_no_plugin_is() -> None:
    """Without ``site`` nobody reads the files by which the plugins are found; what is not ours lies where it is."""
    path = os.pathsep.join([*HOMES, sysconfig.get_paths()["purelib"]])
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['harness_hookspecs'] ['harness_core', 'harness_hookspecs']\n"
