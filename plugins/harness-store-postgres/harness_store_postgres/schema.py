"""The form of the log as SQL: nothing goes in, the statements that make it and that recognise it come out.

Every text of ours is stored as its bytes, so the encoding of the database does not matter and no character is special.
"""

from __future__ import annotations

from typing import Final

__all__ = ["APPLICATION", "CREATE", "EVENT_COLUMNS", "FORM", "FORMAT", "LOOK", "MIN_SERVER", "SAID"]

APPLICATION: Final = "harness"
"""Stands in the one row of ``log`` and says whose tables these are."""

FORMAT: Final = 1
"""The version of this form, in the same row. A log with a greater one is refused."""

FORM: Final = "a9bc65d7e30166a24971de18108d115b"
"""What :data:`LOOK` gives for tables, indexes and triggers as :data:`CREATE` makes them; anything else was changed."""

MIN_SERVER: Final = 140_000
"""The oldest server, as ``server_version_num`` says it; earlier ones get no corrections any more."""

SAID: Final = (
    "SELECT set_config('search_path', %s, false), set_config('synchronous_commit', %s, false),"
    " set_config('default_transaction_read_only', %s, false), set_config('lock_timeout', '30s', false),"
    " set_config('idle_in_transaction_session_timeout', '20s', false)"
)
"""What every connection says first. Who stops amid a transaction holds up all others, so the server ends it before the
others are told that the log is busy."""

_SQL: Final = """
CREATE TABLE log (
    id smallint PRIMARY KEY CHECK (id = 1),
    application text NOT NULL,
    format integer NOT NULL,
    position bigint NOT NULL,
    commits bigint NOT NULL
) WITH (fillfactor = 10)

CREATE TABLE streams (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name bytea NOT NULL UNIQUE,
    seq bigint NOT NULL,
    hash bytea NOT NULL
) WITH (fillfactor = 50)

CREATE TABLE events (
    position bigint PRIMARY KEY,
    stream bigint NOT NULL,
    seq bigint NOT NULL,
    batch integer,
    key bytea,
    hash bytea NOT NULL,
    envelope bytea NOT NULL,
    payload bytea NOT NULL,
    UNIQUE (stream, seq)
)

CREATE UNIQUE INDEX events_key ON events (stream, sha256(key)) WHERE key IS NOT NULL

CREATE TABLE blobs (digest bytea PRIMARY KEY, content bytea NOT NULL)

CREATE TABLE inbox (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bytea NOT NULL,
    command_id bytea NOT NULL,
    body bytea NOT NULL,
    taken_seq bigint
)

CREATE UNIQUE INDEX inbox_command ON inbox (sha256(command_id))

CREATE INDEX inbox_waiting ON inbox (session, position) WHERE taken_seq IS NULL

CREATE TABLE summaries (stream bigint PRIMARY KEY, changed bigint NOT NULL, document bytea NOT NULL)

CREATE INDEX summaries_changed ON summaries (changed)

CREATE TABLE snapshots (
    stream bigint NOT NULL, seq bigint NOT NULL, maker bytea NOT NULL, content bytea NOT NULL, UNIQUE (stream, seq)
)

CREATE FUNCTION advance_head() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE streams SET seq = NEW.seq, hash = NEW.hash WHERE id = NEW.stream AND seq = NEW.seq - NEW.batch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'gap' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$

CREATE TRIGGER events_head AFTER INSERT ON events
    FOR EACH ROW WHEN (NEW.batch IS NOT NULL) EXECUTE FUNCTION advance_head()

CREATE TRIGGER inbox_once BEFORE UPDATE ON inbox FOR EACH ROW WHEN (
    OLD.taken_seq IS NOT NULL OR NEW.taken_seq IS NULL OR
    (NEW.position, NEW.session, NEW.command_id, NEW.body) IS DISTINCT FROM
    (OLD.position, OLD.session, OLD.command_id, OLD.body)
) EXECUTE FUNCTION refuse()
"""
# The one row of ``log`` is locked by whoever writes, so that positions stand in the order of commits. An index row
# holds some 2,700 bytes, and a foreign id may be longer: hence its digest. The head is moved by the last row of a batch
# alone, which carries the length of its batch. The row of ``log`` and those of ``streams`` change with every append;
# room on their pages keeps them there.


def _kept(table: str, *actions: str) -> str:
    return f"CREATE TRIGGER {table}_kept BEFORE {' OR '.join(actions)} ON {table} EXECUTE FUNCTION refuse()"


CREATE: Final[tuple[str, ...]] = (
    *_SQL.strip().split("\n\n"),
    *(_kept(table, "UPDATE", "DELETE", "TRUNCATE") for table in ("events", "blobs")),
    *(_kept(table, "DELETE", "TRUNCATE") for table in ("log", "streams", "inbox")),
    f"INSERT INTO log VALUES (1, '{APPLICATION}', {FORMAT}, 0, 0)",
)
"""Makes an empty log in the schema that is first in the search path."""

EVENT_COLUMNS: Final = "position, seq, envelope, payload, hash"
"""What ``rows.event`` makes an event of."""

LOOK: Final = """
WITH own AS (
    SELECT pg_class.oid, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')
), line (text) AS (
    SELECT concat_ws(' ', 'column', relname, attname, atttypid::regtype, attnotnull, attidentity)
    FROM own JOIN pg_attribute ON attrelid = own.oid WHERE attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT concat_ws(' ', 'index', own.relname, index.relname, indisunique, indisvalid, indnatts)
    FROM own JOIN pg_index ON indrelid = own.oid JOIN pg_class index ON index.oid = indexrelid
    UNION ALL
    SELECT concat_ws(' ', 'trigger', relname, tgname, tgtype, tgenabled, proname, md5(prosrc))
    FROM own JOIN pg_trigger ON tgrelid = own.oid JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal
)
SELECT md5(string_agg(text, E'\\n' ORDER BY text COLLATE "C")) FROM line
"""
"""One digest over what makes the form: columns, indexes and triggers of the schema; NULL for an empty one."""
