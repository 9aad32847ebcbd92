"""A session and a replay mode in, the report out; the record is only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from harness_core.kernel.projections.event import UNFORESEEN, folding, payload_of, proved
from harness_core.settings.transitions import rules_of
from harness_hookspecs.errors import ConfigError, NotFound, StoreCorrupt
from harness_hookspecs.events import CATEGORIES
from harness_hookspecs.kit.canonical import read_canonical
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.kit.paths import encode_path
from harness_hookspecs.kit.whole_pages import tail_missing
from harness_hookspecs.store import GENESIS_HASH, Head

from .config.effective import EffectiveConfig
from .config.folders import has_project
from .machine import SessionMachine
from .opening import Opened, open_project
from .ports import make_ports
from .replay import Part, ReplayReport, replay_control, replay_full, replay_part
from .replay_modes import chosen_mode
from .snapshots import fold_on, from_nearest

if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.store import Store, StoredEvent

    from .parts import Parts
    from .session_parts import SessionParts

__all__ = ["fold_session", "no_event", "prove_log", "recorded_config", "replay_session"]

SIMULATION_WATCHDOG_SECONDS = 60.0
"""A role that computes so long without a port call blocks a simulation for good."""


def fold_session(store: Store, session_id: str, *, until: int | None = None) -> SessionState:
    """The state of a session, as of seq ``until`` when given; of a long log snapshots are kept on the way.

    Raises:
        NotFound: ``event.not_found``: the session has no event of that seq.
        StoreCorrupt: ``store.tail_missing``: it has none at all.
    """
    state = fold_on(store, _reader(store, session_id), until=until)
    if until is None and not state.seq:
        stream = f"session:{session_id}"
        raise StoreCorrupt("the log has no event of it", code="store.tail_missing", where=stream, seq=1)
    if until is not None and (until < 1 or state.seq != until):
        raise no_event(session_id, until, store.head(f"session:{session_id}").seq)
    return state


def prove_log(store: Store, session_id: str) -> None:
    """Prove the chain of a session's log from its first event to its head, for whoever is to go on with it.

    A fold refuses only what it cannot fold, and begins at a snapshot: what an event was changed into would be done.

    Raises:
        StoreCorrupt: ``store.gap``, ``store.changed`` or ``store.tail_missing``, naming the first bad seq.
    """
    stream = f"session:{session_id}"
    head = store.head(stream)  # first: whoever owns the session may append meanwhile
    last = Head(0, GENESIS_HASH)
    for stored in proved(store.read(stream, until=head.seq)):
        last = Head(stored.seq, stored.hash)
    if last != head and store.head(stream).seq:  # else it was pruned meanwhile
        raise tail_missing(stream, last.seq, head.seq)


def no_event(session_id: str, seq: int, last: int) -> NotFound:
    """The error about an event that a session has not."""
    return NotFound(f"session {session_id[-8:]} has no event {seq}: it has {last}", code="event.not_found")


def recorded_config(store: Store, session_id: str, events: Sequence[StoredEvent]) -> EffectiveConfig:
    """The configuration the session runs under, from its own log.

    Raises:
        NotFound: ``config.not_recorded``: it died before it recorded one.
    """
    loaded = [event for event in events if event.type in ("config.loaded", "config.migrated")]
    if not loaded:
        raise NotFound(f"session {session_id[-8:]} has recorded no configuration", code="config.not_recorded")
    return _config(store, payload_of(loaded[-1])["content_ref"])


def _config(store: Store, content_ref: str) -> EffectiveConfig:
    return EffectiveConfig.from_document(loads_trusted(store.blob(content_ref)))


def replay_session(
    opened: Opened, store: Store, session_id: str, mode: str | None, *, kept: Any, **options: Any
) -> ReplayReport:
    """Replay in one of the modes.

    Args:
        opened: The project the session belongs to.
        store: The log; nothing is written to it.
        session_id: The session.
        mode: ``full`` folds the log again, ``partial`` and ``cursor`` a part of it, ``skip-inference`` takes every
            decision and enters every role again, ``simulate`` runs the whole session once more on its recorded answers;
            without one, the first that takes the options.
        kept: The document kept of the session for listings, which a replay that folds must come to as well.
        options: ``first``, ``until``, ``category`` and ``against`` (see :meth:`Host.replay`), ``None`` for not given.

    Raises:
        ConfigError: ``replay.mode``, or ``against`` is not valid.
        NotFound: ``event.not_found``: the session has no event of a seq that is asked for; ``project.not_found``:
            ``against`` is no folder, or holds no project.
        StoreCorrupt: ``store.changed``: an event is not what was stored there.
    """
    given = {name: value for name, value in options.items() if value is not None}
    chosen = chosen_mode(mode, given)
    if chosen in ("skip-inference", "simulate"):
        return _replay_again(opened, store, session_id, chosen, given.get("against"))
    reader = _reader(store, session_id)
    if chosen == "full":
        return replay_full(proved(store.read(f"session:{session_id}")), reader, kept)
    part = _part(store, session_id, given)
    state = from_nearest(store, reader, part.first - 1)
    stream = f"session:{session_id}"
    before = [one.hash for one in store.read(stream, after=state.seq - 1, until=state.seq)] or [GENESIS_HASH]
    events = proved(store.read(stream, after=state.seq, until=part.until), *before)
    return replay_part(chosen, part, state, events, kept)


def _part(store: Store, session_id: str, given: Mapping[str, Any]) -> Part:
    last = store.head(f"session:{session_id}").seq
    part = Part(given.get("first", 1), given.get("until", last), given.get("category"))
    for seq in (part.first, part.until):
        if not 1 <= seq <= last:
            raise no_event(session_id, seq, last)
    if part.until < part.first:
        raise ConfigError(f"event {part.until} is before event {part.first}", code="replay.mode")
    if part.category is not None and part.category not in CATEGORIES:
        text = f"there is no category {part.category!r}; categories: {', '.join(CATEGORIES)}"
        raise ConfigError(text, code="replay.mode")
    return part


def _replay_again(
    opened: Opened, store: Store, session_id: str, mode: str, against: str | Path | None
) -> ReplayReport:
    """Run the session's program again; an error that nobody foresaw is one of the log when no fold takes it."""
    events = list(proved(store.read(f"session:{session_id}")))
    ref = payload_of(events[0]).get("workflow_ref") if events else None
    assembling = _Assembling(opened, None if ref is None else read_canonical(store.blob(ref)))
    try:
        if mode == "simulate":
            return _simulate(opened, store, session_id, events, assembling)
        return _replay_decisions(opened, store, session_id, events, assembling, against)
    except UNFORESEEN as error:
        _prove_folds(_reader(store, session_id), events, error)
        raise
    finally:
        assembling.close()


