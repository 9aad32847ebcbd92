"""A session's configuration, its log and its state in, the events that its plans may wait for out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import attrs

from harness_core.kernel.projections.event import payload_of
from harness_hookspecs.errors import NotFound, ValidationFailed
from harness_hookspecs.kit.canonical import read_canonical
from harness_hookspecs.workflow import StepOutput

from .replaying import recorded_config

if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_core.settings.stages import Stage
    from harness_hookspecs.store import Store

__all__ = ["Awaited", "awaited_in"]

_WITHOUT_PLANS: Final = frozenset({"agent", "orchestrate"})
"""Executors that wait for nothing from outside; of one that a plugin brings nobody knows before it asks."""


@attrs.frozen
class Awaited:
    """The events that a session may wait for.

    Attributes:
        contracts: By name what each step that waits for it promises; ``None`` for one that takes anything.
        knows_all: Whether there are no others: all plans are written.
    """

    contracts: Mapping[str, tuple[StepOutput | None, ...]]
    knows_all: bool


def awaited_in(state: SessionState, store: Store) -> Awaited:
    """What the plans of a session wait for: of what it was begun with, else of its configuration, and of its log."""
    events = [*store.read(f"session:{state.session_id}")]
    plans, knows_all = list[Any](), True
    spec = state.created.get("workflow_ref")
    if spec is not None:  # of the stages it has none
        plans = [read_canonical(store.blob(spec)).get("plan")]
        knows_all = plans != [None]
    else:
        with suppress(NotFound):  # it died before it recorded one
            stages = recorded_config(store, state.session_id, events).stages.stages.values()
            plans = [one.plan for one in stages]
            knows_all = not any(map(_may_have_others, stages))
    plans += [_plan(payload_of(one), store) for one in events if one.type == "workflow.version_registered"]
    contracts: dict[str, list[StepOutput | None]] = {}
    for name, contract in (found for plan in plans for found in _waits(plan)):
        if contract not in contracts.setdefault(name, []):
            contracts[name].append(contract)
    asked = {one.payload["name"]: (None,) for one in state.externals.values()}
    return Awaited({**asked, **{name: tuple(found) for name, found in contracts.items()}}, knows_all)


def _may_have_others(stage: Stage) -> bool:
    return stage.plan is None and stage.executor.rpartition(":")[2] not in _WITHOUT_PLANS


def _plan(payload: Mapping[str, Any], store: Store) -> Any:
    return read_canonical(store.blob(payload["plan_ref"]))


def _waits(plan: Any) -> Iterator[tuple[str, StepOutput | None]]:
    """Each step that waits for an event; of what is no plan, which is refused when it is run, none."""
    waiting: list[Any] = [plan]
    for one in waiting:  # grows
        steps = one.get("steps") if isinstance(one, Mapping) else None
        waiting += steps if isinstance(steps, Iterable) and not isinstance(steps, str | Mapping) else ()
        settings = one.get("with") if isinstance(one, Mapping) and one.get("uses") == "wait" else None
        if isinstance(settings, Mapping) and isinstance(settings.get("event"), str):
            yield settings["event"], _contract(one.get("output"))


def _contract(output: Any) -> StepOutput | None:
    if output is None:
        return None
    try:
        return StepOutput.from_wire(output)
    except ValidationFailed:
        return None
