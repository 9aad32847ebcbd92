"""What a plugin may ask of the host: the ports to the world, and one small protocol per kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypedDict, TypeVar, Unpack, runtime_checkable

if TYPE_CHECKING:
    from .artifact import ArtifactType
    from .engine import Engine
    from .rules import Rules
    from .store import Store, StoredEvent

__all__ = [
    "ApproverHost",
    "ArtifactHost",
    "CancelToken",
    "Clock",
    "Completed",
    "EngineHost",
    "ExecutorHost",
    "FileFacts",
    "Files",
    "HeldLock",
    "Host",
    "Ids",
    "KindHost",
    "Ports",
    "Processes",
    "ProviderHost",
    "Random",
    "RoleHost",
    "RulesHost",
    "RunOptions",
    "StoreHost",
    "Task",
    "ToolHost",
    "ValidatorHost",
    "WaitEvent",
    "WaitLock",
    "WaitQueue",
    "Waiting",
]

T = TypeVar("T")


class RunOptions(TypedDict, total=False):
    """How a session is begun; what is left out is as for :meth:`Host.start`."""

    on_ask: str
    budget: Mapping[str, float] | None
    yolo: str
    seed: int | None
    by: str | None


class CancelToken(Protocol):
    """Handed to every call that may block; the callee looks at it or subscribes to it."""

    @property
    def reason(self) -> str | None:
        """Why it was cancelled, ``None`` while it was not."""

    def cancelled(self) -> bool:
        """Whether the work should stop; cheap enough for every loop."""

    def raise_if_cancelled(self) -> None:
        """Raise :class:`~harness_hookspecs.errors.Cancelled` with the reason when cancelled."""

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` once when cancelled (at once if it already is); returns the un-subscriber."""


class Clock(Protocol):
    """Time. Durations come from ``monotonic``, stored times from ``now`` (invariant I-10)."""

    def now(self) -> datetime:
        """Aware UTC time with millisecond precision."""

    def timestamp(self) -> str:
        """``now`` as stored text, ``2026-11-29T18:30:05.123Z``."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    def sleep(self, seconds: float, cancel: CancelToken | None = None) -> None:
        """Wait; raises ``Cancelled`` when the token is set meanwhile."""


class Ids(Protocol):
    """Identities. Under simulation they come from the seed."""

    def uuid7(self) -> str:
        """A UUIDv7 in lower-case text, for events and sessions."""

    def ulid(self, prefix: str) -> str:
        """``prefix_`` and a ULID, for what people see (``appr``, ``stg``, ``call``)."""


class Random(Protocol):
    """Randomness. Under simulation it comes from the seed."""

    def bytes(self, count: int) -> bytes:
        """``count`` random bytes."""

    def uniform(self, low: float, high: float) -> float:
        """A float in ``[low, high]``, for jitter."""


class WaitLock(Protocol):
    """A bare lock; ``threading.Lock`` fits as it is."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; ``False`` when it could not be taken in time."""

    def release(self) -> None:
        """Give it back; any thread may."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class WaitEvent(Protocol):
    """A flag to wait for."""

    def set(self) -> None:
        """Raise the flag; every waiter goes on."""

    def is_set(self) -> bool:
        """Whether the flag is up."""

    def wait(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> bool:
        """Wait for the flag; ``False`` on timeout, ``Cancelled`` raised when the token is set."""


class WaitQueue(Protocol[T]):
    """An unbounded first-in-first-out queue."""

    def put(self, item: T) -> None:
        """Add an item; never blocks."""

    def get(self, timeout_seconds: float | None = None, cancel: CancelToken | None = None) -> T | None:
        """The next item, or ``None`` on timeout; ``Cancelled`` raised when the token is set."""


class Waiting(Protocol):
    """Every way to wait."""

    def lock(self) -> WaitLock:
        """A new bare lock."""

    def event(self) -> WaitEvent:
        """A new flag."""

    def queue(self) -> WaitQueue[Any]:
        """A new queue."""

    def token(self) -> Any:
        """A new cancel token: a :class:`CancelToken` that also has ``cancel(reason)``."""

    def readable(self, fd: int, cancel: CancelToken | None = None, timeout_seconds: float | None = None) -> bool:
        """Wait until ``fd`` can be read; ``False`` on timeout or when the token is set."""


class Task(Protocol):
    """A piece of work that the host runs on one of its daemon workers."""

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait for its end; ``False`` on timeout. What it raised is raised here."""

    def done(self) -> bool:
        """Whether it has ended."""


