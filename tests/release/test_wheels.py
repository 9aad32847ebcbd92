"""The wheels as a stranger gets them: complete, installed together by path, never taken from somebody else.

Slow, and it needs the package index: run by ``tox -e wheels``, never with the other tests.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from editable import distributions, requirements

ROOT = Path(__file__).resolve().parent.parent.parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _run(call: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=600, **options)
    print(done.stdout, done.stderr, sep="\n")  # pytest shows it when the test fails
    return done


def _make_environment(folder: Path) -> Path:
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def _pip(python: Path, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The pip beside these tests, for another environment; modules are compiled there when they are imported."""
    call = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile", *words]
    return _run(call, **options)


def _tracked() -> list[str]:
    return _run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).stdout.splitlines()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout's own files, so that no leftover of an earlier build gets into a wheel."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in _tracked():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheels(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every distribution of the checkout, built; the contract first, then the host, then the plugins."""
    folder, sources = tmp_path_factory.mktemp("wheels"), distributions(checkout)
    call = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), *map(str, sources)]
    assert _run([sys.executable, "-m", "pip", *call]).returncode == 0
    built = {wheel.name.split("-")[0]: wheel for wheel in sorted(folder.glob("*.whl"))}
    assert len(built) == len(sources)
    first = ("harness_hookspecs", "harness_host")
    return [built.pop(name) for name in first] + list(built.values())


@pytest.fixture(scope="module")
def installed(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment: other people's packages from the index, ours from the wheels and from nowhere else."""
    python = _make_environment(tmp_path_factory.mktemp("installed"))
    assert _pip(python, *requirements(ROOT)).returncode == 0
    assert _pip(python, "--no-index", *map(str, wheels), env=_without_pip_settings()).returncode == 0
    return python


def _without_pip_settings() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHONPATH"))}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture
def command(installed: Path, tmp_path: Path) -> Run:
    """The installed ``harness``, in an empty folder and with an empty home."""
    names = "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME HOME".split()
    environment = {**_without_pip_settings(), **{name: str(tmp_path / name.lower()) for name in names}}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        harness = installed.parent / "harness"
        return _run([str(harness), *words], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL)

    return call


# -------------------------------------------------------------------------------------------------- content


def test_a_wheel_holds_the_package_and_nothing_else(wheels: list[Path]) -> None:
    for wheel in wheels:
        name = wheel.name.split("-")[0]
        package = "harness_core" if name == "harness_host" else name
        with zipfile.ZipFile(wheel) as archive:
            files = archive.namelist()
        assert {file.split("/")[0] for file in files} == {package, f"{name}-0.1.0.dist-info"}
        assert f"{package}/py.typed" in files
        assert name in {"harness_host", "harness_hookspecs"} or f"{package}/harness-plugin.toml" in files


def test_every_file_of_a_package_is_in_its_wheel(wheels: list[Path], checkout: Path) -> None:
    packed = {file for wheel in wheels for file in zipfile.ZipFile(wheel).namelist()}
    for folder in distributions(checkout):
        packages = [file.parent for file in folder.glob("harness_*/__init__.py")]
        files = [file for package in packages for file in package.rglob("*") if file.is_file()]
        assert not {file.relative_to(folder).as_posix() for file in files} - packed


# -------------------------------------------------------------------------------------------------- command


def test_the_installed_command_says_its_version(command: Run) -> None:
    assert command("--version").stdout.split()[-1] == "0.1.0"


def test_the_installed_command_lists_every_plugin(command: Run, wheels: list[Path]) -> None:
    listed = command("plugins", "list", "--json")
    assert listed.returncode == 0
    document = json.loads(listed.stdout)
    assert document["schema"] == "harness.plugins/1"
    ours = {wheel.name.split("-")[0].replace("_", "-") for wheel in wheels} - {"harness-host", "harness-hookspecs"}
    assert ours <= {item["distribution"] for item in document["items"]}


def test_the_installed_command_does_the_main_job(command: Run) -> None:
    done = command("demo", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "completed"


# ------------------------------------------------------------------------------------------------- strangers


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """An index in a folder that offers a newer ``harness-hookspecs``, and one of our own version too."""
    page = tmp_path / "index" / "harness-hookspecs"
    page.mkdir(parents=True)
    names = [_poison(page, version) for version in ("99", "0.1.0")]
    (page / "index.html").write_text("\n".join(f'<a href="{name}">{name}</a>' for name in names), encoding="utf-8")
    return page.parent


def _poison(folder: Path, version: str) -> str:
    name, about = f"harness_hookspecs-{version}-py3-none-any.whl", f"harness_hookspecs-{version}.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        "harness_poisoned.py": "",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: harness-hookspecs\nVersion: {version}\n",
        f"{about}/WHEEL": wheel,
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in files)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name


def test_ours_are_taken_by_path_whatever_an_index_offers(wheels: list[Path], poisoned: Path, installed: Path) -> None:
    words = ["--upgrade", "--index-url", poisoned.as_uri(), *map(str, wheels)]
    assert _pip(installed, *words, env=_without_pip_settings()).returncode == 0
    files = set(_files_of_contract(installed))
    assert "harness_hookspecs/__init__.py" in files
    assert "harness_poisoned.py" not in files


def test_a_newer_stranger_satisfies_no_pin(wheels: list[Path], poisoned: Path, tmp_path: Path) -> None:
    """The host alone, with only the stranger's index to ask: version 99 is refused, so nothing gets installed."""
    page = poisoned / "harness-hookspecs" / "index.html"
    page.write_text(page.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    python = _make_environment(tmp_path / "venv")
    refused = _pip(python, "--index-url", poisoned.as_uri(), str(wheels[1]), env=_without_pip_settings())
    assert refused.returncode != 0
    assert "harness-hookspecs==0.1.0" in refused.stderr
    assert not list(_files_of_contract(python))


def _files_of_contract(python: Path) -> Iterator[str]:
    for record in python.parent.parent.glob("lib/python*/site-packages/harness_hookspecs-*.dist-info/RECORD"):
        with record.open(encoding="utf-8", newline="") as lines:
            yield from (row[0] for row in csv.reader(lines))
