"""The suite of kind ``workflow`` finds each definition that breaks a rule of it."""

from __future__ import annotations

from itertools import count
from typing import Any

from harness_hookspecs import define_workflow
from harness_hookspecs.contracts.rules import complaints
from harness_hookspecs.contracts.workflow import WorkflowContract

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
NAMED = {"$defs": {"a": {"type": "string"}}, "properties": {"name": {"$ref": "#/$defs/a"}}}
_COUNTER = count()


def good(_: Any) -> Any:
    return define_workflow(description="Greets somebody.", input=SCHEMA)


BROKEN = {
    "workflow.is_a_definition": lambda _: {"description": "Greets somebody."},
    "workflow.is_the_same_twice": lambda _: define_workflow(description=f"Greets the {next(_COUNTER)}th."),
    "workflow.says_what_it_is_for": lambda _: define_workflow(description="Greets\nsomebody."),
    "workflow.schemas_are_in_one_piece": lambda _: define_workflow(description="Greets.", output=NAMED),
}


def test_each_rule_of_the_suite_bites() -> None:
    assert complaints(WorkflowContract, good=good, broken=BROKEN, at_most=2) == []
