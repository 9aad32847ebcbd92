"""harness.yaml: who plays which part, where the log lies and how far a run may go, as a frozen model."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from harness_hookspecs.offer import EXECUTOR_ROLES
from harness_hookspecs.value import FrozenDict, JsonObject, Table

from .base import NO, OK, Choice, Count, Name, Seconds, Settings, Tokens, tighten

__all__ = [
    "Budget",
    "HarnessSettings",
    "OnAsk",
    "PluginsSettings",
    "RunSettings",
    "StoreSettings",
]

OnAsk = Literal["auto", "ask", "suspend", "deny"]

_BOUND = re.compile(rf"({'|'.join(re.escape(role) for role in EXECUTOR_ROLES)})(@[^@\s]+)?")


def _bound_role(key: str) -> str:
    if not _BOUND.fullmatch(key):
        raise ValueError(f'"{key}" is not ROLE or ROLE@PERSONA with a role of: {", ".join(EXECUTOR_ROLES)}')
    return key


BoundRole = Annotated[str, AfterValidator(_bound_role)]


_ANCHOR = re.compile(r"file:[^\0]+|git:[^#\0]+(#refs/[^\s~^:?*\[\\]+)?")


def _anchor(said: str) -> str:
    if not _ANCHOR.fullmatch(said):
        raise ValueError(f'"{said}" is none of: file:PATH, git:FOLDER, git:FOLDER#refs/NAME')
    return said


Anchor = Annotated[str, AfterValidator(_anchor), Field(max_length=4096)]


class StoreSettings(Choice):
    """Where the event log lies; the store's own keys stand beside ``plugin``."""

    plugin: Name = Field(
        "sqlite",
        description="The store that holds every session's log, by offer name or ID:NAME.",
        json_schema_extra=NO,
    )


class Budget(Settings):
    """What a session may use up in all; reaching one suspends it (exit 12), and `resume --budget` goes on."""

    tokens: Tokens = Field(
        1_000_000,
        description="Input and output tokens of all model calls of a session.",
        json_schema_extra=tighten("smaller"),
    )
    seconds: Seconds = Field(
        3600.0,
        description="Time a session may be active, in seconds; waiting for a person does not count.",
        json_schema_extra=tighten("smaller"),
    )
    calls: Count = Field(
        500, description="Model calls of a session, failed ones included.", json_schema_extra=tighten("smaller")
    )

    def limits(self) -> tuple[int, int, float]:
        """Tokens, calls and seconds."""
        return self.tokens, self.calls, self.seconds


