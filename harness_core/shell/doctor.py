"""What may be wrong with an installation: the environment goes in, one finding per thing that was looked at comes out.

Nothing here loads the configuration or a plugin; those have doctors of their own in the command.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .ports_startup import read_file

__all__ = [
    "Checked",
    "check_command",
    "check_disk",
    "check_folders",
    "check_python",
    "check_sqlite",
    "is_affected",
    "sqlite_in_use",
]

LOW_DISK_BYTES = 1_073_741_824
_PYTHONS = ((3, 11), (3, 13))


class Checked(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: What.
        state: ``ok``, ``warning`` or ``problem``.
        message: What was found.
        fix: What to do about it.
        facts: The same for programs.
    """

    name: str
    state: str
    message: str
    fix: str | None = None
    facts: Mapping[str, Any] = {}


def check_python() -> Checked:
    """Look at the interpreter that runs this."""
    version = ".".join(map(str, sys.version_info[:3]))
    facts = {"version": version, "executable": sys.executable}
    if not _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]:
        return Checked("python", "problem", f"Python {version} is not supported", "use Python 3.11 to 3.13", facts)
    return Checked("python", "ok", f"Python {version} ({sys.executable})", None, facts)


def is_affected(version: str) -> bool:
    """Tell whether an SQLite can lose acknowledged commits in WAL mode: 3.7.0 to 3.51.2, but for two repaired branches.

    Source of the numbers: SQLite's own notes on the WAL-reset bug, repaired in 3.51.3, 3.50.7 and 3.44.6.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    for branch, repaired in (((3, 50), 7), ((3, 44), 6)):
        if numbers[:2] == branch:
            return numbers < (*branch, repaired)
    return (3, 7, 0) <= numbers < (3, 51, 3)


def check_sqlite(library: str, version: str) -> Checked:
    """Look at the SQLite library that the log is written with; an affected one is refused by the store."""
    facts = {"library": library, "version": version, "affected": is_affected(version)}
    if is_affected(version):
        said = f"SQLite {version} ({library}) can lose commits; the store refuses it for files"
        return Checked("sqlite", "problem", said, "install pysqlite3 0.6.1 or newer", facts)
    return Checked("sqlite", "ok", f"SQLite {version} ({library})", None, facts)


def sqlite_in_use() -> tuple[str, str]:
    """Give name and version of the library that is used, ``pysqlite3`` where it is installed."""
    try:
        import pysqlite3
    except ImportError:
        import sqlite3

        return "sqlite3", sqlite3.sqlite_version
    return "pysqlite3", str(pysqlite3.sqlite_version)


def check_command(env: Mapping[str, str]) -> Checked:
    """Look whether ``harness`` on the PATH is this one; many programs of strangers bear that name.

    Args:
        env: The environment.
    """
    own = os.path.join(os.path.dirname(sys.executable), "harness")
    found = list(_commands(env.get("PATH", "")))
    first = found[0] if found else None
    facts = {"own": own, "found": found, "first": first}
    if first is None:
        return Checked("command", "warning", "no harness on the PATH", f"call {own}, or put its folder there", facts)
    if os.path.realpath(os.path.dirname(first)) == os.path.realpath(os.path.dirname(own)):
        return Checked("command", "ok", f"harness on the PATH is this one ({first})", None, facts)
    ours = b"harness_core" in (read_file(first, limit_bytes=65_536) or b"")
    said = "another installation of Harness" if ours else "a foreign program called harness"
    fix = f"call {own}, or put its folder before {os.path.dirname(first)}"
    return Checked(
        "command", "warning", f"{said} comes first on the PATH: {first}", fix, {**facts, "foreign": not ours}
    )


def _commands(path: str) -> Iterator[str]:
    for folder in dict.fromkeys(path.split(os.pathsep)):
        place = os.path.join(folder or os.curdir, "harness")
        if os.path.isfile(place) and os.access(place, os.X_OK):
            yield place


def check_folders(folders: Mapping[str, Path], *, fix: bool) -> list[Checked]:
    """Look whether the person's folders can be written.

    Args:
        folders: What each is for, and where it lies.
        fix: Whether missing ones are made.
    """
    return [_folder(name, folder, fix) for name, folder in folders.items()]


def _folder(name: str, folder: Path, fix: bool) -> Checked:
    if fix and not folder.exists():
        try:
            folder.mkdir(parents=True, mode=0o700)
        except OSError as error:
            return Checked(f"{name} folder", "problem", f"{folder} cannot be made: {error}", "make it writable", {})
    there = _existing(folder)
    if not there.is_dir():
        facts = {"path": str(folder), "exists": folder.exists(), "writable": False}
        return Checked(f"{name} folder", "problem", f"{there} is a file and no folder", f"move {there} away", facts)
    facts = {"path": str(folder), "exists": folder.exists(), "writable": os.access(there, os.W_OK)}
    if not facts["writable"]:
        return Checked(f"{name} folder", "problem", f"{folder} cannot be written", f"make {there} writable", facts)
    state = "" if folder.exists() else ", made when needed"
    return Checked(f"{name} folder", "ok", f"{folder}{state}", None, facts)


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def check_disk(folder: Path, *, low_bytes: int = LOW_DISK_BYTES) -> Checked:
    """Look at the space that is left where the log lies; under ``low_bytes`` is a warning."""
    free_bytes = shutil.disk_usage(_existing(folder)).free
    facts = {"free_bytes": free_bytes, "path": str(folder)}
    said = f"{free_bytes / 1_073_741_824:.1f} GiB free where the log lies"
    if free_bytes < low_bytes:
        return Checked("disk", "warning", said, "make room; harness sessions gc removes old sessions", facts)
    return Checked("disk", "ok", said, None, facts)
