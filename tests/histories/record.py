"""Plays sessions under simulated ports and writes the log of each, its contents and its document beside this module.

``python -m tests.histories.record`` plays those that this version has not recorded; one that is there is never written
again. Clock, ids and chance follow from its name, so that playing one again gives the same bytes.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import attrs
import pytest

from harness_core import Host, __version__
from harness_core.shell.assembly import Assembly
from harness_core.shell.ports.failpoints import Failpoints
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit import codec
from tests.histories.form import FOLDER, History, history_of, write_history
from tests.orchestra import PLAN as ONE_STEP
from tests.orchestra import chief, lead, planner, start, worker
from tests.reference import REFERENCE, Site, calls, one_stage, says, write_reference, write_site

__all__ = ["PLAYS", "play"]

ROOT = Path("/tmp/harness-histories")
"""It is recorded, so it is the same for everybody."""
BY = "person"
_PLANS = Path(__file__).parent.parent / "cases" / "lwir"
PLAN = codec.dumps(codec.loads((_PLANS / "1-summarise-ticket.json").read_bytes())).decode()
BREAKS = {"error": {"code": "provider.unavailable"}}
ASKS = [calls(("network", {"note": "asked"})), says("done")]
NO_PROBE = {"tools": {"tools": {"effects": {"probes": False}}}}
SLOW = calls(("slow", {"note": "slow", "seconds": 0.5}))


class Stage(NamedTuple):
    """Where a play takes place."""

    site: Site
    ports: SimulatedPorts

    @contextmanager
    def host(self, failpoint: str = "") -> Iterator[Host]:
        """A process that has opened the project; one that a failpoint ends leaves what a crash would."""
        self.ports.failpoints = Failpoints(failpoint)
        with Host.open(self.site.project, ports=self.ports) as host:
            yield host

    def crashed(self, failpoint: str) -> None:
        """Begin a session in a process that comes no further."""
        with pytest.raises(HarnessError, match="failpoint"), self.host(failpoint) as host:
            host.run("Go.", on_ask="suspend", by=BY)

    def until(self, host: Host, session_id: str, kind: str) -> None:
        """Let time pass until the session has an event of that type."""
        while kind not in [event.type for event in host.events(session_id)]:
            self.ports.clock.sleep(0.01)


class Play(NamedTuple):
    """One session: the script, the files of its project, what is done with it, and how it is then."""

    replies: Sequence[Mapping[str, Any]]
    act: Callable[[Stage], None]
    status: str
    files: Mapping[str, Any] = {}


# ------------------------------------------------------------------------------------------------- what is done


def run(**options: Any) -> Callable[[Stage], None]:
    """Run it to its first stop."""

    def act(stage: Stage) -> None:
        with stage.host() as host:
            host.run("Go.", by=BY, **{"on_ask": "suspend", **options})

    return act


def answered(decision: str, **options: Any) -> Callable[[Stage], None]:
    """Run it until it asks, answer, and go on in another process."""

    def act(stage: Stage) -> None:
        run()(stage)
        with stage.host() as host:
            [item] = host.approvals()
            host.answer(item["id"], decision, digest=item["digest"], by=BY, **options)
        with stage.host() as host:
            host.resume("@last", on_ask="suspend")

    return act


def resumed(**options: Any) -> Callable[[Stage], None]:
    """Go on in another process."""

    def act(stage: Stage) -> None:
        with stage.host() as host:
            host.resume("@last", **{"on_ask": "suspend", **options})

    return act


def crashed(failpoint: str) -> Callable[[Stage], None]:
    """Begin it in a process that crashes there."""
    return lambda stage: stage.crashed(failpoint)


def settled(outcome: str, **options: Any) -> Callable[[Stage], None]:
    """Say what became of the effect in doubt."""

    def act(stage: Stage) -> None:
        with stage.host() as host:
            [doubt] = host.session("@last")["waiting"]
            host.settle(doubt["id"], outcome, by=BY, **options)

    return act


def after(seconds: float, act: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """The same when so much time has passed."""

    def later(stage: Stage) -> None:
        stage.ports.clock.sleep(seconds)
        act(stage)

    return later


def waiting(plan: str) -> Mapping[str, Any]:
    """A stage that asks for role calls, timers and events (see harness-executor-probe)."""
    return {"stages": one_stage(executor="branches", task=plan, on_failure="failed")}


def compiling(document: str) -> Mapping[str, Any]:
    """A stage that has a document compiled and makes a role call (see harness-executor-probe)."""
    return {"stages": one_stage(executor="compiling", task=document, on_failure="failed")}


def stopped(verb: str) -> Callable[[Stage], None]:
    """Stop it while a tool is under way."""

    def act(stage: Stage) -> None:
        with stage.host() as host:
            found = host.start("Go.", by=BY)
            stage.until(host, found, "harness.tool_call.started")
            getattr(host, verb)(found)
            host.wait(found)

    return act


def delivered(*given: tuple[str, Any]) -> Callable[[Stage], None]:
    """Deliver events to it, each twice under its id."""

    def act(stage: Stage) -> None:
        with stage.host() as host:
            for number, (name, payload) in enumerate(given * 2):
                host.deliver_event("@last", name, payload, delivery_id=f"d{number % len(given)}", by=BY)

    return act


def cancelled(stage: Stage) -> None:
    """Cancel what nobody runs."""
    with stage.host() as host:
        host.cancel("@last")


def running(plan: Any) -> dict[str, Any]:
    """A stage that runs a plan."""
    stage = {"role": "worker", "executor": "workflow", "plan": plan, "allowed_tools": ["effects"]}
    return {"initial": "work", "stages": {"work": {**stage, "on_success": "completed", "on_failure": "failed"}}}


def changed(stage: Stage) -> None:
    """The project is configured otherwise."""
    stage.site.write("stages", one_stage(on_failure="failed", retry={"max_attempts": 3}))


def led_otherwise(stage: Stage) -> None:
    """The role that orchestrates is told something else."""
    stage.site.write("stages", {**lead(), "roles": {"chief": {"prompt": "You lead."}}})


def then(*acts: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """One after the other."""

    def act(stage: Stage) -> None:
        for one in acts:
            one(stage)

    return act


def forked(*stage_names: str) -> Callable[[Stage], None]:
    """Fork the newest session where it had left that stage, and so on, each time under another configuration."""

    def act(stage: Stage) -> None:
        for limit, name in enumerate(stage_names, start=7):
            stage.site.write("harness", {"run": {"max_visits": limit}})
            with stage.host() as host:
                left = [event.seq for event in host.events("@last", types="stage.left")]
                seqs = dict(zip(FLOW["stages"], left, strict=False))
                host.fork("@last", seqs[name], by=BY)

    return act


def reference(stage: Stage) -> None:
    """The reference session, whose one approval is given."""
    with stage.host() as host:
        host.run(REFERENCE, on_ask="suspend", by=BY)
        [item] = host.approvals()
        host.answer(item["id"], "approve", digest=item["digest"], by=BY, say="go on")
        host.resume("@last", on_ask="suspend")


FLOW: Mapping[str, Any] = {
    "initial": "one",
    "stages": {
        "one": {"role": "worker", "task": "Begin.", "on_success": "two"},
        "two": {"role": "worker", "task": "Go on.", "allowed_tools": ["effects"], "on_success": "three"},
        "three": {"role": "worker", "task": "End.", "on_success": "completed"},
    },
}
IN_THREE = [
    calls(("keyed", {"note": "a"}), when={"stage": "two", "turn": 1}),
    says("done", when={"persona": "worker"}),
]


def planned(*steps: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
    """Files of a project whose one stage runs these steps."""
    plan = {
        "apiVersion": "harness.lwir/v1", "kind": "Workflow", "metadata": {"name": "wide"},
        "input": {"schema": {"type": "object"}}, "output": {"schema": True, "value": "done"},
        "permissions": {"models": ["scripted"], "tools": []}, "steps": [*steps], **more,
    }  # fmt: skip
    return {"stages": one_stage(executor="workflow", artifact="json", on_failure="failed", plan=plan)}


EACH = {
    "id": "each",
    "uses": "parallel",
    "with": {
        "items": "{{ ['a', 'b'] }}", "itemKey": "{{ item }}", "maxBranches": 2, "maxConcurrency": 1,
        "failureMode": "all_settled",
    },
    "steps": [
        {
            "id": "say", "uses": "ai.generate", "output": {"mode": "text"},
            "with": {"model": "scripted", "prompt": "Say {{ item }}."},
        }
    ],
}  # fmt: skip
HOUR = {"id": "wait", "uses": "wait", "with": {"durationMs": 3_600_000}}
CORRECTS = {"strategy": "corrective", "max_attempts": 2}
DOUBT = then(crashed("effect.done@2:raise"), resumed())
UNKEYED = [calls(("unkeyed", {"note": "a"})), says("done")]
ONCE = [calls(("pure", {"note": "a"})), says("done")]
ALLOWED = {"plugins": {"settings": {"policy": {"rules": [{"tool": "effects_*", "tier": "T3", "decision": "approve"}]}}}}
TWO_CALLS = [calls(("network", {"note": "a"})), calls(("network", {"note": "b"})), says("done")]

LEADS = [planner(), chief(1, start("one"), start("two")), chief(2, text="all")]
WAITS = [worker("one", ("network", {"note": "asked"})), worker("one", turn=2)]
STEPS_PLAN: Mapping[str, Any] = {
    **ONE_STEP, "input": {"schema": True}, "output": {"schema": True, "value": {"text": "{{ steps.draft.output }}"}},
    "steps": [
        {
            "id": "draft", "uses": "ai.generate", "output": {"mode": "text"}, "retry": {"maxAttempts": 2},
            "with": {"model": "scripted", "prompt": "Write a note."},
        },
        {"id": "judge", "uses": "decision", "needs": ["draft"], "with": {
            "cases": [{"when": "steps.draft.output != ''", "to": "keep"}], "default": "end",
        }},
        {
            "id": "keep", "uses": "tool.call", "needs": ["judge"], "output": {"mode": "json"},
            "with": {"tool": "effects_keyed", "args": {"note": "{{ steps.draft.output }}"}},
        },
    ],
}  # fmt: skip
STEPS = [says("a note")]

PLAYS: Mapping[str, Play] = {
    "completed": Play([says("done")], run(), "completed"),
    "completed-tools": Play([calls(("pure", {"note": "a"}), ("keyed", {"note": "b"})), *UNKEYED], run(), "completed"),
    "completed-tool-failed": Play([calls(("fail", {"how": "error"})), says("done")], run(), "completed"),
    "completed-reference": Play([], reference, "completed"),
    "failed-provider": Play([BREAKS], run(), "failed"),
    "failed-output": Play([{"text": "prose"}], run(), "failed"),
    "failed-max-turns": Play([calls(("pure", {"note": "a"}))], run(), "failed", {"stages": one_stage(max_turns=1)}),
    "awaiting-approval": Play(ASKS, run(), "awaiting_approval"),
    "approved": Play(ASKS, answered("approve"), "completed"),
    "approved-with-words": Play(ASKS, answered("approve", say="but carefully"), "completed"),
    "approved-for-session": Play(TWO_CALLS, answered("auto_session"), "completed"),
    "approved-by-rule": Play(ASKS, run(), "completed", {"harness": ALLOWED}),
    "approved-bypassed": Play(ASKS, run(yolo="on"), "completed"),
    "approved-artifact": Play(
        [says("done")], answered("approve"), "completed", {"stages": one_stage(approvals={"artifact": "required"})}
    ),
    "denied": Play(ASKS, answered("deny"), "completed"),
    "denied-unattended": Play(ASKS, run(on_ask="deny"), "failed"),
    "denied-artifact": Play(
        [says("done")], answered("deny"), "failed", {"stages": one_stage(approvals={"artifact": "required"})}
    ),
    "cancelled-waiting": Play(ASKS, then(run(), cancelled), "cancelled"),
    "cancelled-running": Play([SLOW, says("done")], stopped("cancel"), "cancelled"),
    "in-doubt": Play(UNKEYED, DOUBT, "active", NO_PROBE),
    "in-doubt-happened": Play(
        UNKEYED, then(DOUBT, settled("happened", value={"seen": True}), resumed()), "completed", NO_PROBE
    ),
    "in-doubt-never-happened": Play(
        UNKEYED, then(DOUBT, settled("never_happened"), resumed()), "completed", NO_PROBE
    ),
    "in-doubt-probed": Play(UNKEYED, DOUBT, "completed"),
    "in-doubt-cancelled": Play(UNKEYED, then(DOUBT, cancelled), "cancelled", NO_PROBE),
    "resumed-after-pause": Play([SLOW, says("done")], then(stopped("pause"), resumed()), "completed"),
    "resumed-after-crash": Play(ONCE, then(crashed("append.committed@3:raise"), resumed()), "completed"),
    "resumed-under-another-configuration": Play(
        ASKS, then(run(), changed, resumed(accept_drift=True), cancelled), "cancelled"
    ),
    "corrective-retry": Play(
        [{"when": {"attempt": 1}, "text": "prose"}, says("done")],
        run(),
        "completed",
        {"stages": one_stage(retry=CORRECTS)},
    ),
    "corrective-retry-failed": Play([{"text": "prose"}], run(), "failed", {"stages": one_stage(retry=CORRECTS)}),
    "retry-of-provider": Play(
        [{"when": {"attempt": 1}, **BREAKS}, says("done")],
        run(),
        "completed",
        {"stages": one_stage(retry={"max_attempts": 2})},
    ),
    "forked": Play(IN_THREE, then(run(), forked("one")), "completed", {"stages": FLOW}),
    "timers": Play([says("done")], run(), "completed", waiting("5 call | call 1 1 | 3")),
    "timers-given-up": Play([BREAKS], run(), "failed", waiting("50000 | 3 call")),
    "waiting-for-a-timer": Play([says("done")], run(), "active", waiting("60000 call | call")),
    "waited-for-a-timer": Play(
        [says("done")], then(run(), after(70, resumed())), "completed", waiting("60000 call | call")
    ),
    "waiting-cancelled": Play([says("done")], then(run(), cancelled), "cancelled", waiting("60000 call | call")),
    "waiting-for-an-event": Play([says("done")], run(), "active", waiting("?paid call | call")),
    "had-its-events": Play(
        [says("done")],
        then(run(), delivered(("sent", {"to": "Ann"}), ("paid", 12)), resumed()),
        "completed",
        waiting("?paid call ?sent | call"),
    ),
    "an-event-given-up": Play([BREAKS], run(), "failed", waiting("?paid | 3 call")),
    "plan-registered": Play([says("done")], run(), "completed", compiling(PLAN)),
    "plan-rejected": Play([says("done")], run(), "failed", compiling('{"no": "plan"}')),
    "children": Play([*LEADS, worker("one"), worker("two")], run(), "completed", {"stages": lead()}),
    "children-one-failed": Play(
        [*LEADS, worker("one"), {"when": {"contains": "Do two now."}, **BREAKS}], run(), "completed", {"stages": lead()}
    ),
    "children-waiting": Play([*LEADS, *WAITS, worker("two")], run(), "active", {"stages": lead()}),
    "children-waited-for": Play(
        [*LEADS, *WAITS, worker("two")], answered("approve"), "completed", {"stages": lead()}
    ),
    "children-given-up": Play(
        [*LEADS, *WAITS, worker("two")], then(run(), led_otherwise, resumed(accept_drift=True), cancelled), "cancelled",
        {"stages": lead()},
    ),
    "children-cancelled": Play(
        [*LEADS, *WAITS, worker("two")], then(run(), cancelled), "cancelled", {"stages": lead()}
    ),
    "children-short": Play(
        [*LEADS, worker("one"), worker("two")], then(run(budget={"calls": 3}), resumed(budget={"calls": 50})),
        "completed", {"stages": lead()},
    ),
    "workflow": Play(STEPS, run(), "completed", {"stages": running(STEPS_PLAN)}),
    "workflow-resumed-after-crash": Play(
        STEPS, then(crashed("effect.done@1:raise"), resumed()), "completed", {"stages": running(STEPS_PLAN)}
    ),
    "fan-out": Play([says("done")], run(), "completed", planned(EACH)),
    "fan-out-out-of-time": Play([SLOW, says("done")], run(), "failed", planned({**EACH, "timeoutMs": 9})),
    "plan-out-of-time": Play(
        [says("done")],
        then(run(), after(70, resumed())),
        "failed",
        planned(HOUR, limits={"timeoutMs": 60_000}),
    ),
    "budget-ended": Play(ONCE, run(budget={"calls": 1}), "active"),
    "budget-ended-cancelled": Play(ONCE, then(run(budget={"calls": 1}), cancelled), "cancelled"),
    "budget-raised": Play(ONCE, then(run(budget={"calls": 1}), resumed(budget={"calls": 5})), "completed"),
}


# ----------------------------------------------------------------------------------------------------- recording


def play(name: str, root: Path = ROOT) -> History:
    """Play one session; gives its history."""
    asked = PLAYS[name]
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    files = {"stages": one_stage(on_failure="failed"), **asked.files}
    site = write_site(root, replies=asked.replies, **files) if asked.replies else write_reference(root)
    made = Assembly.session_parts
    with pytest.MonkeyPatch.context() as patch, SimulatedPorts(crc32(name.encode())) as ports:
        patch.setattr(Assembly, "session_parts", lambda self: _patient(made(self)))
        stage = Stage(site.enter(patch), ports)
        asked.act(stage)
        with stage.host() as host:
            document = host.session("@last")
            assert document["status"] == asked.status, (name, document)
            return history_of(host.store, document["id"])


def _patient(parts: Any) -> Any:
    """Where time is drawn by lot, a limit may strike before work that is ready."""
    return attrs.evolve(parts, validator_timeout_seconds=math.inf, approver_timeout_seconds=math.inf)


def main() -> int:
    for name in PLAYS:
        if not (FOLDER / __version__ / f"{name}.jsonl").exists():
            write_history(FOLDER / __version__, name, play(name))
            print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
