"""The executor ``compiling``: a text goes in, a request to compile it, a call and the id of the version come out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from harness_hookspecs.compiler import (
    Compilation,
    Difference,
    LockedModel,
    LockedTool,
    Surroundings,
    VersionLock,
)
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.executor import Compile, Fail, Finish, Outcome, Request, RoleCall, StageInput
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.workflow import PlanFinding, Workflow

__all__ = ["Asking", "Compiling", "ProbeCompiler"]


class ProbeCompiler:
    """Takes any valid plan, and misbehaves for words that say so."""

    def compile(self, source: Any, surroundings: Surroundings) -> Any:
        """Check a plan."""
        if source == "raise":
            raise RuntimeError("boom")
        if source == "block":
            os.read(os.pipe()[0], 1)  # nobody will ever write
        if source == "nothing":
            return None
        if source == "bare":
            return Compilation(findings=())
        try:
            plan = Workflow.from_wire(source)
        except (HarnessError, ValidationError, TypeError, ValueError) as error:
            return Compilation(findings=(_finding(error),))
        return _locked(plan, surroundings)

    def expand(self, sketch: Any, surroundings: Surroundings) -> Any:
        """A sketch is the plan in a list."""
        return self.compile(sketch[0], surroundings)

    def drift(self, before: VersionLock, now: VersionLock) -> Sequence[Difference]:
        """What of tools and models is another one."""
        old, new = ({**_named(one)} for one in (before, now))
        return [
            Difference(name, old.get(name, ""), new.get(name, ""))
            for name in sorted(old | new)
            if old.get(name) != new.get(name)
        ]

    def plan_schema(self, surroundings: Surroundings) -> Any:
        """Any."""
        return {}

    def sketch_schema(self, surroundings: Surroundings) -> Any:
        """Any."""
        return {}


def _finding(error: Exception) -> PlanFinding:
    return PlanFinding(severity="error", code="schema.invalid", path="/steps", message=str(error).partition("\n")[0])


def _locked(plan: Workflow, around: Surroundings) -> Compilation:
    hashed = digest(plan.to_wire())
    empty = digest({})
    lock = VersionLock(
        workflow_version_id=f"wfv_{hashed[:32]}",
        lwir_hash=hashed,
        input_schema_hash=empty,
        output_schema_hash=empty,
        tools=tuple(
            LockedTool(name=name, schema_hash=one.schema_hash, tier=one.tier, plugin=one.plugin)
            for name, one in around.tools.items()
        ),
        models=tuple(
            LockedModel(slot=name, provider=one.provider, model_id=one.model_id) for name, one in around.models.items()
        ),
        engines=(),
        rules_engine=around.rules.version,
        compiler_version="probe@1",
    )
    return Compilation(
        findings=(), workflow_version_id=lock.workflow_version_id, lwir_hash=hashed, lock=lock, plan=plan,
        max_step_executions=7,
    )  # fmt: skip


def _named(lock: VersionLock) -> dict[str, str]:
    tools = {f"tool {one.name}": f"{one.tier} of {one.plugin}" for one in lock.tools}
    return tools | {f"model {one.slot}": f"{one.provider} {one.model_id}" for one in lock.models}


class Asking:
    """Compile, call a role, end. ``S`` is ``{given, version, called}``. It has no compiler."""

    def start(self, stage_input: StageInput) -> Any:
        """Nothing is compiled yet."""
        return {"given": stage_input.to_wire(), "version": None, "called": False, "error": None}

    def apply(self, state: Any, outcome: Outcome) -> Any:
        """A plan was checked, or its call has ended."""
        if not outcome.ok:
            return {**state, "error": outcome.error}
        if state["version"] is None:
            return {**state, "version": outcome.value}
        return {**state, "called": True}

    def next(self, state: Any) -> tuple[Request, ...]:
        """One after the other."""
        given, error = state["given"], state["error"]
        if error is not None:
            return (Fail(code=error["code"], message=error["message"]),)
        name = f"{given['stage']}.{given['attempt']}"
        document = json.loads(given["prompt"].partition("\n")[0])
        if state["version"] is None:
            form = "sketch" if isinstance(document, list) else "plan"
            return (Compile(request_id=f"{name}.compile", document=document, form=form),)
        if not state["called"]:
            return (RoleCall(request_id=f"{name}.call", role="worker.ai-generate", task=_task(given)),)
        return (Finish(output={"text": state["version"]["workflowVersionId"]}),)


class Compiling(Asking):
    """The same with a compiler."""

    def compiler(self) -> ProbeCompiler:
        """See there."""
        return ProbeCompiler()


def _task(given: Any) -> Any:
    with_ = {"model": given["model"], "prompt": "Go on.", "tools": list(given.get("tools", ())), "maxTurns": 4}
    return {
        "kind": "execute_step",
        "step": {"id": "go_on", "uses": "ai.generate", "with": with_, "output": {"mode": "json"}},
        "stepInput": {"context": given["context"]},
        "stepContext": {"stepPath": "go_on", "visitIndex": given["visit_index"]},
    }
