"""Kind ``workflow``: what a workflow takes and gives and what its plans may use, as ``stages.yaml`` or Python says it.

What stands under ``workflows.NAME`` in ``stages.yaml`` and what ``define_workflow`` is given become the same value, by
the same checks: what is equal has one definition hash, wherever it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from .errors import ConfigError, PluginError
from .kit.frozen import FrozenDict, thaw
from .mount import MountMode, MountPath
from .value import JsonObject, explain

__all__ = [
    "BashNetworkOf", "BashOf", "LimitsOf", "MemoryOf", "PermissionsOf", "PlannerOf", "Slot", "WorkersOf",
    "WorkflowDefinition", "define_workflow",
]  # fmt: skip

Name = Annotated[str, Field(min_length=1, max_length=128)]


def _checked(schema: Any) -> Any:
    """A schema that is one, found out where it is written and not by the first input."""
    if isinstance(schema, Mapping):
        from .kit.json_schema import compiled_schema  # with the library: who defines no workflow needs none of it

        try:
            compiled_schema(schema)
        except PluginError as error:
            at = "" if error.where is None else f" at {error.where}"
            raise ValueError(f"this is no JSON Schema{at}: {error.message}") from error
    return schema


DataSchema = Annotated[JsonObject | bool, AfterValidator(_checked)]


class _Part(BaseModel):
    """A part of a definition: frozen, and every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Slot(_Part):
    """A model that plans of the workflow may name: who answers is its ``bind``, else the entry of models.yaml that is
    called as it is, else the model of the stage."""

    bind: Name | None = Field(None, description="The entry of models.yaml that answers.")
    capabilities: tuple[Name, ...] = Field((), description="What it must be able to do.")
    description: str | None = Field(None, description="What it is for, as the planner is told it.")


class PlannerOf(_Part):
    """Who writes the plans."""

    system: str | None = Field(None, description="What the planner is told first.")
    form: Literal["plan", "sketch"] = Field(
        "plan",
        description="What they write: plans, or sketches, the short form for small models that plans are made of.",
    )
    max_repairs: Annotated[int, Field(ge=0, le=20)] = Field(
        2, description="How often the planner may mend a plan that was refused."
    )


class WorkersOf(_Part):
    """Who does the steps."""

    system: str | None = Field(None, description="What the workers are told first.")


class PermissionsOf(_Part):
    """What plans may ask for at most, beside the models and tools that the workflow names."""

    secrets: tuple[Name, ...] | None = Field(None, description="Secrets, by name; absent: plans are held to none.")
    network: tuple[Name, ...] | None = Field(None, description="Hosts; absent: plans are held to none.")
    max_tier: Literal["T0", "T1", "T2", "T3", "T4"] | None = Field(
        None, description="The highest tier of a tool; absent: what policies allow."
    )


class LimitsOf(_Part):
    """How far one run may go."""

    max_step_executions: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Executions of steps, visits and branches counted."
    )
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = Field(
        None, description="Tokens that one run may use."
    )
    timeout_ms: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How long one run may take, in milliseconds."
    )


class BashNetworkOf(_Part):
    """What bash may reach."""

    allow: tuple[Name, ...] = Field(description="Prefixes of URLs.")
    methods: tuple[Name, ...] = Field(description="Methods of HTTP.")
    deny_private_ranges: bool = Field(True, description="Whether private ranges of addresses stay closed.")


class BashOf(_Part):
    """What bash may do."""

    network: BashNetworkOf | None = Field(None, description="What it may reach; absent: nothing.")
    languages: tuple[Name, ...] | None = Field(None, description="What it may run, beside its own.")
    timeout_ms: Annotated[int, Field(ge=1)] | None = Field(
        None, description="How long one call may take, in milliseconds."
    )


class MemoryOf(_Part):
    """A memory store at a path."""

    path: MountPath = Field(description="Where it is.")
    mode: MountMode = Field(description="Whether it may be written.")
    purpose: str = Field(description="What a role reads about it.")
    store_id: Name = Field(description="Which store it is.")


