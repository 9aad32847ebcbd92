"""The executor ``branches``: what a stage's text says and outcomes go in; role calls, timers and waits come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.executor import ExternalEvent, Fail, Finish, Outcome, Request, RoleCall, StageInput, Timer

__all__ = ["Branches"]


class Branches:
    """Branches of steps: ``call``, a time in ms, or ``?name`` for an event.

    ``S`` is ``{given, branches, had}``, plain JSON: ``had`` is what each step of each has had.
    """

    def start(self, stage_input: StageInput) -> Any:
        """Nothing has been asked yet."""
        given = stage_input.to_wire()
        branches = [branch.split() for branch in stage_input.prompt.partition("\n")[0].split("|")]
        return {"given": given, "branches": branches, "had": [[] for _ in branches]}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """One step more of a branch has ended."""
        index = int(outcome.request_id.split(".")[-2])
        said = ("waited" if outcome.value is None else "said") if outcome.ok else outcome.error["code"]
        had = [[*branch, said] if number == index else branch for number, branch in enumerate(state["had"])]
        return {**state, "had": had}

    def next(self, state: Any) -> tuple[Request, ...]:
        """The next step of each branch that is not at its end; the end after all, or where a call has failed."""
        failed = [said for branch in state["had"] for said in branch if said not in ("waited", "said")]
        if failed:
            return (Fail(code=failed[0], message="A step has failed."),)
        steps = zip(state["branches"], state["had"], strict=True)
        open_ones = {
            index: (len(had), branch[len(had)]) for index, (branch, had) in enumerate(steps) if len(had) < len(branch)
        }
        if not open_ones or "!" in [step for _, step in open_ones.values()]:
            return (Finish(output={"text": " | ".join(" ".join(branch) for branch in state["had"])}),)
        return tuple(_request(state["given"], f"{index}.{count}", step) for index, (count, step) in open_ones.items())


def _request(given: Mapping[str, Any], name: str, step: str) -> Request:
    request_id = f"{given['stage']}.{given['visit_index']}.{given['attempt']}.{name}"
    if step.startswith("?"):
        return ExternalEvent(request_id=request_id, name=step.removeprefix("?"))
    if step != "call":
        return Timer(request_id=request_id, delay_ms=int(step))
    path = f"step_{name.replace('.', '_')}"
    with_ = {
        "model": given["model"],
        "prompt": given["prompt"],
        "tools": list(given.get("tools", ())),
        "maxTurns": given["max_turns"],
    }
    task = {
        "kind": "execute_step",
        "step": {"id": path, "uses": "ai.generate", "with": with_, "output": {"mode": "json"}},
        "stepInput": {"context": given["context"]},
        "stepContext": {"stepPath": path, "visitIndex": given["visit_index"]},
    }
    return RoleCall(
        request_id=request_id, role="worker.ai-generate", task=task, step_path=path, visit_index=given["visit_index"]
    )
