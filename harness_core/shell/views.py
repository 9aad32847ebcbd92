"""A store and a session's id in, the documents about its past out; nothing here writes, and no plugin is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from harness_core.kernel.facts import Event
from harness_core.kernel.projections.approvals import approval_items, doubt_items, grant_items
from harness_core.kernel.projections.artifacts import artifact_items, digest_of_ref
from harness_core.kernel.projections.context import context_document, find_visit
from harness_core.kernel.projections.event import decoded, event_documents, expanded_view
from harness_core.kernel.projections.graph import ConfiguredStage, configured_graph, session_graph
from harness_core.kernel.projections.naming import resolve_one, resolve_session
from harness_core.kernel.projections.prompt import PromptCall, prompt_calls, prompt_document
from harness_core.kernel.projections.report import report_document
from harness_core.kernel.projections.transitions import transitions_document
from harness_core.settings.personas import persona_of
from harness_core.settings.transitions import rules_of
from harness_hookspecs.errors import NotFound
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.store import GENESIS_HASH, Store, StoredEvent

from .config.effective import EffectiveConfig

__all__ = [
    "approvals",
    "artifact_bytes",
    "artifacts",
    "configured_stages",
    "context",
    "event_items",
    "expanded",
    "find_event",
    "find_session",
    "grants",
    "graph",
    "keeps",
    "prompt",
    "report",
    "session_ids",
    "stream_of",
    "trace",
    "transitions",
]


def stream_of(session_id: str) -> str:
    """The stream of a session."""
    return f"session:{session_id}"


def _events(store: Store, session_id: str) -> Iterator[Event]:
    return map(decoded, store.read(stream_of(session_id)))


# -- which session ---


def session_ids(store: Store, copied_heads: Sequence[str] = ()) -> list[str]:
    """Every session the store knows of, the one that changed last first.

    Args:
        store: The store.
        copied_heads: Names of the heads copied out of it: a session whose events are gone is still known by its own.
    """
    streams = [name for name, _ in store.summaries()]
    streams += reversed(store.streams())
    found = [stream.removeprefix("session:") for stream in streams if stream.startswith("session:")]
    return list(dict.fromkeys([*found, *copied_heads]))


def find_session(store: Store, reference: str, *, project: str | None = None, copied_heads: Sequence[str] = ()) -> str:
    """The session that a person means; see :func:`~harness_core.kernel.projections.naming.resolve_session`.

    Args:
        store: The store.
        reference: A whole id, a unique end of one, or ``@last``: the newest of ``project``, where one is given.
        project: The project's folder as the sessions' documents name it.
        copied_heads: As in :func:`session_ids`.

    Raises:
        NotFound: None or several fit.
    """
    if reference != "@last" or project is None:
        return resolve_session(reference, session_ids(store, copied_heads))
    newest = (
        name.removeprefix("session:")
        for name, summary in store.summaries()
        if loads_trusted(summary).get("project") == project
    )
    return resolve_session(reference, [found for found in [next(newest, None)] if found is not None])


# -- documents about one session ---


def artifacts(store: Store, session_id: str) -> list[dict[str, Any]]:
    """The accepted artifacts, oldest first: the items of ``harness.artifacts/1``."""
    return artifact_items(_events(store, session_id))


def artifact_bytes(store: Store, ref: str) -> bytes:
    """The bytes behind ``artifact://sha256-...`` (A-101).

    Raises:
        NotFound: ``artifact.not_found``: the text is no reference, or nothing is stored under it.
    """
    digest = digest_of_ref(ref)
    hint = "harness artifacts SESSION lists references"
    if digest is None:
        message = f'"{ref}" is no artifact reference: they look like artifact://sha256-<64 hexadecimal digits>'
        raise NotFound(message, code="artifact.not_found", hint=hint)
    try:
        return store.blob(digest)
    except NotFound as error:
        raise NotFound(f"nothing is stored under {ref}", code="artifact.not_found", hint=hint) from error


def transitions(store: Store, session_id: str) -> dict[str, Any]:
    """Every rule taken with its text and values, every retry with its reason: ``harness.transitions/1``."""
    return transitions_document(_events(store, session_id), session_id)


def report(store: Store, session_id: str) -> dict[str, Any]:
    """Tokens, time and calls: ``harness.report/1``."""
    return report_document(_events(store, session_id), session_id)


def context(store: Store, session_id: str, visit: str) -> dict[str, Any]:
    """What the model of a stage visit was given: ``harness.context/1``.

    Raises:
        NotFound: ``visit.not_found``, naming the visits there are.
    """
    visit_id = find_visit(_events(store, session_id), visit)
    return context_document(_events(store, session_id), visit_id, store.blob, session_id)


def prompt(store: Store, session_id: str, which: int | str) -> dict[str, Any]:
    """Exactly what a model saw: ``harness.prompt/1``.

    Args:
        store: The store.
        session_id: The session.
        which: The seq of a ``harness.model.called``, or an executor role or persona, whose last question is meant.

    Raises:
        NotFound: ``prompt.not_found``, naming the seqs there are.
    """
    calls = prompt_calls(_events(store, session_id))
    if isinstance(which, int):
        found = [call for call in calls if call.event.seq == which]
    else:
        found = [call for call in calls if which in (call.role, call.place.persona)]
    if not found:
        raise _no_prompt(which, calls)
    return prompt_document(found[-1], lambda digest: _blob_or_none(store, digest), session_id)


def _no_prompt(which: int | str, calls: Sequence[PromptCall]) -> NotFound:
    what = f"event {which} is no question to a model" if isinstance(which, int) else f"no model was asked as {which}"
    known = ", ".join(f"{call.event.seq} ({call.place.persona})" for call in calls[:20]) or "none"
    more = " ..." if len(calls) > 20 else ""
    return NotFound(what, code="prompt.not_found", hint=f"model calls are at seq {known}{more}")


def _blob_or_none(store: Store, digest: str) -> bytes | None:
    try:
        return store.blob(digest)
    except NotFound:
        return None


def graph(store: Store, session_id: str | None, config: EffectiveConfig) -> dict[str, Any]:
    """Nodes and edges of what really ran, or without a session of the stages as configured: ``harness.graph/1``."""
    if session_id is not None:
        return session_graph(_events(store, session_id), session_id)
    return configured_graph(config.stages.initial_name(), configured_stages(config))


def configured_stages(config: EffectiveConfig) -> list[ConfiguredStage]:
    """The stages with everything inherited filled in, their rules written out."""
    found = []
    for name, stage in config.stages.stages.items():
        persona = persona_of(stage.role, config.stages.roles)
        model = stage.model or persona.model or config.models.default_name()
        rules = [(rule.when, rule.goto) for rule in rules_of(stage)]
        found.append(ConfiguredStage(name, stage.role, stage.executor, model, stage.retry.max_attempts, rules))
    return found


# -- approvals ---


def approvals(store: Store, session_ids: Sequence[str], *, history: bool = False) -> list[dict[str, Any]]:
    """What waits for a person in these sessions, effects in doubt included; with ``history`` every approval."""
    items: list[dict[str, Any]] = []
    for session_id in session_ids:
        events = list(_events(store, session_id))
        items += approval_items(events, session_id, history=history)
        items += [] if history else doubt_items(events, session_id)
    return sorted(items, key=lambda item: (item["requested_at"], item["id"]))


def grants(store: Store, session_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The grants given in these sessions."""
    return [item for one in session_ids for item in grant_items(_events(store, one), one)]


