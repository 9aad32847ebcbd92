"""Goal 2b: a session goes through the host's own parts, one role call after another, each with one pure tool call."""

from __future__ import annotations

import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness_core.kernel.approvals import PolicyRule, ToolPolicy
from harness_core.kernel.commands import Start
from harness_core.kernel.definition import Definition, Limits, ModelPlan, RetryPolicy, StagePlan
from harness_core.shell.model_handle import ModelEntry
from harness_core.shell.perform_role import BoundRole
from harness_core.shell.ports import make_ports
from harness_core.shell.redaction import Redactor
from harness_core.shell.replay_role import RefusingProvider
from harness_core.shell.session import OwnedSession, SessionWorld
from harness_core.shell.session_parts import NamedValidator, SessionParts
from harness_core.shell.toolbox import Tool, Toolbox
from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.executor import Finish, Outcome, RoleCall, StageInput
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.role import ExecuteStepResult, RoleContext, RoleTask
from harness_hookspecs.store import Store
from harness_hookspecs.tool import ToolContext, ToolResult, ToolSpec
from harness_hookspecs.validator import Level, Subject, Verdict

__all__ = ["SESSION_ID", "STEPS", "whole_steps"]

STEPS = 300
SESSION_ID = "019b76da-a800-7000-8000-000000000001"


class _ManyCalls:
    """An executor that asks for that many role calls, one at a time."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def start(self, stage_input: StageInput) -> Any:
        return 0

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return state + 1

    def next(self, state: Any) -> tuple[Any, ...]:
        if state == self._steps:
            return (Finish(output={"text": "done"}),)
        step = {
            "id": "look",
            "uses": "ai.generate",
            "with": {"model": "bench", "prompt": "look"},
            "output": {"mode": "text"},
        }
        task = {
            "kind": "execute_step",
            "step": step,
            "stepInput": state,
            "stepContext": {"stepPath": "look", "visitIndex": 0},
        }
        return (RoleCall(request_id=f"look#{state}", role="worker.ai-generate", task=task, step_path="look"),)


class _OneToolCall:
    def run(self, task: RoleTask, ctx: RoleContext) -> ExecuteStepResult:
        return ExecuteStepResult(output=ctx.tools["bench_look"].execute({"at": "x"}), artifact_refs=())


class _PureTool:
    def specs(self) -> list[ToolSpec]:
        schema = {"type": "object", "additionalProperties": False, "properties": {"at": {"type": "string"}}}
        return [ToolSpec(name="bench_look", description="Looks.", input_schema=schema, tier="T1", effect="pure")]

    def execute(self, name: str, args: Any, ctx: ToolContext) -> ToolResult:
        return ToolResult({"seen": args["at"]})


class _Text:
    name = "text"
    validators = ()

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}

    def parse(self, output: Any) -> ParsedArtifact:
        return ParsedArtifact(output, "success")


class _Pass:
    level: Level = "payload"

    def validate(self, subject: Subject, cancel: Any) -> Verdict:
        return Verdict(passed=True, body=subject.output)


class _Rules:
    version = "none"

    def compile(self, text: str, *, roots: Any) -> Any:
        raise NotImplementedError

    def condition(self, program: Any, values: Any) -> bool:
        return False


def _parts(folder: Path, steps: int) -> SessionParts:
    tool = Tool(_PureTool().specs()[0], _PureTool(), "bench", "T1", 60.0, digest("schema"))
    role = BoundRole("bench", "1", "bench", True, _OneToolCall())
    model = ModelPlan("bench", "none", frozenset(), 4096, {})
    stage = StagePlan(
        name="main",
        persona="worker",
        executor="many",
        model=model,
        requirements=frozenset(),
        artifact="text",
        allowed_tools=("bench",),
        gate=False,
        retry=RetryPolicy("retry", 1, False, False),
        transitions=(),
        system=None,
        prompt="",
        max_turns=1,
        context_tokens=1000,
    )
    definition = Definition(
        initial="main",
        stages={"main": stage},
        limits=Limits(10, 10**9, 10**6, 10**6, calls_per_attempt=steps),
        executors={"many": _ManyCalls(steps)},
        rules=_Rules(),
        validators={"payload": ("pass",)},
    )
    return SessionParts(
        definition=definition,
        sources={"main": ()},
        policies={"main": ToolPolicy((), {"T1": PolicyRule("auto", "bench")})},
        models={"bench": ModelEntry("bench", "none", "bench", (), 4096, {}, RefusingProvider(), 60.0)},
        toolbox=Toolbox([tool]),
        roles={("worker.ai-generate", "worker"): role},
        default_role=role,
        validators={"payload": [NamedValidator("pass", _Pass())]},
        artifacts={"text": _Text()},
        approvers=(),
        workspace=folder,
        logs_dir=folder / "logs",
        output_bytes=65536,
        validator_timeout_seconds=120.0,
        approver_timeout_seconds=120.0,
        parallel_tools=1,
    )


def whole_steps(store: Store, steps: int = STEPS) -> None:
    """Run one session of so many steps to its end and see that it made them."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        world = SessionWorld(make_ports("threads"), store, folder, Redactor(), (), lambda session_id, chunk: None, 1.0)
        session = OwnedSession(SESSION_ID, _parts(folder, steps), world, on_ask="deny", terminal=False)
        text, config = b"bench", b"{}"
        blobs = {sha256(content).hexdigest(): content for content in (text, config)}
        text_ref, config_ref = blobs
        created = {
            "title": "bench",
            "text_ref": text_ref,
            "project": "bench",
            "config_digest": config_ref,
            "config_ref": config_ref,
            "on_ask": "deny",
            "seed": 1,
        }
        session.begin(Start(SESSION_ID, created, blobs))
        session.wait()
        assert session.state.visit is not None and len(session.state.visit.outcomes) == steps
        session.close()
