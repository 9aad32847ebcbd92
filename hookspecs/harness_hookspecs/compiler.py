"""What a host calls to have a plan checked before it runs: a document and what there is in, a locked plan out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Protocol

from pydantic import StringConstraints

from .host import Processes
from .rules import Rules
from .tool import Tier, ToolSpec
from .value import Digest, Maybe, Name, PositiveCount, Text, WireModel
from .workflow import Limits, Permissions, PlanFinding, Workflow, WorkflowDefinitionSnapshot

__all__ = [
    "Compilation",
    "Compiler",
    "Difference",
    "KnownModel",
    "KnownTool",
    "LockedEngine",
    "LockedModel",
    "LockedTool",
    "Surroundings",
    "Trial",
    "VersionLock",
    "WorkflowVersionId",
]

WorkflowVersionId = Annotated[str, StringConstraints(strict=True, pattern=r"^wfv_[0-9a-f]{32}$")]
"""``wfv_`` and the first 32 digits of the SHA-256 of the canonical form: the same plan has the same id anywhere."""


class KnownTool(NamedTuple):
    """A tool that this host has: what its set says, and what the configuration made of it."""

    spec: ToolSpec
    tier: Tier
    schema_hash: str
    plugin: str  # the plugin's id and version, ``tool-git@0.1.0``


class KnownModel(NamedTuple):
    """A model slot that this host has; ``model_id`` says what is behind it: a model's own name, or its file."""

    provider: str
    model_id: str


class Trial(NamedTuple):
    """How a child process is made that tries what a model wrote, before this process reads it.

    The child imports ``module``, takes the rules engine ``name`` out of the offers of its hook and builds it with the
    ``settings``. ``path`` is its ``sys.path``.
    """

    processes: Processes
    module: str
    name: str
    settings: Any = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What there is, and what is allowed, where a plan is to run.

    Attributes:
        rules: The rules engine, which compiles every expression of the plan.
        models: The model slots.
        tools: The tools by the names that plans call them by.
        engines: The engines for code, name and version.
        engines_out: Engines that are installed and run nothing here, each with the reason.
        engine: The one of either that runs code which names none; without one, code has to name its engine.
        definition: The workflow that the plan is written for; None for a plan that stands by itself.
        permissions: What policy and stage allow at most; that of the definition comes on top.
        limits: What they allow a run to take at most; likewise.
        max_turns: The model turns that one step may have at most; None for no bound.
        trial: The way to a child process; None only for plans that no model wrote, and under simulation.
    """

    rules: Rules
    models: Mapping[str, KnownModel] = field(default_factory=dict)
    tools: Mapping[str, KnownTool] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    engines_out: Mapping[str, str] = field(default_factory=dict)
    engine: str | None = None
    definition: WorkflowDefinitionSnapshot | None = None
    permissions: Permissions | None = None
    limits: Limits | None = None
    max_turns: int | None = None
    trial: Trial | None = None


class LockedTool(WireModel):
    """A tool that a plan was checked against."""

    name: Name
    schema_hash: Digest
    tier: Tier
    plugin: Text


class LockedModel(WireModel):
    """A model slot that a plan was checked against."""

    slot: Name
    provider: Text
    model_id: Text


class LockedEngine(WireModel):
    """An engine for code that a plan was checked against."""

    name: Name
    version: Text


class VersionLock(WireModel):
    """What a plan was checked against: only what it uses. Not part of the id; each machine has its own lock."""

    workflow_version_id: WorkflowVersionId
    lwir_hash: Digest
    workflow_definition_hash: Maybe[Digest] = None
    input_schema_hash: Digest
    output_schema_hash: Digest
    tools: tuple[LockedTool, ...]
    models: tuple[LockedModel, ...]
    engines: tuple[LockedEngine, ...]
    rules_engine: Text
    compiler_version: Text


class Compilation(WireModel):
    """What became of a document.

    A plan that can be registered has ``plan``, id, hash and lock, and findings that are warnings only. One that cannot
    has the findings of the first phase that refused it, and the warnings until then, and nothing else.
    """

    findings: tuple[PlanFinding, ...]
    workflow_version_id: Maybe[WorkflowVersionId] = None
    lwir_hash: Maybe[Digest] = None
    lock: Maybe[VersionLock] = None
    plan: Maybe[Workflow] = None
    max_step_executions: Maybe[PositiveCount] = None

    @property
    def ok(self) -> bool:
        """Whether the plan can be registered."""
        return self.plan is not None


class Difference(NamedTuple):
    """One thing that is another one than it was: what, before and now, for a person; empty for what is not there."""

    what: str
    before: str
    now: str

    def __str__(self) -> str:
        if not self.before:
            return f"{self.what}: new, {self.now}"
        return f"{self.what}: {self.before} -> {self.now}" if self.now else f"{self.what}: gone, was {self.before}"


class Compiler(Protocol):
    """Checks plans. Pure, but for the child process of ``Surroundings.trial``; called outside ``decide``."""

    def compile(self, source: Any, surroundings: Surroundings) -> Compilation:
        """Check a plan.

        Args:
            source: What a model wrote: UTF-8 bytes or text of one JSON document, or a JSON value.
            surroundings: What there is.

        Returns:
            The plan, or every finding of the first phase that has any. Whatever is wrong with the source is a finding.

        Raises:
            PluginError: ``plugin.no_trial``: the child process of ``surroundings.trial`` does not start.
        """

    def expand(self, sketch: Any, surroundings: Surroundings) -> Compilation:
        """Make a plan of a sketch, the short form for small models, and check it.

        Findings point into the plan that was made; those about the sketch itself point into the sketch.
        """

    def drift(self, before: VersionLock, now: VersionLock) -> Sequence[Difference]:
        """What changed between two locks; empty when a run may go on."""

    def plan_schema(self, surroundings: Surroundings) -> Mapping[str, Any]:
        """The JSON Schema of plans with the names of models and tools filled in, for constrained decoding."""

    def sketch_schema(self, surroundings: Surroundings) -> Mapping[str, Any]:
        """The JSON Schema of sketches, likewise."""
