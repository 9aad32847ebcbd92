"""The documents about sessions, their events and replays, as models; their JSON Schemas are published."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from harness_core.settings.schemas import published

from .documents import Document

__all__ = [
    "DOCUMENTS",
    "Delivery",
    "Event",
    "Replay",
    "Session",
    "Sessions",
    "Trace",
    "Tree",
    "Verify",
    "schemas",
    "schemas_of",
]

Status = Literal["created", "active", "paused", "awaiting_approval", "failed", "completed", "cancelled"]
Category = Literal["domain", "system", "inference", "tool", "approval", "compression", "lifecycle"]


class SessionUsage(Document):
    """Tokens; the cached and reasoning ones are parts of the others."""

    input_tokens: int = Field(description="Tokens the models read.")
    output_tokens: int = Field(description="Tokens the models wrote.")
    cached_input_tokens: int = Field(description="Of the input, those that were cached.")
    reasoning_tokens: int = Field(description="Of the output, those that were reasoning.")
    known: bool = Field(description="False when a call did not report; the counters are then a lower bound.")


class Waiting(Document):
    """One thing a session waits for."""

    kind: str = Field(description="approval, budget, in_doubt, child, timer, event or task.")
    id: str = Field(description="Which one.")
    until: str | None = Field(description="When it ends by itself.")
    name: str | None = Field(None, description="Of an event: what its plan calls it; of nothing else there.")


class Failure(Document):
    """Why a session failed."""

    code: str = Field(description="Stable dotted code; the exit code follows from it.")
    message: str = Field(description="What happened.")
    hint: str | None = Field(description="What to do next.")


class _Session(Document):
    id: str = Field(description="UUIDv7; people see its last eight characters.")
    status: Status = Field(description="The state.")
    stage: str | None = Field(description="The stage it is in, or was in last.")
    title: str = Field(description="The beginning of what was asked.")
    project: str = Field(description="The folder that holds .harness.")
    parent_id: str | None = Field(description="The session that it is a fork of, or that started it.")
    created_at: str = Field(description="UTC.")
    updated_at: str = Field(description="UTC, of the last event.")
    last_seq: int = Field(description="How many events it has.")
    usage: SessionUsage = Field(description="Tokens of all its model calls.")
    cost_usd: float | None = Field(description="Null where a price is not known.")
    unpriced_calls: int = Field(description="Model calls without a price.")
    artifacts: list[str] = Field(description="References of the accepted artifacts, oldest first.")
    waiting: list[Waiting] = Field(description="What it waits for.")
    config_hash: str = Field(description="Digest of the configuration it runs under.")
    failure: Failure | None = Field(description="Why it failed.")
    state_hash: str = Field(description="SHA-256 of the state without ids and times.")


class Session(_Session):
    """One session."""

    schema_: Literal["harness.session/1"] = Field(alias="schema")


class Hidden(Document):
    """How many sessions a listing leaves out."""

    other_projects: int = Field(description="Of other projects; --all shows them.")
    other_status: int = Field(description="In another state than --status.")


class Sessions(Document):
    """Sessions, newest first."""

    schema_: Literal["harness.sessions/1"] = Field(alias="schema")
    items: list[Session] = Field(description="The sessions.")
    hidden: Hidden = Field(description="What is left out.")


class Branch(Document):
    """A session among those that come from one."""

    id: str = Field(description="The session.")
    parent_id: str | None = Field(description="The session that it is a fork of, or that started it.")
    depth: int = Field(description="How many sessions of this tree stand above it.")
    forked_at: int | None = Field(description="Seq of the parent's event that it is a fork from; null for no fork.")
    status: Status = Field(description="The state.")
    stage: str | None = Field(description="The stage it is in, or was in last.")
    title: str = Field(description="The beginning of what was asked.")
    created_at: str = Field(description="UTC.")
    last_seq: int = Field(description="How many events it has.")


class Tree(Document):
    """What a session comes from and what comes from it."""

    schema_: Literal["harness.tree/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    items: list[Branch] = Field(description="The oldest ancestor, then each session before those that come from it.")


class Delivery(Document):
    """What was delivered to a session from outside."""

    schema_: Literal["harness.delivery/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    name: str = Field(description="What its plan calls it.")
    delivery_id: str = Field(description="Its own id: under it it counts once.")
    repeated: bool = Field(description="Whether it had been delivered before; then nothing has changed.")
    waited_for: bool = Field(description="Whether a step waits for it now; else it is kept for one that may.")


class Event(Document):
    """One event with its whole envelope; `events --json` prints one a line."""

    schema_: Literal["harness.event/1"] = Field(alias="schema")
    id: str = Field(description="UUID.")
    source_event_id: str | None = Field(description="The id it had where it came from.")
    seq: int = Field(description="Its place in its stream, from 1 without a gap.")
    stream: str = Field(description="session:ID, or store:main.")
    session_id: str | None = Field(description="The session.")
    role_call_id: str | None = Field(description="The role call it belongs to.")
    task_id: str | None = Field(description="The coding task it belongs to.")
    attempt_id: str | None = Field(description="The attempt of that task.")
    stage_visit_id: str | None = Field(description="The stage visit it belongs to.")
    step_path: str | None = Field(description="The step it belongs to.")
    visit_index: int | None = Field(description="Which visit of that step.")
    occurrence_id: str | None = Field(description="Joins it with its trace twin.")
    timestamp: str = Field(description="UTC with milliseconds.")
    category: Category = Field(description="One of seven, by its type.")
    type: str = Field(description="What happened.")
    version: int = Field(description="Schema version of the payload.")
    actor: Literal["operator", "runner", "agent", "model", "system"] = Field(description="Who did it.")
    payload: dict[str, Any] = Field(description="The facts; large contents stand in it by their digest.")
    causation_id: str | None = Field(description="The event that caused it.")
    correlation_id: str | None = Field(description="The command that everything goes back to.")
    prev_hash: str = Field(description="Hash of the event before it; zeros for the first.")
    hash: str = Field(description="SHA-256 over prev_hash and the stored bytes.")
    unknown_type: bool | None = Field(None, description="True for a type this version does not know.")


class Trace(Document):
    """What caused an event."""

    schema_: Literal["harness.trace/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    event_id: str = Field(description="The event that was asked about.")
    correlation_id: str = Field(description="The command that everything goes back to.")
    items: list[Event] = Field(description="That event, then what caused it, and so on to the command.")


class LogHead(Document):
    """The end of a log."""

    seq: int = Field(description="Seq of the last event.")
    hash: str = Field(description="Its hash.")


class BadEvent(Document):
    """What is wrong with a log at one place."""

    invariant: str = Field(description="The promise that is broken: I-7, the chain of hashes, for example.")
    seq: int = Field(description="The event that breaks it, or the place of one that is missing.")
    code: str = Field(
        description="store.changed, store.gap, store.tail_missing, store.content_missing and the like where bytes are "
        "not what they were; store.invariant where events say what may not be."
    )
    message: str = Field(description="What is wrong.")


class AnchorSays(Document):
    """What the anchor keeps of the session."""

    place: str = Field(description="Where it is.")
    head: LogHead | None = Field(description="The head it keeps; null for a session that did not end while it was set.")


class Verify(Document):
    """Whether a session's log is what was written."""

    schema_: Literal["harness.verify/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    equal: bool = Field(description="Whether everything verifies.")
    events: int = Field(description="Events that verify.")
    head: LogHead = Field(description="The head the store keeps.")
    copied_head: LogHead | None = Field(description="The head as it was copied out when the session ended.")
    contents: int = Field(description="Contents that were hashed again.")
    prompts: int = Field(description="Questions to models whose promptHash was computed again.")
    unknown_seq: int | None = Field(
        description="The first event that this version does not know; from there on bytes and contents are proved, and "
        "what the events say is not judged. Null where all are known."
    )
    anchor: AnchorSays | None = Field(description="What is kept outside the store; null where no anchor is set.")
    bad: BadEvent | None = Field(description="The first thing that is wrong.")
    broken: list[BadEvent] = Field(description="All that is wrong, at most 100, up to where the chain is broken.")


class Difference(Document):
    """The first event that comes out otherwise."""

    seq: int = Field(description="Its seq.")
    recorded: Any = Field(description="What the log says; null for nothing.")
    replayed: Any = Field(description="What the replay says; null for nothing.")
    recorded_where: str | None = Field(description="Of a transition: where the rule stands that the session took.")
    replayed_where: str | None = Field(description="Of a transition: where the rule stands that the replay takes.")


class Replay(Document):
    """Whether a session comes out the same."""

    schema_: Literal["harness.replay/1"] = Field(alias="schema")
    mode: str = Field(description="How it was replayed.")
    events: int = Field(description="Events that were replayed; with a category those of it.")
    state_hash: str = Field(description="Of the state they lead to; with a category of what its events write of it.")
    equal: bool | None = Field(
        description="Whether it comes out the same; null where nothing was compared: what is kept of the session to "
        "compare with lies outside of the part that was replayed, or is not there."
    )
    model_calls: int = Field(description="Model calls that were made: always 0.")
    tool_calls: int = Field(description="Tool calls that were made: always 0.")
    roles_entered: int = Field(description="Role calls that were entered again.")
    diverged: Difference | None = Field(description="The first difference.")


DOCUMENTS: tuple[type[Document], ...] = (
    Session,
    Sessions,
    Tree,
    Delivery,
    Event,
    Trace,
    Verify,
    Replay,
)


def schemas_of(models: Iterable[type[Document]]) -> dict[str, dict[str, Any]]:
    """Give the schema of each document by the document's id."""
    found = {}
    for model in models:
        schema = model.model_json_schema()
        name = schema["properties"]["schema"]["const"]
        found[name] = published(name, schema)
    return found


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
