"""The name of a schema in, the schema out of the package's data; and where those files are generated from."""

from __future__ import annotations

from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any, Final

from harness_core.settings.problems import nearest
from harness_core.shell.config.core_shapes import read_schema
from harness_hookspecs.errors import NotFound

__all__ = ["SOURCES", "file_name", "generated", "published_names", "published_schema"]

SOURCES: Final = (
    "harness_core.settings.schemas:schemas",
    "harness_core.cli.documents:schemas",
    "harness_core.cli.model_documents:schemas",
    "harness_core.cli.session_documents:schemas",
    "harness_core.cli.approval_documents:schemas",
    "harness_core.cli.look_documents:schemas",
    "harness_core.cli.diff_documents:schemas",
    "harness_core.cli.db_documents:schemas",
    "harness_core.cli.prompt_documents:schemas",
    "harness_core.cli.plan_documents:schemas",
    "harness_core.cli.plugin_documents:schemas",
    "harness_core.cli.quickstart_document:schemas",
    "harness_core.cli.wire_types:schemas",
)
"""Functions that give schemas by name; a module that is not there gives none."""

_ENDING: Final = ".schema.json"


def generated() -> dict[str, dict[str, Any]]:
    """Make every schema from its model, by name; what the package's data is compared with."""
    found: dict[str, dict[str, Any]] = {}
    for source in SOURCES:
        module, _, attribute = source.partition(":")
        if find_spec(module) is not None:
            found |= getattr(import_module(module), attribute)()
    return found


def file_name(name: str) -> str:
    """Give the file that a schema is kept in; a document's id has a slash."""
    return name.replace("/", "-") + _ENDING


def published_names() -> list[str]:
    """List the names: the six files, the documents, the wire types."""
    files = [
        entry.name.removesuffix(_ENDING)
        for entry in resources.files("harness_core.schemas").iterdir()
        if entry.name.endswith(_ENDING)
    ]
    return sorted(
        (name.replace("-", "/") for name in files), key=lambda name: ("harness." in name, name[0].isupper(), name)
    )


def published_schema(name: str) -> dict[str, Any]:
    """Read a schema.

    Raises:
        NotFound: There is none of that name (code ``schema.not_found``).
    """
    names = published_names()
    if name not in names:
        hint = " ".join(filter(None, (nearest(name, names), "harness config schema lists the names")))
        raise NotFound(f'there is no schema "{name}"', code="schema.not_found", hint=hint)
    return read_schema(file_name(name))
