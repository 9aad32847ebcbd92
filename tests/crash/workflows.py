"""An empty folder in, a place with a session of one shape out: the shapes that are killed at every boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.acceptance.listing import decided, listed, ran, repaired, step
from tests.crash.plans import fan_out, fixed
from tests.reference import Site, calls, says, write_reference, write_site

__all__ = ["ALIKE", "WORKFLOWS"]

_TOOLS: Mapping[str, Any] = {"tools": {"effects": {"probes": False}}}
_UNAVAILABLE = {"error": {"code": "provider.unavailable"}}


def _line(root: Path) -> Site:
    """Two stages, one after the other."""
    return write_reference(root, probes=False)


def _fan(root: Path) -> Site:
    """Calls of every class side by side, two that ask beside one that does not, and an artifact that somebody has to
    approve."""
    stages = {
        "initial": "work",
        "stages": {
            "work": {
                "role": "worker", "task": "Do the work.", "allowed_tools": ["effects"],
                "approvals": {"artifact": "required"}, "on_success": "completed", "on_failure": "failed",
            }
        },
    }  # fmt: skip
    slow = ("slow", {"note": "d", "seconds": 0.01, "deaf": True})
    keyed, unkeyed = [("keyed", {"note": note}) for note in "bc"], ("unkeyed", {"note": "e"})
    replies = [
        calls(("pure", {"note": "a"}), *keyed, slow, unkeyed),
        calls(("network", {"note": "f"}), ("network", {"note": "g"}), ("keyed", {"note": "h"})),
        says("The report."),
    ]
    return write_site(root, stages=stages, replies=_numbered("work", replies), tools=_TOOLS)


def _loop(root: Path) -> Site:
    """A stage that is come back to and tried again after an error, and prose where JSON is asked for."""
    stages = {
        "initial": "make",
        "stages": {
            "make": {
                "role": "worker", "task": "Make it.", "allowed_tools": ["effects"], "on_success": "check",
                "on_failure": "failed", "retry": {"strategy": "corrective", "max_attempts": 3},
            },
            "check": {
                "role": "checker", "task": "Check it.", "allowed_tools": ["effects"], "on_failure": "failed",
                "transitions": [{"when": "visit.index < 1", "goto": "make"}, {"when": "true", "goto": "completed"}],
            },
        },
    }  # fmt: skip
    prose = {"text": "Prose.", "usage": says("")["usage"]}
    replies = [
        {"when": {"stage": "make", "attempt": 1}, **_UNAVAILABLE},
        *_numbered("make", [
            calls(("keyed", {"note": "a"})), calls(("unkeyed", {"note": "b"})), prose, says("Made."),
        ], attempt=2),
        *_numbered("check", [calls(("network", {"note": "c"})), says("Checked.")]),
    ]
    return write_site(root, stages=stages, replies=replies, tools=_TOOLS)


_BROKEN = """async def main(input, tools):
    await tools.effects_unkeyed(note="d")
    await tools.effects_keyed(note="e")
    return input["gone"]
"""
_SENDING = """async def main(input, tools):
    await tools.effects_network(note="c")
    return "sent"
"""
_MENDED = _BROKEN.replace('return input["gone"]', 'await tools.effects_keyed(note="f")\n    return [input["name"]]')


def _steps(root: Path) -> Site:
    """Steps of a plan: a call, a decision, a question with a call, code that breaks, its repair, a call that asks."""
    code = ran(
        "pick", _BROKEN, {"name": "a"}, tools=["effects.unkeyed", "effects.keyed"],
        output={"mode": "array", "schema": {"type": "array"}},
        onFailure={"fixer": {"model": "scripted", "maxAttempts": 2}},
    )  # fmt: skip
    settings = {"model": "scripted", "prompt": "Say it.", "tools": ["effects.keyed"]}
    calls_of_steps = [
        step("fetch", "tool.call", {"tool": "effects.keyed"}, {"note": "a"}),
        decided("route", ("input.ok", "tell"), default="end", values={"input": {"$outcome": 0}}),
        step("tell", "ai.generate", settings, output={"mode": "text"}),
        code,
        *(repaired(code, {"$outcome": 3, "path": ["error"]}, prior=prior) for prior in (0, 1)),
        ran("send", _SENDING, tools=["effects.network"]),  # what a call gave that was in doubt is no part of the end
    ]
    said = {"text": "Said.", "usage": says("")["usage"]}
    replies = [
        {"when": {"contains": "Say it.", "turn": 1}, **calls(("keyed", {"note": "b"}))},
        {"when": {"contains": "Say it."}, **said},
        {"when": {"contains": "This is repair 1 of"}, **said, "text": _BROKEN},
        {"when": {"contains": "This is repair 2 of"}, **said, "text": _MENDED},
    ]
    return write_site(root, stages=listed(*calls_of_steps), replies=replies, tools=_TOOLS)


def _timers(root: Path) -> Site:
    """Timers beside role calls and after them, and one for which no process stays."""
    plan = "call 5 call | 20 | 1 1 call | 150"
    stages = {
        "initial": "work",
        "stages": {
            "work": {
                "role": "worker", "executor": "branches", "task": plan, "allowed_tools": ["effects"],
                "approvals": {"artifact": "required"}, "on_success": "completed", "on_failure": "failed",
            }
        },
    }  # fmt: skip
    replies = [calls(("keyed", {"note": "a"}), ("network", {"note": "b"})), says("done")]
    return write_site(root, stages=stages, replies=replies, harness={"run": {"park_after_sec": 0.05}}, tools=_TOOLS)


def _numbered(stage: str, replies: list[dict[str, Any]], **when: int) -> list[dict[str, Any]]:
    """The replies of one turn each."""
    return [{**reply, "when": {"stage": stage, "turn": turn, **when}} for turn, reply in enumerate(replies, 1)]


WORKFLOWS: Mapping[str, Callable[[Path], Site]] = {
    "line": _line, "fan": _fan, "loop": _loop, "steps": _steps, "timers": _timers, "plan 2": fixed, "plan 4": fan_out,
}  # fmt: skip

ALIKE: Mapping[str, int] = {"timers": 2}
"""How many calls side by side ask a model the same; elsewhere each says what it is about."""