# -- events ---


def event_items(
    store: Store, session_id: str, *, after: int = 0, until: int | None = None
) -> Iterator[tuple[StoredEvent, dict[str, Any]]]:
    """Events with their documents ``harness.event/1``, ``after < seq <= until``."""
    stream = stream_of(session_id)
    root = next(iter(store.read(stream, until=1)), None)
    before = next(iter(store.read(stream, after=after - 1, until=after)), None) if after > 0 else None
    return event_documents(
        store.read(stream, after=after, until=until),
        previous_hash=before.hash if before is not None else GENESIS_HASH,
        root_id=root.id if root is not None else None,
    )


def expanded(store: Store, stored: StoredEvent) -> dict[str, Any]:
    """The event as {type, payload}, with manifest, messages and output in place of their digests."""
    return expanded_view(decoded(stored), lambda digest: loads_trusted(store.blob(digest)))


def keeps(types: str, category: str | None) -> Callable[[Mapping[str, Any]], bool]:
    """Whether an event document passes the filters.

    Args:
        types: Globs over the type, separated by commas.
        category: One of the seven categories, or ``None`` for all.
    """
    patterns = [pattern.strip() for pattern in types.split(",") if pattern.strip()]

    def passes(document: Mapping[str, Any]) -> bool:
        fits = any(fnmatchcase(document["type"], pattern) for pattern in patterns)
        return fits and category in (None, document["category"])

    return passes


def find_event(store: Store, reference: str, session_ids: Sequence[str]) -> tuple[str, str]:
    """The session and the whole id of an event, from its id or a unique end of it.

    Raises:
        NotFound: ``event.not_found`` or ``event.ambiguous``.
    """
    owners = {event.id: one for one in session_ids for event in store.read(stream_of(one))}
    event_id = resolve_one(reference.lower(), list(owners), "event", hint="harness events SESSION --json shows the ids")
    return owners[event_id], event_id


def trace(store: Store, session_id: str, event_id: str) -> list[dict[str, Any]]:
    """The chain of causes from an event back to the command everything began with (B-90), that event first.

    Raises:
        NotFound: ``event.not_found``: the session has no such event.
    """
    documents = {document["id"]: document for _, document in event_items(store, session_id)}
    if event_id not in documents:
        raise NotFound(f"the session has no event {event_id}", code="event.not_found")
    chain: list[dict[str, Any]] = []
    current: str | None = event_id
    while current is not None and current in documents:
        # Taken out, so that a chain that bites its own tail ends.
        document = documents.pop(current)
        chain.append(document)
        current = document["causation_id"]
    root = chain[-1]["correlation_id"]
    return [*chain, documents[root]] if root in documents else chain
