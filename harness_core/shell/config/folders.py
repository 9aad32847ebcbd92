"""The environment and a starting folder in, the folders that Harness uses and the project's folder out."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import ascii_letters, digits
from typing import Final, NamedTuple

from harness_hookspecs.errors import ConfigError, NotFound
from harness_hookspecs.kit.paths import encode_path

from .xdg import home_of, working_folder_gone, xdg_folder

__all__ = [
    "PROJECT_FOLDER",
    "Folders",
    "command_word",
    "find_project",
    "folders_of",
    "has_project",
    "make_folder",
    "no_project",
    "shown",
]

PROJECT_FOLDER: Final = ".harness"

_PLAIN: Final = frozenset(f"{ascii_letters}{digits}/._-".encode())


class Folders(NamedTuple):
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
    return Folders(
        config=Path(xdg_folder(env, "XDG_CONFIG_HOME", ".config")),
        data=Path(xdg_folder(env, "XDG_DATA_HOME", ".local/share")),
        state=Path(xdg_folder(env, "XDG_STATE_HOME", ".local/state")),
        cache=Path(xdg_folder(env, "XDG_CACHE_HOME", ".cache")),
        home=_shown_home(env),
    )


def _shown_home(env: Mapping[str, str]) -> Path:
    try:
        return Path(home_of(env))
    except ConfigError:  # nothing is kept there, since each folder is named
        return Path(os.devnull)


def find_project(start: Path, *, exact: bool = False) -> Path:
    """Find the folder that holds ``.harness``.

    Args:
        start: Where to begin; upwards from there the nearest one is taken.
        exact: ``start`` is the project itself (``--project``) and must exist; nothing is searched.

    Returns:
        The absolute folder; ``start`` itself when there is no ``.harness`` anywhere.

    Raises:
        NotFound: ``exact`` and there is no such folder, or the working folder is gone (code ``project.not_found``).
    """
    try:
        start = start.resolve()
    except FileNotFoundError as error:  # only where it is relative
        raise working_folder_gone() from error
    if exact:
        if not start.is_dir():
            hint = "name the folder that holds .harness"
            raise NotFound(f"there is no folder {encode_path(start)}", code="project.not_found", hint=hint)
        return start.parent if start.name == PROJECT_FOLDER else start
    # os.path, because a folder above that may not be looked into holds no project and is no error
    found = (folder for folder in (start, *start.parents) if has_project(folder))
    return next(found, start)


def has_project(folder: Path) -> bool:
    """Tell whether a folder, as ``find_project`` gave it, is a project; one that may not be looked into is none."""
    return os.path.isdir(folder / PROJECT_FOLDER)


def no_project(folder: Path) -> str:
    """Say of a folder, as ``find_project`` gave it, that it is no project; what to do is ``harness init``."""
    return f"there is no project here (no {PROJECT_FOLDER} from {encode_path(folder)} upwards)"


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder and its parents where they are not there.

    Raises:
        ConfigError: ``folder.unusable``: the system says no, or something else has its name.
    """
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        hint = "choose another folder or make it writable; harness doctor says what is wrong with your own folders"
        message = f"the folder cannot be made: {error.strerror or error}"
        raise ConfigError(message, code="folder.unusable", where=encode_path(folder), hint=hint) from error


def command_word(folder: Path) -> str:
    """Write a folder as a word that a shell takes, also one whose name is not UTF-8."""
    name = str(folder)
    if encode_path(name) == name:
        return shlex.quote(name)
    return "$'" + "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in os.fsencode(name)) + "'"


def shown(path: Path, home: Path) -> str:
    """Write a path as people do, with ``~`` for their home."""
    return f"~/{path.relative_to(home).as_posix()}" if home in path.parents else path.as_posix()
