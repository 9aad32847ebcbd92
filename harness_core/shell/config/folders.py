"""The environment and a starting folder in, the folders that Harness uses and the project's folder out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from harness_hookspecs.errors import NotFound
from harness_hookspecs.host import Files

__all__ = ["PROJECT_FOLDER", "Folders", "find_project", "folders_of", "shown"]

PROJECT_FOLDER: Final = ".harness"


@attrs.frozen
class Folders:
    """Where things of the person lie, by the XDG layout on every system.

    Attributes:
        config: Their six files (``~/.config/harness``).
        data: The log and what must not be lost (``~/.local/share/harness``).
        state: Trust, locks and what may be lost (``~/.local/state/harness``).
        cache: What can be made again (``~/.cache/harness``).
        home: Their home, for showing paths.
    """

    config: Path
    data: Path
    state: Path
    cache: Path
    home: Path


def folders_of(env: Mapping[str, str]) -> Folders:
    """Read the folders from ``HOME`` and the ``XDG_*`` variables; a relative one counts as unset, as XDG says."""
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()

    def base(variable: str, fallback: str) -> Path:
        said = Path(env.get(variable, ""))
        return (said if said.is_absolute() else home / fallback) / "harness"

    return Folders(
        config=base("XDG_CONFIG_HOME", ".config"),
        data=base("XDG_DATA_HOME", ".local/share"),
        state=base("XDG_STATE_HOME", ".local/state"),
        cache=base("XDG_CACHE_HOME", ".cache"),
        home=home,
    )


def find_project(start: Path, files_at: Callable[[Path], Files], *, exact: bool = False) -> Path:
    """Find the folder that holds ``.harness``.

    Args:
        start: Where to begin; upwards from there the nearest one is taken.
        files_at: ``ports.files``.
        exact: ``start`` is the project itself (``--project``) and must exist; nothing is searched.

    Returns:
        The absolute folder; ``start`` itself when there is no ``.harness`` anywhere.

    Raises:
        NotFound: ``exact`` and there is no such folder.
    """
    start = start.resolve()
    if exact:
        if not start.is_dir():
            raise NotFound(
                f"there is no folder {start}", code="project.not_found", hint="name the folder that holds .harness"
            )
        return start.parent if start.name == PROJECT_FOLDER else start
    for folder in (start, *start.parents):
        facts = files_at(folder).facts(PROJECT_FOLDER)
        if facts is not None and facts.kind in {"directory", "symlink"}:
            return folder
    return start


def shown(path: Path, home: Path) -> str:
    """Write a path as people do, with ``~`` for their home."""
    return f"~/{path.relative_to(home).as_posix()}" if home in path.parents else path.as_posix()
