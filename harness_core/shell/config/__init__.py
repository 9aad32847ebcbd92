"""The configuration of a project: YAML files, environment and flags in, one checked and explained whole out."""

from __future__ import annotations
