"""The published schemas of the six files in, the shape of each top-level key and the file it belongs to out."""

from __future__ import annotations

import json
from functools import cache
from pkgutil import get_data
from typing import Any

from harness_core.settings import FILES

from .shapes import Shape

__all__ = ["file_shapes", "homes", "read_schema", "top_shapes"]


@cache
def read_schema(file: str) -> dict[str, Any]:
    """Read a published schema from the package; it is generated from the models, and a test compares the two."""
    found: dict[str, Any] = json.loads(get_data("harness_core.schemas", file) or b"")
    return found


@cache
def file_shapes() -> dict[str, Shape]:
    """Give the shape of each of the six files."""
    return {name: Shape.of(read_schema(f"{name}.schema.json")) for name in FILES}


@cache
def homes() -> dict[str, str]:
    """Give the file that each top-level key belongs to; the six files share one namespace."""
    return {key: name for name in FILES for key in file_shapes()[name].property_names()}


@cache
def top_shapes() -> dict[str, Shape]:
    """Give the shape of each top-level key."""
    found = {key: file_shapes()[name].child(key) for key, name in homes().items()}
    return {key: shape for key, shape in found.items() if shape is not None}
