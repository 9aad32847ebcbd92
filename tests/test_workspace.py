"""The one shape of all distributions: what each folder holds, how it is named, versioned, pinned and announced."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from editable import distributions

ROOT = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"
PYTHON = ">=3.11,<3.14"
KINDS = (
    "approver artifact broker compression engine executor mount observer provider role rules sandbox store surface "
    "tool validator workflow"
).split()

module_limit_lines, function_limit_lines, pyproject_limit_lines = 400, 50, 25

FOLDERS: list[Path] = distributions(ROOT, tests=True)
PLUGINS = [folder for folder in FOLDERS if folder.name.startswith("harness-") and folder != ROOT]
PACKAGES = [package for folder in FOLDERS for package in sorted(folder.glob("harness_*/"))]
MODULES = [file for package in PACKAGES for file in sorted(package.rglob("*.py"))]

each_distribution = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
each_plugin = pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)


def _project(folder: Path) -> dict[str, Any]:
    """What a distribution says of itself, in the words of pyproject.toml; the host says it in setup.cfg."""
    declared: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    if folder != ROOT:
        return dict(declared["project"])
    assert "project" not in declared
    parser = configparser.ConfigParser()
    parser.read(folder / "setup.cfg", encoding="utf-8")
    lines = [parser["options"]["install_requires"], *parser["options.extras_require"].values()]
    return {
        "name": parser["metadata"]["name"],
        "version": parser["metadata"]["version"],
        "license": parser["metadata"]["license"],
        "requires-python": parser["options"]["python_requires"],
        "dependencies": [line for block in lines for line in block.split("\n") if line],
    }


def _package(folder: Path) -> Path:
    return folder / ("harness_core" if folder == ROOT else _project(folder)["name"].replace("-", "_"))


def _manifest(folder: Path) -> dict[str, Any]:
    return tomllib.loads((_package(folder) / "harness-plugin.toml").read_text(encoding="utf-8"))


# --------------------------------------------------------------------------------------- each distribution


@each_distribution
def test_a_distribution_has_the_one_shape(folder: Path) -> None:
    packages = [package.name for package in folder.glob("harness_*/") if (package / "__init__.py").is_file()]
    assert packages == [_package(folder).name]  # one flat package, named after the distribution
    assert (_package(folder) / "py.typed").is_file()
    assert len((folder / "README.md").read_text(encoding="utf-8").splitlines()) > 2
    assert list(folder.glob("tests/**/test_*.py")) or "tests" in folder.relative_to(ROOT).parts


@each_distribution
def test_all_distributions_carry_one_version_and_pin_each_other(folder: Path) -> None:
    project = _project(folder)
    assert (project["version"], project["requires-python"]) == (VERSION, PYTHON)
    assert project["license"] == "Apache-2.0"
    for line in project["dependencies"]:
        if line.startswith("harness-"):
            assert re.fullmatch(rf"harness-hookspecs(\[\w+\])?=={re.escape(VERSION)}", line)


@each_distribution
def test_a_version_written_in_code_is_the_version(folder: Path) -> None:
    written = re.compile(r'^(?:__version__|VERSION)\b[^=\n]*= "(.*)"', re.MULTILINE)
    for file in _package(folder).rglob("*.py"):
        assert set(written.findall(file.read_text(encoding="utf-8"))) <= {VERSION}, file


@each_distribution
def test_tests_of_a_distribution_are_no_package(folder: Path) -> None:
    if folder != ROOT:  # many of them are collected in one go, so none may claim the name "tests"
        assert not list(folder.glob("tests/__init__.py"))


# --------------------------------------------------------------------------------------------- each plugin


@each_plugin
def test_a_plugin_says_who_it_is_and_nothing_about_tools(folder: Path) -> None:
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= pyproject_limit_lines
    assert set(tomllib.loads(text).get("tool", {})) <= {"setuptools"}
    spare = {"setup.cfg", "setup.py", "tox.ini", "ruff.toml", "mypy.ini", "pytest.ini", "conftest.py", "MANIFEST.in"}
    assert not spare & {file.name for file in folder.iterdir()}


@each_plugin
def test_a_plugin_is_named_and_announced_by_the_rule(folder: Path) -> None:
    project, package = _project(folder), _package(folder).name
    assert project["name"] == folder.name
    named = re.fullmatch(r"harness-([a-z]+)-[a-z0-9-]+", folder.name)
    assert named and named[1] in KINDS
    plugin = folder.name.removeprefix("harness-")
    assert project["entry-points"]["harness.plugins"] == {plugin: package}
    assert project["entry-points"]["harness.manifest"] == {plugin: package}  # its harness-plugin.toml is read


@each_plugin
def test_a_manifest_agrees_with_its_distribution(folder: Path) -> None:
    manifest = _manifest(folder)
    assert (manifest["manifest"], manifest["id"]) == (1, folder.name.removeprefix("harness-"))
    assert manifest["spec"] == ">=0.1,<0.2"
    assert manifest["summary"]
    kinds = {offer["kind"] for offer in manifest["provides"]}
    assert kinds <= set(KINDS)
    assert folder.name.split("-")[1] in kinds
    build = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert "*.toml" in str(build["package-data"])  # or wheels would lack the manifest
    assert build["package-dir"] == {"": "."}  # or checkers could not follow an editable installation


@each_plugin
def test_the_module_of_the_kind_exists(folder: Path) -> None:
    kind = folder.name.split("-")[1]
    assert (_package(folder) / f"{kind}.py").is_file()  # the import law reads the name


# -------------------------------------------------------------------------------------------------- sizes


def _decided() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in ROOT.glob("contrib/decisions/*.md"))


def test_a_long_module_has_a_page_that_says_why() -> None:
    names = {file: file.relative_to(ROOT).as_posix() for file in [*MODULES, *ROOT.glob("contrib/*.py")]}
    long = [name for file, name in names.items() if len(file.read_bytes().splitlines()) > module_limit_lines]
    assert not [name for name in long if name not in _decided()]


def _functions(file: Path) -> Iterator[tuple[str, int]]:
    """Each function with the lines of its body, its docstring not counted."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}", _lines(body)


def _lines(body: list[ast.stmt]) -> int:
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_function_is_longer_than_a_screen() -> None:
    lengths = [found for file in MODULES for found in _functions(file)]
    assert not [name for name, lines in lengths if lines > function_limit_lines]


# ------------------------------------------------------------------------------------------ public surface


def _bound(tree: ast.Module) -> tuple[set[str], bool]:
    """The names a module binds at its top level, and whether it gives more on demand (``__getattr__``)."""
    names: set[str] = set()
    for node in _top_level(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        else:
            names.update(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
    return names, "__getattr__" in names


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _top_level([*node.body, *node.orelse])
        else:
            yield node


def test_all_names_what_exists() -> None:
    wrong = []
    for file in MODULES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        bound, on_demand = _bound(tree)
        missing = set() if on_demand else set(_exported(tree)) - bound
        wrong += [f"{file.relative_to(ROOT)}: {name}" for name in sorted(missing)]
    assert not wrong


def _exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value = getattr(node, "value", None)
            return list(ast.literal_eval(value)) if isinstance(value, ast.List | ast.Tuple) else []
    return []
