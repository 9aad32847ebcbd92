"""The contract's modules in, the JSON Schema of every type that crosses a wire out."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from harness_core.settings.schemas import published
from harness_hookspecs.value import WireModel

__all__ = ["MODULES", "schemas"]

MODULES: Final = ("messages", "mount", "workflow", "role", "role_manifest")
"""The modules of the contract whose public wire models are published."""


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schema of each wire type, in its wire form, by the type's name."""
    found: dict[str, dict[str, Any]] = {}
    for name in MODULES:
        module = import_module(f"harness_hookspecs.{name}")
        for public in sorted(module.__all__):
            model = getattr(module, public)
            if isinstance(model, type) and issubclass(model, WireModel) and model.__module__ == module.__name__:
                found[public] = published(public, model.model_json_schema())
    return found
