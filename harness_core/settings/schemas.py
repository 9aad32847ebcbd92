"""The six settings models in, their JSON Schemas out, as editors and ``harness config schema`` want them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from .compression import CompressionSettings
from .harness import HarnessSettings
from .models import ModelsSettings
from .policies import PoliciesSettings
from .stages import StagesSettings
from .tools import ToolsSettings

__all__ = ["DIALECT", "MODELS", "published", "schemas"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

MODELS: Final[dict[str, type[BaseModel]]] = {
    "harness": HarnessSettings,
    "models": ModelsSettings,
    "tools": ToolsSettings,
    "stages": StagesSettings,
    "policies": PoliciesSettings,
    "compression": CompressionSettings,
}


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schema of each of the six files by the file's name without ``.yaml``."""
    return {name: published(name, model.model_json_schema()) for name, model in MODELS.items()}


def published(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add what pydantic leaves out, the dialect and an id to name the schema by, and leave out its titles."""
    return {"$schema": DIALECT, "$id": f"urn:harness:schema:{name}", **_untitled(schema)}


def _untitled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the titles, which only repeat the names in capitals; a property that is called title stays."""
    tidy: dict[str, Any] = {}
    for key, value in schema.items():
        if key in {"properties", "$defs"}:
            tidy[key] = {name: _untitled(child) for name, child in value.items()}
        elif isinstance(value, Mapping) and key not in {"default", "const"}:
            tidy[key] = _untitled(value)
        elif isinstance(value, list):
            tidy[key] = [
                _untitled(child) if isinstance(child, Mapping) and key in {"anyOf", "oneOf", "allOf"} else child
                for child in value
            ]
        elif key != "title":
            tidy[key] = value
    return tidy
