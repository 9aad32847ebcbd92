"""A plugin whose calls leave a line each in a file outside; it is copied where it is installed, without neighbours.

A line is ``{"key", "tool", "pid", "at"}``, ``at`` in seconds of the clock that all processes of a machine share. A call
writes its line each time it is made, so that a call made twice shows.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_hookspecs import hooks
from harness_hookspecs.executor import Finish, Outcome, RoleCall, StageInput
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer
from harness_hookspecs.tool import EffectClass, Settled, ToolContext, ToolResult, ToolSpec

__all__ = ["BRANCHES", "PROVIDES", "harness_provide_executors", "harness_provide_tools"]

BRANCHES = 8
CALL_SECONDS = 0.002
"""How long a call takes, as in the published runs of other runtimes that are killed in mid-workflow."""

PROVIDES: Sequence[Mapping[str, Any]] = (
    {"kind": "tool", "name": "bench"},
    {"kind": "executor", "name": "bench-fan"},
)


class LineTools:
    """One keyed and one unkeyed tool; both can say what became of a call."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def specs(self) -> Sequence[ToolSpec]:
        """The tools."""
        return (_spec("bench_keyed", "keyed"), _spec("bench_unkeyed", "unkeyed"))

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Take a while and write the line."""
        time.sleep(CALL_SECONDS)
        line = json.dumps({"key": ctx.key, "tool": name, "pid": os.getpid(), "at": time.monotonic()})
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.write(handle, f"{line}\n".encode())
        os.close(handle)
        return ToolResult({"note": args["note"]})

    def probe(self, name: str, args: Mapping[str, Any], key: str) -> Settled:
        """Look for the call's line."""
        happened = self._file.exists() and f'"{key}"' in self._file.read_text(encoding="utf-8")
        return Settled("happened", {"note": args["note"]}) if happened else Settled("never_happened")


def _spec(name: str, effect: EffectClass) -> ToolSpec:
    note = {"note": {"type": "integer"}}
    schema = {"type": "object", "additionalProperties": False, "properties": note, "required": ["note"]}
    return ToolSpec(name=name, description="Writes a line.", input_schema=schema, tier="T2", effect=effect)


class FanExecutor:
    """Asks for a number of equal role calls at once and ends when all have ended."""

    def start(self, stage_input: StageInput) -> Any:
        """Nothing has ended."""
        given = {"model": stage_input.model, "prompt": stage_input.prompt, "tools": list(stage_input.tools)}
        return {"with": {**given, "maxTurns": stage_input.max_turns}, "ended": []}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """One more has ended."""
        assert outcome.ok, outcome.error
        return {**state, "ended": [*state["ended"], outcome.request_id]}

    def next(self, state: Any) -> tuple[Any, ...]:
        """Those that have not ended."""
        waiting = [name for name in (f"branch{number}" for number in range(BRANCHES)) if name not in state["ended"]]
        if not waiting:
            return (Finish(output={"text": "done"}),)
        return tuple(self._role_call(state, name) for name in waiting)

    def _role_call(self, state: Any, name: str) -> RoleCall:
        output = {"mode": "object", "schema": {"type": "object"}}
        step = {"id": name, "uses": "ai.generate", "with": state["with"], "output": output}
        context = {"stepPath": name, "visitIndex": 0}
        task = {"kind": "execute_step", "step": step, "stepInput": {"context": name}, "stepContext": context}
        return RoleCall(request_id=name, role="worker.ai-generate", task=task, step_path=name)


@implements(hooks.harness_provide_tools)
def harness_provide_tools() -> list[Offer[Any]]:
    """The set ``bench``; its file is named by the environment."""
    file = Path(os.environ.get("BENCH_EFFECTS_FILE", "effects.jsonl"))
    return [Offer(kind="tool", name="bench", build=lambda settings, host: LineTools(file))]


@implements(hooks.harness_provide_executors)
def harness_provide_executors() -> list[Offer[Any]]:
    """The executor ``bench-fan``."""
    return [Offer(kind="executor", name="bench-fan", build=lambda settings, host: FanExecutor())]
