"""A session and a replay mode in, the report out; the record is only read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from harness_core.settings.transitions import rules_of
from harness_hookspecs.errors import ConfigError, NotFound
from harness_hookspecs.kit.codec import loads_trusted

from .config.effective import EffectiveConfig
from .machine import SessionMachine
from .opening import Opened, open_project
from .ports import make_ports
from .replay import ReplayReport, fold, replay_control, replay_full

if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.store import Store, StoredEvent

    from .session_parts import SessionParts

__all__ = ["fold_session", "recorded_config", "replay_session"]

MODES = ("full", "skip-inference")


def fold_session(store: Store, session_id: str, *, until: int | None = None) -> SessionState:
    """The state of a session, as of seq ``until`` when given.

    Raises:
        NotFound: ``event.not_found``: the session has no event of that seq.
    """
    state = fold(store.read(f"session:{session_id}", until=until), _reader(store, session_id))
    if until is not None and (until < 1 or state.seq != until):
        last = store.head(f"session:{session_id}").seq
        raise NotFound(f"session {session_id[-8:]} has no event {until}: it has {last}", code="event.not_found")
    return state


def recorded_config(store: Store, session_id: str, events: Sequence[StoredEvent]) -> EffectiveConfig:
    """The configuration the session runs under, from its own log.

    Raises:
        NotFound: ``config.not_recorded``: it died before it recorded one.
    """
    loaded = [event for event in events if event.type in ("config.loaded", "config.migrated")]
    if not loaded:
        raise NotFound(f"session {session_id[-8:]} has recorded no configuration", code="config.not_recorded")
    return _config(store, loads_trusted(loaded[-1].payload)["content_ref"])


def _config(store: Store, content_ref: str) -> EffectiveConfig:
    return EffectiveConfig.from_document(loads_trusted(store.blob(content_ref)))


def replay_session(
    opened: Opened, store: Store, session_id: str, mode: str, *, against: str | Path | None, kept: Any
) -> ReplayReport:
    """Replay in one of :data:`MODES`.

    Args:
        opened: The project the session belongs to.
        store: The log; nothing is written to it.
        session_id: The session.
        mode: ``full`` folds the log again, ``skip-inference`` takes every decision and enters every role again.
        against: Another project folder whose configuration decides instead of the session's own.
        kept: The document kept of the session for listings, which a full replay must come to as well.

    Raises:
        ConfigError: ``replay.mode``, or ``against`` is not valid.
    """
    if mode == "full":
        return replay_full(store.read(f"session:{session_id}"), _reader(store, session_id), kept)
    if mode != "skip-inference":
        raise ConfigError(f"there is no replay mode {mode!r}; modes: {', '.join(MODES)}", code="replay.mode")
    from .replay_role import RoleReplay  # with all that performs a role call; a fold needs none of it

    events = list(store.read(f"session:{session_id}"))
    begun = [one for one in events if one.type == "config.loaded"]
    begun_under = recorded_config(store, session_id, begun)
    other = None if against is None else _other_config(opened, against)

    def parts_of(config: EffectiveConfig) -> SessionParts:
        return opened.assembly(other or config, live=False).session_parts()

    parts = parts_of(begun_under)
    machine = SessionMachine(session_id, parts.definition, store.blob)
    site = RoleReplay(
        session_id,
        parts,
        machine,
        make_ports("inline"),
        opened.redactor,
        lambda event: parts_of(_config(store, event.payload["content_ref"])),
    )
    report = replay_control(events, machine, site)
    found = report.diverged
    if found is None:
        return report
    held = recorded_config(store, session_id, [one for one in events if one.seq <= found.seq or one in begun])
    recorded, replayed = _rule_place(held, found.recorded), _rule_place(other or held, found.replayed)
    return attrs.evolve(report, diverged=attrs.evolve(found, recorded_where=recorded, replayed_where=replayed))


def _rule_place(config: EffectiveConfig, side: Any) -> str | None:
    """Where the rule of a transition stands; None of anything else, and of a rule that the configuration has not."""
    payload = side.get("payload") if isinstance(side, dict) else None
    if payload is None or side["type"] != "transition.taken":
        return None
    stage, index = config.stages.stages.get(payload["source"]), payload["rule_index"]
    rules = rules_of(stage) if stage is not None else ()
    if not isinstance(index, int) or not 0 <= index < len(rules):
        return None
    return config.origin(("stages", payload["source"], *rules[index].path)).text()


def _other_config(opened: Opened, against: str | Path) -> EffectiveConfig:
    folder = Path(against)
    project = folder.parent if folder.name == ".harness" else folder
    config = open_project(project, opened.ports).config
    config.require_trust()
    return config


def _reader(store: Store, session_id: str) -> SessionMachine:
    return SessionMachine(session_id, None, store.blob)  # type: ignore[arg-type]  # a fold decides nothing
