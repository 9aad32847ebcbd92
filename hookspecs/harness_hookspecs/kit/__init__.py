"""Shared code for the core and for plugins, one module each; importing the package itself loads nothing."""

from __future__ import annotations

__all__: list[str] = []
