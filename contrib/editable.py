"""Takes the repository's folder, gives one editable pip installation of every distribution found in it, by path.

The folder is the list: ``hookspecs/``, the root itself and each folder of ``plugins/`` with a ``pyproject.toml``, in
that order; with ``--tests`` also those of ``tests/plugins/``. Nothing of ours is ever installed by its bare name,
because such names may belong to strangers on a package index. With ``--requirements`` it installs nothing and prints
what the distributions need from others, one requirement a line; with ``--only-others`` it installs just that.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["distributions", "install_arguments", "main", "requirements"]

ROOT = Path(__file__).resolve().parent.parent
OURS = "harness-"


def distributions(root: Path = ROOT, *, tests: bool = False) -> list[Path]:
    """List the distribution folders of a checkout, in the order in which they are installed.

    Args:
        root: The checkout.
        tests: Whether the distributions that only the tests need (``tests/plugins/``) are wanted too.

    Returns:
        The contract first, then the host, then the plugins by name.
    """
    folders = [root / "hookspecs", root, *sorted((root / "plugins").glob("*/"))]
    if tests:
        folders += sorted((root / "tests" / "plugins").glob("*/"))
    return [folder for folder in folders if (folder / "pyproject.toml").is_file()]


def install_arguments(root: Path = ROOT, *, extra: str = "", tests: bool = False, isolated: bool = True) -> list[str]:
    """Give the arguments of the one ``pip`` call that installs everything editable.

    Args:
        root: The checkout.
        extra: An extra, ``test`` for example, of the host and of every plugin that has one of this name.
        tests: As for ``distributions``.
        isolated: Whether pip makes a build environment for each distribution, which takes most of the time. Not
            needed where ``setuptools>=77`` is installed beside.
    """
    arguments = ["install", "--quiet", *([] if isolated else ["--no-build-isolation"])]
    for folder in distributions(root, tests=tests):
        suffix = f"[{extra}]" if extra and (folder == root or extra in _extras(folder)) else ""
        arguments += ["--editable", f"{folder}{suffix}"]
    return arguments


def requirements(root: Path = ROOT, *, extra: str = "", tests: bool = False) -> list[str]:
    """List what the distributions need from other people, sorted, each requirement once.

    Read from the project files themselves, so nothing has to be installed or built before.
    """
    wanted: set[str] = set()
    for folder in distributions(root, tests=tests):
        wanted.update(_declared(folder, extra))
    return sorted(line for line in wanted if not line.lower().startswith(OURS))


def _project(folder: Path) -> dict[str, Any]:
    import tomllib

    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    return project


def _extras(folder: Path) -> dict[str, list[str]]:
    return dict(_project(folder).get("optional-dependencies", {}))


def _declared(folder: Path, extra: str) -> Iterator[str]:
    yield from _project(folder).get("dependencies", [])
    if extra:
        for name in (extra, "contracts"):  # the host's extra "test" asks for the contract's suites
            yield from _extras(folder).get(name, [])
    if (folder / "setup.cfg").is_file():
        yield from _declared_in_cfg(folder / "setup.cfg", extra)


def _declared_in_cfg(file: Path, extra: str) -> Iterator[str]:
    import configparser

    parser = configparser.ConfigParser()
    parser.read(file, encoding="utf-8")
    yield from parser.get("options", "install_requires", fallback="").split("\n")[1:]
    if extra:
        yield from parser.get("options.extras_require", extra, fallback="").split("\n")[1:]


def _setuptools_is_new() -> bool:
    try:
        return int(metadata.version("setuptools").split(".")[0]) >= 77
    except metadata.PackageNotFoundError:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Install everything into the interpreter that runs this, or print the requirements; gives pip's exit code."""
    parser = argparse.ArgumentParser(description="Install every distribution of this checkout editable, by path.")
    parser.add_argument("--extra", default="", help="an extra of the host and the plugins: test")
    parser.add_argument("--tests", action="store_true", help="also the distributions in tests/plugins")
    parser.add_argument("--requirements", action="store_true", help="only print what is needed from others")
    parser.add_argument("--only-others", action="store_true", help="install only what is needed from others")
    chosen = parser.parse_args(arguments)
    others = requirements(extra=chosen.extra, tests=chosen.tests)
    if chosen.requirements:
        print("\n".join(others))
        return 0
    ours = install_arguments(extra=chosen.extra, tests=chosen.tests, isolated=not _setuptools_is_new())
    call = ["install", "--quiet", "--no-compile", *others] if chosen.only_others else ours
    return subprocess.call([sys.executable, "-m", "pip", *call])


if __name__ == "__main__":
    raise SystemExit(main())
