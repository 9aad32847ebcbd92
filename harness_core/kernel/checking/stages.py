"""Stage visits in, wrong ways from stage to stage, lost attempts and artifacts nobody has passed out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from harness_core.kernel.facts import Event

from .history import Broken

__all__ = ["Stages"]

_COMPLETES = ("completed", "end")


@attrs.define
class _Visit:
    visit_id: str
    stage: str
    attempt: int = 1
    target: str | None = None  # of its last transition
    left: bool = False
    proposed: str | None = None  # the artifact of the attempt that is open
    accepted: bool = False
    passed: dict[str, Any] = attrs.Factory(dict)  # level -> payload of its validation.passed


class Stages:
    """Routing (I-24), attempts (I-6), the join of an attempt (I-21) and the verdicts before an artifact (I-24)."""

    def __init__(self) -> None:
        self._visit: _Visit | None = None
        self._visits_of: dict[str, int] = {}
        self._ids: set[str] = set()
        self._first: str | None = None  # of a fork: the stage that its parent was about to enter

    def see(self, event: Event) -> Iterator[Broken]:
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            yield from handler(self, event)

    def _of(self, event: Event) -> _Visit | None:
        """The open visit that the event is of."""
        visit = self._visit
        return visit if visit is not None and visit.visit_id == event.refs.get("stage_visit_id") else None

    # -- from stage to stage ---

    def _forked(self, event: Event) -> Iterator[Broken]:
        self._first, self._visits_of = event.payload.get("target"), dict(event.payload["visits"])
        if self._first is None and self._visits_of:
            yield Broken("I-24", event.seq, "a fork begins anew, and its parent had entered stages")

    def _entered(self, event: Event) -> Iterator[Broken]:
        payload, before = event.payload, self._visit
        stage, visit_id = payload["stage"], payload["visit_id"]
        if before is None and self._first not in (None, stage):
            yield Broken("I-24", event.seq, f"the fork goes on with stage {self._first}, not with stage {stage}")
        if before is not None and before.target != stage:
            yield Broken("I-24", event.seq, f"no rule led from stage {before.stage} to stage {stage}")
        if before is not None and not before.left:
            yield Broken("I-20", event.seq, f"stage {before.stage} was not left")
        if visit_id in self._ids or payload["visit_index"] != self._visits_of.get(stage, 0):
            yield Broken("I-20", event.seq, f"the visit of stage {stage} is numbered as another one")
        self._ids.add(visit_id)
        self._visits_of[stage] = self._visits_of.get(stage, 0) + 1
        self._visit = _Visit(visit_id, stage)

    def _taken(self, event: Event) -> Iterator[Broken]:
        visit = self._of(event)
        if visit is None or visit.stage != event.payload["source"]:
            yield Broken("I-24", event.seq, f"a rule of stage {event.payload['source']} was taken outside of it")
        elif visit.target is not None:
            yield Broken("I-24", event.seq, f"a second rule led out of stage {visit.stage}")
        elif event.payload["target"] != "retry":
            visit.target = event.payload["target"]

    def _left(self, event: Event) -> Iterator[Broken]:
        visit = self._of(event)
        if visit is None or visit.left or visit.target is None:
            yield Broken("I-20", event.seq, f"stage {event.payload['stage']} was left without a rule that leads out")
        if visit is not None:
            visit.left = True

    def _completed(self, event: Event) -> Iterator[Broken]:
        visit = self._visit
        if visit is not None and visit.target not in _COMPLETES:
            yield Broken("I-24", event.seq, f"no rule of stage {visit.stage} completes the session")

    def _retried(self, event: Event) -> Iterator[Broken]:
        visit, attempt = self._of(event), event.payload["attempt"]
        if visit is None:
            yield Broken("I-6", event.seq, "an attempt is scheduled outside of its visit")
            return
        if attempt != visit.attempt + 1:
            yield Broken("I-6", event.seq, f"attempt {attempt} follows attempt {visit.attempt}")
        visit.attempt, visit.proposed, visit.accepted = attempt, None, False
        visit.passed = {level: passed for level, passed in visit.passed.items() if level == "routing"}

    # -- the artifact ---

    def _proposed(self, event: Event) -> Iterator[Broken]:
        visit = self._of(event)
        if visit is None or visit.proposed is not None or event.payload["attempt"] != visit.attempt:
            yield Broken("I-21", event.seq, "an artifact is proposed twice in one attempt, or in none")
        if visit is not None:
            visit.proposed = event.payload["artifact_id"]

    def _passed(self, event: Event) -> Iterator[Broken]:
        payload, level, visit = event.payload, event.payload["level"], self._of(event)
        if any(finding.get("severity") == "error" for finding in payload.get("findings", ())):
            yield Broken("I-24", event.seq, f"level {level} passes what it finds an error in")
        if level == "payload" and not (payload.get("body_ref") and payload.get("status")):
            yield Broken("I-24", event.seq, "the pass of the payload does not say what passed")
        if visit is not None:
            visit.passed[level] = payload

    def _accepted(self, event: Event) -> Iterator[Broken]:
        visit, payload = self._of(event), event.payload
        if visit is None or visit.proposed != payload["artifact_id"] or visit.accepted:
            yield Broken("I-24", event.seq, "an artifact is accepted that nobody has proposed, or a second time")
        if visit is None:
            return
        missing = [level for level in ("routing", "payload", "semantic", "approval") if level not in visit.passed]
        if missing:
            yield Broken("I-24", event.seq, f"an artifact is accepted that did not pass {', '.join(missing)}")
        judged = visit.passed.get("payload", {})
        if judged and (payload["body_ref"], payload["status"]) != (judged.get("body_ref"), judged.get("status")):
            yield Broken("I-24", event.seq, "the accepted artifact is not the one that passed")
        visit.accepted = True

    def _rejected(self, event: Event) -> Iterator[Broken]:
        visit = self._of(event)
        if visit is None or visit.proposed != event.payload["artifact_id"] or visit.accepted:
            yield Broken("I-24", event.seq, "an artifact is rejected that nobody has proposed, or that was accepted")


_HANDLERS: dict[str, Callable[[Stages, Event], Iterator[Broken]]] = {
    "session.forked": Stages._forked,
    "stage.entered": Stages._entered,
    "transition.taken": Stages._taken,
    "stage.left": Stages._left,
    "session.completed": Stages._completed,
    "retry.scheduled": Stages._retried,
    "artifact.proposed": Stages._proposed,
    "validation.passed": Stages._passed,
    "artifact.accepted": Stages._accepted,
    "artifact.rejected": Stages._rejected,
}
