"""The promises of kind ``workflow``: the definition of a workflow goes in, the rules that it breaks come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.workflow_definition import WorkflowDefinition

from .rules import Contract, rule

__all__ = ["WorkflowContract"]


class WorkflowContract(Contract):
    """What every definition keeps, as an offer builds it."""

    def subject(self) -> WorkflowDefinition:
        """The definition under test, built anew at each call."""
        raise NotImplementedError("override subject()")

    @rule("workflow.is_a_definition")
    def test_it_is_a_definition(self) -> None:
        assert isinstance(self.subject(), WorkflowDefinition), "define_workflow makes one"

    @rule("workflow.is_the_same_twice")
    def test_it_is_the_same_each_time(self) -> None:
        first, second = (_document(self.subject()) for _ in range(2))
        assert digest(first) == digest(second), "a session that is resumed would meet another one"

    @rule("workflow.says_what_it_is_for")
    def test_it_says_in_a_line_what_it_is_for(self) -> None:
        said = getattr(self.subject(), "description", None)
        assert said and said == " ".join(said.split()), "it stands in lists, and a model chooses by it"

    @rule("workflow.schemas_are_in_one_piece")
    def test_its_schemas_refer_to_nothing(self) -> None:
        for schema in (_part(self.subject(), "input"), _part(self.subject(), "output")):
            for one in _walk(schema):
                assert "$ref" not in one, "a decoder wants the schema in one piece, and so do plans"


def _document(subject: Any) -> Any:
    return subject.model_dump(mode="json") if isinstance(subject, WorkflowDefinition) else repr(type(subject))


def _part(subject: Any, name: str) -> Any:
    return _document(subject)[name] if isinstance(subject, WorkflowDefinition) else True


def _walk(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for one in schema.values():
            yield from _walk(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _walk(one)
