"""A store and a session's id in, the documents about its past out; nothing here writes, and no plugin is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness_core.kernel.projections.artifacts import artifact_items, digest_of_ref
from harness_core.kernel.projections.event import decoded, proved
from harness_core.kernel.projections.naming import LAST, resolve_session
from harness_hookspecs.errors import HarnessError, NotFound, StoreCorrupt
from harness_hookspecs.kit.codec import loads_trusted

from .posting import answer_place

# A command takes one look: what only that look needs is imported where it is taken.
if TYPE_CHECKING:
    from harness_core.kernel.facts import Event
    from harness_core.kernel.projections.differences import Done
    from harness_core.kernel.projections.graph import ConfiguredStage
    from harness_core.kernel.projections.prompt import PromptCall
    from harness_hookspecs.store import Store

    from .config.effective import EffectiveConfig

__all__ = [
    "approvals",
    "artifact_bytes",
    "artifacts",
    "configured_stages",
    "context",
    "diff",
    "find_session",
    "graph",
    "prompt",
    "report",
    "transitions",
    "tree",
]


def _events(store: Store, session_id: str) -> Iterator[Event]:
    return map(decoded, proved(store.read(f"session:{session_id}")))


def find_session(reference: str, ours: Sequence[str], every: Sequence[str], *, in_project: bool) -> str:
    """The session that a person means; see :func:`~harness_core.kernel.projections.naming.resolve_session`.

    Args:
        reference: A whole id, a unique end of one, or ``@last``, which is the newest of this project.
        ours: The ids of this project's sessions, newest first.
        every: The ids of all sessions; what is named by an id may be of another project.
        in_project: Whether the person stands in a project; only an error tells.

    Raises:
        NotFound: None or several fit.
    """
    if reference == LAST:
        return resolve_session(reference, ours, others=len(every) - len(ours), in_project=in_project)
    return resolve_session(reference, every)


def approvals(
    store: Store, sessions: Iterable[str], *, history: bool, complain: Callable[[HarnessError], None]
) -> list[dict[str, Any]]:
    """The approvals of these sessions, oldest first: those that nobody answered, or with ``history`` all (B-127).

    Args:
        store: What holds the sessions.
        sessions: Their ids.
        history: Whether those that are answered are given too.
        complain: Told of each session whose log is damaged, when others have something to show.

    Raises:
        StoreCorrupt: The log of a session is damaged, and no other one has anything to show.
    """
    from harness_core.kernel.projections.approvals import approval_items

    items: list[dict[str, Any]] = []
    damaged: list[tuple[str, StoreCorrupt]] = []
    for one in sessions:
        try:
            found = approval_items(_events(store, one), one, history=history)
            items += [_with_posted(store, item) for item in found]
        except StoreCorrupt as error:
            damaged.append((one, error))
    kept = [item for item in items if history or item["status"] == "pending"]
    if damaged and not kept:
        raise damaged[0][1]
    for one, damage in damaged:
        said = f"the log of session {one[-8:]} is damaged, and what it waits for is not known: {damage.message}"
        complain(StoreCorrupt(said, code=damage.code, hint=f"harness events verify {one[-8:]}"))
    return sorted(kept, key=lambda item: (item["requested_at"], item["id"]))


def _with_posted(store: Store, item: dict[str, Any]) -> dict[str, Any]:
    """An answer that lies in the inbox stands already; it counts as soon as its session goes on."""
    if item["status"] != "pending":
        return item
    body = answer_place(item["id"], item["digest"], item["session_id"], store).body()
    if not body:
        return item
    answer = {
        "by": body["by"],
        "via": body["kind"],
        "scope": "session" if body["decision"] == "auto_session" else "once",
        "say": body.get("say"),
        "reason": f"{body['decision']}; takes effect when the session goes on",
        "digest": body["digest"],
        "at": None,
        "seq": None,
    }
    return {**item, "status": "answered", "answer": answer}


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
    from harness_core.kernel.projections.transitions import transitions_document

    return transitions_document(_events(store, session_id), session_id)


def tree(store: Store, session_id: str, documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The session with all that it comes from and that comes from it: ``harness.tree/1``.

    Args:
        store: The store.
        session_id: The session.
        documents: Those of all sessions.
    """
    from harness_core.kernel.projections.tree import BEGINNING_EVENTS, family, fork_of, tree_document

    members = family(documents, session_id)
    forked_at = {}
    for document, _ in members:
        if document["parent_id"] is not None:
            first = store.read(f"session:{document['id']}", until=BEGINNING_EVENTS)
            forked = fork_of(map(decoded, proved(first)))
            forked_at[document["id"]] = None if forked is None else forked.payload["seq"]
    return tree_document(members, forked_at, session_id)


def report(store: Store, session_id: str) -> dict[str, Any]:
    """Tokens, time and calls: ``harness.report/1``."""
    from harness_core.kernel.projections.report import report_document

    return report_document(_events(store, session_id), session_id)


def report_of_tree(store: Store, session_id: str) -> dict[str, Any]:
    """The same of a session and of all that it has begun, each with its own use and the sum: ``harness.report_tree/1``.
    A fork is no part of it: what it used is its own."""
    from harness_core.kernel.projections.report import report_document
    from harness_core.kernel.projections.report_tree import Member, report_tree

    members = list[Member]()
    waiting: list[tuple[str, str | None, int]] = [(session_id, None, 0)]
    while waiting:
        one, parent_id, depth = waiting.pop()
        events = list(_events(store, one))
        title = str(events[0].payload.get("title", ""))
        members.append(Member(report_document(iter(events), one), title, parent_id, depth))
        children = [event.payload["child_id"] for event in events if event.type == "child.requested"]
        begun = [child for child in children if store.head(f"session:{child}").seq]
        waiting += [(child, one, depth + 1) for child in reversed(begun)]
    return report_tree(members)


