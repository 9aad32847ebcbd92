"""Steps in, a stage that has them run one after the other out: what the tests of steps without an agent share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.reference import one_stage

__all__ = ["decided", "listed", "outcomes", "ran", "repaired", "replays_equal", "step"]

_ROLES = {"ai.generate": "worker.ai-generate", "tool.call": "worker.tool-call"}


def listed(*calls: Mapping[str, Any], **stage: Any) -> dict[str, Any]:
    """A stages.yaml whose one stage asks for these role calls."""
    task = json.dumps({"calls": list(calls)})
    return one_stage(executor="listed", task=task, **stage)


def step(step_id: str, uses: str, with_: Mapping[str, Any], step_input: Any = None, **more: Any) -> dict[str, Any]:
    """A role call that carries out one step."""
    written = {"id": step_id, "uses": uses, "with": dict(with_), **more}
    if uses not in ("decision", "wait"):
        written.setdefault("output", {"mode": "json"})
    where = {"stepPath": step_id, "visitIndex": 0}
    task = {"kind": "execute_step", "step": written, "stepInput": step_input, "stepContext": where}
    return {"role": _ROLES.get(uses, "worker.code-run"), "task": task}


def decided(step_id: str, *cases: tuple[str, str], default: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A decision over these values."""
    written = [{"when": when, "to": to} for when, to in cases]
    return step(step_id, "decision", {"cases": written, "default": default}, dict(values))


def ran(step_id: str, source: str, step_input: Any = None, *, tools: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A step of code."""
    with_ = {"language": "python", "source": source, **({"tools": list(tools)} if tools else {})}
    return step(step_id, "code.run", with_, step_input, **more)


def repaired(of: Mapping[str, Any], error: Any, *, prior: int = 0, **more: Any) -> dict[str, Any]:
    """The repair of a step of code that failed."""
    task = of["task"]
    wire = {
        "kind": "fix_step", "step": task["step"], "stepInput": task["stepInput"],
        "originalAttemptError": error, "priorFixAttempts": prior, **more,
    }  # fmt: skip
    return {"role": "fixer", "task": wire, **task["stepContext"]}


def outcomes(session: Any) -> Any:
    """How each of the calls ended."""
    [artifact] = session.host.artifacts("@last")
    return json.loads(json.loads(session.host.artifact(artifact["ref"]))["text"])


def replays_equal(session: Any, *, roles: int) -> None:
    """Both replays that enter roles come to the same log."""
    for mode in ("skip-inference", "simulate"):
        report = session.host.replay("@last", mode)
        assert (report["equal"], report["roles_entered"]) == (True, roles), report["diverged"]
