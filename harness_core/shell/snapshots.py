"""A session's log in, its state out, from the nearest snapshot on where there is one; a snapshot is a cache.

Only what this very code made of this very log is used: a snapshot bears the digest of the modules that fold, and a seal
over itself and the hash of the event it stands at, which stands for every event before. So one that was damaged, or
stands past the end of the log, is as good as none. Deleting all of them changes nothing but time.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from inspect import getsource
from types import ModuleType
from typing import TYPE_CHECKING, Final

from harness_core import __version__
from harness_core.kernel import (
    causes,
    children,
    compiling,
    evolve,
    externals,
    facts,
    forking,
    inbox,
    snapshot,
    spending,
    state,
    timers,
    upcast,
)
from harness_core.kernel.projections import event
from harness_hookspecs import events
from harness_hookspecs.errors import HarnessError, StoreError
from harness_hookspecs.kit import codec

if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.store import Store, StoredEvent

    from .machine import SessionMachine

__all__ = ["EVENTS_APART", "fold_on", "from_nearest", "newer_events"]

EVENTS_APART: Final = 2_000
"""A log that grew by so many events gets a snapshot when it is folded: fewer than that take less than opening a file
and importing what runs a session (30 ms)."""

_FOLDING: Final[tuple[ModuleType, ...]] = (
    codec, events, facts, state, causes, event, upcast, forking, spending, children, timers, externals, inbox,
    compiling, evolve, snapshot,
)  # fmt: skip
"""What a state and its snapshot follow from, besides the log."""

_SEAL_BYTES: Final = 32


def _source(module: ModuleType) -> str:
    with suppress(OSError):
        return getsource(module)
    return ""


def _made_by() -> str:
    texts = [__version__, *(_source(module) for module in _FOLDING)]
    return sha256(b"".join(sha256(text.encode()).digest() for text in texts)).hexdigest()


_MAKER: Final = _made_by()
"""The digest of the code that folds (without its source, of its version): snapshots of others are not ours.

It is taken when that code is loaded: later another version may lie where it came from, and this process runs the old.
"""


def from_nearest(store: Store, machine: SessionMachine, until: int | None = None) -> SessionState:
    """The state at the nearest snapshot at or before ``until``, an empty one where there is none; only reads."""
    stream = f"session:{machine.session_id}"
    empty = machine.new_state()  # also when another is given: what the machine remembers is of what it folded before
    with suppress(HarnessError):  # what cannot be read is as good as none
        found = store.snapshot(stream, _MAKER, until=until)
        if found is not None:
            stands_at = next(iter(store.read(stream, after=found.seq - 1, until=found.seq)), None)
            seal, written = found.content[:_SEAL_BYTES], found.content[_SEAL_BYTES:]
            if stands_at is not None and seal == _seal(stands_at, written):
                return snapshot.state_of(written)
    return empty


def fold_on(
    store: Store, machine: SessionMachine, *, until: int | None = None, events_apart: int = EVENTS_APART
) -> SessionState:
    """The state after the event ``until``, or after the last one; snapshots that are due are kept on the way.

    They are written by whoever has to fold a long log anyway, never by an append. One that is larger than what was
    folded for it waits for the next: together they take no more room than the log.
    """
    folded = from_nearest(store, machine, until)
    count = size_bytes = 0
    rest = store.read(f"session:{machine.session_id}", after=folded.seq, until=until)
    for stored in event.folding(machine.evolve, folded, rest):
        count += 1
        size_bytes += len(stored.payload) + len(stored.refs)
        if count >= events_apart:
            kept = _keep(store, folded, stored, size_bytes)
            count, size_bytes = 0, 0 if kept else size_bytes
    return folded


def _keep(store: Store, folded: SessionState, last: StoredEvent, at_most_bytes: int) -> bool:
    with suppress(HarnessError):  # what cannot be written is folded again
        written = snapshot.snapshot_of(folded)
        content = _seal(last, written) + written
        if len(content) <= at_most_bytes:
            store.put_snapshot(last.stream, last.seq, _MAKER, content)
            return True
    return False


def _seal(stands_at: StoredEvent, written: bytes) -> bytes:
    return sha256(stands_at.hash + written).digest()


def newer_events(folded: state.SessionState, hint: str) -> StoreError:
    """Make the error for a session whose log has events that nobody here knows."""
    types = ", ".join(folded.unknown_types)
    message = f"session {folded.session_id[-8:]} has events this version does not know: {types}"
    return StoreError(message, code="store.newer_events", hint=hint)
