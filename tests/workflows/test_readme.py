"""The examples of the executor's README: each is a plan, and runs to its end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness_core.settings.stages import StagesSettings
from harness_core.shell.definitions import snapshot_wire
from harness_core.shell.toolbox import Toolbox
from harness_executor_workflow.executor import WorkflowExecutor
from harness_executor_workflow.running.program import program_of
from harness_executor_workflow.running.run import apply, end_of, next_asks, start
from harness_hookspecs.executor import Compile, Fail, Outcome, RoleCall, StageInput
from harness_hookspecs.kit import codec
from harness_hookspecs.workflow import Workflow
from harness_rules_cel.rules import CelRules

from .plans import document

README = Path(__file__).parents[2] / "plugins/harness-executor-workflow/README.md"
SECTIONS = [section.partition("\n") for section in README.read_text(encoding="utf-8").split("\n## ")[1:]]
BLOCKS = [(title, block) for title, _, text in SECTIONS for block in re.findall("```json\n(.*?)```", text, re.DOTALL)]
STAGES = re.findall("```yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
GIVEN = {"repos": [{"name": "b", "files": ["x", "y"]}, {"name": "a", "files": []}]}
FAILED = {"name": "ToolError", "code": "tool.gone", "message": "it is gone"}

PATHS: dict[str, tuple[set[str], list[str]]] = {
    "Waiting": ({"payment"}, ["cool_down#1", "payment#1", "remind#1"]),
    "Trying again, later": (
        {"fetch"}, ["fetch#1", "fetch#2.delay", "fetch#2", "fetch#3.delay", "fetch#3", "fetch#4.delay", "fetch#4"],
    ),
    "What went wrong": ({"fetch"}, ["fetch#1", "explain#1", "report#1"]),
    "The last step": ({"work"}, ["work#1", "tidy#1"]),
    "Branches in branches": (set(), ["each_repo[b].each_file[x].scan#1.1.1", "each_repo[b].each_file[y].scan#1.1.1"]),
}  # fmt: skip


def test_the_stage_of_the_readme_runs() -> None:
    stage = yaml.safe_load(STAGES[0])["stages"]["note"]
    program = program_of(Workflow.from_wire(stage["plan"]), CelRules())
    state = start(program, {"task": "the news"}, run={"id": "r", "attempt": 1}, seed="s")
    prompts = []
    while end_of(state) is None:
        [ask] = next_asks(program, state)
        prompts.append(ask["task"]["step"]["with"]["prompt"])
        state = apply(program, state, Outcome(request_id=ask["id"], ok=True, value=ask["path"]))
    assert prompts == ["Draft: the news", "Polish: draft"]
    assert end_of(state) == {"output": {"text": "polish"}}


def test_the_stage_of_the_readme_that_names_a_workflow_asks_its_planner_as_the_table_says() -> None:
    _, block = STAGES
    defined = StagesSettings.model_validate(yaml.safe_load(block)).workflows["welcome"]
    definition = snapshot_wire("welcome", defined, Toolbox([]), default="writer")
    about = {"stage": "main", "visit_index": 1, "attempt": 1, "persona": "host", "model": "writer", "max_turns": 9}
    given = StageInput(**about, prompt='{"name": "Ann"}', context="", definition=definition, plan_form="sketch")
    subject, rounds = WorkflowExecutor(CelRules), []
    state = subject.start(given)
    while not isinstance(asked := subject.next(state)[0], Fail):
        if isinstance(asked, RoleCall):
            rounds.append(asked.task)
            told = Outcome(request_id=asked.request_id, ok=True, value={"lwir": {"steps": len(rounds)}})
        else:
            assert isinstance(asked, Compile)
            error = {**FAILED, "details": {"findings": [{"code": "document.kind", "path": ""}]}}
            told = Outcome(request_id=asked.request_id, ok=False, error=error)
        state = subject.apply(state, told)
    assert asked.code == "workflow.not_planned"
    first, last = rounds
    assert (first["form"], first["input"], "outerLoopContext" in first) == ("sketch", {"name": "Ann"}, False)
    assert first["workflowSnapshot"] == last["workflowSnapshot"] == definition
    outer = last["outerLoopContext"]
    assert (outer["cycleNumber"], outer["maxCycles"], outer["isFinalCycle"]) == (2, 2, True)
    assert outer["findings"] == [{"code": "document.kind", "path": ""}]
    assert (outer["priorLwir"], outer["priorCycles"]) == ({"steps": 1}, [])


def test_each_addition_has_an_example() -> None:
    assert [title for title, _ in BLOCKS] == list(PATHS)


@pytest.mark.parametrize(("title", "block"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_an_example_runs_as_it_says(title: str, block: str) -> None:
    failing, expected = PATHS[title]
    fragment: Any = codec.loads(block)
    plan = Workflow.from_wire({**document([]), **fragment})
    program = program_of(plan, CelRules())
    state = start(program, GIVEN, run={"id": "r", "attempt": 1}, seed="s")
    asked = []
    while end_of(state) is None:
        ask = next_asks(program, state)[0]
        asked.append(ask["id"])
        fails = ask["path"] in failing and ask["kind"] != "timer"
        told = Outcome(
            request_id=ask["id"], ok=not fails, value=None if fails else "x", error=FAILED if fails else None
        )
        state = apply(program, state, told)
    assert asked == expected
