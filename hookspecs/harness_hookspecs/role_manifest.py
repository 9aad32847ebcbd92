"""What one role call uses, as camelCase wire values: its hash tells whether a resume would be the same call."""

from typing import Annotated, Literal

from pydantic import Field

from .messages import ToolReference
from .mount import MountMode, MountPath
from .value import Count, Digest, JsonObject, Maybe, Name, PositiveCount, Text, WireModel

__all__ = [
    "FixerManifest",
    "Manifest",
    "ManifestMount",
    "OrchestratorManifest",
    "PlannerManifest",
    "WorkerManifest",
]


class ManifestMount(WireModel):
    """A mount as the call sees it; where its content lies on the host is no part of the call."""

    path: MountPath
    mode: MountMode
    store_id: Maybe[Name] = None


class _Manifest(WireModel):
    """Common to the four. ``slot``, ``provider`` and ``model_id`` are empty where the step asks no model."""

    role: Name
    plugin_id: Name
    plugin_version: Name
    delegated_from: Maybe[Name] = None
    prompt_template_version: Name
    addendum_hash: Digest
    system_hash: Maybe[Digest] = None
    slot: Text
    provider: Text
    model_id: Text
    params: JsonObject
    tools: tuple[ToolReference, ...]
    skills: tuple[Digest, ...]
    mounts: tuple[ManifestMount, ...]
    bash_hash: Maybe[Digest] = None
    limits: JsonObject


class PlannerManifest(_Manifest):
    """Of a ``plan`` call."""

    role: Literal["planner"] = "planner"
    definition_hash: Digest
    outer_loop_hash: Maybe[Digest] = None


class OrchestratorManifest(_Manifest):
    """Of an ``orchestrate`` call."""

    role: Literal["orchestrator"] = "orchestrator"
    available_hashes: tuple[Digest, ...]
    tools_provided: tuple[Name, ...]


class WorkerManifest(_Manifest):
    """Of an ``execute_step`` call; ``engine`` and ``rules`` are set where the step uses one."""

    role: Literal["worker.ai-generate", "worker.code-run", "worker.tool-call"]
    workflow_version_id: Maybe[Name] = None
    step_path: Name
    visit_index: Count
    uses: Literal["ai.generate", "code.run", "tool.call", "decision"]
    step_hash: Digest
    engine: Maybe[Name] = None
    rules: Maybe[Name] = None


class FixerManifest(_Manifest):
    """Of a ``fix_step`` call; ``engine`` is what the host runs the repaired source in."""

    role: Literal["fixer"] = "fixer"
    workflow_version_id: Maybe[Name] = None
    step_path: Name
    source_hash: Digest
    error_digest: Digest
    prior_fix_attempts: Count
    max_attempts: PositiveCount
    engine: Maybe[Name] = None


Manifest = Annotated[
    PlannerManifest | OrchestratorManifest | WorkerManifest | FixerManifest, Field(discriminator="role")
]
"""The manifest of any role call; its shape is that of its role (A-57)."""
