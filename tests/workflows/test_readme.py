"""The examples of the executor's README: each is a plan, and runs to its end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness_executor_workflow.running.program import program_of
from harness_executor_workflow.running.run import apply, end_of, next_asks, start
from harness_hookspecs.executor import Outcome
from harness_hookspecs.kit import codec
from harness_hookspecs.workflow import Workflow
from harness_rules_cel.rules import CelRules

from .plans import document

README = Path(__file__).parents[2] / "plugins/harness-executor-workflow/README.md"
SECTIONS = [section.partition("\n") for section in README.read_text(encoding="utf-8").split("\n## ")[1:]]
BLOCKS = [(title, block) for title, _, text in SECTIONS for block in re.findall("```json\n(.*?)```", text, re.DOTALL)]
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
    [block] = re.findall("```yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    stage = yaml.safe_load(block)["stages"]["note"]
    program = program_of(Workflow.from_wire(stage["plan"]), CelRules())
    state = start(program, {"task": "the news"}, run={"id": "r", "attempt": 1}, seed="s")
    prompts = []
    while end_of(state) is None:
        [ask] = next_asks(program, state)
        prompts.append(ask["task"]["step"]["with"]["prompt"])
        state = apply(program, state, Outcome(request_id=ask["id"], ok=True, value=ask["path"]))
    assert prompts == ["Draft: the news", "Polish: draft"]
    assert end_of(state) == {"output": {"text": "polish"}}


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