class RunSettings(Settings):
    """How far one run may go. Every limit has a value: `null` gives the built-in one back, none has no limit."""

    max_depth: Annotated[int, Field(ge=0, le=16)] = Field(
        3, description="How deep sub-runs may nest; 0 allows none.", json_schema_extra=tighten("smaller")
    )
    max_concurrent_sub_runs: Annotated[int, Field(ge=1, le=1000)] = Field(
        10, description="Sub-runs that may be active at once; further ones wait.", json_schema_extra=tighten("smaller")
    )
    max_visits: Annotated[int, Field(ge=1, le=100_000)] = Field(
        50, description="Stage visits of a session; one more ends it as failed.", json_schema_extra=tighten("smaller")
    )
    max_requests: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        100_000,
        description=(
            "Role calls, timers and compiles that one attempt of a stage may ask for; one more fails it. Enough for "
            "10,000 branches of ten steps."
        ),
        json_schema_extra=tighten("smaller"),
    )
    max_turns: Annotated[int, Field(ge=1, le=100)] = Field(
        25,
        description="Model turns within one role call; a stage may ask for fewer.",
        json_schema_extra=tighten("smaller"),
    )
    max_parallel_tools: Annotated[int, Field(ge=1, le=64)] = Field(
        4, description="Tool calls of one turn that run side by side.", json_schema_extra=tighten("smaller")
    )
    cancel_grace_sec: Annotated[float, Field(ge=0, le=3600)] = Field(
        20.0,
        description="How long a model call in flight may go on after a cancel, in seconds.",
        json_schema_extra=tighten("smaller"),
    )
    park_after_sec: Annotated[float, Field(ge=0, le=86_400)] = Field(
        10.0,
        description=(
            "For a timer that is due within so many seconds a session that waits for nothing else stays in its "
            "process; for a later one it is given back (exit 10), and `resume` goes on with it."
        ),
        json_schema_extra=tighten("smaller"),
    )
    tool_timeout_sec: Seconds = Field(
        120.0,
        description="How long one tool call may take, in seconds; a tool may ask for less.",
        json_schema_extra=tighten("smaller"),
    )
    validator_timeout_sec: Seconds = Field(
        120.0,
        description="How long one validator may take, in seconds; without a verdict by then nothing passes.",
        json_schema_extra=tighten("smaller"),
    )
    approver_timeout_sec: Seconds = Field(
        120.0,
        description=(
            "How long an approver that asks no person may take, in seconds; without an answer by then the next is "
            "asked."
        ),
        json_schema_extra=tighten("smaller"),
    )
    tool_output_bytes: Annotated[int, Field(ge=1024, le=67_108_864)] = Field(
        65_536,
        description="What a model is shown of a tool's result, in bytes; the rest is stored and the cut is marked.",
        json_schema_extra=tighten("smaller"),
    )
    on_ask: OnAsk = Field(
        "auto",
        description=(
            "What an approval request does: ask on the terminal, suspend the session (exit 10), deny; auto "
            "asks on a terminal and denies without one."
        ),
        json_schema_extra=NO,
    )
    budget: Budget = Field(Budget(), description="What a session may use up in all.")


class PluginsSettings(Settings):
    """Which installed plugins take part."""

    mode: Literal["open", "explicit"] = Field(
        "open",
        description=(
            "open takes every installed plugin that is not disabled, explicit only those allowed that declare "
            "what they touch."
        ),
        json_schema_extra=tighten("explicit"),
    )
    disable: tuple[Name, ...] = Field(
        (), description="Plugins left out, by id, distribution or module.", json_schema_extra=tighten("superset")
    )
    allow: tuple[Name, ...] = Field(
        (), description="Plugins taken in mode explicit, by id, distribution or module.", json_schema_extra=NO
    )
    require: tuple[Name, ...] = Field(
        (),
        description="Plugins without which nothing starts (exit 3), by id, distribution or module.",
        json_schema_extra=OK,
    )
    settings: Table[JsonObject] = Field(
        {},
        description=(
            "Settings of offers that no other entry chooses (roles, approvers, observers, validators, rules), "
            "by offer name."
        ),
        json_schema_extra=NO,
    )


class HarnessSettings(Settings):
    """The whole of harness.yaml."""

    project: Name | None = Field(
        None, description="The name people see for this project; absent: the name of its folder.", json_schema_extra=OK
    )
    bind: Annotated[Mapping[BoundRole, Name], AfterValidator(FrozenDict)] = Field(
        {},
        description="Who answers for an executor role, ROLE or ROLE@PERSONA to an offer name; unbound: the default.",
        json_schema_extra={**NO, "propertyNames": {"pattern": f"^{_BOUND.pattern}$"}, "x-keys": list(EXECUTOR_ROLES)},
    )
    engine: Name | None = Field(
        None,
        description=(
            "What runs the code of steps that name no engine, by offer name or ID:NAME; absent: the default of those "
            "that are installed."
        ),
        json_schema_extra=NO,
    )
    store: StoreSettings = Field(StoreSettings(), description="Where the event log lies.", json_schema_extra=NO)
    anchor: Anchor | None = Field(
        None,
        description=(
            "Where the head of each session is kept when it ends, outside the store: file:PATH, git:FOLDER or "
            "git:FOLDER#refs/NAME; relative paths start at the project's folder. `events verify` compares."
        ),
        json_schema_extra=NO,
    )
    run: RunSettings = Field(RunSettings(), description="How far one run may go.")
    plugins: PluginsSettings = Field(
        PluginsSettings(), description="Which installed plugins take part, and their settings."
    )
