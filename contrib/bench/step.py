"""Goals 2a and 2b: kernel steps and whole steps go through the loop, rates beside a bare loop come out."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
from pysqlite3 import dbapi2 as sqlite

from harness_core.kernel.approvals import PolicyRule, ToolPolicy
from harness_core.kernel.commands import Start
from harness_core.kernel.definition import Definition, Limits, ModelPlan, RetryPolicy, StagePlan
from harness_core.kernel.facts import Decision, Event, Fact
from harness_core.shell.loop import SessionLoop
from harness_core.shell.loop_parts import LoopHooks
from harness_core.shell.model_handle import ModelEntry
from harness_core.shell.perform_role import BoundRole
from harness_core.shell.ports import make_ports
from harness_core.shell.redaction import Redactor
from harness_core.shell.replay_role import RefusingProvider
from harness_core.shell.session import OwnedSession, SessionWorld
from harness_core.shell.session_parts import NamedValidator, SessionParts
from harness_core.shell.toolbox import Tool, Toolbox
from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.events import check_payload
from harness_hookspecs.executor import Finish, Outcome, RoleCall, StageInput
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.role import ExecuteStepResult, RoleContext, RoleTask
from harness_hookspecs.store import Store, StoredEvent
from harness_hookspecs.tool import ToolContext, ToolResult, ToolSpec
from harness_hookspecs.validator import Level, Subject, Verdict
from harness_store_sqlite.settings import Settings
from harness_store_sqlite.store import open_store

from .measure import Figure, at_least, at_most, cpu_microseconds, medians

__all__ = ["NAME", "run"]

NAME = "step"

STEPS = 300
ROUNDS = 7
STREAM = "session:019b76da-a800-7000-8000-000000000001"


def run() -> Iterator[Figure]:
    """Rates on the disk with FULL, CPU with fsync out of the way (NORMAL), commits counted at the store."""
    full = medians(
        {
            "kernel": lambda: _rate(_kernel_steps, "FULL"),
            "bare": lambda: _rate(_bare_steps, "FULL"),
            "whole": lambda: _rate(_whole_steps, "FULL"),
        },
        rounds=ROUNDS,
    )
    bare = ("bare loop", full["bare"])
    yield at_least("step.kernel.full", full["kernel"], "steps/s", of=bare, must=0.60, aim=0.80)
    yield at_most("step.kernel.commits", _commits(_kernel_steps), "commits/step", must=1.05, aim=1.05)
    soft = medians(
        {"kernel": lambda: _cpu(_kernel_steps), "whole": lambda: _cpu(_whole_steps)},
        rounds=ROUNDS,
    )
    yield at_most("step.kernel.cpu", soft["kernel"], "us CPU/step", must=120.0, aim=45.0)
    yield at_most("step.whole.commits", _commits(_whole_steps), "commits/step", must=1.05, aim=1.05)
    yield at_most("step.whole.cpu", soft["whole"], "us CPU/step", must=700.0, aim=300.0)
    # LangGraph sync makes 0.24 of a bare loop (873 of 3,680 steps/s, quoted, not run): 1.5 times that is the goal.
    yield at_least("step.whole.full", full["whole"], "steps/s", of=bare, must=0.36, aim=0.60)


Steps = Callable[["CountingStore"], None]


class CountingStore:
    """The store, and how often it committed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits = 0
        self.ids = itertools.count(1)

    def append(self, *args: Any, **kwargs: Any) -> tuple[StoredEvent, ...]:
        self.commits += 1
        return self._store.append(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextmanager
def _store(synchronous: str) -> Iterator[CountingStore]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-")))
        host: Any = FakeHost(folder)
        store = open_store(Settings(synchronous=synchronous, path=str(folder / "bench.db")), host)
        stack.callback(store.close)
        yield CountingStore(store)


def _rate(steps: Steps, synchronous: str) -> float:
    with _store(synchronous) as store:
        begin = time.perf_counter()
        steps(store)
        return STEPS / (time.perf_counter() - begin)


def _cpu(steps: Steps) -> float:
    with _store("NORMAL") as store:
        return cpu_microseconds(lambda: steps(store), STEPS)


def _commits(steps: Steps) -> float:
    with _store("NORMAL") as store:
        steps(store)
        return store.commits / STEPS


# -- the bare loop: the least that requests, completes, folds and is durable ---


def _bare_steps(store: CountingStore) -> None:
    """Two events a step in one transaction of the same library, encoded and folded."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        database = sqlite.connect(f"{folder}/bare.db", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(
            "CREATE TABLE events (stream TEXT, seq INTEGER, type TEXT, payload BLOB, UNIQUE (stream, seq))"
        )
        insert = "INSERT INTO events VALUES (?, ?, ?, ?), (?, ?, ?, ?)"
        state: dict[str, Any] = {"done": 0}
        for step in range(STEPS):
            payload = orjson.dumps(_payload(step))
            database.execute(
                insert, (STREAM, 2 * step, "requested", payload, STREAM, 2 * step + 1, "completed", payload)
            )
            state["done"] += 1
        database.close()


def _payload(step: int) -> dict[str, Any]:
    return {
        "effect_id": f"eff_{step:026d}",
        "effect_class": "keyed",
        "visit_id": "stg_00000000000000000000000001",
        "attempt": 1,
    }


# -- 2a: the loop with a machine that asks for one effect after another ---


class _Effect:
    def __init__(self, step: int) -> None:
        self.key = str(step)
        self.step = step


class _StepMachine:
    """Requested and completed, a real vocabulary and real checks, nothing else."""

    def new_state(self) -> dict[str, int]:
        return {"requested": 0, "completed": 0}

    def decide(self, command: Any, state: Any) -> Decision:
        error = {"name": "Done", "message": ""}
        return Decision((Fact("context.failed", {"effect_id": f"eff_{command:026d}", "error": error}),))

    def advance(self, state: Any, running: frozenset[str]) -> Decision:
        if state["requested"] > state["completed"] or state["requested"] == STEPS:
            return Decision()
        return Decision((Fact("context.requested", _payload(state["requested"])),))

    def evolve(self, state: Any, event: Event) -> None:
        state["requested" if event.type == "context.requested" else "completed"] += 1

    def react(self, state: Any) -> list[_Effect]:
        return [_Effect(state["completed"])] if state["requested"] > state["completed"] else []

    def check(self, decision: Decision) -> None:
        for fact in decision.facts:
            check_payload(fact.type, fact.payload)

    def version(self, event_type: str) -> int:
        return 1

    def waits(self, event_type: str) -> bool:
        return event_type == "context.requested"

    def blob(self, digest: str) -> bytes:
        return b""

    def summary(self, state: Any, events: Any) -> None:
        return None


def _kernel_steps(store: CountingStore) -> None:
    loop = SessionLoop(
        STREAM,
        ports=make_ports("threads"),
        store=store,
        machine=_StepMachine(),
        hooks=LoopHooks(lambda effect: effect.step),
    )
    loop.submit(None)
    loop.wait_quiescent()
    assert loop.state["completed"] == STEPS


# -- 2b: a session whose stage makes one role call after another, each with one call of a pure tool ---


class _ManyCalls:
    """An executor that asks for STEPS role calls, one at a time."""

    def start(self, stage_input: StageInput) -> Any:
        return 0

    def apply(self, state: Any, outcome: Outcome) -> Any:
        return state + 1

    def next(self, state: Any) -> tuple[Any, ...]:
        if state == STEPS:
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


def _parts(folder: Path) -> SessionParts:
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
        limits=Limits(10, 10**9, 10**6, 10**6),
        executors={"many": _ManyCalls()},
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
        parallel_tools=1,
    )


def _whole_steps(store: CountingStore) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        ports = make_ports("threads")
        world = SessionWorld(ports, store, folder, Redactor(), (), lambda session_id, chunk: None, 1.0)
        session_id = STREAM.removeprefix("session:")
        session = OwnedSession(session_id, _parts(folder), world, on_ask="deny", terminal=False)
        text, config = b"bench", b"{}"
        created = {
            "title": "bench",
            "text_ref": _sha256(text),
            "project": "bench",
            "config_digest": _sha256(config),
            "config_ref": _sha256(config),
            "on_ask": "deny",
            "seed": 1,
        }
        session.begin(Start(session_id, created, {_sha256(text): text, _sha256(config): config}))
        session.wait()
        assert session.state.visit is not None and len(session.state.visit.outcomes) == STEPS
        session.close()


def _sha256(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()