class _Assembling:
    """Makes the parts that a replay enters roles with, and ends what was begun for it, such as what runs code."""

    def __init__(self, opened: Opened, spec: Any) -> None:
        self._opened, self._spec = opened, spec
        self._made: list[Parts] = []

    def parts_of(self, config: EffectiveConfig) -> SessionParts:
        """The parts under a configuration."""
        assembly = self._opened.assembly(config, live=False)
        self._made.append(assembly.parts)
        from .workflow_parts import workflow_parts  # with all that runs sessions

        parts = assembly.session_parts()
        return parts if self._spec is None else workflow_parts(parts, self._spec, assembly.parts)

    def close(self) -> None:
        """A replay has told what it has to tell: nothing that breaks here is added."""
        for parts in self._made:
            parts.close()


def _prove_folds(reader: SessionMachine, events: Sequence[StoredEvent], error: BaseException) -> None:
    try:
        for _ in folding(reader.evolve, reader.new_state(), events):
            pass
    except StoreCorrupt as damage:
        raise damage from error


def _replay_decisions(
    opened: Opened,
    store: Store,
    session_id: str,
    events: list[StoredEvent],
    assembling: _Assembling,
    against: str | Path | None,
) -> ReplayReport:
    from .replay_role import RoleReplay  # with all that performs a role call; a fold needs none of it

    begun = [one for one in events if one.type == "config.loaded"]
    begun_under = recorded_config(store, session_id, begun)
    other = None if against is None else _other_config(opened, against)

    def parts_of(config: EffectiveConfig) -> SessionParts:
        return assembling.parts_of(other or config)

    parts = parts_of(begun_under)
    machine = SessionMachine(session_id, parts.definition, store.blob)
    site = RoleReplay(
        session_id,
        parts,
        machine,
        make_ports("inline"),
        opened.redactor,
        lambda event: parts_of(_config(store, event.payload["content_ref"])),
        store,
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


def _simulate(
    opened: Opened, store: Store, session_id: str, events: list[StoredEvent], assembling: _Assembling
) -> ReplayReport:
    from .ports.simulated import SimulatedPorts
    from .simulate import replay_simulated
    from .simulate_roles import SimulatedRoles

    begun_under = recorded_config(store, session_id, [one for one in events if one.type == "config.loaded"])
    parts = assembling.parts_of(begun_under)
    machine = SessionMachine(session_id, parts.definition, store.blob)
    with SimulatedPorts(watchdog_seconds=SIMULATION_WATCHDOG_SECONDS) as ports:
        ports.baton.flow = 0.0  # time passes when nobody can go on
        site = SimulatedRoles(
            session_id,
            parts,
            machine,
            ports,
            opened.redactor,
            lambda event: assembling.parts_of(_config(store, event.payload["content_ref"])),
            store,
        )
        return replay_simulated(events, machine, site, ports)


def _other_config(opened: Opened, against: str | Path) -> EffectiveConfig:
    folder = Path(against)
    project = folder.parent if folder.name == ".harness" else folder
    other = open_project(project, opened.ports)
    config = other.config
    if config.project is None or not has_project(config.project):
        said = f"{encode_path(against)} is no project: it has no .harness"
        raise NotFound(said, code="project.not_found", hint="name the folder that holds .harness")
    config.require_trust()
    return other.running().config


def _reader(store: Store, session_id: str) -> SessionMachine:
    return SessionMachine(session_id, None, store.blob)  # type: ignore[arg-type]  # a fold decides nothing
