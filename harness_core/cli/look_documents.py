"""The documents about what a session made, used and where it went, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .documents import Document
from .session_documents import schemas_of

__all__ = ["DOCUMENTS", "Artifact", "Artifacts", "Graph", "Report", "Transitions", "schemas"]


class ArtifactItem(Document):
    """One accepted artifact."""

    ref: str = Field(description="artifact://sha256-..., what `artifacts get` takes.")
    artifact_id: str = Field(description="Its id.")
    type: str = Field(description="Its type.")
    status: str = Field(description="success, failure, partial or rejected.")
    stage: str = Field(description="The stage that made it.")
    visit: int = Field(description="Which visit of the stage, from 0.")
    visit_id: str = Field(description="The visit's id.")
    attempt: int = Field(description="Which attempt of the visit, from 1.")
    warnings: list[dict[str, Any]] = Field(description="Findings that did not stop it.")
    seq: int = Field(description="The event that accepted it.")


class Artifacts(Document):
    """The accepted artifacts of a session, oldest first."""

    schema_: Literal["harness.artifacts/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    items: list[ArtifactItem] = Field(description="The artifacts.")


class Artifact(Document):
    """The content behind a reference."""

    schema_: Literal["harness.artifact/1"] = Field(alias="schema")
    ref: str = Field(description="The reference.")
    size_bytes: int = Field(description="Its size.")
    encoding: Literal["json", "text", "base64"] = Field(description="How `content` holds it.")
    content: Any = Field(description="The content.")


class Move(Document):
    """One move of a session: a rule taken, an attempt repeated, a stage skipped."""

    kind: Literal["transition", "retry", "skip"] = Field(description="Which.")
    source: str = Field(alias="from", description="The stage.")
    target: str | None = Field(alias="to", description="Where it led.")
    visit: int = Field(description="Which visit of the stage.")
    visit_id: str = Field(description="The visit's id.")
    attempt: int = Field(description="Which attempt; of a retry the one that follows.")
    seq: int = Field(description="The event.")
    timestamp: str = Field(description="UTC.")
    rule: str | None = Field(None, description="Of a transition: the rule's text.")
    rule_index: int | None = Field(None, description="Of a transition: which rule of the stage, from 0.")
    values: Any = Field(None, description="Of a transition: what the rule read.")
    max_attempts: int | None = Field(None, description="Of a retry: attempts of one visit in all.")
    strategy: str | None = Field(None, description="Of a retry: how a failed attempt is met.")
    code: str | None = Field(None, description="Of a retry: why the attempt failed.")
    reason: str | None = Field(None, description="Of a retry or skip: why, in words.")
    inject: bool | None = Field(None, description="Of a retry: whether the next attempt reads the reason.")
    temperature: float | None = Field(None, description="Of a retry: the temperature of the next attempt.")
    output_ref: str | None = Field(None, description="Of a retry: digest of the output that was rejected.")


class Transitions(Document):
    """Every move of a session, in order."""

    schema_: Literal["harness.transitions/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    items: list[Move] = Field(description="The moves.")


class Node(Document):
    """A stage, a step of a plan, or an end."""

    id: str = Field(description="Its name.")
    kind: Literal["stage", "step", "end", "missing"] = Field(
        description="What it is; missing: a rule leads to no stage."
    )
    role: str | None = Field(description="The persona; of a step what it uses.")
    model: str | None = Field(description="The model; of a step its model or its tool.")
    executor: str | None = Field(description="The executor.")
    visits: int | None = Field(description="How often it was entered; null where none ran, and of fan-outs and waits.")
    attempts: int | None = Field(description="Attempts in all; null likewise.")
    status: str | None = Field(description="How it was left.")


class Edge(Document):
    """A way from one node to another."""

    source: str = Field(alias="from", description="Where from.")
    target: str = Field(alias="to", description="Where to.")
    kind: Literal["transition", "retry"] = Field(description="What it is.")
    label: str = Field(description="The rule, or why.")
    rule_index: int | None = Field(description="Which rule of the stage, for configured stages.")
    taken: int | None = Field(description="How often; null for configured stages.")


class Graph(Document):
    """The stages as configured, what a session did, a plan, or what a session did of its plan."""

    schema_: Literal["harness.graph/1"] = Field(alias="schema")
    kind: Literal["configured", "session", "plan", "run"] = Field(description="Which.")
    session_id: str | None = Field(description="The session.")
    initial: str | None = Field(description="Where it begins.")
    nodes: list[Node] = Field(description="Stages or steps, and ends.")
    edges: list[Edge] = Field(description="Ways between them.")


class Tokens(Document):
    """Tokens; the cached and reasoning ones are parts of the others and in no sum."""

    input_tokens: int = Field(description="Tokens the models read.")
    output_tokens: int = Field(description="Tokens the models wrote.")
    cached_input_tokens: int = Field(description="Of the input, those that were cached.")
    reasoning_tokens: int = Field(description="Of the output, those that were reasoning.")
    total_tokens: int = Field(description="Input and output.")
    known: bool = Field(description="False when a call did not report; the counters are then a lower bound.")


class Counted(Document):
    """What a group of model calls used."""

    usage: Tokens = Field(description="Tokens.")
    calls: int = Field(description="Model calls that were made; those that are open or were lost too.")
    failed_calls: int = Field(description="Those that failed.")
    unknown_calls: int = Field(description="Those that did not say what they used: failed, lost and open ones too.")
    model_ms: int = Field(description="Milliseconds until their answers were whole, added.")


class AttemptUse(Counted):
    """One attempt."""

    attempt: int = Field(description="Which, from 1.")
    failed: bool = Field(description="Whether it failed.")
    code: str | None = Field(description="Why.")


class VisitUse(Document):
    """One visit of a stage."""

    visit_id: str = Field(description="Its id.")
    index: int = Field(description="Which, from 0.")
    status: str | None = Field(description="How it was left; null while it is open.")
    seconds: float = Field(description="From entering to leaving, waits included.")
    attempts: list[AttemptUse] = Field(description="Its attempts.")


class StageUse(Counted):
    """One stage."""

    stage: str = Field(description="Its name.")
    seconds: float = Field(description="In all its visits.")
    visits: list[VisitUse] = Field(description="Its visits.")


class RoleUse(Counted):
    """One executor role."""

    role: str = Field(description="Its name.")


class PersonaUse(Counted):
    """One persona."""

    persona: str = Field(description="Its name.")


class ModelUse(Counted):
    """One model."""

    provider: str = Field(description="Its provider.")
    model_id: str = Field(description="Its id there.")


class TimerUse(Document):
    """What was waited for by the clock."""

    asked: int = Field(description="How many timers were asked for.")
    seconds: float = Field(description="For how long any of them was open.")


class FanOutUse(Document):
    """A step whose branches ran side by side, over all its visits and attempts."""

    stage: str | None = Field(description="The stage that ran the plan.")
    step: str = Field(description="Its id in the plan.")
    begun: int = Field(description="How often it began.")
    succeeded: int = Field(description="How often it gave its output.")
    branches_completed: int = Field(description="Branches that completed, of those times.")
    branches_failed: int = Field(description="Branches that failed, of those times.")
    seconds: float = Field(description="How long these times took together.")


class EventUse(Document):
    """What was waited for from outside."""

    asked: int = Field(description="How many events were waited for.")
    seconds: float = Field(description="For how long any of them was.")


class ToolUse(Document):
    """One tool."""

    tool: str = Field(description="Its name.")
    calls: int = Field(description="Calls that ended.")
    succeeded: int = Field(description="Those with a result.")
    failed: int = Field(description="Those without, denied ones included.")
    duration_ms: int = Field(description="Milliseconds, added.")


class ModelCall(Document):
    """One model call."""

    seq: int = Field(description="Its harness.model.called; what `prompt show --seq` takes.")
    call_id: str = Field(description="Its id.")
    turn: int = Field(description="Which turn of its role call.")
    stage: str = Field(description="The stage.")
    visit_id: str = Field(description="The visit.")
    attempt: int = Field(description="The attempt.")
    attempt_failed: bool = Field(description="Whether that attempt failed.")
    persona: str = Field(description="The persona.")
    role: str = Field(description="The executor role.")
    role_call_id: str | None = Field(description="The role call.")
    provider: str = Field(description="The provider.")
    model_id: str = Field(description="The model.")
    outcome: str = Field(description="The finish reason, failed, lost (cut off), or open.")
    usage: Tokens | None = Field(description="What it used; null where it failed, was lost or is open.")
    first_token_ms: int | None = Field(description="Until the first token.")
    total_ms: int | None = Field(description="Until the answer was whole.")
    queue_ms: int | None = Field(description="Of these, waiting for the model; null where the provider does not say.")


class RollUps(Document):
    """The totals that role calls report of themselves; they are compared and not added."""

    role_calls: int = Field(description="How many report one.")
    equal: bool = Field(description="Whether each is the sum of its calls.")


class Report(Counted):
    """What a session used, and how long it took."""

    schema_: Literal["harness.report/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    status: str = Field(description="Its state.")
    cost_usd: float | None = Field(description="Null where a price is not known.")
    unpriced_calls: int = Field(description="Model calls without a price.")
    seconds: float = Field(description="From its first event to its last.")
    stages: list[StageUse] = Field(description="By stage.")
    roles: list[RoleUse] = Field(description="By executor role.")
    personas: list[PersonaUse] = Field(description="By persona.")
    models: list[ModelUse] = Field(description="By model.")
    timers: TimerUse = Field(description="Timers.")
    events: EventUse = Field(description="Events from outside.")
    fan_outs: list[FanOutUse] = Field(description="Steps with branches, in the order in which they began first.")
    tools: list[ToolUse] = Field(description="By tool.")
    model_calls: list[ModelCall] = Field(description="Each call.")
    roll_ups: RollUps = Field(description="A check.")


class Use(Document):
    """What a session, or a tree of them, used."""

    usage: Tokens = Field(description="Tokens.")
    calls: int = Field(description="Model calls that were made.")
    failed_calls: int = Field(description="Those that failed.")
    unknown_calls: int = Field(description="Those that did not say what they used.")


class MemberUse(Document):
    """One session of a tree."""

    id: str = Field(description="The session.")
    parent_id: str | None = Field(description="The one that has begun it; null of the one that was asked about.")
    depth: int = Field(description="How many there are above it.")
    status: str = Field(description="Its state.")
    title: str = Field(description="Its title.")
    own: Use = Field(description="What it used itself.")
    tree: Use = Field(description="With all that it has begun; its tokens are known only where all are.")


class ReportTree(Document):
    """What a session and each one that it has begun used."""

    schema_: Literal["harness.report_tree/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    items: list[MemberUse] = Field(description="It and those that it has begun, parents first.")


DOCUMENTS: tuple[type[Document], ...] = (Artifacts, Artifact, Transitions, Graph, Report, ReportTree)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
