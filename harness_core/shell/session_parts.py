"""What one session runs with, resolved from configuration and plugins, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from harness_core.kernel.approvals import ToolPolicy
from harness_core.kernel.definition import Definition
from harness_hookspecs.approver import Approver
from harness_hookspecs.artifact import ArtifactType
from harness_hookspecs.validator import Validator

from .engines import Engines
from .model_handle import ModelEntry
from .role_setup import BoundRole
from .surroundings import PlanSite
from .toolbox import Toolbox

__all__ = ["LOGS", "NamedApprover", "NamedValidator", "SessionParts"]

LOGS: Final = "logs"
"""The folder of the data directory in which each session has one, for what its roles write beside the log."""


@attrs.frozen
class NamedValidator:
    """A validator and the offer it came from."""

    name: str
    validator: Validator


@attrs.frozen
class NamedApprover:
    """An approver and the offer it came from."""

    name: str
    approver: Approver


@attrs.frozen
class SessionParts:
    """Everything concrete of a session; only what it uses was imported."""

    definition: Definition
    sources: Mapping[str, Sequence[tuple[str, Any]]]  # stage -> its ContextSource entries, each after its place
    policies: Mapping[str, ToolPolicy]  # stage -> the rules that hold in it
    models: Mapping[str, ModelEntry]
    toolbox: Toolbox
    roles: Mapping[tuple[str, str], BoundRole]  # (executor role, persona) -> who answers
    default_role: BoundRole | None
    validators: Mapping[str, Sequence[NamedValidator]]
    validator_timeout_seconds: float
    artifacts: Mapping[str, ArtifactType]
    approvers: Sequence[NamedApprover]
    approver_timeout_seconds: float
    workspace: Path
    logs_dir: Path
    output_bytes: int
    parallel_tools: int
    engines: Engines | None = None
    failures: tuple[Mapping[str, Any], ...] = ()
    slots: Mapping[tuple[str, str], Mapping[str, str]] = {}  # stage and workflow -> who answers for its models
    sketched: frozenset[str] = frozenset()  # the workflows whose planners write sketches
    plans: PlanSite | None = None  # what plans are checked against; absent where nothing runs