class FileFacts(NamedTuple):
    """What is known of a path without reading it."""

    kind: str  # file, directory, symlink, other
    size_bytes: int
    modified_ns: int
    mode: int


class HeldLock(Protocol):
    """An advisory lock held by this process; the kernel frees it when the process dies."""

    def release(self) -> None:
        """Give it back."""


class Files(Protocol):
    """Files below one root. Every path is relative; one that leaves the root, also through a symlink, raises
    ``Refused(code="path.outside")`` at the time of use (invariant I-34). A missing file raises ``NotFound``."""

    @property
    def root(self) -> Path:
        """The absolute folder."""

    def read_bytes(self, path: str, *, limit_bytes: int | None = None) -> bytes:
        """The file's bytes, at most ``limit_bytes`` of them."""

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace the file in one step (temporary file, sync, rename), keeping its mode; makes folders."""

    def append_bytes(self, path: str, data: bytes) -> None:
        """Add to the end of a file, made on demand in a folder that is there; synced, and never amid another's bytes
        while what is added is small."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def facts(self, path: str) -> FileFacts | None:
        """Facts of the path itself (a symlink is not followed), ``None`` when there is nothing."""

    def walk(self, path: str = ".") -> Iterator[tuple[str, FileFacts]]:
        """Relative POSIX paths and facts below ``path``, sorted; links are listed, not followed."""

    def make_directory(self, path: str) -> None:
        """Make the folder and its parents; existing is fine."""

    def try_lock(self, path: str) -> HeldLock | None:
        """Take an exclusive advisory lock on a file made on demand; ``None`` when a living process has it."""


class Completed(NamedTuple):
    """How a process ended."""

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool


class Processes(Protocol):
    """Child processes that end with their call."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float = 60.0,
        cancel: CancelToken | None = None,
        limit_bytes: int = 1_048_576,
    ) -> Completed:
        """Run to the end, to the timeout or to the cancel; no descendant survives. ``env`` replaces everything."""


class Ports(Protocol):
    """The only doors to time, chance, waiting, files, processes and threads (architecture D-4)."""

    @property
    def clock(self) -> Clock: ...

    @property
    def ids(self) -> Ids: ...

    @property
    def random(self) -> Random: ...

    @property
    def wait(self) -> Waiting: ...

    @property
    def processes(self) -> Processes: ...

    def files(self, root: Path) -> Files:
        """Files below ``root``."""

    def spawn(self, function: Callable[..., object], *args: object, name: str = "worker") -> Task:
        """Run ``function(*args)`` on a daemon worker of the host."""

    def reach(self, name: str) -> None:
        """Name a boundary; the failpoint set for it acts here. Never switches threads."""


class KindHost(Protocol):
    """What every kind may ask of the host."""

    @property
    def ports(self) -> Ports: ...

    @property
    def project_dir(self) -> Path:
        """The folder that holds ``.harness``; for a tool, the workspace."""

    @property
    def state_dir(self) -> Path:
        """A folder for locks and records that may be lost (``state/harness``)."""


class StoreHost(KindHost, Protocol):
    """For kind ``store``."""

    @property
    def data_dir(self) -> Path:
        """The folder of the log (``data/harness``); an untrusted project cannot move it."""


class ProviderHost(KindHost, Protocol):
    """For kind ``provider``."""

    @property
    def entry_name(self) -> str:
        """The name of the model entry in ``models.yaml`` this provider is built for."""

    def secret(self, reference: str) -> str:
        """Resolve ``env:NAME`` or ``file:PATH`` and register the value for redaction (D-18)."""


class ToolHost(KindHost, Protocol):
    """For kind ``tool``."""


class RoleHost(KindHost, Protocol):
    """For kind ``role``: what runs steps that ask no model. Both are pure, so neither leaves a trace of its own."""

    def rules(self) -> Rules:
        """The rules engine of the host; raises ``PluginError`` where there is none."""

    def engine(self, name: str | None = None) -> Engine:
        """The engine of that name, without one the engine that is usual here; built at its first use.

        Raises:
            PluginError: ``engine.not_available`` where nothing runs the code; its hint says what to install.
        """

    def secret(self, reference: str) -> str:
        """Resolve ``env:NAME`` or ``file:PATH`` and register the value for redaction (D-18). The reference must stand
        among the role's settings. Asked for when it is needed and not while building: a replay builds roles, too."""


