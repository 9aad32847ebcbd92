"""The child sessions of one session that this process owns: an open request in, what the child came to out.

A child runs in its own stream, in this process, for as long as it gets on; one that waits for a person, a timer that is
far away or more of the budget is given back, and begun again with whoever goes on with the parent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from harness_core.kernel.children import ABANDONED, seconds_left
from harness_core.kernel.commands import ChildEnded, ChildShort, Command
from harness_core.kernel.definition import Limits
from harness_core.kernel.projections.event import decoded, payload_of
from harness_core.kernel.state import OpenRequest, SessionState, Usage
from harness_hookspecs.errors import HarnessError, Locked
from harness_hookspecs.kit.canonical import canonical, read_canonical
from harness_hookspecs.store import Store, StoredEvent

from .perform_ask import OnAsk
from .replaying import fold_session
from .services import ActiveTime, elapsed

if TYPE_CHECKING:
    from .session import OwnedSession

__all__ = ["ChildOrder", "Children", "Nursery", "Started", "child_spent"]

_SUMMARY_CHARACTERS = 200
_GIVEN_UP = "the role call that asked for it has ended"
_NOTHING = (None, None)


@attrs.frozen
class ChildOrder:
    """What a child session is begun or gone on with."""

    session_id: str
    parent_id: str
    depth: int
    spec_ref: str
    spec: Mapping[str, Any]  # goal, workflow, input, stage, and the plan where one is run
    budget: Mapping[str, float]
    seconds_left: float  # of its parent, when it is begun or gone on with
    on_ask: OnAsk
    yolo: str
    seed: int
    by: str
    terminal: bool
    accept_drift: bool


@attrs.frozen
class Nursery:
    """What a host does for the children of its sessions.

    Attributes:
        open: Begins a session or goes on with it; ``None`` for one that has ended.
        give_back: Gives one back that rests.
        cancel: Ends one that nobody runs, and what it has begun.
    """

    open: Callable[[ChildOrder], OwnedSession | None]
    give_back: Callable[[OwnedSession], None]
    cancel: Callable[[str], None]


@attrs.frozen
class Started:
    """How the parent is run here, and so its children.

    Attributes:
        state: Gives its state as it is.
        on_ask: What an approval does in this run that nobody decides.
        terminal: Whether a person may be asked here.
        accept_drift: Whether a changed configuration is accepted.
    """

    state: Callable[[], SessionState]
    on_ask: OnAsk
    terminal: bool
    accept_drift: bool


@attrs.define(eq=False)
class Children:
    """The children of one session that run here.

    Args:
        store: Where their logs are.
        nursery: Begins them.
        parent: The session.
        spawn: Begins work that the parent's loop does not wait for.
    """

    store: Store
    nursery: Nursery
    parent: Started
    spawn: Callable[..., Any]
    _running: dict[str, OwnedSession] = attrs.field(factory=dict, init=False)
    _heard: tuple[str | None, str | None] = attrs.field(default=(None, None), init=False)

    def run(self, request: OpenRequest, limits: Limits, active: ActiveTime) -> Command | None:
        """Begin a child or go on with it until it rests; ``None`` for one that waits for something.

        Args:
            request: What was asked for.
            limits: Of the parent.
            active: How long the parent has been run; what is told of the child says it too.

        Raises:
            HarnessError: What stopped its loop, as if it were the parent's own.
        """
        child_id = request.payload["child_id"]
        try:
            session = self.nursery.open(self._order(request, limits))
        except Locked:  # somebody ends it at this moment
            return None
        except HarnessError as error:
            if error.code != "session.not_run":  # else it was cut off while it was begun, as its parent is
                raise
            return None
        if session is not None and not self._rested(session):
            return None
        child = fold_session(self.store, child_id)
        if not child.final and request.effect_id not in self.parent.state().children:  # given up while it was run
            self.nursery.cancel(child_id)
            return None
        return self._told(request, child, active)

    def _order(self, request: OpenRequest, limits: Limits) -> ChildOrder:
        state, asked = self.parent.state(), request.payload
        return ChildOrder(
            session_id=asked["child_id"],
            parent_id=state.session_id,
            depth=asked["depth"],
            spec_ref=asked["spec_ref"],
            spec=read_canonical(self.store.blob(asked["spec_ref"])),
            budget=dict(request.grant),
            seconds_left=seconds_left(state, limits),
            on_ask=self.parent.on_ask,
            yolo=state.created.get("yolo", "off"),
            seed=state.created["seed"],
            by=state.created.get("by", "operator"),
            terminal=self.parent.terminal,
            accept_drift=self.parent.accept_drift,
        )

    def _rested(self, session: OwnedSession) -> bool:
        """Wait for it, and give it back; ``False`` when that was cut off, as by the end of this process."""
        self._running[session.session_id] = session
        try:
            self._pass_on(session)  # what the parent was told before the child was there
            if session.session_id in self.parent.state().given_up:  # while it was opened: who ends them found nobody
                session.ask_to_end(_GIVEN_UP)
            session.wait()
        except HarnessError as error:
            if error.code != "session.not_run":
                raise
            return False
        finally:
            self._running.pop(session.session_id, None)
            self.nursery.give_back(session)
        return True

    def is_news(self, state: SessionState) -> bool:
        """Whether the parent is to stop, and its children are to be told; asked after each turn."""
        before, self._heard = self._heard, (state.cancelling, state.pausing)
        return before != self._heard != _NOTHING and bool(state.children)

    def pass_on(self) -> None:
        """Tell every child that its parent is to stop: one that is cancelled ends them, one that pauses pauses them."""
        for session in list(self._running.values()):
            self._pass_on(session)
        state = self.parent.state()
        if state.cancelling is None:
            return
        for child in list(state.children.values()):  # those that wait for somebody, and are run by nobody
            if child.grant and child.payload["child_id"] not in self._running:
                with suppress(HarnessError):  # there may be no such session yet, or no more
                    self.nursery.cancel(child.payload["child_id"])

    def committed(self, stored: Iterable[StoredEvent]) -> None:
        """End those, in the background, of which these events say that nobody waits for them any more."""
        given_up = [payload_of(one)["child_id"] for one in stored if _is_abandoned(one)]
        if given_up:
            self.spawn(self.end_given_up, given_up, name="abandoned")

    def end_given_up(self, child_ids: Iterable[str]) -> None:
        """End those that nobody waits for any more; who goes on with the parent does so for one that died before."""
        for child_id in list(child_ids):
            session = self._running.get(child_id)
            with suppress(HarnessError):  # it has stopped by itself, or was never begun
                if session is None:
                    self.nursery.cancel(child_id)
                else:
                    session.ask_to_end(_GIVEN_UP)

    def _pass_on(self, session: OwnedSession) -> None:
        state = self.parent.state()
        with suppress(HarnessError):  # it has stopped by itself
            if state.cancelling is not None or state.final:
                session.ask_to_end(state.cancelling or "the parent has ended")
            elif state.pausing is not None:
                session.ask_to_stop(state.pausing)

    # -- what the parent is told ---

    def _told(self, request: OpenRequest, child: SessionState, active: ActiveTime) -> Command | None:
        if not child.final:
            lacks = child.exhausted
            return None if lacks is None else ChildShort(request.effect_id, {**lacks, **elapsed(active)})
        payload: dict[str, Any] = {
            **elapsed(active),
            "effect_id": request.effect_id,
            "child_id": child.session_id,
            "usage": _usage(child.usage),
            "spent": child_spent(child),
        }
        version = self._version(request, child)
        if version is not None:
            payload["version"] = version
        if child.status == "completed":
            return self._completed(request, child, payload)
        return ChildEnded(request.effect_id, False, {**payload, "status": child.status, "error": _error(child)})

    def _completed(self, request: OpenRequest, child: SessionState, payload: dict[str, Any]) -> Command:
        ref = None if child.visit is None else child.visit.output_ref
        content = self.store.blob(ref) if ref is not None else canonical(None)
        payload["output_ref"] = hashlib.sha256(content).hexdigest()
        payload["summary"] = _summary(content)
        return ChildEnded(request.effect_id, True, payload, {payload["output_ref"]: content})

    def _version(self, request: OpenRequest, child: SessionState) -> dict[str, Any] | None:
        """What the child registered last, with the definition that it was registered for."""
        spec = read_canonical(self.store.blob(request.payload["spec_ref"]))
        definition_ref = hashlib.sha256(canonical(spec["workflow"])).hexdigest()
        found: dict[str, Any] | None = None
        for event in self.store.read(f"session:{child.session_id}"):
            if event.type == "workflow.version_registered":
                said = decoded(event).payload
                found = {name: said[name] for name in ("workflow_version_id", "plan_ref")}
        return None if found is None else {**found, "definition_ref": definition_ref}


def _is_abandoned(event: StoredEvent) -> bool:
    """Whether it says of a child that nobody waits for it any more."""
    return event.type == "child.failed" and payload_of(event)["error"].get("code") == ABANDONED


def child_spent(child: SessionState) -> dict[str, int]:
    """What a session has used of what it was granted, with what its own children have."""
    return {
        "tokens": int(child.spent_tokens + child.child_spent.get("tokens", 0)),
        "calls": int(child.usage.calls + child.child_spent.get("calls", 0)),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    """A session's own use, in wire form."""
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "known": usage.known,
    }


def _error(child: SessionState) -> dict[str, Any]:
    failure, name = child.failure, child.session_id[-8:]
    if failure is None:
        return {"name": "Cancelled", "code": "child.cancelled", "message": f"session {name} was cancelled"}
    details: dict[str, Any] = {"findings": failure.findings} if failure.findings else {}
    if failure.hint is not None:
        details["hint"] = failure.hint
    error = {"name": "RoleError", "code": failure.code, "message": failure.message}
    return {**error, "details": details} if details else error


def _summary(content: bytes) -> str:
    """How the output begins, for whoever looks over the parent's log."""
    text = content.decode(errors="replace")
    return text if len(text) <= _SUMMARY_CHARACTERS else f"{text[:_SUMMARY_CHARACTERS]}..."
