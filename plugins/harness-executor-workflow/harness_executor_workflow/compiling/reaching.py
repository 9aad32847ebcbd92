"""Phase 5, first half: a plan goes in; the steps that no run can come to come out."""

from __future__ import annotations

from collections.abc import Iterator

from harness_hookspecs.workflow import PlanFinding

from .diagrams import NEVER
from .findings import finding
from .plans import Located
from .scene import World

__all__ = ["check_reach"]


def check_reach(world: World) -> Iterator[PlanFinding]:
    """Look at every body whose choices can be followed."""
    for parent, body in world.plan.bodies.items():
        flow = world.flow(parent)
        for one in body if flow is not None else ():
            if one.id != world.plan.last_step and flow is not None and flow.starts(one.id) == NEVER:
                yield finding("step.unreachable", one.place, one.id, *_why(world, one))


def _why(world: World, one: Located) -> tuple[str, str]:
    flow = world.flow(one.parent)
    dead = [need for need in one.needs if flow is not None and flow.completes(need) == NEVER]
    if one.needs and len(dead) == len(one.needs):
        return f"{one.id} needs {', '.join(dead)}, which no run completes.", "need a step that runs"
    return f"No run comes to {one.id}: what it needs and what leads to it exclude each other.", "take a need away"
