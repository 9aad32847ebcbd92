"""The executor ``listed``: a stage whose task lists role calls goes in, each of them comes out, then how they ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness_hookspecs.executor import Finish, Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit.frozen import thaw

__all__ = ["ListedExecutor"]


class ListedExecutor:
    """``S`` is ``{calls, outcomes}``, plain JSON; a call's id is its number."""

    def start(self, stage_input: StageInput) -> Any:
        """No call has ended."""
        listed, _ = json.JSONDecoder().raw_decode(stage_input.prompt)  # a person's own words follow
        return {"calls": listed["calls"], "outcomes": []}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """One more has."""
        ended = {"ok": True, "value": outcome.value} if outcome.ok else {"ok": False, "error": outcome.error}
        return {**state, "outcomes": [*state["outcomes"], thaw(ended)]}

    def next(self, state: Any) -> tuple[Request, ...]:
        """The next call, at last what came of all."""
        calls, outcomes = state["calls"], state["outcomes"]
        if len(outcomes) == len(calls):
            return (Finish(output={"text": json.dumps(outcomes, sort_keys=True)}),)
        call = calls[len(outcomes)]
        task = _filled(call["task"], outcomes)
        where = {**task.get("stepContext", {}), **call}
        return (
            RoleCall(
                request_id=f"call{len(outcomes)}",
                role=call["role"],
                task=task,
                step_path=where.get("stepPath"),
                visit_index=where.get("visitIndex", 0),
            ),
        )


def _filled(value: Any, outcomes: list[Any]) -> Any:
    """The value with the outcomes that it names in their places."""
    if isinstance(value, list):
        return [_filled(item, outcomes) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "$outcome" not in value:
        return {name: _filled(item, outcomes) for name, item in value.items()}
    found = outcomes[value["$outcome"]]
    for name in value.get("path", ()):
        found = found[name]
    return found