def diff(store: Store, session_id: str, other: str) -> dict[str, Any]:
    """What two sessions did differently: ``harness.session_diff/1``."""
    from harness_core.kernel.projections.differences import session_diff

    return session_diff(_done(store, session_id), _done(store, other))


def _done(store: Store, session_id: str) -> Done:
    from harness_core.kernel.projections.differences import done

    settings: dict[str, Any] = {}
    for event in _events(store, session_id):
        if event.type in ("config.loaded", "config.migrated"):
            settings = loads_trusted(store.blob(event.payload["content_ref"]))["settings"]
    return done(session_id, lambda: _events(store, session_id), settings)


def context(store: Store, session_id: str, visit: str) -> dict[str, Any]:
    """What the model of a stage visit was given: ``harness.context/1``.

    Raises:
        NotFound: ``visit.not_found``, naming the visits there are.
    """
    from harness_core.kernel.projections.context import context_document, find_visit

    visit_id = find_visit(_events(store, session_id), visit)
    return context_document(_events(store, session_id), visit_id, store.blob, session_id)


def prompt(store: Store, session_id: str, *, seq: int | None = None, role: str | None = None) -> dict[str, Any]:
    """Exactly what a model saw: ``harness.prompt/1``.

    Args:
        store: The store.
        session_id: The session.
        seq: The seq of a ``harness.model.called``.
        role: An executor role or a persona; its last question is meant. Without both: the session's last one.

    Raises:
        NotFound: ``prompt.not_found``, naming the seqs there are.
    """
    from harness_core.kernel.projections.prompt import prompt_calls, prompt_document

    calls = prompt_calls(_events(store, session_id))
    found = [call for call in calls if seq in (None, call.event.seq) and role in (None, call.role, call.place.persona)]
    if not found:
        raise _no_prompt(seq, role, calls, session_id)
    return prompt_document(found[-1], lambda digest: _blob_or_none(store, digest), session_id)


def _no_prompt(seq: int | None, role: str | None, calls: Sequence[PromptCall], session_id: str) -> NotFound:
    what = f"no model was asked{f' as {role}' if role else ''}{f' at event {seq}' if seq is not None else ''}"
    if not calls:
        hint = f"harness events {session_id[-8:]} shows how far the session came"
        return NotFound(what, code="prompt.not_found", hint=hint)
    known = ", ".join(f"{call.event.seq} ({call.place.persona})" for call in calls[:20])
    more = " ..." if len(calls) > 20 else ""
    return NotFound(what, code="prompt.not_found", hint=f"model calls are at seq {known}{more}")


def _blob_or_none(store: Store, digest: str) -> bytes | None:
    try:
        return store.blob(digest)
    except NotFound:
        return None


def graph(store: Store | None, session_id: str | None, config: EffectiveConfig) -> dict[str, Any]:
    """Nodes and edges of what really ran, or without a session of the stages as configured: ``harness.graph/1``."""
    from harness_core.kernel.projections.graph import configured_graph, session_graph

    if store is not None and session_id is not None:
        return session_graph(_events(store, session_id), session_id)
    return configured_graph(config.stages.initial_name(), configured_stages(config))


def graph_of_run(store: Store, session_id: str, stage: str) -> dict[str, Any]:
    """What a session did of the plan that ran last in a stage: ``harness.graph/1``.

    Raises:
        NotFound: ``graph.no_plan``: none was registered in it.
    """
    from harness_core.kernel.projections.plan_graph import run_graph
    from harness_core.kernel.state import FINAL
    from harness_hookspecs.kit.canonical import read_canonical

    of_stage, plan, ended = "", None, False
    found: list[Event] = []
    for event in _events(store, session_id):
        if event.type == "stage.entered":
            of_stage = event.payload["stage"]
        elif event.type == "workflow.version_registered" and of_stage == stage:
            plan, found, ended = event.payload["plan_ref"], [], False
        elif event.type in ("stage.left", "retry.scheduled") and of_stage == stage:
            ended = True
        elif of_stage == stage and event.type.startswith("harness.execute_step."):
            found.append(event)
        ended = ended or event.type.removeprefix("session.") in FINAL
    if plan is None:
        message = f"no plan was registered in stage {stage} of session {session_id[-8:]}"
        raise NotFound(message, code="graph.no_plan", hint=f"harness graph {session_id[-8:]} shows its stages")
    return run_graph(read_canonical(store.blob(plan)), found, session_id, ended=ended)


def configured_stages(config: EffectiveConfig) -> list[ConfiguredStage]:
    """The stages with everything inherited filled in, their rules written out."""
    from harness_core.kernel.projections.graph import ConfiguredStage
    from harness_core.settings.personas import persona_of
    from harness_core.settings.transitions import rules_of

    found = []
    for name, stage in config.stages.stages.items():
        persona = persona_of(stage.role, config.stages.roles)
        model = stage.model or persona.model or config.models.default_name()
        rules = [(rule.when, rule.goto) for rule in rules_of(stage)]
        found.append(ConfiguredStage(name, stage.role, stage.executor, model, stage.retry.max_attempts, rules))
    return found