class WorkflowDefinition(_Part):
    """A workflow: the contract of its plans, which a model writes when one is needed."""

    description: str | None = Field(None, description="What it is for, as who may run it is told.")
    input: DataSchema = Field(True, description="JSON Schema of what it is given.")
    output: DataSchema = Field(True, description="JSON Schema of what it gives.")
    models: Annotated[Mapping[Name, Slot], AfterValidator(FrozenDict)] = Field(
        {}, description="The models its plans may use; absent: that of the stage."
    )
    tools: tuple[Name, ...] = Field((), description="Tool sets and tools its plans may use.")
    planner: PlannerOf = Field(PlannerOf(), description="Who writes its plans.")
    workers: WorkersOf = Field(WorkersOf(), description="Who does its steps.")
    permissions: PermissionsOf = Field(PermissionsOf(), description="What its plans may ask for at most.")
    limits: LimitsOf = Field(LimitsOf(), description="How far one run may go.")
    bash: BashOf | None = Field(None, description="What bash may do in its runs.")
    memory: tuple[MemoryOf, ...] = Field((), description="Memory stores that its runs have.")


def define_workflow(  # noqa: PLR0913  # the keys of the file
    *,
    description: str | None = None,
    input: Any = True,  # noqa: A002  # the key's name
    output: Any = True,
    models: Mapping[str, Any] | None = None,
    tools: Sequence[str] = (),
    planner: Mapping[str, Any] | None = None,
    workers: Mapping[str, Any] | None = None,
    permissions: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    bash: Mapping[str, Any] | None = None,
    memory: Sequence[Mapping[str, Any]] = (),
) -> WorkflowDefinition:
    """Define a workflow in Python: the keys, the values and the checks of ``workflows.NAME`` in ``stages.yaml``.

    A plugin offers it under its name, as kind ``workflow``::

        Offer(kind="workflow", name="greet", build=lambda settings, host: define_workflow(input=Person))

    Args:
        description: What it is for.
        input: What it is given: a JSON Schema, or a pydantic model, of which the schema is taken.
        output: What it gives, likewise.
        models: The models its plans may use, by the names that plans call them by.
        tools: Tool sets and tools its plans may use.
        planner: Who writes its plans: ``system``, ``form``, ``max_repairs``.
        workers: Who does its steps: ``system``.
        permissions: What its plans may ask for at most: ``secrets``, ``network``, ``max_tier``.
        limits: How far one run may go: ``max_step_executions``, ``max_tokens``, ``timeout_ms``.
        bash: What bash may do in its runs: ``network``, ``languages``, ``timeout_ms``.
        memory: Memory stores that its runs have: each ``path``, ``mode``, ``purpose``, ``store_id``.

    Raises:
        ConfigError: ``workflow.definition``: it is none. ``where`` is the JSON pointer of what is wrong first;
            ``facts["findings"]`` has all.
    """
    said = {
        "description": description,
        "input": _schema_of(input, "/input"),
        "output": _schema_of(output, "/output"),
        "models": models,
        "tools": list(tools),
        "planner": planner,
        "workers": workers,
        "permissions": permissions,
        "limits": limits,
        "bash": bash,
        "memory": list(memory),
    }
    given = {name: thaw(value) for name, value in said.items() if value is not None}
    try:
        return WorkflowDefinition.model_validate(given)
    except ValidationError as error:
        found = explain(error, "definition of a workflow", given)
        raise _refused(found.message, found.where, found.facts["findings"]) from error


def _schema_of(data: Any, where: str) -> Any:
    if not (isinstance(data, type) and issubclass(data, BaseModel)):
        return data
    from .kit.model_schema import model_schema

    try:
        return model_schema(data)
    except PluginError as error:
        raise _refused(error.message, where, [{"path": where, "code": error.code, "message": error.message}]) from error


def _refused(message: str, where: str | None, findings: Sequence[Mapping[str, str]]) -> ConfigError:
    return ConfigError(message, code="workflow.definition", where=where, findings=list(findings))
