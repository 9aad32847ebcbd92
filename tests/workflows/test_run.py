"""What a run of a plan promises, a test each: loops, joins, failures, repairs, waits, branches, limits, last step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness_executor_workflow.running.program import Program, program_of
from harness_executor_workflow.running.run import apply, end_of, next_asks, start
from harness_hookspecs.errors import RuleError
from harness_hookspecs.executor import Outcome
from harness_hookspecs.kit import codec
from harness_hookspecs.workflow import Workflow
from harness_rules_cel.rules import CelRules

from .plans import document

RULES = CelRules()
GONE = {"name": "ToolError", "code": "tool.gone", "message": "it is gone"}


class Failure(Exception):
    """What a call ends with in a test."""

    def __init__(self, code: str = "tool.gone") -> None:
        self.code = code


class Run:
    """A run of a plan that is answered by path, or by id where there is an answer for it."""

    def __init__(self, steps: list[Any], given: Any = None, seed: str = "seed", **more: Any) -> None:
        self.program: Program = program_of(Workflow.from_wire(document(steps, **more)), RULES)
        self.state = start(self.program, given, run={"id": "r", "attempt": 1}, seed=seed)
        self.log: list[str] = []

    @property
    def asks(self) -> dict[str, Any]:
        return {ask["id"]: ask for ask in next_asks(self.program, self.state)}

    def hear(self, request_id: str, value: Any = None) -> Run:
        self.log.append(request_id)
        error = {**GONE, "code": value.code} if isinstance(value, Failure) else None
        told = Outcome(request_id=request_id, ok=error is None, value=None if error else value, error=error)
        self.state = apply(self.program, self.state, told)
        return self

    def through(self, answers: Mapping[str, Any] | Callable[[Any], Any] | None = None) -> Any:
        """Answer the first open call until the end, which is given."""
        known = answers or {}
        while self.asks:
            request_id, ask = next(iter(self.asks.items()))
            if callable(known):
                self.hear(request_id, known(ask))
            else:
                self.hear(request_id, known.get(request_id, known.get(ask["path"], ask["path"])))
        return end_of(self.state)


def tool(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    settings = {"tool": "t", "args": more.pop("args", {})}
    return {"id": name, "uses": "tool.call", "needs": [*needs], "with": settings, "output": {"mode": "json"}, **more}


def choose(name: str, *needs: str, to: tuple[str, ...], **more: Any) -> dict[str, Any]:
    settings = {"cases": [{"when": "true", "to": one} for one in to], "default": to[-1]}
    return {"id": name, "uses": "decision", "needs": [*needs], "with": settings, **more}


def fan(name: str, steps: list[Any], *needs: str, **more: Any) -> dict[str, Any]:
    usual = {"items": "{{ input.xs }}", "itemKey": "{{ item }}", "maxBranches": 9, "maxConcurrency": 2}
    outside: dict[str, Any] = {key: more.pop(key) for key in ("retry", "onFailure", "maxVisits") if key in more}
    settings = {**usual, "failureMode": "all_settled", **more}
    return {"id": name, "uses": "parallel", "needs": [*needs], "with": settings, "steps": steps, **outside}


def code(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    settings = {"language": "python", "source": "async def main(input, tools): return {{}}"}
    return {"id": name, "uses": "code.run", "needs": [*needs], "with": settings, "output": {"mode": "json"}, **more}


def loop(visits: int) -> list[Any]:
    return [
        tool("a", maxVisits=visits, args={"before": "{{ has(steps.a.last) ? steps.a.last : 'none' }}"}),
        choose("d", "a", to=("a", "b", "fail"), maxVisits=visits),
        tool("b", args={"all": "{{ steps.a.all }}"}),
        tool("side", "a"),
    ]


# --------------------------------------------------------------------------------------- order, routes, joins


def test_steps_without_needs_begin_side_by_side_and_others_when_theirs_have_settled() -> None:
    run = Run([tool("a"), tool("b"), tool("c", "a", "b")])
    assert list(run.asks) == ["a#1", "b#1"]
    assert list(run.hear("b#1").asks) == ["a#1"]
    assert list(run.hear("a#1").asks) == ["c#1"]


def test_a_join_runs_with_the_branch_that_was_chosen() -> None:
    steps = [choose("d", to=("x", "y")), tool("x"), tool("y"), tool("z", "x", "y"), tool("after_y", "y")]
    value = "{{ [has(steps.x.output), has(steps.y.output), has(steps.z.output), has(steps.after_y.output)] }}"
    run = Run(steps, value=value)
    assert run.through({"d": {"chosen": "x", "caseIndex": 0}}) == {"output": [True, False, True, False]}
    assert run.log == ["d#1", "x#1", "z#1"]


def test_an_end_that_is_chosen_skips_what_could_have_been() -> None:
    run = Run([choose("d", to=("x", "end")), tool("x"), tool("other")])
    assert run.through({"d": "end"}) == {"output": None}
    assert run.log == ["d#1", "other#1"]


@pytest.mark.parametrize(("chosen", "code"), [("fail", "decision.fail"), ("nowhere", "decision.unknown_target")])
def test_a_choice_that_fails_the_run_says_where(chosen: str, code: str) -> None:
    run = Run([tool("a"), choose("d", "a", to=("fail", "end"))])
    end = run.through({"d": {"chosen": chosen}})
    assert end["error"]["code"] == code
    assert end["error"]["message"].startswith("Step d (visit 0, attempt 1) failed: ")


@pytest.mark.req("A-94")
def test_a_loop_visits_its_steps_again_and_what_follows_waits_for_its_end() -> None:
    run = Run(loop(3))
    assert run.asks["a.visit[0]#1"]["task"]["stepContext"] == {"stepPath": "a.visit[0]", "visitIndex": 0}
    run.hear("a.visit[0]#1", 1).hear("d.visit[0]#1", "a")
    assert run.asks["a.visit[1]#1"]["task"]["step"]["with"]["args"] == {"before": 1}
    run.hear("a.visit[1]#1", 2)
    assert list(run.asks) == ["d.visit[1]#1"]  # and not side, which needs the last visit of a
    run.hear("d.visit[1]#1", "b")
    assert list(run.asks) == ["b#1", "side#1"]
    assert run.asks["b#1"]["task"]["step"]["with"]["args"] == {"all": [1, 2]}
    assert run.through() == {"output": None}


def test_who_needs_a_loop_and_something_else_waits_for_both() -> None:
    run = Run(
        [tool("a", maxVisits=2), choose("d", "a", to=("a", "end"), maxVisits=2), tool("c"), tool("side", "a", "c")]
    )
    run.hear("a.visit[0]#1").hear("c#1")
    assert list(run.asks) == ["d.visit[0]#1"]
    assert list(run.hear("d.visit[0]#1", "end").asks) == ["side#1"]


def test_more_visits_than_a_step_may_have_fail_the_run() -> None:
    end = Run(loop(2)).through({"d": "a", "d.visit[0]": "a", "d.visit[1]": "a"})
    assert end["error"]["code"] == "max_visits_exceeded"
    assert "d leads back to a" in end["error"]["message"]


def test_a_back_edge_is_taken_when_the_last_step_of_its_loop_was_skipped() -> None:
    steps = [
        tool("a", maxVisits=2),
        choose("d", "a", to=("a", "e"), maxVisits=2),
        choose("e", to=("d", "end"), maxVisits=2),
    ]
    run = Run(steps)
    run.through({"d.visit[0]": "a", "d.visit[1]": "e", "e.visit[1]": "end"})
    assert run.log == ["a.visit[0]#1", "d.visit[0]#1", "a.visit[1]#1", "d.visit[1]#1", "e.visit[1]#1"]


def test_a_step_routed_to_twice_runs_once_when_both_have_settled() -> None:
    run = Run([choose("d", to=("x", "end")), choose("e", to=("x", "end")), tool("x")])
    run.hear("d#1", "x")
    assert list(run.asks) == ["e#1"]
    assert list(run.hear("e#1", "x").asks) == ["x#1"]


# ----------------------------------------------------------------------------------- failures, retries, repairs


def test_a_failure_that_leads_somewhere_counts_as_a_skip_for_the_join() -> None:
    steps = [
        tool("a", onFailure={"to": "plan_b"}),
        tool("plan_b", args={"why": "{{ steps.a.error.message }} ({{ steps.a.error.code }})"}),
        tool("join", "a", "plan_b"),
        tool("only_a", "a"),
    ]
    run = Run(steps)
    run.hear("a#1", Failure())
    assert run.asks["plan_b#1"]["task"]["step"]["with"]["args"] == {"why": "it is gone (tool.gone)"}
    assert run.through() == {"output": None}
    assert run.log == ["a#1", "plan_b#1", "join#1"]
    well = Run(steps)
    well.through()
    assert well.log == ["a#1", "join#1", "only_a#1"]


def test_a_visit_that_goes_well_has_no_error_of_the_one_before() -> None:
    steps = [
        tool("a", maxVisits=2, onFailure={"to": "b"}),
        tool("b", maxVisits=2),
        choose("d", "a", "b", to=("a", "c"), maxVisits=2),
        tool("c", args={"error": "{{ has(steps.a.error) }}"}),
    ]
    run = Run(steps)
    run.hear("a.visit[0]#1", Failure()).hear("b.visit[0]#1").hear("d.visit[0]#1", "a").hear("a.visit[1]#1")
    assert run.hear("d.visit[1]#1", "c").asks["c#1"]["task"]["step"]["with"]["args"] == {"error": False}


def test_a_fallback_that_needs_what_it_replaces_runs() -> None:
    run = Run([tool("a", onFailure={"to": "b"}), tool("b", "a")])
    run.through({"a": Failure()})
    assert run.log == ["a#1", "b#1"]


def test_a_failure_that_nothing_catches_ends_the_run_when_what_is_open_has_ended() -> None:
    run = Run([tool("a"), tool("b"), tool("c", "b")])
    run.hear("a#1", Failure())
    assert list(run.asks) == ["b#1"]
    run.hear("b#1", 1)
    message = "Step a (visit 0, attempt 1) failed: it is gone"
    assert end_of(run.state) == {"error": {"code": "tool.gone", "message": message}}
    assert run.asks == {}


def test_a_retry_is_the_same_path_and_another_request() -> None:
    run = Run([tool("a", retry={"maxAttempts": 3, "strategy": "corrective"}, input={"x": "{{ input.x }}"})], {"x": 1})
    assert run.asks["a#1"]["task"]["stepInput"] == {"x": 1}
    run.hear("a#1", Failure())
    assert run.asks["a#2"]["task"]["stepInput"] == {"x": 1}  # a tool that takes it for arguments knows no feedback
    assert run.asks["a#2"]["path"] == "a"
    end = run.through({"a": Failure("tool.still")})
    assert run.log == ["a#1", "a#2", "a#3"]
    assert end["error"] == {"code": "tool.still", "message": "Step a (visit 0, attempt 3) failed: it is gone"}


def test_a_model_is_told_why_the_attempt_before_failed_where_the_retry_is_corrective() -> None:
    said = {"uses": "ai.generate", "with": {"model": "m", "prompt": "p"}, "output": {"mode": "text"}}
    for strategy, more in (("corrective", {"feedback": "it is gone"}), ("retry", {})):
        step = {"id": "a", **said, "input": {"x": 1}, "retry": {"maxAttempts": 2, "strategy": strategy}}
        run = Run([step])
        assert run.asks["a#1"]["task"]["stepInput"] == {"x": 1}
        assert run.hear("a#1", Failure()).asks["a#2"]["task"]["stepInput"] == {"x": 1, **more}


@pytest.mark.parametrize(
    ("retry", "delays"),
    [
        ({"delayMs": 100}, [100, 100, 100]),
        ({"delayMs": 100, "backoff": "constant"}, [100, 100, 100]),
        ({"delayMs": 100, "backoff": "linear"}, [100, 200, 300]),
        ({"delayMs": 100, "backoff": "exponential"}, [100, 200, 400]),
    ],
)
def test_further_attempts_wait_as_the_plan_says(retry: dict[str, Any], delays: list[int]) -> None:
    run = Run([tool("a", retry={"maxAttempts": 4, **retry})])
    waited: list[int] = []

    def answer(ask: Any) -> Any:
        waited.extend([ask["delay_ms"]] if ask["kind"] == "timer" else [])
        return Failure() if ask["kind"] == "call" else None

    run.through(answer)
    assert waited == delays
    assert run.log == ["a#1", "a#2.delay", "a#2", "a#3.delay", "a#3", "a#4.delay", "a#4"]


def test_jitter_takes_a_share_off_and_comes_from_the_seed() -> None:
    def delay(seed: str) -> int:
        run = Run([tool("a", retry={"maxAttempts": 2, "delayMs": 10_000, "jitter": 0.5})], seed=seed)
        return int(run.hear("a#1", Failure()).asks["a#2.delay"]["delay_ms"])

    found = [delay(f"seed {number}") for number in range(40)]
    assert found == [delay(f"seed {number}") for number in range(40)]
    assert len(set(found)) > 30
    assert all(5_000 <= one <= 10_000 for one in found)
    assert (min(found) < 6_000, max(found) > 9_000) == (True, True)


@pytest.mark.req("A-06")
def test_a_repair_is_run_by_the_host_and_never_believed() -> None:
    run = Run([code("a", onFailure={"fixer": {"model": "m", "maxAttempts": 2}})], value="{{ steps.a.output }}")
    planned = run.asks["a#1"]["task"]["step"]
    run.hear("a#1", Failure("engine.runtime"))
    first = run.asks["a#1.fix1"]
    assert (first["role"], first["task"]["kind"], first["task"]["priorFixAttempts"]) == ("fixer", "fix_step", 0)
    assert first["task"]["originalAttemptError"]["code"] == "engine.runtime"
    run.hear("a#1.fix1", {"kind": "fix_step", "output": "claimed", "fixedSource": "better", "attempts": 1})
    again = run.asks["a#1.fixed1"]["task"]["step"]
    assert again == {**planned, "with": {**planned["with"], "source": "better"}}
    run.hear("a#1.fixed1", Failure("engine.timeout"))
    second = run.asks["a#1.fix2"]["task"]
    assert (second["priorFixAttempts"], second["step"]) == (1, planned)
    assert second["originalAttemptError"]["code"] == "engine.runtime"
    run.hear("a#1.fix2", {"kind": "fix_step", "output": "claimed", "fixedSource": "best", "attempts": 1})
    assert run.hear("a#1.fixed2", "real").through() == {"output": "real"}


@pytest.mark.req("A-46")
def test_repairs_that_do_not_help_are_a_failure_of_their_own() -> None:
    steps = [code("a", onFailure={"fixer": {"model": "m", "maxAttempts": 2}, "to": "b"}), tool("b")]
    run = Run(steps, value="{{ steps.a.error.code }}")
    assert run.through({"a": Failure(), "a#1.fix1": {"fixedSource": "x"}}) == {"output": "fixer.exhausted"}
    assert run.log == ["a#1", "a#1.fix1", "a#1.fixed1", "a#1.fix2", "b#1"]


def test_an_expression_that_cannot_be_evaluated_fails_its_step_without_a_call() -> None:
    end = Run([tool("a", args={"x": "{{ input.nope }}"}, retry={"maxAttempts": 3})], {"xs": 1}).through()
    assert end["error"]["code"] == "rule.error"
    assert end["error"]["message"].startswith("Step a (visit 0, attempt 1) failed: ")


def test_an_expression_that_does_not_compile_makes_no_program() -> None:
    with pytest.raises(RuleError) as caught:
        Run([tool("a", args={"x": "{{ nobody.knows }}"})])
    assert caught.value.code == "expr.unknown_root"


# ------------------------------------------------------------------------------------------------------ tasks


def test_prompts_are_filled_and_code_is_not() -> None:
    generate = {
        "id": "g", "uses": "ai.generate", "output": {"mode": "text"},
        "with": {"model": "m", "prompt": "{{ input.o }}", "system": "s {{ run.id }}", "tools": ["t"]},
    }  # fmt: skip
    run = Run([generate, code("c", input={"o": "{{ input.o }}"})], {"o": {"b": 1, "a": [2.0]}})
    asked = run.asks
    assert asked["g#1"]["role"] == "worker.ai-generate"
    assert asked["g#1"]["task"]["step"]["with"] == {
        "model": "m", "prompt": '{"a":[2],"b":1}', "system": "s r", "tools": ["t"]
    }  # fmt: skip
    assert asked["c#1"]["role"] == "worker.code-run"
    assert asked["c#1"]["task"]["step"]["with"]["source"].endswith("return {{}}")
    assert asked["c#1"]["task"]["stepInput"] == {"o": {"b": 1, "a": [2.0]}}


def test_a_prompt_that_comes_out_empty_is_no_prompt() -> None:
    generate = {
        "id": "g",
        "uses": "ai.generate",
        "with": {"model": "m", "prompt": "{{ '' }}"},
        "output": {"mode": "text"},
    }
    assert Run([generate]).through()["error"]["code"] == "step.empty_prompt"


@pytest.mark.parametrize("prompt", ["{{ input.text }} {{ input.text }}" * 9, "{{ size(input.text) }}" * 300])
def test_what_the_templates_of_a_step_read_and_give_together_is_bounded(prompt: str) -> None:
    generate = {"id": "g", "uses": "ai.generate", "with": {"model": "m", "prompt": prompt}, "output": {"mode": "text"}}
    run = Run([generate], {"text": "x" * 1_000_000})
    assert run.through()["error"]["code"] == "step.too_large"


def test_a_run_holds_no_more_than_it_may_of_what_its_steps_give() -> None:
    much = "x" * 30_000_000
    loop_of = Run([tool("t", maxVisits=20), choose("d", "t", to=("t", "end"), maxVisits=20)])
    assert loop_of.through(lambda ask: much if ask["path"].startswith("t") else "t")["error"]["code"] == "run.too_large"
    assert len(loop_of.log) == 2 * 8 + 1
    wide = Run([fan("f", [tool("s")], maxBranches=20), tool("after", "f")], {"xs": [*"abcdefghijklmnopqrst"]})
    assert wide.through(lambda ask: much)["error"]["code"] == "run.too_large"
    assert len(wide.log) < 12


def test_what_a_branch_keeps_for_itself_is_gone_with_it() -> None:
    steps = [tool("much"), tool("little", "much")]
    run = Run([fan("f", steps, maxBranches=20)], {"xs": [*"abcdefghijklmnopqrst"]})
    end = run.through(lambda ask: "x" * 30_000_000 if ask["path"].endswith("much") else "y")
    assert end == {"output": None}


def test_a_single_value_is_as_large_as_where_it_is_from() -> None:
    run = Run([{**tool("t"), "with": {"tool": "w", "args": {"text": "{{ input.text }}"}}}], {"text": "x" * 17_000_000})
    assert run.through() == {"output": None}


def test_a_decision_is_given_what_its_expressions_read_and_no_more() -> None:
    cases = [{"when": "steps.a.output > 1 && visit.index == 0", "to": "end"}, {"when": "input.x", "to": "fail"}]
    decide = {"id": "d", "uses": "decision", "needs": ["a", "b"], "with": {"cases": cases, "default": "end"}}
    run = Run([tool("a"), tool("b"), decide], {"x": False, "secret": 1})
    run.hear("a#1", 2).hear("b#1", 3)
    [ask] = run.asks.values()
    assert ask["role"] == "worker.code-run"
    assert ask["task"]["stepInput"] == {
        "input": {"x": False}, "steps": {"a": {"output": 2}}, "visit": {"index": 0}
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------ waits


def test_a_wait_is_a_timer_and_no_call() -> None:
    run = Run([{"id": "w", "uses": "wait", "with": {"durationMs": 60_000}}, tool("a", "w")], limit=1)
    assert [(ask["kind"], ask["delay_ms"]) for ask in run.asks.values()] == [("timer", 60_000)]
    assert list(run.hear("w#1").asks) == ["a#1"]
    assert run.through() == {"output": None}


def test_a_wait_for_an_event_has_what_it_brought() -> None:
    settings = {"event": "payment.received", "limitMs": 5}
    wait = {"id": "w", "uses": "wait", "with": settings, "output": {"mode": "object", "schema": {"required": ["sum"]}}}
    run = Run([wait], value="{{ steps.w.output.sum }}")
    [ask] = run.asks.values()
    assert (ask["kind"], ask["event"], ask["limit_ms"]) == ("event", "payment.received", 5)
    assert run.through({"w": {"sum": 7}}) == {"output": 7}
    assert Run([wait]).through({"w": {"sun": 7}})["error"]["code"] == "wait.output_mismatch"
    late = Run([{**wait, "onFailure": {"to": "remind"}}, tool("remind")])
    late.through({"w": Failure("wait.limit")})
    assert late.log == ["w#1", "remind#1"]


def test_a_wait_is_over_when_the_run_has_failed() -> None:
    run = Run([{"id": "w", "uses": "wait", "with": {"durationMs": 60_000}}, tool("a")])
    assert run.hear("a#1", Failure()).asks == {}
    assert "error" in (end_of(run.state) or {})
    assert run.hear("w#1").asks == {}  # a timer that nobody could take back is heard, and changes nothing


# --------------------------------------------------------------------------------------------------- branches


@pytest.mark.req("A-94")
def test_branches_run_a_few_at_a_time_and_come_back_in_the_order_of_the_input() -> None:
    run = Run([fan("f", [tool("s", args={"item": "{{ item }}"}), tool("t", "s")])], {"xs": ["c", "a", "b/ü"]})
    assert list(run.asks) == ["f[c].s#1.1", "f[a].s#1.1"]
    run.hear("f[a].s#1.1", 1).hear("f[a].t#1.1", "A")
    assert list(run.asks) == ["f[c].s#1.1", "f[b%2F%C3%BC].s#1.1"]
    assert run.asks["f[b%2F%C3%BC].s#1.1"]["task"]["step"]["with"]["args"] == {"item": "b/ü"}
    run.through({"f[c].t": "C", "f[b%2F%C3%BC].s": Failure()})
    failed = {"code": "tool.gone", "message": "it is gone", "stepPath": "f[b%2F%C3%BC].s"}
    usual: dict[str, Any] = {"status": "completed", "error": None, "artifacts": []}
    assert run.state["root"]["steps"]["f"]["output"] == [
        {"itemKey": "c", "output": "C", **usual},
        {"itemKey": "a", "output": "A", **usual},
        {"itemKey": "b/ü", **usual, "status": "failed", "output": None, "error": failed},
    ]


def test_branches_may_come_back_by_key_with_the_output_of_a_named_step() -> None:
    steps = [tool("s"), tool("t", "s")]
    fan_in = {"order": "itemKey", "outputStep": "s"}
    value = "{{ steps.f.output.map(b, b.output) }}"
    run = Run([fan("f", steps, fanIn=fan_in)], {"xs": ["b", "a"]}, value=value)
    assert run.through() == {"output": ["f[a].s", "f[b].s"]}


def test_the_first_branch_that_fails_stops_the_others() -> None:
    run = Run([fan("f", [tool("s"), tool("t", "s")], failureMode="fail_fast")], {"xs": ["a", "b", "c"]})
    run.hear("f[a].s#1.1", Failure())
    assert list(run.asks) == ["f[b].s#1.1"]
    run.hear("f[b].s#1.1", 1)
    message = "Step f[a].s (visit 0, attempt 1) failed: A branch failed: it is gone"
    assert end_of(run.state) == {"error": {"code": "tool.gone", "message": message}}


def test_branches_that_failed_may_be_tried_again_or_lead_somewhere() -> None:
    steps = [
        fan("f", [tool("s")], failureMode="fail_fast", retry={"maxAttempts": 2, "delayMs": 7}, onFailure={"to": "g"}),
        tool("g", args={"code": "{{ steps.f.error.code }}"}),
    ]
    run = Run(steps, {"xs": ["a"]})
    run.hear("f[a].s#1.1", Failure()).hear("f#2.delay").hear("f[a].s#2.1", Failure("tool.again"))
    assert run.asks["g#1"]["task"]["step"]["with"]["args"] == {"code": "tool.again"}


def test_branches_lie_within_branches_and_read_what_is_around_them() -> None:
    inner = fan("g", [tool("s", args={"x": "{{ item }} of {{ steps.a.output }}"})], items="{{ item.ys }}")
    outer = fan("f", [inner], "a", itemKey="{{ item.k }}", items="{{ input.xs }}", maxConcurrency=9)
    run = Run([tool("a"), outer], {"xs": [{"k": "p", "ys": ["q", "r"]}, {"k": "o", "ys": []}]})
    run.hear("a#1", "A")
    assert list(run.asks) == ["f[p].g[q].s#1.1.1", "f[p].g[r].s#1.1.1"]
    assert run.asks["f[p].g[r].s#1.1.1"]["task"]["step"]["with"]["args"] == {"x": "r of A"}
    run.through()
    first, second = run.state["root"]["steps"]["f"]["output"]
    assert [one["itemKey"] for one in first["output"]] == ["q", "r"]
    assert (second["status"], second["output"]) == ("completed", [])


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("text", "parallel.items_not_array"),
        (["a", "a"], "parallel.duplicate_key"),
        ([*"abcdefghij"], "parallel.too_many_items"),
        (["a", "\u00fc" * 129], "parallel.key_too_long"),
    ],
)
def test_items_that_make_no_branches_fail_the_step(given: Any, code: str) -> None:
    run = Run([fan("f", [tool("s")], retry={"maxAttempts": 3})], {"xs": given})
    assert run.asks == {}
    assert (end_of(run.state) or {})["error"]["code"] == code


def test_a_loop_within_a_branch_is_the_branchs_own() -> None:
    steps = [tool("s", maxVisits=2), choose("d", "s", to=("s", "end"), maxVisits=2)]
    run = Run([fan("f", steps, fanIn={"outputStep": "s"})], {"xs": ["a", "b"]}, value="{{ steps.f.output[0].output }}")
    answers = {"f[a].d.visit[0]": "s", "f[a].d.visit[1]": "end", "f[b].d.visit[0]": "end"}
    assert run.through(answers) == {"output": "f[a].s.visit[1]"}


# ----------------------------------------------------------------------------------- limits, ends, the last step


def test_a_run_makes_no_more_calls_than_its_plan_allows() -> None:
    run = Run([fan("f", [tool("s")], onFailure={"to": "end"}), tool("b", "f")], {"xs": [*"abcd"]}, limit=3)
    end = run.through()
    assert end["error"]["code"] == "limits.max_step_executions"
    assert run.log == ["f[a].s#1.1", "f[b].s#1.1", "f[c].s#1.1"]


def test_the_last_step_runs_once_whatever_the_end() -> None:
    last = tool(
        "z", args={"b": "{{ has(steps.b.output) }}", "why": "{{ has(steps.a.error) }}"}, retry={"maxAttempts": 2}
    )
    for answers, end in (({}, {"output": "b"}), ({"b": Failure()}, None)):
        run = Run([tool("a"), tool("b", "a")], last=last, value="{{ steps.b.output }}", limit=2)
        found = run.through({**answers, "z#1": Failure("tool.z")})
        assert run.log == ["a#1", "b#1", "z#1", "z#2"]
        assert found == end or found["error"]["code"] == "tool.gone"


def test_the_branches_of_a_last_step_run_though_the_calls_of_the_others_are_used_up() -> None:
    last = fan("z", [tool("s")])
    run = Run([tool("a"), tool("b", "a")], {"xs": ["p", "q"]}, last=last, limit=1)
    assert run.through()["error"]["code"] == "limits.max_step_executions"
    assert run.log == ["a#1", "z[p].s#1.1", "z[q].s#1.1"]


def test_a_plan_may_have_nothing_but_a_last_step() -> None:
    run = Run([], last=tool("z"), value="done")
    assert run.through() == {"output": "done"}
    assert run.log == ["z#1"]


def test_the_last_step_runs_when_no_call_is_open_any_more() -> None:
    run = Run([tool("a"), tool("b")], last=tool("z"))
    assert list(run.hear("a#1", Failure()).asks) == ["b#1"]
    assert list(run.hear("b#1").asks) == ["z#1"]


def test_a_last_step_that_fails_never_hides_what_failed_before() -> None:
    bad = Run([tool("a")], last=tool("z")).through({"a": Failure(), "z": Failure("tool.z")})
    assert bad["error"]["code"] == "tool.gone"
    assert bad["error"]["message"].startswith(
        "Step a (visit 0, attempt 1) failed: it is gone The last step failed too: "
    )
    good = Run([tool("a")], last=tool("z")).through({"z": Failure("tool.z")})
    assert good["error"]["code"] == "tool.z"


def test_input_and_output_are_what_the_plan_says() -> None:
    plan = document([tool("a")], value="{{ steps.a.output }}")
    plan["input"]["schema"] = {"type": "object", "required": ["x"]}
    plan["output"]["schema"] = {"type": "string"}
    program = program_of(Workflow.from_wire(plan), RULES)
    about: dict[str, Any] = {"run": {"id": "r", "attempt": 1}, "seed": "s"}
    refused = end_of(start(program, {}, **about))
    assert refused is not None
    assert refused["error"]["code"] == "input.schema_mismatch"
    state = start(program, {"x": 1}, **about)
    ended = end_of(apply(program, state, Outcome(request_id="a#1", ok=True, value=7)))
    assert ended is not None
    assert ended["error"]["code"] == "output.schema_mismatch"


def test_an_output_that_cannot_be_put_together_fails_the_run() -> None:
    end = Run([tool("a")], value="{{ steps.a.output.nope }}").through({"a": {"yes": 1}})
    assert end["error"]["code"] == "rule.error"
    assert end["error"]["message"].startswith("The output of the run cannot be put together: ")


# ------------------------------------------------------------------------------------------------------- size


def changed(before: Any, after: Any) -> int:
    """How many places of a state are not those of the state before."""
    if after is before or not isinstance(after, (dict, list)):
        return 0
    old = before if type(before) is type(after) else type(after)()
    items = after.items() if isinstance(after, dict) else enumerate(after)
    known = old if isinstance(old, dict) else dict(enumerate(old))
    return len(after) + sum(changed(known.get(key), item) for key, item in items)


class Counted:
    """What running some branches took: the calls open side by side, and the places that an outcome writes."""

    def __init__(self, branches: int) -> None:
        steps = [fan("f", [tool("s", args={"n": "{{ item.n }}"}), tool("t", "s")], maxConcurrency=10)]
        steps[0]["with"] |= {"itemKey": "{{ item.k }}", "maxBranches": 10_000}
        run = Run(steps, {"xs": [{"k": f"k{number}", "n": number} for number in range(branches)]})
        self.most_changed = self.most_open = self.outcomes = 0
        while asks := run.asks:
            self.most_open = max(self.most_open, len(asks))
            before = run.state
            run.hear(next(iter(asks)), "done")
            if run.asks:  # the last one puts the envelopes together
                self.most_changed = max(self.most_changed, changed(before, run.state))
            self.outcomes += 1
        self.state = run.state


def test_a_branch_of_ten_thousand_costs_what_a_branch_of_a_hundred_costs() -> None:
    small, large = Counted(100), Counted(10_000)
    assert (small.outcomes, large.outcomes) == (200, 20_000)
    assert small.most_open == large.most_open == 10
    assert large.most_changed <= small.most_changed + 64  # one more level of the table of envelopes
    assert "output" in (end_of(large.state) or {})
    envelopes = large.state["root"]["steps"]["f"]["output"]
    assert len(codec.dumps(large.state["root"])) < 10_000 + 120 * len(envelopes)  # nothing is left of the branches