class ExecutorHost(KindHost, Protocol):
    """For kind ``executor``; an executor is pure and needs nothing but perhaps the rules of the session."""

    def rules(self) -> Rules:
        """The engine that evaluates the expressions of this session."""


class EngineHost(KindHost, Protocol):
    """For kind ``engine``."""


class RulesHost(KindHost, Protocol):
    """For kind ``rules``."""


class ArtifactHost(KindHost, Protocol):
    """For kind ``artifact``."""


class ValidatorHost(KindHost, Protocol):
    """For kind ``validator``."""

    def artifact_type(self, name: str) -> ArtifactType:
        """The registered artifact type of that name; raises ``NotFound``."""


class ApproverHost(KindHost, Protocol):
    """For kind ``approver``."""

    @property
    def terminal(self) -> tuple[int, int] | None:
        """File descriptors (read, write) of the person's terminal, ``None`` without one."""


@runtime_checkable
class Host(Protocol):
    """The whole product for surfaces and embedders; ``harness_core.Host`` is the implementation.

    Every method that names a session takes its id, a unique prefix or suffix of it, or ``@last``; one that
    does not exist raises ``NotFound``. Documents are frozen JSON (see ``harness config schema``).
    """

    @property
    def config(self) -> Any:
        """The effective configuration; every leaf knows where it comes from."""

    @property
    def plugins(self) -> Any:
        """The catalogue of installed plugins: who takes part, who does not and why."""

    @property
    def store(self) -> Store:
        """The log, opened on first use."""

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
        """Run one session to a final state or a pause; returns its document ``harness.session/1``.

        Args:
            text: What is wanted, in a person's words.
            on_ask: What becomes of a question: ``ask`` a person here, ``suspend`` until one answers, ``deny``, or
                ``auto``: ``ask`` where there is a terminal, else ``deny``.
            budget: Limits by ``tokens``, ``seconds`` and ``calls``.
            yolo: ``on`` answers questions without a person, ``destructive`` those about tier T4 as well; ``off``.
            seed: Where models draw from, 0 to 2**32 - 1; drawn when absent.
            by: Who starts it; absent: whom the system knows.

        Raises:
            ConfigError: The request is not one, or the project needs trust.
            PluginError: Something bound is missing or broken.
        """

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
        """Start a session as ``run`` does, without waiting; returns its id once ``session.created`` is committed."""

    def resume(
        self,
        session_id: str,
        *,
        budget: Mapping[str, float] | None = None,
        on_ask: str | None = None,
        accept_drift: bool = False,
        wait: bool = True,
    ) -> Mapping[str, Any]:
        """Go on with a session that stopped; returns its document at the next pause or end, without ``wait`` at once.

        Its log is proved before anything is run or appended.

        Args:
            session_id: The session.
            budget: Limits that are raised.
            on_ask: As for ``run``; absent: what the session was started with.
            accept_drift: Whether another configuration is accepted.
            wait: Whether it is waited for.

        Raises:
            StoreCorrupt: Its log is not what was stored.
            IllegalMove: It is final.
            Locked: Another process owns it.
            Drift: The configuration is not the session's; ``accept_drift`` records the change and goes on.
        """

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
        """Begin a new session with what another one had come to; returns its document as ``resume`` does.

        It goes on from the last event at or before ``at`` after which no stage was open, under the configuration of
        this host, and makes real calls. The other session is only read. Approvals, grants and a yolo given there do
        not hold in the fork, and what it used does not count.

        Args:
            session_id: The session.
            at: The seq of an event of it.
            on_ask: As for ``run``; absent: what the session was started with.
            budget: As for ``run``; absent: the limits of the session.
            yolo: As for ``run``.
            by: As for ``run``.
            wait: Whether the fork is waited for.

        Raises:
            NotFound: It has no such event (``event.not_found``).
            ConfigError: It is of another project (``session.other_project``), or as for ``run``.
            PluginError: Something bound is missing or broken.
        """

    def pause(self, session_id: str) -> None:
        """Ask the owner, through the durable inbox, to stop after what is in flight; ``IllegalMove`` without one."""

    def cancel(self, session_id: str) -> None:
        """Ask the owner, through the durable inbox, to end the session; one that nobody runs is ended here.

        One whose log is damaged can be ended too, as long as it folds: nothing that it says is done.
        """

    def interrupt(self, reason: str, grace_seconds: float = 4.0) -> None:
        """Stop every session this host owns within the grace: active ones are saved as paused, waiting ones stay so."""

    def wait(self, session_id: str, timeout_seconds: float | None = None) -> Mapping[str, Any]:
        """Wait for a final state or a pause of a session this host runs; returns its document.

        One that has ended is returned at once, whoever ran it; ``None`` as timeout waits as long as it takes.

        Raises:
            NotFound: ``session.not_owned``: somebody else runs it, or nobody.
            HarnessError: What stopped it; ``session.not_run`` when this host was closed meanwhile.
        """

    def answer(
        self, approval_id: str, decision: str, *, say: str | None = None, digest: str, by: str | None = None
    ) -> Any:
        """Answer a pending approval (``approve``, ``deny``, ``auto_session``): ``Answered`` or ``AlreadyAnswered(by)``.

        Raises:
            Refused: It is about something else than what is asked (``digest``), or no decision.
            IllegalMove: Its session has ended.
        """

    def settle(self, effect_id: str, outcome: str, *, value: Any = None, by: str | None = None) -> Mapping[str, Any]:
        """Settle an effect in doubt: ``happened`` (with its value) or ``never_happened``.

        Returns what stands, the first settlement, with ``stands``: whether it is this one.
        """

    def deliver_event(
        self, session_id: str, name: str, payload: Any = None, *, delivery_id: str | None = None, by: str | None = None
    ) -> Mapping[str, Any]:
        """Deliver what a step of a session's plan waits for, or will; returns ``harness.delivery/1``.

        What is delivered again under the same id counts once. A session that runs takes it at once, whoever runs it; a
        parked one when somebody goes on with it.

        Raises:
            NotFound: There is no such session; ``event.not_awaited``: no step of its plans waits for that.
            ConfigError: The name or the id is none.
            ValidationFailed: The payload is no JSON, too much, or nothing that the step could take.
            IllegalMove: The same id brought something else, or the session has ended.
        """

    def submit(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Post a command ``{session, id, kind, body}`` to a session's durable inbox; returns the row that stands.

        An answer has the id ``answer:APPROVAL`` and the digest of what is asked, a settlement the id ``settle:EFFECT``,
        what is delivered (``event``) the id ``event:SESSION:ID``.

        Raises:
            IllegalMove: It is no such command (``command.malformed``), or its time is over.
            Refused: An answer is about something else than what is asked.
        """

    def approvals(
        self, session_id: str | None = None, *, history: bool = False, every_project: bool = True
    ) -> Sequence[Mapping[str, Any]]:
        """The items of ``harness.approvals/1``, oldest first: those that nobody answered, with ``history`` all.

        Raises:
            StoreCorrupt: The log of a session is damaged, and no other one has anything to show.
        """

    def find(self, session_id: str) -> str:
        """The full id of a session."""

    def events(
        self, session_id: str, *, after: int = 0, follow: bool = False, types: str = "*"
    ) -> Iterator[StoredEvent]:
        """Stored events in order; with ``follow`` it goes on until the session is final."""

    def sessions(self, *, every_project: bool = False) -> Sequence[Mapping[str, Any]]:
        """The documents of this project's sessions, newest first."""

    def session(self, session_id: str, at: int | None = None) -> Mapping[str, Any]:
        """One session's document, as of seq ``at`` when given; ``event.not_found`` when it has no such event."""

    def root(self, session_id: str) -> str:
        """The session that a child comes from by way of its parents, with which ``resume`` goes on; any other is its
        own."""

    def tree(self, session_id: str) -> Mapping[str, Any]:
        """What a session is a fork of, and what was forked from any of these, parents first: ``harness.tree/1``."""

    def artifacts(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """The artifacts of a session, oldest first."""

    def artifact(self, ref: str) -> bytes:
        """The bytes behind ``artifact://sha256-...``."""

    def report(self, session_id: str) -> Mapping[str, Any]:
        """Tokens by stage, role, model and tool, and time."""

    def report_of_tree(self, session_id: str) -> Mapping[str, Any]:
        """The tokens of a session and of each one that it has begun, own and summed: ``harness.report_tree/1``."""

    def graph(self, session_id: str | None = None) -> Mapping[str, Any]:
        """Nodes and edges of the stages as configured, or of what really ran."""

    def context(self, session_id: str, visit: str = "") -> Mapping[str, Any]:
        """What a stage visit's model was given, each item with its source, and what was left out and why.

        Without ``visit`` the only one there is; of several one has to be named (``visit.not_found`` names them).
        """

    def prompt(self, session_id: str, seq: int | None = None, *, role: str | None = None) -> Mapping[str, Any]:
        """Exactly what the model saw at that ``harness.model.called``, or at the last one of a role."""

    def role_prompt(self, role: str) -> Mapping[str, Any]:
        """The labelled parts of the prompt that an executor role or a persona has under this configuration."""

    def transitions(self, session_id: str) -> Mapping[str, Any]:
        """The rules a session took, with their values."""

    def diff(self, session_id: str, other: str) -> Mapping[str, Any]:
        """What two sessions did differently: ``harness.session_diff/1``."""

    def start_workflow(
        self,
        name: str,
        given: Any,
        *,
        goal: str = "run",
        accept_drift: bool = False,
        **options: Unpack[RunOptions],
    ) -> str:
        """Start a session that runs a version by its id, or plans the workflow of that name and, unless ``goal`` is
        ``plan``, runs the plan; returns its id. A version whose tools, models or engines are others by now is a
        ``Drift``, unless that is accepted."""

    def start_plan(
        self,
        source: bytes,
        given: Any,
        *,
        stage: str | None = None,
        **options: Unpack[RunOptions],
    ) -> str:
        """Check a plan as it was written, and start a session that registers and runs it; returns its id."""

    def workflows(self) -> Mapping[str, Any]:
        """The workflows that are defined, and the plans that sessions registered: ``harness.workflows/1``."""

    def workflow_version(self, name: str) -> Mapping[str, Any]:
        """A plan that was registered, by its id or the beginning of it: ``harness.workflow_version/1``."""

    def plan_graph(
        self, *, source: bytes | None = None, version: str | None = None, run: tuple[str, str] | None = None
    ) -> Mapping[str, Any]:
        """Nodes and edges of a plan that somebody wrote, of a version, or of what ran in a stage of a session."""

    def check_plan(self, source: bytes, *, stage: str | None = None, sketch: bool = False) -> Mapping[str, Any]:
        """Check a plan, or the sketch of one, for a stage: ``harness.plan_check/1``; nothing comes of it."""

    def verify(self, session_id: str) -> Mapping[str, Any]:
        """Prove a session's log: chain, head, copied head, content and prompt hashes."""

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
        """Replay without any call and without a write; ``harness.replay/1``.

        The modes are ``full``, ``partial`` (with ``until``, ``category`` or both), ``cursor`` (with ``first``, perhaps
        ``until``), ``skip-inference`` (perhaps ``against`` another project folder) and ``simulate``; without one it is
        the first that takes what else is given. ``equal`` is ``None`` where nothing was there to compare with.
        """

    def store_stats(self) -> Mapping[str, Any]:
        """What the log holds and what room it takes: ``harness.db_stats/1``."""

    def back_up(self, target: str | Path) -> Mapping[str, Any]:
        """Copy the log into a new file, proved before it bears its name: ``harness.db_backup/1``."""

    def rebuild(self) -> Mapping[str, Any]:
        """Make the caches again from the events: ``harness.db_rebuild/1`` says which were wrong."""

    def prune(
        self,
        older_seconds: float,
        *,
        every_project: bool = False,
        dry_run: bool = False,
        asked: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Mapping[str, Any]:
        """Remove sessions that ended so long ago, whole: ``harness.sessions_gc/1``; ``asked`` decides by the plan."""

    def surface_commands(self) -> Sequence[tuple[str, Any]]:
        """The commands that installed surfaces add, each with its offer's name."""

    def close(self) -> None:
        """Flush, stop what was started, give owned sessions back."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
