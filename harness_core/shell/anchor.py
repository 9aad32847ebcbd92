"""Heads of sessions that ended in, a place outside the store that keeps them out: a file, or a ref of a git repository.

A store that is put back to an older copy of itself is whole: its chains, its heads and the heads copied out beside it
agree. Only what lies elsewhere still knows that there was more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from harness_core.kernel.projections.naming import LAST, resolve_session
from harness_hookspecs.errors import HarnessError, NotFound, StoreError
from harness_hookspecs.store import Head

from .git import Repository
from .removed import MAIN

if TYPE_CHECKING:
    from harness_hookspecs.host import Ports

__all__ = ["Anchor", "Anchored", "anchor_of", "anchored"]

UNREACHABLE: Final = "store.anchor_unreachable"
TIMEOUT_SECONDS: Final = 10.0
"""How long a place may take to answer: a share of a network that is gone never does."""

_REF: Final = "refs/harness/heads"
_TRIES: Final = 5
_LIMIT_BYTES: Final = 268_435_456


class _Place(Protocol):
    """Where lines are kept, the oldest first."""

    @property
    def name(self) -> str: ...

    def add(self, line: str) -> None: ...

    def lines(self) -> Iterable[str]: ...


@attrs.frozen
class Anchor:
    """What keeps the heads.

    Attributes:
        place: Where.
        ports: For the time that it may take.
    """

    place: _Place
    ports: Ports

    @property
    def name(self) -> str:
        """Where it is, as people read it."""
        return self.place.name

    def put(self, session_id: str, head: Head) -> None:
        """Keep the head of a session that has ended.

        Raises:
            StoreError: ``store.anchor_unreachable``.
        """
        line = json.dumps({"session": session_id, "seq": head.seq, "hash": head.hash.hex()})
        self._in_time(lambda: self.place.add(line))

    def heads(self) -> Mapping[str, tuple[Head, ...]]:
        """The heads that are kept of each session, the oldest first.

        Raises:
            StoreError: ``store.anchor_unreachable``; also where nothing was ever kept.
        """
        kept: dict[str, tuple[Head, ...]] = {}
        for line in self._in_time(self.place.lines):
            with suppress(ValueError, KeyError, TypeError):  # what a full disk or a crash left of a line
                said = json.loads(line)
                head = Head(int(said["seq"]), bytes.fromhex(said["hash"]))
                kept[str(said["session"])] = (*kept.get(str(said["session"]), ()), head)
        return kept

    def _in_time(self, work: Callable[[], Any]) -> Any:
        """What the work gives; it goes on alone where it does not end in time."""
        given: list[Any] = []
        try:
            ended = self.ports.spawn(lambda: given.append(work()), name="anchor").join(TIMEOUT_SECONDS)
        except HarnessError as error:
            raise self._unreachable(error.message) from error
        if not ended:
            raise self._unreachable(f"no answer within {TIMEOUT_SECONDS:g} seconds")
        return given[0]

    def _unreachable(self, why: str) -> StoreError:
        hint = "see that it is there and can be written, or change anchor in harness.yaml"
        return StoreError(f"the anchor {self.name} is not reached: {why}", code=UNREACHABLE, where=self.name, hint=hint)


def anchor_of(said: str | None, project: Path, ports: Ports) -> Anchor | None:
    """The anchor that the setting names; ``None`` without one.

    Args:
        said: ``file:PATH``, ``git:FOLDER`` or ``git:FOLDER#REF``.
        project: Where relative paths start.
        ports: The doors.
    """
    if said is None:
        return None
    kind, _, rest = said.partition(":")
    path, _, ref = rest.partition("#") if kind == "git" else (rest, "", "")
    place = project / Path(path).expanduser()
    return Anchor(_GitRef(place, ref or _REF, ports) if kind == "git" else _File(place, ports), ports)


@attrs.frozen
class Anchored:
    """What an anchor keeps, read once; nothing where there is none.

    Attributes:
        place: Where; ``None`` without an anchor.
        heads: Of each session, the oldest first.
        problem: Why it could not be read.
    """

    place: str | None = None
    heads: Mapping[str, tuple[Head, ...]] = {}
    problem: StoreError | None = None

    def find(self, reference: object) -> str | None:
        """The session that is named so, if its head is kept."""
        if not isinstance(reference, str) or reference == LAST:  # of which project one was, a head does not say
            return None
        with suppress(NotFound):
            return resolve_session(reference, sorted(self.heads.keys() - {MAIN}, reverse=True))
        return None


def anchored(anchor: Anchor | None) -> Anchored:
    """Read what it keeps."""
    if anchor is None:
        return Anchored()
    try:
        return Anchored(anchor.name, anchor.heads())
    except StoreError as error:
        return Anchored(anchor.name, problem=error)


@attrs.frozen
class _File:
    """A file with a line a head, in a folder that must be there: one that is made would be that of a missing disk."""

    path: Path
    ports: Ports

    @property
    def name(self) -> str:
        return str(self.path)

    def add(self, line: str) -> None:
        # A line that was torn off before is ended first; nobody minds an empty one.
        self.ports.files(self.path.parent).append_bytes(self.path.name, f"\n{line}\n".encode())

    def lines(self) -> Iterable[str]:
        content = self.ports.files(self.path.parent).read_bytes(self.path.name, limit_bytes=_LIMIT_BYTES)
        return content.decode(errors="replace").splitlines()


@attrs.frozen
class _GitRef:
    """A ref of a repository whose commits have a head each as their subject and no file at all."""

    folder: Path
    ref: str
    ports: Ports

    @property
    def name(self) -> str:
        return f"{self.folder}#{self.ref}"

    def add(self, line: str) -> None:
        git = self._repository()
        for left in reversed(range(_TRIES)):
            before = git.tip(self.ref)
            commit = git.commit(line, onto=before)
            try:
                git.line("update-ref", self.ref, commit, before or "")
            except HarnessError:
                if not left:  # else another one was quicker
                    raise
            else:
                return

    def lines(self) -> Iterable[str]:
        return self._repository().names("log", "-z", "--reverse", "--format=%s", self.ref, "--")

    def _repository(self) -> Repository:
        """Nobody waits longer than for the place as a whole, so nobody needs to cancel."""
        return Repository(
            self.ports.processes, self.folder, None, "it", timeout_seconds=TIMEOUT_SECONDS, limit_bytes=_LIMIT_BYTES
        )
