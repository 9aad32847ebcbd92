"""The documents about the store itself, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .documents import Document
from .session_documents import schemas_of

__all__ = ["DOCUMENTS", "DbBackup", "DbRebuild", "DbStats", "schemas"]


class Persisted(Document):
    """How many there are of each thing that is kept."""

    events: int = Field(description="Events of all streams.")
    projections: int = Field(description="Documents of sessions kept for listings; one a session.")
    artifacts: int = Field(description="Accepted artifacts.")
    approvals: int = Field(description="Approvals that were asked for.")
    transitions: int = Field(description="Transitions that were taken.")
    summaries: int = Field(description="Summaries that compression made.")


class DbStats(Document):
    """What the log holds and what room it takes; null where that has no meaning, as for a log in memory."""

    schema_: Literal["harness.db_stats/1"] = Field(alias="schema")
    store: str = Field(description="Offer name of the store.")
    file: str | None = Field(description="The file.")
    format: int | None = Field(description="The version of its form.")
    size_bytes: int | None = Field(description="Of the file.")
    wal_bytes: int | None = Field(description="Of what is committed and not yet folded into the file.")
    free_bytes: int | None = Field(description="Of the file, for what comes next.")
    sessions: int = Field(description="Sessions of all projects.")
    removed: int = Field(description="Sessions that were removed; the record of each stays.")
    event_bytes: int = Field(description="Of the events' envelopes and payloads.")
    bytes_per_event: float | None = Field(description="Of the file, contents and indexes included.")
    blobs: int = Field(description="Contents, each kept once.")
    content_bytes: int = Field(description="Of the contents as they were given.")
    blob_bytes: int = Field(description="Of the contents as they are kept.")
    commands: int = Field(description="Commands in the inbox, taken or not.")
    snapshots: int = Field(description="Snapshots, which are caches.")
    persisted: Persisted = Field(description="Six counts.")


class BadSession(Document):
    """One session of which something is wrong."""

    session_id: str = Field(description="The session.")
    code: str = Field(description="Stable dotted code.")
    message: str = Field(description="What is wrong.")


class DbBackup(Document):
    """A copy of the log, each chain and content of it proved."""

    schema_: Literal["harness.db_backup/1"] = Field(alias="schema")
    file: str = Field(description="The copy.")
    size_bytes: int = Field(description="Its size.")
    sessions: int = Field(description="Sessions in it.")
    events: int = Field(description="Events in it, each hashed again.")
    contents: int = Field(description="Contents in it, each hashed again.")
    equal: bool = Field(description="Whether each head that was copied out before is one of this log.")
    bad: list[BadSession] = Field(description="Sessions whose log is shorter or another one than it once was.")


class ChangedSession(Document):
    """One session whose document was not what its events say."""

    session_id: str = Field(description="The session.")
    keys: list[str] = Field(description="The keys that were wrong; all where there was no document.")


class Snapshots(Document):
    """Snapshots, of all sessions."""

    dropped: int = Field(description="How many there were.")
    made: int = Field(description="How many there are now.")


class DbRebuild(Document):
    """The caches, made again from the events."""

    schema_: Literal["harness.db_rebuild/1"] = Field(alias="schema")
    sessions: int = Field(description="Sessions of all projects.")
    same: int = Field(description="Those whose document was right.")
    changed: list[ChangedSession] = Field(description="Those whose document was wrong.")
    removed: list[str] = Field(description="Streams that are no sessions and had a document.")
    busy: list[str] = Field(description="Sessions that went on meanwhile; their owners keep their documents.")
    failed: list[BadSession] = Field(description="Sessions whose events cannot be read; their documents stay.")
    snapshots: Snapshots = Field(description="Snapshots.")


class Gone(Document):
    """One session that was removed, or would be."""

    id: str = Field(description="The session.")
    title: str = Field(description="The first line of what was asked.")
    project: str = Field(description="The folder of its project.")
    status: Literal["completed", "failed", "cancelled"] = Field(description="How it ended.")
    ended_at: str = Field(description="UTC; when its last event came.")
    events: int = Field(description="How many it has, or had.")


class Stayed(Document):
    """How many sessions stay, by the first reason that holds."""

    not_final: int = Field(description="They have not ended.")
    younger: int = Field(description="They ended later.")
    other_projects: int = Field(description="They are of other projects; --all takes them too.")
    related: int = Field(description="They name, or are named by, one that stays.")
    running: int = Field(description="Somebody owns them, or they went on meanwhile.")


class SessionsGc(Document):
    """Sessions that ended long ago, removed with all that only they name."""

    schema_: Literal["harness.sessions_gc/1"] = Field(alias="schema")
    before: str = Field(description="UTC; those that ended before it.")
    dry_run: bool = Field(description="Whether it was only to be said what would go.")
    removed: bool = Field(description="Whether they were removed.")
    sessions: list[Gone] = Field(description="The sessions, the oldest first.")
    events: int = Field(description="Of all of them.")
    contents: int | None = Field(description="Contents that only they named; null when nothing was removed.")
    content_bytes: int | None = Field(description="Of these contents, as they were given.")
    commands: int | None = Field(description="Of their inboxes.")
    kept: Stayed = Field(description="Why others stay.")
    failed: list[BadSession] = Field(description="Sessions that cannot be read or do not verify; they stay.")


DOCUMENTS: tuple[type[Document], ...] = (DbStats, DbBackup, DbRebuild, SessionsGc)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
