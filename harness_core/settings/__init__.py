"""The settings: what one may write into the six YAML files, as frozen pydantic models and pure functions over them."""

from __future__ import annotations

from typing import Final

__all__ = ["FILES"]

FILES: Final = ("harness", "models", "tools", "stages", "policies", "compression")
"""The six files without their ``.yaml``, in the order in which documents list them."""
