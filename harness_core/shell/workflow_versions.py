"""The logs of a project's sessions in, the plans that were registered in them and where each ran out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs

from harness_core.kernel.projections.event import payload_of
from harness_core.kernel.state import FINAL
from harness_core.settings.problems import nearest
from harness_hookspecs.errors import NotFound, StoreCorrupt
from harness_hookspecs.kit.canonical import read_canonical
from harness_hookspecs.store import Store, StoredEvent

__all__ = ["RegisteredVersions", "find_version", "version_document", "versions_document"]

_LEAST_DIGITS = 4
"""So much of an id has to be given."""


@attrs.define
class _Read:
    """What was read of a log up to ``seq``; nothing more is to come once it has ended."""

    seq: int = 0
    ended: bool = False
    asked: dict[str, Any] = attrs.Factory(dict)  # of what is being compiled: the definition that it is written for
    found: list[tuple[Mapping[str, Any], str | None]] = attrs.Factory(list)


class RegisteredVersions:
    """The versions that are registered in the logs of a store; it keeps what it has read, and reads on from there.

    Nothing of a log is folded. A session that was removed takes what only it had registered with it; one whose log is
    damaged is passed over from there on, and told of where it is read itself.

    Args:
        store: The logs.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logs: dict[str, _Read] = {}

    def all(self, sessions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Each version once, with the sessions that it was registered in, the newest first of both.

        Args:
            sessions: The documents of the sessions, the newest first.
        """
        found: dict[str, dict[str, Any]] = {}
        for session in sessions:
            for version, definition_ref in self._of(session):
                known = found.setdefault(version["workflow_version_id"], _fresh(version, definition_ref))
                latest = known["sessions"][-1:]  # all that a session has registered comes together
                if session["id"] not in [one["id"] for one in latest]:
                    known["sessions"].append({name: session[name] for name in ("id", "status", "created_at")})
        return [*found.values()]

    def find(self, sessions: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
        """A version to run, by its id or the beginning of it; for a whole id no log is read behind one that has it.

        Raises:
            NotFound: As ``find_version``.
        """
        for session in sessions:
            for version, definition_ref in self._of(session):
                if version["workflow_version_id"] == name:
                    return _fresh(version, definition_ref)
        return find_version(self._store, self.all(sessions), name)

    def _of(self, session: Mapping[str, Any]) -> Sequence[tuple[Mapping[str, Any], str | None]]:
        """What was registered, and the definition that it was written for."""
        log = self._logs.setdefault(session["id"], _Read())
        if not log.ended:
            ended = session["status"] in FINAL  # when it was listed: what follows of such a one registers nothing
            with suppress(StoreCorrupt):
                for event in self._store.read(f"session:{session['id']}", after=log.seq):
                    _take(log, event)
            log.ended = ended
        return log.found


def _take(log: _Read, event: StoredEvent) -> None:
    if event.type == "compile.requested":
        payload = payload_of(event)
        log.asked[payload["effect_id"]] = payload.get("definition_ref")
    elif event.type == "workflow.version_registered":
        payload = payload_of(event)
        log.found.append((payload, log.asked.get(payload["effect_id"])))
    log.seq = event.seq


def _fresh(version: Mapping[str, Any], definition_ref: str | None) -> dict[str, Any]:
    return {**version, "definition_ref": definition_ref, "sessions": []}


def find_version(store: Store, versions: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The version of that id, of which the beginning is enough.

    Raises:
        NotFound: ``workflow.unknown_version``: there is none, or more than one.
    """
    known = {str(one["workflow_version_id"]): one for one in versions}
    if name in known:
        return known[name]
    short = len(name) >= len("wfv_") + _LEAST_DIGITS
    fitting = [one for one in known if short and one.startswith(name)]
    if len(fitting) == 1:
        return known[fitting[0]]
    said = f"{len(fitting)} versions begin with {name}" if fitting else f"no version {name} is registered here"
    hint = _of_workflow(store, name, known) or nearest(name, known) or "harness workflows lists them"
    raise NotFound(said, code="workflow.unknown_version", hint=hint)


def _of_workflow(store: Store, name: str, versions: Mapping[str, Mapping[str, Any]]) -> str | None:
    """What is meant, perhaps, where the name of a workflow stands in the place of a version."""
    items = versions_document(store, (), versions.values())["versions"]
    planned = [one["workflow_version_id"] for one in items if one["workflow"] == name]
    return f"{name} is a workflow; its versions, the newest first: {', '.join(planned[:3])}" if planned else None


def version_document(store: Store, version: Mapping[str, Any]) -> dict[str, Any]:
    """The document ``harness.workflow_version/1``."""
    plan = read_canonical(store.blob(version["plan_ref"]))
    return {
        "schema": "harness.workflow_version/1",
        **_item(version, plan),
        "max_step_executions": version.get("max_step_executions"),
        "plan": plan,
        "lock": read_canonical(store.blob(version["lock_ref"])),
    }


def versions_document(
    store: Store, defined: Sequence[Mapping[str, Any]], versions: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """The document ``harness.workflows/1``."""
    items = []
    for one in versions:
        with suppress(NotFound, StoreCorrupt):  # a plan that is damaged is told of by who verifies its session
            items.append(_item(one, read_canonical(store.blob(one["plan_ref"]))))
    return {"schema": "harness.workflows/1", "workflows": list(defined), "versions": items}


def _item(version: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    """What lists say of a version."""
    return {
        "workflow_version_id": version["workflow_version_id"],
        "workflow": plan["metadata"]["name"],
        "steps": len(plan["steps"]),
        "sessions": list(version["sessions"]),
    }
