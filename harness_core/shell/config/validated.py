"""A merged tree in, the six frozen settings out, or what pydantic and the manifests' schemas say against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from pydantic import BaseModel, ValidationError

from harness_core.settings.compression import CompressionSettings
from harness_core.settings.harness import HarnessSettings
from harness_core.settings.models import ModelEntry, ModelsSettings
from harness_core.settings.paths import ConfigPath, format_path
from harness_core.settings.policies import PoliciesSettings
from harness_core.settings.problems import Problem
from harness_core.settings.schemas import MODELS
from harness_core.settings.stages import Stage, StagesSettings
from harness_core.settings.tools import ToolEntry, ToolsSettings
from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit.json_schema import SchemaFault, compiled_schema, faults

from .core_shapes import homes
from .origins import Tree, find, place_of, plain
from .sections import ENGINE_KEYS
from .typing import Section

__all__ = ["CORE_KEYS", "Six", "handed_settings", "of_document", "section_problems", "validate"]

CORE_KEYS: Mapping[str, frozenset[str]] = {
    "store": frozenset({"plugin"}),
    "provider": frozenset(ModelEntry.model_fields),
    "tool": frozenset(ToolEntry.model_fields),
}
"""The keys of an entry that are the core's, by the kind of the offer that it chooses."""

_LATER = (
    ("harness", "anchor"),
    ("harness", "engine"),
    ("harness", "run", "max_requests"),
    ("harness", "run", "park_after_sec"),
    ("stages", "workflows"),
)
"""File and keys of each setting that came when sessions had been recorded without it."""

_LATER_OF_STAGES = ("plan", "workflow", "workflows")
"""The same of each stage."""


@attrs.frozen
class Six:
    """The settings of the six files."""

    harness: HarnessSettings
    models: ModelsSettings
    tools: ToolsSettings
    stages: StagesSettings
    policies: PoliciesSettings
    compression: CompressionSettings

    def document(self) -> dict[str, Any]:
        """Give everything as plain JSON, by file, defaults included."""
        return {name: getattr(self, name).model_dump(mode="json") for name in MODELS}

    def kept(self) -> dict[str, Any]:
        """Give what sessions keep and the digest covers: everything, except that a setting which came later is left
        out at its default. What does as before has the digest it had before."""
        document = self.document()
        for *above, key in _LATER:
            settings: Any = self
            written: dict[str, Any] = document
            for name in above:
                settings, written = getattr(settings, name), written[name]
            if getattr(settings, key) == type(settings).model_fields[key].default:
                del written[key]
        for stage in document["stages"]["stages"].values():
            for key in _LATER_OF_STAGES:
                if stage[key] == Stage.model_fields[key].default:
                    del stage[key]
        return document


def of_document(document: Mapping[str, Any]) -> Six:
    """Build the settings again from ``Six.kept``; raises pydantic's error for anything else."""
    return _six({name: model.model_validate(document[name]) for name, model in MODELS.items()})


def _six(settings: Mapping[str, Any]) -> Six:
    return Six(**settings)


def validate(tree: Tree | None) -> tuple[Six | None, list[Problem]]:
    """Check a merged tree against the models.

    Returns:
        The settings and no problem, or None and the problems, each with the place of its key.
    """
    data = plain(tree)
    settings: dict[str, BaseModel] = {}
    problems: list[Problem] = []
    for name, model in MODELS.items():
        own = {key: value for key, value in data.items() if homes().get(key) == name}
        try:
            settings[name] = model.model_validate(own)
        except ValidationError as error:
            problems += _problems(error, own, tree)
    return (None, problems) if problems else (_six(settings), [])


def _problems(error: ValidationError, data: Any, tree: Tree | None) -> Iterator[Problem]:
    seen: set[ConfigPath] = set()
    for found in error.errors(include_url=False, include_context=False, include_input=False):
        path = _clean(found["loc"], data, missing=found["type"] == "missing")
        if path in seen:
            continue  # the members of a union each complain
        seen.add(path)
        place = place_of(tree, path)
        yield Problem(
            "config.invalid",
            _message(found["type"], found["msg"], path),
            format_path(path),
            place.text() if place else None,
        )


def _clean(loc: tuple[int | str, ...], data: Any, *, missing: bool) -> ConfigPath:
    """Leave out what pydantic puts between the keys: names of union members, ``[key]``."""
    path: list[str | int] = []
    for part in loc:
        if (isinstance(data, dict) and part in data) or (isinstance(data, list) and isinstance(part, int)):
            data = data[part]  # type: ignore[index]
            path.append(part)
    if missing and loc and loc[-1] not in path[-1:]:
        path.append(loc[-1])
    return tuple(path)


def _message(kind: str, text: str, path: ConfigPath) -> str:
    if kind == "missing":
        return f'the key "{path[-1]}" is missing'
    text = text.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return (
        text.replace("should be", "must be").replace("should match", "must match").replace("should have", "must have")
    )


def handed_settings(kind: str, entry: Mapping[str, Any], schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give the settings that an offer is built with: its own keys, and those of the core that its schema names.

    Args:
        kind: Kind of the offer.
        entry: The whole entry as plain JSON: ``store``, a model, a tool, or what stands in ``plugins.settings``.
        schema: The offer's ``config`` schema; None hands over its own keys only.

    Returns:
        Plain JSON without nulls, for the schema and then for the offer's settings class.
    """
    core = CORE_KEYS.get(kind, frozenset())
    wanted = (schema or {}).get("properties", {})
    return {
        key: _without_nulls(value)
        for key, value in entry.items()
        if value is not None and (key not in core or key in wanted)
    }


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


def section_problems(
    sections: Mapping[ConfigPath, Section], document: Mapping[str, Any], tree: Tree | None
) -> tuple[list[Problem], list[Problem]]:
    """Check the keys of plugins against their manifests.

    Returns:
        Problems, and warnings about keys of the core that the chosen provider can do nothing with.
    """
    problems: list[Problem] = []
    warnings: list[Problem] = []
    flat = {key: value for file in document.values() for key, value in file.items()}
    for path, section in sections.items():
        entry = _dig(flat, path)
        if entry is None or section.shape is None:
            continue
        schema = {**section.shape.root, **section.shape.schema}
        problems += _schema_problems(handed_settings(section.kind, entry, schema), schema, path, tree)
        if section.kind == "provider":
            warnings += _meaningless(path, section, schema, tree)
    return problems, warnings


def _dig(document: Any, path: ConfigPath) -> Any:
    for part in path:
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def _schema_problems(
    settings: Mapping[str, Any], schema: Mapping[str, Any], path: ConfigPath, tree: Tree | None
) -> Iterator[Problem]:
    if not settings and not schema.get("required"):
        return
    for fault in _faults(settings, schema):
        at: ConfigPath = (*path, *fault.path)
        place = place_of(tree, at)
        yield Problem(
            "config.invalid", " ".join(fault.message.split()), format_path(at), place.text() if place else None
        )


def _faults(settings: Mapping[str, Any], schema: Mapping[str, Any]) -> list[SchemaFault]:
    try:
        return faults(compiled_schema(schema), settings)
    except PluginError as error:
        return [SchemaFault("", (), f"the plugin's own schema is broken: {error}")]


def _meaningless(path: ConfigPath, section: Section, schema: Mapping[str, Any], tree: Tree | None) -> Iterator[Problem]:
    for key in ENGINE_KEYS:
        said = find(tree, (*path, key))
        if said is not None and key not in schema.get("properties", {}):
            message = f'provider "{section.name}" does nothing with it'
            yield Problem("config.no_meaning", message, format_path((*path, key)), said.origin.text(), "remove it")
