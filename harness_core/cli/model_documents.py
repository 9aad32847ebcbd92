"""The documents of ``harness models``, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from harness_core.settings.schemas import published

from .documents import Document

__all__ = ["DOCUMENTS", "Model", "ModelProbe", "Models", "Worker", "Workers", "schemas"]


class Model(Document):
    """One entry of models.yaml."""

    name: str = Field(description="Its name.")
    provider: str = Field(description="The provider it names.")
    plugin: str | None = Field(description="The plugin that offers the provider; null when none does.")
    reason: str | None = Field(description="Why the provider cannot be used.")
    default: bool = Field(description="Whether it is taken where nothing names a model.")
    path: str | None = Field(description="The file of the weights, as the entry names it.")
    capabilities: list[str] = Field(description="What it can do.")
    context_tokens: int = Field(description="Tokens of prompt and reply together, as configured.")
    origin: str = Field(description="Where the entry stands.")


class Models(Document):
    """The models that the configuration names."""

    schema_: Literal["harness.models/1"] = Field(alias="schema")
    items: list[Model] = Field(description="The models by name.")


class Worker(Document):
    """One living process that holds a model."""

    pid: int = Field(description="Its process number.")
    backend: str | None = Field(description="The engine.")
    model: str | None = Field(description="The model entry it was started for.")
    state: str = Field(description="starting, ready or busy.")
    path: str | None = Field(description="The file of the weights.")
    started_at: str | None = Field(description="When it began to load, UTC.")
    memory_bytes: int | None = Field(description="Resident memory now; null is unknown.")


class Workers(Document):
    """The model workers of every process of this person."""

    schema_: Literal["harness.workers/1"] = Field(alias="schema")
    items: list[Worker] = Field(description="The workers by pid.")


class ModelProbe(Document):
    """What a model was found to be able to do; null is unknown, never no."""

    schema_: Literal["harness.model_probe/1"] = Field(alias="schema")
    model: str = Field(description="The entry's name.")
    provider: str = Field(description="Its provider.")
    context_tokens: int | None = Field(description="Tokens of prompt and reply together, as the model really has them.")
    supports_tools: bool | None = Field(description="Whether it can call tools.")
    supports_schema: bool | None = Field(description="Whether its answers can be kept to a schema.")
    seconds: float = Field(description="How long the probe took, loading included.")
    detail: dict[str, Any] = Field(description="What else the provider found out; its own words.")


DOCUMENTS: tuple[type[Document], ...] = (Models, Workers, ModelProbe)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schema of each document by the document's id."""
    made = [model.model_json_schema() for model in DOCUMENTS]
    return {name: published(name, schema) for schema in made for name in [schema["properties"]["schema"]["const"]]}
