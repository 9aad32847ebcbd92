"""Two folders, the environment and the flags in, everything a configuration is made of out, read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from harness_core.settings import FILES
from harness_core.settings.problems import Problem
from harness_core.shell.yaml_nodes import MAX_BYTES
from harness_hookspecs.errors import HarnessError, NotFound
from harness_hookspecs.host import Files

from .folders import PROJECT_FOLDER, Folders, shown

__all__ = ["PREFIX", "Source", "Sources", "read_sources"]

PREFIX: Final = "HARNESS__"
"""Environment variables with a setting begin with it; the key follows, its parts joined by two underscores."""


@attrs.frozen
class Source:
    """One of the six files as it was found.

    Attributes:
        layer: Whose file it is.
        name: Which of the six, without ``.yaml``.
        shown: What it is called in messages.
        data: Its bytes.
    """

    layer: Literal["project", "user"]
    name: str
    shown: str
    data: bytes


@attrs.frozen
class Sources:
    """All that the effective configuration is a function of.

    Attributes:
        files: The files that exist.
        environment: The variables that begin with ``HARNESS__``.
        flags: Config paths to values from the command line or from ``overrides``; a text is read as in the environment.
        problems: Files that could not be read.
    """

    files: tuple[Source, ...] = ()
    environment: Mapping[str, str] = {}
    flags: Mapping[str, Any] = {}
    problems: tuple[Problem, ...] = ()


def read_sources(
    project: Path,
    folders: Folders,
    files_at: Callable[[Path], Files],
    *,
    env: Mapping[str, str],
    flags: Mapping[str, Any],
) -> Sources:
    """Read the person's and the project's files; a file that is not there is no problem."""
    found: list[Source] = []
    problems: list[Problem] = []
    ours = project / PROJECT_FOLDER
    for layer, folder, name_of in (
        ("user", folders.config, shown(folders.config, folders.home)),
        ("project", ours, PROJECT_FOLDER),
    ):
        if ours == folders.config and layer == "project":
            continue  # a person whose project is their own config folder has one layer, not two
        for item in _read(layer, folder, name_of, files_at):
            (found if isinstance(item, Source) else problems).append(item)  # type: ignore[arg-type]
    environment = {name: text for name, text in env.items() if name.startswith(PREFIX)}
    return Sources(tuple(found), environment, dict(flags), tuple(problems))


def _read(layer: Any, folder: Path, shown_folder: str, files_at: Callable[[Path], Files]) -> Iterator[Source | Problem]:
    if not folder.is_dir():
        return
    files = files_at(folder)
    for name in FILES:
        where = f"{shown_folder}/{name}.yaml"
        try:
            facts = files.facts(f"{name}.yaml")
            if facts is not None:
                yield Source(layer, name, where, _bytes(files, folder / f"{name}.yaml", layer, files_at))
            if files.facts(f"{name}.yml") is not None:
                yield Problem(
                    "config.file_name",
                    f"{name}.yml is not read",
                    where=f"{shown_folder}/{name}.yml",
                    hint=f"call it {name}.yaml",
                )
        except (HarnessError, OSError) as error:
            reason = error.message if isinstance(error, HarnessError) else error.strerror or str(error)
            yield Problem("config.unreadable", f"the file cannot be read: {reason}", where=where)


def _bytes(files: Files, path: Path, layer: str, files_at: Callable[[Path], Files]) -> bytes:
    """Read one byte more than is allowed, so that the reader sees the excess and says so.

    A link in the person's own folder is followed wherever it leads (people keep their files elsewhere); in a project
    it may not leave the folder, which ``Files`` sees to.
    """
    if layer == "user" and path.is_symlink():
        target = path.resolve()
        if not target.is_file():
            raise NotFound(f"the link points at {target}, which is not there")
        return files_at(target.parent).read_bytes(target.name, limit_bytes=MAX_BYTES + 1)
    return files.read_bytes(path.name, limit_bytes=MAX_BYTES + 1)
