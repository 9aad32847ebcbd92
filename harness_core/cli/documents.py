"""The documents that commands print with ``--json``, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness_core.settings.schemas import published

__all__ = [
    "DOCUMENTS",
    "ConfigCheck",
    "ConfigExplain",
    "ConfigShow",
    "Document",
    "Error",
    "Init",
    "Problem",
    "Schema",
    "SchemaNames",
    "Trust",
    "schemas",
]


class Document(BaseModel):
    """The base: every field is known, and a document cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class Error(Document):
    """What is printed instead of a result when a command fails."""

    schema_: Literal["harness.error/1"] = Field(alias="schema")
    code: str = Field(description="Stable dotted code.")
    message: str = Field(description="What happened.")
    hint: str | None = Field(description="What to do next.")
    where: str | None = Field(description="The place, file:line:col for example.")
    facts: dict[str, Any] = Field(description="What else is known; for a configuration all `problems`.")


class Problem(Document):
    """One thing that is wrong, or that deserves a warning."""

    code: str = Field(description="Stable dotted code.")
    message: str = Field(description="What is wrong.")
    path: str = Field(description="The key; empty when a whole file is meant.")
    where: str | None = Field(description="The place.")
    hint: str | None = Field(description="What to do next.")


class Leaf(Document):
    """A setting of a project that only a trusted project may make."""

    path: str = Field(description="The key.")
    value: Any = Field(description="What the project says; null unsets.")
    where: str = Field(description="File, line and column.")
    reason: str = Field(description="Why it needs trust.")
    new: bool = Field(description="Whether this very value was not trusted earlier.")


class Place(Document):
    """Where a value comes from."""

    layer: Literal["flag", "environment", "project", "user", "plugin", "built-in", "session"] = Field(
        description="Which layer said it."
    )
    where: str = Field(description="File, line and column, a variable, a flag, or the layer.")


class ConfigCheck(Document):
    """A configuration without a problem."""

    schema_: Literal["harness.config_check/1"] = Field(alias="schema")
    ok: Literal[True] = Field(description="Always true: a problem is an error document and exit 3.")
    project: str | None = Field(description="The folder that holds .harness; null: there is none, only own files.")
    digest: str = Field(description="SHA-256 of what holds.")
    files: list[str] = Field(description="The files that set anything.")
    trusted: bool = Field(description="Whether the project is trusted or needs no trust.")
    untrusted: list[Leaf] = Field(description="What only a trusted project may set.")
    warnings: list[Problem] = Field(description="What is allowed and can hardly be meant.")


class ConfigShow(Document):
    """What holds, all layers laid over each other."""

    schema_: Literal["harness.config/1"] = Field(alias="schema")
    project: str = Field(description="The folder that holds .harness.")
    digest: str = Field(description="SHA-256 of what holds.")
    trusted: bool = Field(description="Whether the project is trusted or needs no trust.")
    settings: dict[str, dict[str, Any]] = Field(description="The six files with their defaults filled in.")
    origins: dict[str, Place] | None = Field(description="With --origin: where each value comes from, by key.")
    untrusted: list[Leaf] = Field(
        description="What only a trusted project may set; left out of settings while it is not."
    )
    warnings: list[Problem] = Field(description="What is allowed and can hardly be meant.")


class Voice(Document):
    """What one layer says of a key."""

    layer: Literal["flag", "environment", "project", "user", "plugin", "built-in"] = Field(description="The layer.")
    where: str = Field(description="The place.")
    said: bool = Field(description="Whether it says anything.")
    value: Any = Field(description="What it says.")
    wins: bool = Field(description="Whether this holds.")
    reason: str = Field(description="Why it does not win.")


class ExplainedKey(Document):
    """One key and every layer's word on it, the strongest first."""

    path: str = Field(description="The key.")
    value: Any = Field(description="The value that holds.")
    voices: list[Voice] = Field(description="The layers.")


class ConfigExplain(Document):
    """Why a key, or each key below it, has its value."""

    schema_: Literal["harness.config_explain/1"] = Field(alias="schema")
    key: str = Field(description="The key that was asked for.")
    order: str = Field(description="The layers, the strongest first.")
    keys: list[ExplainedKey] = Field(description="The key, or those below it.")


class SchemaName(Document):
    """A name that `config schema NAME` knows."""

    name: str = Field(description="One of the six files, a document's id, or a wire type.")


class SchemaNames(Document):
    """The names of all schemas."""

    schema_: Literal["harness.schemas/1"] = Field(alias="schema")
    items: list[SchemaName] = Field(description="The names.")


class Schema(Document):
    """One JSON Schema."""

    schema_: Literal["harness.schema/1"] = Field(alias="schema")
    name: str = Field(description="Its name.")
    json_schema: dict[str, Any] = Field(description="The schema.")


class Trust(Document):
    """What is trusted now."""

    schema_: Literal["harness.trust/1"] = Field(alias="schema")
    project: str = Field(description="The folder that holds .harness.")
    trusted: bool = Field(description="Whether it is trusted now.")
    changed: bool = Field(description="Whether this command changed that.")
    before: bool = Field(description="Whether anything of it was trusted earlier.")
    leaves: list[Leaf] = Field(description="What its files set that needs trust.")
    gone: list[str] = Field(description="What was trusted earlier and is no longer set, by key.")


class FoundModel(Document):
    """A model that `harness init` found."""

    name: str = Field(description="Its name in models.yaml.")
    kind: str = Field(description="scripted, or the engine that can load it.")
    ready: bool = Field(description="Whether it can be used as it is.")
    missing: str | None = Field(description="What it lacks.")


class Replaced(Document):
    """A file that `harness init --force` replaced."""

    file: str = Field(description="The file, relative to the project.")
    original: str = Field(description="Where what was in it is now, relative to the project.")


class Init(Document):
    """What `harness init` wrote, or with `--dry-run` would write."""

    schema_: Literal["harness.init/1"] = Field(alias="schema")
    project: str = Field(description="The folder that holds .harness.")
    dry_run: bool = Field(description="Whether nothing was done.")
    files: list[str] = Field(description="What was written, relative to the project.")
    kept: list[str] = Field(description="What is different and stays as it is, relative to the project.")
    replaced: list[Replaced] = Field(description="Of the files those that were different.")
    trusted: bool | None = Field(description="Whether the project is trusted now; null with --dry-run.")
    inside: str | None = Field(description="The project around this new one; null: there is none, or it is not new.")
    models: list[FoundModel] = Field(description="The models that were found.")
    default_model: str = Field(description="The default of models.yaml as it is written.")
    next: str = Field(description="The command to type next.")


DOCUMENTS: tuple[type[Document], ...] = (
    Error,
    ConfigCheck,
    ConfigShow,
    ConfigExplain,
    SchemaNames,
    Schema,
    Trust,
    Init,
)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schema of each document by the document's id."""
    found = {}
    for model in DOCUMENTS:
        schema = model.model_json_schema()
        name = schema["properties"]["schema"]["const"]
        found[name] = published(name, schema)
    return found
