"""An executor, a role, a tool set and a provider go in, a session of the host's own parts runs with them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from harness_core.kernel.approvals import PolicyRule, ToolPolicy
from harness_core.kernel.commands import Start
from harness_core.kernel.definition import Definition, Limits, ModelPlan, RetryPolicy, RulePlan, StagePlan
from harness_core.settings.tools import ToolEntry
from harness_core.shell.model_handle import ModelEntry
from harness_core.shell.ports import make_ports
from harness_core.shell.redaction import Redactor
from harness_core.shell.replay_role import RefusingProvider
from harness_core.shell.role_setup import BoundRole
from harness_core.shell.session import OwnedSession, SessionWorld
from harness_core.shell.session_parts import NamedValidator, SessionParts
from harness_core.shell.surroundings import PlanSite
from harness_core.shell.toolbox import Toolbox
from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.executor import Executor, RoleCall
from harness_hookspecs.provider import Provider
from harness_hookspecs.role import RoleHarness
from harness_hookspecs.rules import Rules
from harness_hookspecs.store import Store
from harness_hookspecs.tool import ToolContext, ToolResult, ToolSet, ToolSpec
from harness_hookspecs.validator import Level, Subject, Verdict
from harness_rules_cel.rules import CelRules

__all__ = [
    "PROVIDER",
    "SESSION_ID",
    "STREAM",
    "TOOL",
    "PureTool",
    "Rig",
    "begin",
    "played",
    "ready",
    "role_call",
    "session_parts",
]

SESSION_ID = "019b76da-a800-7000-8000-000000000001"
STREAM = f"session:{SESSION_ID}"
TOOL = "bench_look"
PROVIDER = "bench"
ENDS = 'artifact.status == "success"'
_ALLOWED: Any = {"T1": PolicyRule("auto", "bench")}


class Rig(NamedTuple):
    """What differs between the benched sessions; everything around it is the same."""

    executor: Executor
    role: RoleHarness
    tools: ToolSet
    provider: Provider = RefusingProvider()
    role_calls: int = 1
    plan: Any = None
    text: str = "bench"
    """What a person says; it stands alone where there is a plan, which takes it for its input."""


class PureTool:
    """The tool set of one pure tool that gives back what it is asked."""

    def specs(self) -> list[ToolSpec]:
        """The tool."""
        schema = {"type": "object", "additionalProperties": False, "properties": {"at": {"type": "string"}}}
        return [ToolSpec(name=TOOL, description="Looks.", input_schema=schema, tier="T1", effect="pure")]

    def execute(self, name: str, args: Any, ctx: ToolContext) -> ToolResult:
        """Look."""
        return ToolResult({"seen": args["at"]})


def role_call(request_id: str, step_input: Any) -> RoleCall:
    """A role call for one ``ai.generate`` step whose answer is an object."""
    settings = {"model": PROVIDER, "prompt": "look", "tools": [TOOL]}
    output = {"mode": "object", "schema": {"type": "object"}}
    step = {"id": "look", "uses": "ai.generate", "with": settings, "output": output}
    context = {"stepPath": "look", "visitIndex": 0}
    task = {"kind": "execute_step", "step": step, "stepInput": step_input, "stepContext": context}
    return RoleCall(request_id=request_id, role="worker.ai-generate", task=task, step_path="look")


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


def _stage(rules: Rules, plan: Any) -> StagePlan:
    ends = rules.compile(ENDS, roots=("artifact",))
    return StagePlan(
        name="main",
        persona="worker",
        executor="bench",
        model=ModelPlan(PROVIDER, "none", frozenset(("tool_calling",)), 10**6, {}),
        requirements=frozenset(),
        artifact="text",
        allowed_tools=("bench",),
        gate=False,
        retry=RetryPolicy("retry", 1, False, False),
        transitions=(RulePlan(ENDS, ends, ("completed",), "bench"),),
        system=None,
        prompt="look" if plan is None else "",
        max_turns=1,
        context_tokens=1000,
        plan=plan,
    )


def session_parts(folder: Path, rig: Rig) -> SessionParts:
    """One stage in the host's own parts, with limits that nothing here meets."""
    rules = CelRules()
    role = BoundRole("bench", "1", "bench", True, rig.role)
    entry = ModelEntry(PROVIDER, "none", PROVIDER, ("tool_calling",), 10**6, {}, rig.provider, 60.0)
    definition = Definition(
        initial="main",
        stages={"main": _stage(rules, rig.plan)},
        limits=Limits(10, 10**12, 10**6, 10**6, requests_per_attempt=rig.role_calls),
        executors={"bench": rig.executor},
        rules=rules,
        validators={"payload": ("pass",)},
    )
    return SessionParts(
        definition=definition,
        sources={"main": ()},
        policies={"main": ToolPolicy((), _ALLOWED)},
        models={PROVIDER: entry},
        toolbox=Toolbox(Toolbox.of_set("bench", rig.tools, "bench", dict[str, ToolEntry](), 60.0)),
        roles={(f"worker.{step}", "worker"): role for step in ("ai-generate", "tool-call")},
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
        plans=PlanSite({}, {}, {}, None, "harness_rules_cel", "cel", {}),
    )


@contextmanager
def ready(store: Store, rig: Rig) -> Iterator[OwnedSession]:
    """A session that is not begun yet, in a folder of its own; ``begin`` begins it, whoever takes it waits for its end.

    What is measured begins with ``begin``: what the others that are run beside it are made of stands ready as well.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder, ports = Path(name), make_ports("threads")
        world = SessionWorld(ports, store, folder, Redactor(), (), lambda session_id, chunk: None, 1.0, 10.0)
        session = OwnedSession(SESSION_ID, session_parts(folder, rig), world, on_ask="deny", terminal=False)
        try:
            yield session
        finally:
            session.close()
            ports.close()


def begin(session: OwnedSession, text: str = "bench") -> None:
    """Begin the session."""
    session.begin(_start(text))


@contextmanager
def played(store: Store, rig: Rig) -> Iterator[OwnedSession]:
    """A session that is begun."""
    with ready(store, rig) as session:
        begin(session, rig.text)
        yield session


def _start(text: str) -> Start:
    blobs = {sha256(content).hexdigest(): content for content in (text.encode(), b"{}")}
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
    return Start(SESSION_ID, created, blobs)
