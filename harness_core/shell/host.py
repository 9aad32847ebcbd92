"""The library's front door: a project in, sessions that run, and every look at them out; the CLI uses nothing else."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from harness_hookspecs.errors import (
    HarnessError,
    IllegalMove,
    Locked,
    NotFound,
    StoreCorrupt,
    StoreError,
    ValidationFailed,
)
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.kit.frozen import freeze
from harness_hookspecs.kit.paths import encode_path

from .answering import (
    AlreadyAnswered,
    Answered,
    answer_body,
    find_approval,
    find_doubt,
    person,
    post_answer,
    post_asked,
    post_settlement,
    recordable,
)
from .posting import asked_for, inbox_row

# A door costs nothing until somebody goes through it: each method imports the module that does its work.
if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.host import RunOptions
    from harness_hookspecs.provider import Chunk
    from harness_hookspecs.store import Head, Posted, Store, StoredEvent

    from .anchor import Anchor
    from .beginning import RunRequest
    from .children import ChildOrder, Nursery
    from .config.effective import EffectiveConfig
    from .observers import Observers
    from .opening import Opened
    from .session import OwnedSession, SessionWorld
    from .session_parts import SessionParts
    from .trace import TraceSink
    from .workflow_sessions import Site, Wanted
    from .workflow_versions import RegisteredVersions

__all__ = ["AlreadyAnswered", "Answered", "Host"]

SWITCH_INTERVAL_SECONDS = 0.0002
"""One busy Python thread slows commits a hundredfold at the default of 5 ms (D-3); what less costs: decision 0008."""

FOLLOW_LOOK_SECONDS = 0.25

NAMED_KEPT = 64
"""Sessions asked for last: they are proved where an error ends the host that a damaged log can lead to, and it comes of
what was asked for just before. A host may run for ever, and does not remember all."""

_ID_CHARACTERS = 36  # of a UUID
_BY_OPERATOR = {"reason": "operator"}


class Host:
    """Implements :class:`harness_hookspecs.host.Host`. Open it with :meth:`open`, close it or use ``with``."""

    def __init__(
        self,
        opened: Opened,
        *,
        on_event: Callable[[StoredEvent], Any] | None,
        on_chunk: Callable[[str, Chunk], Any] | None,
        trace: TraceSink | None = None,
        debug: bool = False,
    ) -> None:
        self._opened, self._ports = opened, opened.ports
        self._store: Store | None = None
        self._closed = False
        self._session_parts: dict[str, SessionParts] = {}
        self._owned: dict[str, OwnedSession] = {}
        self._registered: RegisteredVersions | None = None
        self._named: deque[str] = deque(maxlen=NAMED_KEPT)  # sessions that somebody asked for
        self._on_event, self._on_chunk, self._trace, self._debug = on_event, on_chunk, trace, debug
        self._world: SessionWorld | None = None
        self._made_ports: Any = None  # closed with the host; ports that were handed in belong to the caller

    @classmethod
    def open(
        cls,
        project: str | Path | None = ".",
        *,
        overrides: Mapping[str, Any] | None = None,
        ports: str | Any = "threads",
        options: Any = None,
        terminal: tuple[int, int] | None = None,
        on_event: Callable[[StoredEvent], Any] | None = None,
        on_chunk: Callable[[str, Chunk], Any] | None = None,
        trace: TraceSink | None = None,
    ) -> Self:
        """Open a project.

        Args:
            project: The folder that holds ``.harness``; ``.`` looks for the nearest one upwards.
            overrides: Config paths to values, above every file and the environment.
            ports: ``threads``, ``inline``, ``simulated`` or a set made before.
            options: Flags about plugins (``disabled``, ``no_plugins``); with ``debug`` stderr also gets the traceback
                of what a plugin raised, and not only the line where it did.
            terminal: File descriptors (read, write) of a person who may be asked.
            on_event: Told of every event this host commits.
            on_chunk: Told of provisional model text.
            trace: Told what roles say for debugging; apart from the log, and never a reason to fail.

        Raises:
            ConfigError: The configuration is wrong.
            PluginError: A required plugin does not take part.
        """
        from .opening import open_project
        from .ports import make_ports

        if ports == "threads":
            sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
        doors = make_ports(ports) if isinstance(ports, str) else ports
        opened = open_project(project, doors, overrides=overrides, flags=options, terminal=terminal)
        debug = bool(getattr(options, "debug", False))
        host = cls(opened, on_event=on_event, on_chunk=on_chunk, trace=trace, debug=debug)
        host._made_ports = doors if isinstance(ports, str) else None
        return host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                self._prove_named(error)
        finally:
            self.close()

    @property
    def config(self) -> EffectiveConfig:
        """The effective configuration."""
        return self._opened.config

    @property
    def plugins(self) -> Any:
        """The catalogue of installed plugins."""
        return self._opened.catalogue

    @property
    def store(self) -> Store:
        """The log, opened on first use."""
        if self._store is None:
            if self._closed:
                raise StoreError("The host is closed.", code="store.closed")
            self._store = self._opened.open_store()
        return self._store

    # -- running ---

    def run(
        self,
        text: str,
        *,
        on_ask: str = "deny",
        budget: Mapping[str, float] | None = None,
        yolo: str = "off",
        seed: int | None = None,
        by: str | None = None,
    ) -> Mapping[str, Any]:
        """Run one session to a final state or a pause; returns its document, frozen."""
        return self.wait(self.start(text, on_ask=on_ask, budget=budget, yolo=yolo, seed=seed, by=by))

    def start(
        self,
        text: str,
        *,
        on_ask: str = "deny",
        budget: Mapping[str, float] | None = None,
        yolo: str = "off",
        seed: int | None = None,
        by: str | None = None,
    ) -> str:
        """Start a session without waiting; returns its id once ``session.created`` is committed.

        Who starts it (``by``, else who the system says) stands there, and with it who switched ``yolo`` on.

        Raises:
            ConfigError: The request is not one (``checked_request``), the project needs trust, a rule does not compile.
            PluginError: Something bound is missing or broken.
            StoreError: The log cannot be written.
        """
        from .beginning import checked_request, start_command

        drawn = int.from_bytes(self._ports.random.bytes(4), "big")
        request = checked_request(text, on_ask, budget, yolo, drawn if seed is None else seed, person(by))
        self.config.require_trust()
        parts = self._parts()
        session_id = self._ports.ids.uuid7()
        session = self._new_session(session_id, parts, request)
        self._begin(session, start_command(session_id, request, self._opened.running()))
        return session_id

    def start_workflow(
        self,
        name: str,
        given: Any,
        *,
        goal: str = "run",
        accept_drift: bool = False,
        **options: Unpack[RunOptions],
    ) -> str:
        """Start a session of a workflow without waiting; returns its id once ``session.created`` is committed.

        It runs the version that ``name`` is the id of, or plans the workflow of that name and, unless ``goal`` is
        ``plan``, runs the plan. It stands in the place of the stage where sessions begin: its persona, its policy.
        A version is held to what it was last registered with, unless ``accept_drift`` takes it as it is now.

        Raises:
            NotFound: There is no such workflow (``workflow.unknown``) or version (``workflow.unknown_version``).
            ValidationFailed: ``workflow.invalid_input``.
            Drift: ``workflow.drift``: its tools, models or engines are others than they were; the changes say which.
            ConfigError: As for ``start``; ``config.goal``.
            PluginError: Something bound is missing or broken.
            StoreError: The log cannot be written.
        """
        from .workflow_sessions import wanted_by_name

        self.config.require_trust()
        site = self._workflow_site()
        return self._start_wanted(wanted_by_name(name, given, goal, site, accept_drift=accept_drift), options)

    def start_plan(
        self,
        source: bytes,
        given: Any,
        *,
        stage: str | None = None,
        **options: Unpack[RunOptions],
    ) -> str:
        """Start a session that registers and runs a plan as it was written, in the place of the stage that it is
        checked for (``check_plan``); returns its id.

        Raises:
            ValidationFailed: ``workflow.rejected`` with what ``check_plan`` finds; ``workflow.invalid_input``.
            HarnessError: As ``start_workflow``.
        """
        from .workflow_sessions import wanted_plan

        self.config.require_trust()
        document = self.check_plan(source, stage=stage)
        return self._start_wanted(wanted_plan(document, given, self._workflow_site()), options)

    def _start_wanted(self, wanted: Wanted, options: RunOptions) -> str:
        from .beginning import start_command
        from .workflow_sessions import request_of
        from .workflow_start import begun_with

        request, session_id = request_of(wanted, options, self._ports), self._ports.ids.uuid7()
        session = self._new_session(session_id, wanted.parts, request)
        self._begin(session, begun_with(start_command(session_id, request, wanted.opened), wanted.spec))
        return session_id

    def _workflow_site(self) -> Site:
        from .workflow_sessions import Site

        def find(name: str) -> Mapping[str, Any]:
            return self._versions().find(self.sessions(), name)

        return Site(self._opened, self.store, self._parts, find)

    def _versions(self) -> RegisteredVersions:
        from .workflow_versions import RegisteredVersions

        self._registered = self._registered or RegisteredVersions(self.store)
        return self._registered

    def resume(
        self,
        session_id: str,
        *,
        budget: Mapping[str, float] | None = None,
        on_ask: str | None = None,
        accept_drift: bool = False,
        wait: bool = True,
    ) -> Mapping[str, Any]:
        """Go on with a session that stopped; returns its document at the next pause or end.

        Of a child session the one is gone on with that all began with, and its document is returned (D-19).
        What an approval does that nobody decides is as the session was started, unless ``on_ask`` says otherwise.
        The log is proved once before anything is run or appended: what was changed in it would be done.

        Raises:
            NotFound: There is no such session.
            StoreCorrupt: Its log is not what was stored (``store.changed``, ``store.gap``, ``store.tail_missing``).
            IllegalMove: It is final (``state.final``).
            Locked: A living process runs it.
            Drift: The configuration is not the session's; ``accept_drift`` records the change and goes on.
        """
        from harness_core.kernel.commands import Resume
        from harness_core.kernel.projections.naming import ended
        from harness_core.kernel.projections.session import left_amid_work

        from .beginning import checked_budget, checked_on_ask, migration, plugin_changes
        from .replaying import fold_session, prove_log
        from .session import OwnedSession

        found = self.root(session_id)
        self.config.require_trust()
        prove_log(self.store, found)
        state = fold_session(self.store, found)
        if state.final:
            raise ended(found, f"is {state.status}; nothing can change it")
        plugins = plugin_changes(state, self._opened)
        migrate = migration(state, self._opened_for(state), self.store, plugins, accept_drift=accept_drift)
        self._tell_of_drift(plugins, accepted=accept_drift, recorded=migrate is not None)
        limits = checked_budget(budget)
        session = OwnedSession(
            found,
            self._parts_of(state),
            self._shared(),
            on_ask=checked_on_ask(state.created["on_ask"] if on_ask is None else on_ask),
            terminal=self._opened.terminal is not None,
            accept_drift=accept_drift,
        )
        with self._given_back(session):
            # Looked at again now that it is ours: until then its owner may still have come to an end.
            if left_amid_work(state) and left_amid_work(fold_session(self.store, found)):
                self._complain(HarnessError(f"session {found[-8:]} was left amid its work; it is taken over here"))
            if limits:
                self._post(found, f"budget:{self._ports.ids.uuid7()}", "raise_budget", {"limits": limits})
            self._begin(session, Resume("resume"), first=migrate)
        return self.wait(found) if wait else self.session(found)

    def fork(
        self,
        session_id: str,
        at: int,
        *,
        on_ask: str | None = None,
        budget: Mapping[str, float] | None = None,
        yolo: str = "off",
        by: str | None = None,
        wait: bool = True,
    ) -> Mapping[str, Any]:
        """Begin a new session with what another one had come to, under this host's configuration; it makes real calls.

        It goes on from the last event at or before ``at`` after which no stage was open (``session.forked``); what was
        amid a stage there begins anew. The other session is only read. Files and what tools did stay as they are now.

        Raises:
            NotFound: There is no such session, or no such event (``event.not_found``).
            ConfigError: The session is of another project, or as for ``start``.
            PluginError: Something bound is missing or broken.
            StoreError: The log cannot be written, or a newer version wrote in it (``store.newer_events``).
        """
        from .forking import fork_command, fork_point, fork_request

        found = self.find(session_id)
        self.config.require_trust()
        point = fork_point(self.store, found, at, self._opened)
        self._opened.learn_secrets(self.store, found)
        request = fork_request(point, self.store, on_ask=on_ask, budget=budget, yolo=yolo, by=person(by))
        parts, fork_id = self._parts_of(point.state), self._ports.ids.uuid7()
        command = fork_command(fork_id, point, request, self._opened_for(point.state), self.store)
        session = self._new_session(fork_id, parts, request)
        self._begin(session, command)
        return self.wait(fork_id) if wait else self.session(fork_id)

    def _tell_of_drift(self, plugins: Sequence[Mapping[str, Any]], *, accepted: bool, recorded: bool) -> None:
        """One line: that plugins are other ones (a warning, what they do may differ), or that of them and of the
        configuration nothing is new; whether a role's call is another one shows when it goes on."""
        from harness_core.kernel.projections.timeline import change_named

        if plugins and not recorded:
            named = "; ".join(map(change_named, plugins))
            self._complain(HarnessError(f"warning: the session was started with other plugins: {named}"))
        elif accepted and not recorded:
            said = "configuration and plugins are the session's own: of them no drift is recorded"
            self._complain(HarnessError(said))

    def pause(self, session_id: str) -> None:
        """Ask the owner, through the durable inbox, to stop after what is in flight.

        Raises:
            NotFound: There is no such session.
            IllegalMove: ``state.final``, or ``session.not_run``: nobody runs it; a request would lie in wait for who
                resumes it next, so none is recorded.
        """
        found = self._not_ended(session_id, "pause")
        self._require_owner(found)
        self._post(found, f"pause:{self._ports.ids.uuid7()}", "pause", _BY_OPERATOR)
        self._nudge(found)

    def cancel(self, session_id: str) -> None:
        """Ask the owner, through the durable inbox, to end the session; without one it is ended here.

        What nobody runs is ended without its configuration: neither its plugins nor trust in its project are needed.
        Nor is its log proved, as long as it folds: to end it does nothing that it says, and ``verify`` still names
        what is damaged.

        Raises:
            NotFound: There is no such session.
            IllegalMove: ``state.final``.
            StoreError: The log cannot be written, or a newer version wrote in it (``store.newer_events``).
        """
        found = self._not_ended(session_id, "cancel")
        command_id = f"cancel:{self._ports.ids.uuid7()}"
        if found not in self._owned and self._cancel_unowned(found, command_id):
            return
        self._post(found, command_id, "cancel", _BY_OPERATOR)  # its owner looks at the inbox four times a second
        self._nudge(found)
        if found not in self._owned:  # and may have gone meanwhile, without another look
            self._cancel_unowned(found, command_id)

    def wait(self, session_id: str, timeout_seconds: float | None = None) -> Mapping[str, Any]:
        """Wait for a final state or a pause of a session this host runs; returns its document, frozen.

        One that has ended is returned at once, whoever ran it.

        Raises:
            NotFound: This host does not own it, and it has not ended.
            HarnessError: What stopped its loop; ``session.not_run`` when this host was closed meanwhile.
        """
        from .loop_parts import not_run

        try:
            return self._waited(self.find(session_id), timeout_seconds)
        except StoreError as error:
            if error.code != "store.closed":
                raise
            raise not_run() from error

    def _waited(self, found: str, timeout_seconds: float | None) -> Mapping[str, Any]:
        from harness_core.kernel.state import FINAL

        from .loop_parts import not_run

        session = self._owned.get(found)
        if session is None:
            document = self.session(found)
            if document["status"] in FINAL:
                return document
            if self._closed:
                raise not_run()
            raise NotFound(f"session {found} is not run here", code="session.not_owned")
        try:
            done = session.wait(timeout_seconds)
        except BaseException:
            if session.loop.stopped:  # else it is the waiter who was stopped, and the session goes on
                self._release(session)
            raise
        try:
            shown = session.document() if done else None
            return self.session(session.session_id) if shown is None else freeze(shown)
        finally:
            if done:
                self._let_go(session)

    def interrupt(self, reason: str, grace_seconds: float = 4.0) -> None:
        """Stop every owned session within the grace: active ones are saved as paused, waiting ones stay so (I-38).

        The grace is one for all of them; what breaks at one is raised once all have stopped.

        Raises:
            HarnessError: What a session could not be stopped for, such as a full store.
        """
        deadline, owned = self._ports.clock.monotonic() + grace_seconds, list(self._owned.values())

        def stop(session: OwnedSession) -> None:
            session.stop_within(max(0.0, deadline - self._ports.clock.monotonic()), reason)

        with ExitStack() as then, ExitStack() as first:  # each does all it has been given, whatever breaks at one
            for session in owned:
                first.callback(session.ask_to_stop, reason)
                then.callback(stop, session)

    # -- answering ---

    def answer(
        self, approval_id: str, decision: str, *, say: str | None = None, digest: str, by: str | None = None
    ) -> Answered | AlreadyAnswered:
        """Answer a pending approval; the first answer stands, from whichever terminal it came.

        Raises:
            NotFound: There is no such approval.
            ConfigError: ``config.by`` or ``config.say``: no text.
            Refused: ``approval.digest``: the answer is about something else; ``approval.decision``: not a decision.
            IllegalMove: ``state.final``: its session has ended.
        """
        # one that waits and is named in full is found without a look into each session that has ended
        waiting = [item for item in self.approvals() if item["id"] == approval_id]
        found = find_approval(approval_id, waiting or self.approvals(history=True))
        self._opened.learn_secrets(self.store, found["session_id"])
        said = None if say is None else recordable(say, "what is said", code="config.say")
        body = answer_body(found["id"], decision, digest=digest, by=person(by), say=said)
        answered = post_answer(found, body, self.store, self._opened.redactor)
        self._ports.reach("approval.posted")
        self._nudge(found["session_id"])
        return answered

    def settle(self, effect_id: str, outcome: str, *, value: Any = None, by: str | None = None) -> Mapping[str, Any]:
        """Settle an effect in doubt: ``happened`` (with its value) or ``never_happened`` (it may run now).

        The first settlement stands, from whichever terminal it came; it is returned, with ``stands``: whether it is
        this one.

        Raises:
            NotFound: No session has such an effect in doubt.
            ConfigError: ``config.by``: no text.
        """
        session_id = find_doubt(effect_id, self.sessions(every_project=True))
        self._opened.learn_secrets(self.store, session_id)
        body = {"effect_id": effect_id, "outcome": outcome, "by": person(by), "kind": "person"}
        if value is not None:
            body["value"] = value
        posted = post_settlement(session_id, body, self.store, self._opened.redactor)
        self._nudge(session_id)
        return freeze({**posted.body, "stands": posted.mine})  # type: ignore[no-any-return]

    def deliver_event(
        self, session_id: str, name: str, payload: Any = None, *, delivery_id: str | None = None, by: str | None = None
    ) -> Mapping[str, Any]:
        """Deliver what a step of a session's plan waits for, or will: its output becomes ``payload``.

        A session that runs, here or elsewhere, takes it at its next look into the inbox; one that is parked takes it
        when somebody goes on with it. Who delivers the same once more, under the id of the first time, changes nothing.

        Args:
            session_id: The session; of a child session its own.
            name: What the plan calls the event.
            payload: Strict JSON, at most ``MAX_EVENT_BYTES`` of it.
            delivery_id: Tells a repetition from another event; one of its own where none is given.
            by: Who delivers it, for the log.

        Returns:
            ``harness.delivery/1``: with ``repeated``, and ``waited_for``: whether a step waits for it now.

        Raises:
            NotFound: There is no such session; ``event.not_awaited``: no step of its plans waits for such an event.
            ConfigError: ``config.event``, ``config.delivery_id``, ``config.by``.
            ValidationFailed: ``validation.event``, ``validation.event_size``: nothing that a step could take.
            IllegalMove: ``event.other_delivery``: the same id brought something else; ``state.final``: the session has
                ended.
        """
        from .awaited import awaited_in
        from .delivering import delivered, delivery_document, is_waited_for, post_delivery
        from .posting import delivery_id_of
        from .replaying import fold_session

        found = self.find(session_id)
        one = delivered(name, payload, person(by), self._ports.ids.uuid7() if delivery_id is None else delivery_id)
        self._opened.learn_secrets(self.store, found)
        state = fold_session(self.store, found)
        repeated = self.store.posted(delivery_id_of(found, one.delivery_id)) is not None
        post_delivery(one, state, awaited_in(state, self.store), self.store, self._opened.redactor)
        waits = is_waited_for(one, state, self.store)
        self._nudge(found)
        return freeze(delivery_document(one, found, repeated=repeated, waits=waits))  # type: ignore[no-any-return]

    def submit(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Post a command ``{session, id, kind, body}`` to a session's durable inbox; returns the row that stands.

        Raises:
            NotFound: There is no such session, no such approval to answer, no such effect in doubt to settle.
            Refused: ``approval.digest``: an answer is about something else than what is asked.
            IllegalMove: ``command.malformed``: it is none of its kind, or has the id of another command;
                ``state.final``, ``approval.answered``: nothing can be answered any more; ``session.not_run``: nobody
                runs what is to pause.
        """
        from .replaying import fold_session

        asked = asked_for(command)
        found = self.find(asked.session)
        if asked.kind == "pause":
            self._require_owner(found)
        self._opened.learn_secrets(self.store, found)
        stands = post_asked(asked, fold_session(self.store, found), self.store, self._opened.redactor)
        self._nudge(found)
        return {"session": found, "id": stands.command_id, "taken_seq": stands.taken_seq, **loads_trusted(stands.body)}

    def approvals(
        self, session_id: str | None = None, *, history: bool = False, every_project: bool = True
    ) -> Sequence[Mapping[str, Any]]:
        """Approvals of all sessions or of one, oldest first: those that nobody answered, with ``history`` all.

        They are the items of ``harness.approvals/1``. A session whose log is damaged keeps nobody from those of others:
        of it there is a complaint.

        Raises:
            NotFound: There is no such session.
            StoreCorrupt: The log of one is damaged, and no other one has anything to show.
        """
        from harness_core.kernel.state import FINAL

        from . import views

        if session_id is not None:
            looked_at = [self.find(session_id)]
        else:
            every = self._documents(every_project=every_project)
            looked_at = [one["id"] for one in every if history or one["status"] not in FINAL]
        return views.approvals(self.store, looked_at, history=history, complain=self._complain)

    # -- looking ---

    def find(self, session_id: str) -> str:
        """The full id of a session named by it, by either end of it, or ``@last``.

        Raises:
            NotFound: There is none, or more than one; ``session.removed``: there was one.
        """
        from . import views
        from .config.folders import has_project
        from .removed import removed_session

        if not isinstance(session_id, str):
            raise NotFound(f"a session is named by a text, not by {session_id!r}", code="session.not_found")
        if session_id in self._owned or self._is_whole(session_id):
            self._named.append(session_id)
            return session_id
        ours = encode_path(self._opened.project)
        named = sorted(((one["id"], one["project"] == ours) for one in self._documents()), reverse=True)
        known, every = [one for one, mine in named if mine], [one for one, _ in named]
        try:
            found = views.find_session(session_id, known, every, in_project=has_project(self._opened.project))
        except NotFound as error:
            raise (error.code == "session.not_found" and removed_session(self.store, session_id)) or error from None
        found = self._root_of(found) if session_id == "@last" else found  # nobody means a child by that
        self._named.append(found)
        return found

    def _prove_named(self, error: BaseException) -> None:
        """Say of an error that what a log says can lead to, that one is damaged which somebody looked at."""
        from harness_core.kernel.projections.event import MISLED, UNFORESEEN

        from .replaying import prove_log

        for session_id in sorted({*self._named}) if isinstance(error, MISLED) else ():
            try:
                prove_log(self.store, session_id)
            except StoreCorrupt as damage:
                raise damage from error
            except (HarnessError, *UNFORESEEN):  # a log that is closed or cannot be read says nothing of the error
                return

    def _is_whole(self, session_id: str) -> bool:
        """Whether it is the whole id of a session, which is found without a look at all others."""
        fits = session_id.isascii() and len(session_id) == _ID_CHARACTERS
        return fits and self.store.head(f"session:{session_id}").seq > 0

    def events(
        self, session_id: str, *, after: int = 0, follow: bool = False, types: str = "*"
    ) -> Iterator[StoredEvent]:
        """Stored events with ``seq > after`` in order; with ``follow`` until the session is final."""
        stream = f"session:{self.find(session_id)}"
        while True:
            final = False
            seen = self.store.change_counter() if follow else 0  # before the log: what comes later is looked for again
            for event in self.store.read(stream, after=after):
                after = event.seq
                final = final or event.type in ("session.completed", "session.failed", "session.cancelled")
                if fnmatchcase(event.type, types):
                    yield event
            if not follow or final:
                return
            self._wait_for_change(seen)

    def _wait_for_change(self, seen: int) -> None:
        self._ports.clock.sleep(FOLLOW_LOOK_SECONDS)
        while self.store.change_counter() == seen:
            self._ports.clock.sleep(FOLLOW_LOOK_SECONDS)

    def sessions(self, *, every_project: bool = False) -> Sequence[Mapping[str, Any]]:
        """The documents of this project's sessions, newest first: from an index, and the logs of those that go on."""
        from .listed import brought_up

        documents = sorted(self._documents(every_project=every_project), key=lambda d: d["id"], reverse=True)
        return [freeze(brought_up(self.store, d)) for d in documents]

    def _documents(self, *, every_project: bool = True) -> Iterator[dict[str, Any]]:
        """The documents one after the other: of many sessions they are more than needs be kept in mind."""
        from .listed import listed

        ours = encode_path(self._opened.project)
        return (one for one in listed(self.store) if every_project or one["project"] == ours)

    def session(self, session_id: str, at: int | None = None) -> Mapping[str, Any]:
        """One session's document, as of seq ``at`` when given.

        Raises:
            NotFound: There is no such session (``session.not_found``) or no such event (``event.not_found``).
        """
        from harness_core.kernel.projections.session import session_document

        from .replaying import fold_session

        found = self.find(session_id)  # the log is asked also about a session of our own: nothing is shown uncommitted
        return freeze(session_document(fold_session(self.store, found, until=at)))  # type: ignore[no-any-return]

    def root(self, session_id: str) -> str:
        """The session that a child comes from by way of its parents; any other one is its own.

        Raises:
            NotFound: There is no such session.
        """
        return self._root_of(self.find(session_id))

    def tree(self, session_id: str) -> Mapping[str, Any]:
        """What a session is a fork of, and what was forked from any of these: ``harness.tree/1``."""
        from . import views

        found, listed = self.find(session_id), self.sessions(every_project=True)
        known = found in {document["id"] for document in listed}  # else the list was damaged, and its log is there
        return views.tree(self.store, found, listed if known else [*listed, self.session(found)])

    def artifacts(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """The artifacts of a session, oldest first."""
        from . import views

        return views.artifacts(self.store, self.find(session_id))

    def artifact(self, ref: str) -> bytes:
        """The bytes behind ``artifact://sha256-...``."""
        from . import views

        return views.artifact_bytes(self.store, ref)

    def report(self, session_id: str) -> Mapping[str, Any]:
        """Tokens by stage, role, model and tool, and time."""
        from . import views

        return views.report(self.store, self.find(session_id))

    def report_of_tree(self, session_id: str) -> Mapping[str, Any]:
        """The tokens of a session and of each one that it has begun, own and summed: ``harness.report_tree/1``."""
        from . import views

        return views.report_of_tree(self.store, self.find(session_id))

    def graph(self, session_id: str | None = None) -> Mapping[str, Any]:
        """Nodes and edges of the stages as configured, or of what really ran."""
        from . import views

        found = None if session_id is None else self.find(session_id)
        return views.graph(self.store if found else None, found, self.config)

    def plan_graph(
        self, *, source: bytes | None = None, version: str | None = None, run: tuple[str, str] | None = None
    ) -> Mapping[str, Any]:
        """Nodes and edges of a plan: ``harness.graph/1``.

        Args:
            source: A plan that somebody wrote; it must be sound here (``check_plan``).
            version: One that was registered.
            run: A session and a stage of it: what really ran of the plan there.

        Raises:
            NotFound: ``workflow.unknown_version``, ``session.not_found``, ``graph.no_plan``.
            ValidationFailed: ``workflow.rejected``: the plan is not sound.
        """
        from harness_core.kernel.projections.plan_graph import plan_graph

        from . import views

        if run is not None:
            return views.graph_of_run(self.store, self.find(run[0]), run[1])
        if version is not None:
            return plan_graph(self.workflow_version(version)["plan"])
        checked = self.check_plan(source or b"")
        if not checked["ok"]:
            message = f"the plan is not sound: {checked['findings'][0]['message']}"
            hint = "harness workflows check FILE says all that is wrong"
            raise ValidationFailed(message, code="workflow.rejected", hint=hint)
        return plan_graph(checked["plan"])

    def context(self, session_id: str, visit: str = "") -> Mapping[str, Any]:
        """What a stage visit's model was given, each item with its source, and what was left out and why.

        Without ``visit`` the only one there is; of several one has to be named (``visit.not_found`` names them).
        """
        from . import views

        return views.context(self.store, self.find(session_id), visit)

    def prompt(self, session_id: str, seq: int | None = None, *, role: str | None = None) -> Mapping[str, Any]:
        """Exactly what the model saw at that ``harness.model.called``, or at the last one of a role."""
        from . import views
        from .role_prompt import labelled_parts

        document = views.prompt(self.store, self.find(session_id), seq=seq, role=role)
        return {**document, "parts": labelled_parts(self._opened.catalogue, self._opened.parts, document)}

    def role_prompt(self, role: str) -> Mapping[str, Any]:
        """The labelled parts of the prompt that an executor role or a persona has under this configuration.

        Raises:
            NotFound: There is no such role or persona.
        """
        from .role_prompt import role_prompt

        return role_prompt(self._opened.running().assembly(live=False), role)

    def transitions(self, session_id: str) -> Mapping[str, Any]:
        """The rules a session took, with their values."""
        from . import views

        return views.transitions(self.store, self.find(session_id))

    def diff(self, session_id: str, other: str) -> Mapping[str, Any]:
        """What two sessions did differently: what was asked and pinned, stages, transitions, artifacts, tools, use."""
        from . import views

        return views.diff(self.store, self.find(session_id), self.find(other))

    def workflows(self) -> Mapping[str, Any]:
        """The workflows that are defined, and the plans that this project's sessions registered:
        ``harness.workflows/1``."""
        from .offered_workflows import listed_workflows
        from .workflow_versions import versions_document

        defined = listed_workflows(self.config, self._opened.catalogue, self._opened.parts)
        return versions_document(self.store, defined, self._versions().all(self.sessions()))

    def workflow_version(self, name: str) -> Mapping[str, Any]:
        """A plan that was registered, by its id or the beginning of it: ``harness.workflow_version/1``.

        Raises:
            NotFound: ``workflow.unknown_version``.
        """
        from .workflow_versions import find_version, version_document

        return version_document(self.store, find_version(self.store, self._versions().all(self.sessions()), name))

    def check_plan(self, source: bytes, *, stage: str | None = None, sketch: bool = False) -> Mapping[str, Any]:
        """Check a plan (LWIR), or the sketch of one, for a stage; gives ``harness.plan_check/1`` (``check_plan``).

        Whatever is wrong with the plan is a finding. Nothing is run, written or registered.
        """
        from .plan_check import check_plan

        return check_plan(source, self._opened, self._parts(), stage=stage, sketch=sketch)

    def verify(self, session_id: str) -> Mapping[str, Any]:
        """Prove a session's log: chain, head, copied head, content and prompt hashes, and what the anchor keeps.

        A session that the store has lost is found by the anchor.

        Raises:
            NotFound: There is no such session.
        """
        from .anchor import anchored
        from .verify import verify

        kept = anchored(self._anchor())
        try:
            found = self.find(session_id)
        except NotFound as error:
            lost = None if error.code == "session.removed" else kept.find(session_id)
            if lost is None:
                raise
            found = lost
        files, removals = self._ports.files(self._opened.data_dir), self._opened.name_of_removals()
        return verify(self.store, found, files, kept, removals=removals)

    # -- replay ---

    def replay(
        self,
        session_id: str,
        mode: str | None = None,
        against: str | Path | None = None,
        *,
        first: int | None = None,
        until: int | None = None,
        category: str | None = None,
    ) -> Mapping[str, Any]:
        """Replay without any call and without a write; returns ``harness.replay/1``.

        Its ``equal`` is ``None`` where a part was folded that what is kept of the session was not kept in.

        Args:
            session_id: The session.
            mode: ``full`` folds the log again. ``partial`` does so up to ``until``, or for one ``category``: the state
                is folded from the whole, the events of the category are counted and what they write is hashed.
                ``cursor`` counts the events from ``first`` to ``until``; the state is that of a full replay at the same
                seq. ``skip-inference`` takes every decision and enters every role again; ``simulate`` runs them all
                again on recorded answers, and each event that follows must come out as it was but for the ids and times
                of its envelope. Without a mode it is the first of them that takes what else is given.
            against: Another project folder whose configuration decides instead of the session's own.
            first: The seq of the first event.
            until: The seq of the last event; the session's last one when omitted.
            category: One of the seven categories of events.

        Raises:
            ConfigError: ``replay.mode``: there is no such mode, or what else is given does not go with it; ``against``
                is not valid.
            NotFound: There is no such session, no event of that seq in it (``event.not_found``), or no project where
                ``against`` points (``project.not_found``).
        """
        from .replaying import replay_session

        found = self.find(session_id)
        kept = next((d for d in self._documents() if d["id"] == found), None)
        options = {"against": against, "first": first, "until": until, "category": category}
        return replay_session(self._opened, self.store, found, mode, kept=kept, **options).document()

    # -- upkeep ---

    def store_stats(self) -> Mapping[str, Any]:
        """What the log holds and what room it takes."""
        from . import upkeep

        return upkeep.store_stats(self.store, self.config.harness.store.plugin)

    def back_up(self, target: str | Path) -> Mapping[str, Any]:
        """Copy the log into a new file that is proved before it bears its name; copies each session's head out too.

        Raises:
            StoreError: ``store.exists``, ``store.no_file``, or it could not be written; nothing is left.
        """
        from . import upkeep

        return upkeep.back_up(self.store, Path(target).absolute(), self._ports.files(self._opened.data_dir))

    def rebuild(self) -> Mapping[str, Any]:
        """Make summaries and snapshots again from the events; says which were not as they should be."""
        from . import upkeep

        return upkeep.rebuild(self.store)

    def prune(
        self,
        older_seconds: float,
        *,
        every_project: bool = False,
        dry_run: bool = False,
        asked: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Mapping[str, Any]:
        """Remove sessions that ended so long ago, with all that only they name; the log keeps that it was done.

        Those of this project or of every one. With ``dry_run`` it is only said what would go; ``asked`` is told of it
        and decides. One that is not final, that is run, or that names or is named by one that stays, stays.

        Raises:
            ConfigError: ``sessions.older``: the age is none.
            StoreError: The log cannot be written.
        """
        from .pruning import Scope, prune
        from .removed import MAIN

        files = self._ports.files(self._opened.data_dir)
        scope = Scope(older_seconds, None if every_project else encode_path(self._opened.project))
        store, removals = self.store, self._opened.name_of_removals()
        document = prune(store, files, self._ports, scope, removals=removals, dry_run=dry_run, asked=asked)
        if document["removed"] and self.config.harness.anchor is not None:
            self._anchor_head(MAIN, self.store.head(MAIN))
        return document

    # -- surfaces ---

    def surface_commands(self) -> Sequence[tuple[str, Any]]:
        """The commands that installed surfaces add, each with its offer's name; a surface that breaks only warns."""
        from .surfaces import surface_commands

        return surface_commands(self._opened.catalogue, self._opened.parts, self._complain)

    # -- closing ---

    def close(self) -> None:
        """Give owned sessions back, end providers, close the log; whoever comes later is told so."""
        self._closed = True
        with ExitStack() as then:  # the last one first, and each of them whatever breaks at one
            if self._made_ports is not None:
                then.callback(self._made_ports.close)
            then.callback(self._close_store)
            then.callback(self._close_parts)
            for session in reversed(self._owned.values()):
                then.callback(self._release, session)

    # -- inside ---

    def _close_parts(self) -> None:
        for error in self._opened.parts.close():
            self._complain(error)

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()  # and kept: what is opened by now would stay open

    def _parts(self, opened: Opened | None = None) -> SessionParts:
        """What runs under a configuration; without one under that of every session that is begun for no workflow."""
        chosen = opened or self._opened.running()
        if chosen.config.digest not in self._session_parts:
            self._session_parts[chosen.config.digest] = chosen.assembly().session_parts()
        return self._session_parts[chosen.config.digest]

    def _opened_for(self, state: SessionState) -> Opened:
        """What a session that is there goes on under, with the workflow that it was begun for."""
        spec = self._spec_of(state)
        return self._opened.running(None if spec is None else spec["workflow"]["workflowId"])

    def _spec_of(self, state: SessionState) -> Any:
        from harness_hookspecs.kit.canonical import read_canonical

        ref = state.created.get("workflow_ref")
        return None if ref is None else read_canonical(self.store.blob(ref))

    def _new_session(self, session_id: str, parts: SessionParts, request: RunRequest) -> OwnedSession:
        """A session that is to be begun here."""
        from .session import OwnedSession

        return OwnedSession(
            session_id, parts, self._shared(), on_ask=request.on_ask, terminal=self._opened.terminal is not None
        )

    def _parts_of(self, state: SessionState) -> SessionParts:
        """The parts of a session that is there: of one that was begun for a workflow, those of that."""
        spec, parts = self._spec_of(state), self._parts(self._opened_for(state))
        if spec is None:
            return parts
        from .workflow_parts import workflow_parts

        return workflow_parts(parts, spec, self._opened.parts)

    def _shared(self) -> SessionWorld:
        if self._world is None:
            self._world = self._new_world()
        return self._world

    def _new_world(self) -> SessionWorld:
        from .session import SessionWorld
        from .trace import guarded_sink

        observers = self._observers()
        return SessionWorld(
            ports=self._ports,
            store=self.store,
            data_dir=self._opened.data_dir,
            redactor=self._opened.redactor,
            observers=(observers.event,),
            on_chunk=observers.chunk,
            cancel_grace_seconds=self.config.harness.run.cancel_grace_sec,
            park_after_seconds=self.config.harness.run.park_after_sec,
            trace=guarded_sink(self._trace),
            complain=self._complain,
            nursery=self._nursery(),
            on_end=None if self.config.harness.anchor is None else self._anchor_head,
        )

    def _nursery(self) -> Nursery:
        from .children import Nursery

        return Nursery(self._open_child, self._let_go, self._cancel_child)

    def _open_child(self, order: ChildOrder) -> OwnedSession | None:
        """Begin a child, or go on with it; ``None`` where it has ended already."""
        from .nursing import going_on, new_child

        if self._is_whole(order.session_id):
            begun = going_on(order, self._opened.running(), self.store, self._shared(), self._parts)
        else:
            begun = new_child(order, self._opened.running(), self.store, self._shared(), self._parts)
        if begun is None:
            return None
        self._begin(begun.session, begun.command, first=begun.first)
        return begun.session

    def _cancel_child(self, session_id: str) -> None:
        if session_id not in self._owned and self._is_whole(session_id):
            self._cancel_unowned(session_id, f"cancel:{self._ports.ids.uuid7()}")

    def _root_of(self, session_id: str) -> str:
        from harness_core.kernel.projections.event import payload_of

        found, above = session_id, [session_id]
        while above and self._is_whole(above[0]):
            found, above = above[0], []
            with suppress(StoreCorrupt):  # one whose log is damaged is its own: that is said where it is read
                told = [payload_of(first).get("parent_id") for first in self.store.read(f"session:{found}", until=1)]
                above = [parent for parent in told if parent is not None]
        return found

    def _anchor(self) -> Anchor | None:
        from .anchor import anchor_of

        return anchor_of(self.config.harness.anchor, self._opened.project, self._ports)

    def _anchor_head(self, session_id: str, head: Head) -> None:
        anchor = self._anchor()
        assert anchor is not None
        try:
            anchor.put(session_id, head)
        except HarnessError as error:
            self._complain(error)  # the session has ended as it has; events verify shows what the anchor lacks

    def _observers(self) -> Observers:
        from .observers import Observers

        built = [part for part in self._opened.parts.built() if part.need.kind == "observer"]
        on_event = [(part.need.key[1], part.thing.on_event) for part in built]
        on_event += self._opened.catalogue.listeners("harness_on_event")
        on_chunk = list(self._opened.catalogue.listeners("harness_on_chunk"))
        if self._on_event is not None:
            on_event.append(("caller", self._on_event))
        if self._on_chunk is not None:
            on_chunk.append(("caller", self._on_chunk))
        return Observers(self._ports, on_event=on_event, on_chunk=on_chunk, complain=self._complain)

    def _begin(self, session: OwnedSession, command: Any, *, first: Any = None) -> None:
        self._owned[session.session_id] = session
        with self._given_back(session):
            session.begin(command, first=first)

    @contextmanager
    def _given_back(self, session: OwnedSession) -> Iterator[None]:
        """Give a session back if what is done with it breaks, whatever that was: else nobody can own it again."""
        try:
            yield
        except BaseException:
            self._release(session)
            raise

    def _let_go(self, session: OwnedSession) -> None:
        """Give a session back; one that has ended only when nothing works for it any more (I-17)."""
        if session.state.final and not session.loop.quiescent():
            self._ports.spawn(self._outlive, session, name="straggler")
        else:
            self._release(session)

    def _outlive(self, session: OwnedSession) -> None:
        """Record as ignored what still comes from work that did not heed the cancel."""
        try:
            with suppress(HarnessError):
                session.loop.wait_quiescent()
        finally:
            self._release(session)

    def _release(self, session: OwnedSession) -> None:
        try:
            session.close()
        finally:
            self._owned.pop(session.session_id, None)

    def _not_ended(self, session_id: str, kind: str) -> str:
        from harness_core.kernel.projections.naming import ended

        from .replaying import fold_session

        found = self.find(session_id)
        if found not in self._owned:
            state = fold_session(self.store, found)
            if state.final:
                raise ended(found, f"is {state.status}; it takes no {kind}")
        return found

    def _require_owner(self, session_id: str) -> None:
        if session_id in self._owned:
            return
        from .session import take_ownership

        try:
            take_ownership(session_id, self._ports.files(self._opened.data_dir)).release()
        except Locked:
            return
        name = session_id[-8:]
        hint = f"it stands still already; harness resume {name} goes on with it"
        raise IllegalMove(f"nobody runs session {name}, so nothing was asked", code="session.not_run", hint=hint)

    def _post(self, session_id: str, command_id: str, kind: str, body: Mapping[str, Any]) -> Posted:
        return self.store.post(session_id, command_id, inbox_row(kind, body, self._opened.redactor))

    def _cancel_unowned(self, session_id: str, command_id: str) -> bool:
        """Own a session for the moment it takes to end it; ``False`` when somebody runs it."""
        from .session import OwnedSession

        if self._world is None:
            self._opened.build_observers()
        world = self._world or self._new_world()  # not kept: who runs a session has more plugins that listen
        try:
            session = OwnedSession(session_id, None, world)
        except Locked:
            return False
        try:
            with suppress(HarnessError):
                self._opened.learn_secrets(self.store, session_id)
            for child_id in self._children_of(session_id):  # first: whoever dies here has not ended their parent yet
                self._cancel_child(child_id)
            session.cancel(command_id, inbox_row("cancel", _BY_OPERATOR, self._opened.redactor))
        finally:
            session.close()
        return True

    def _children_of(self, session_id: str) -> list[str]:
        from .replaying import fold_session

        state = fold_session(self.store, session_id)
        return [] if state.final else [one.payload["child_id"] for one in state.children.values()]

    def _nudge(self, session_id: str) -> None:
        owned = self._owned.get(session_id)
        if owned is not None:
            owned.nudge()

    def _complain(self, error: HarnessError) -> None:
        from .raised import tell

        packages = {row.record.module.partition(".")[0] for row in self._opened.catalogue.rows}
        tell(error, debug=self._debug, redact=self._opened.redactor.text, packages=packages)
