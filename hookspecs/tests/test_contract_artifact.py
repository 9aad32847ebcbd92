from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.contracts.artifact import ArtifactContract, sample_of
from harness_hookspecs.contracts.rules import complaints
from harness_hookspecs.errors import ValidationFailed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "title": {"type": "string", "maxLength": 20},
        "files": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 90}},
    },
    "required": ["title", "files"],
}


class PlainType:
    """Keeps every rule with as little as possible."""

    name = "plain"
    validators = ("changed_files",)

    def schema(self) -> Mapping[str, Any]:
        return SCHEMA

    def narrow(self, schema: Mapping[str, Any], facts: Mapping[str, Any]) -> Mapping[str, Any]:
        names = [name for name in facts.get("changed_files") or () if len(name) <= 90]
        if not names:
            return schema
        return self.with_files(schema, {**schema["properties"]["files"], "items": {"enum": names}})

    def with_files(self, schema: Mapping[str, Any], files: Any) -> Mapping[str, Any]:
        return {**schema, "properties": {**schema["properties"], "files": files}}

    def parse(self, output: Any) -> ParsedArtifact:
        problems = list(Draft202012Validator(SCHEMA).iter_errors(self.read(output)))
        if problems:
            raise ValidationFailed("no", code="payload.invalid", findings=[self.finding(one) for one in problems])
        return ParsedArtifact(self.body(output), "success")

    def read(self, output: Any) -> Any:
        return output

    def finding(self, problem: Any) -> dict[str, str]:
        path = "".join(f"/{part}" for part in problem.absolute_path)
        return {"code": "payload.schema", "path": path, "message": "wrong"}

    def body(self, output: Any) -> Mapping[str, Any]:
        return dict(output)


def _with(**changed: Any) -> Callable[[Any], PlainType]:
    return lambda suite: type("Broken", (PlainType,), changed)()


def _schema(**changed: Any) -> Mapping[str, Any]:
    return {**SCHEMA, "properties": {**SCHEMA["properties"], **changed}}


_COUNTER = count()

BROKEN = {
    "artifact.schema_is_closed": _with(schema=lambda self: {**SCHEMA, "additionalProperties": True}),
    "artifact.schema_is_bounded": _with(schema=lambda self: _schema(title={"type": "string"})),
    "artifact.takes_what_its_schema_allows": _with(body=lambda self, output: {**output, "files": {1, 2}}),
    "artifact.refuses_with_a_pointer": _with(
        finding=lambda self, problem: {"code": "payload.schema", "path": "somewhere", "message": "wrong"}
    ),
    "artifact.prose_is_no_artifact": _with(
        read=lambda self, output: output if isinstance(output, dict) else {"title": str(output)[:20], "files": []},
        body=lambda self, output: output if isinstance(output, dict) else {"title": str(output)[:20], "files": []},
    ),
    "artifact.parse_is_stable": _with(body=lambda self, output: {**output, "title": output["title"] + "!"}),
    "artifact.narrowing_only_tightens": _with(
        with_files=lambda self, schema, files: PlainType.with_files(self, schema, {"enum": [7]})
    ),
    "artifact.is_the_same_twice": _with(
        schema=lambda self: _schema(title={"type": "string", "maxLength": 20 + next(_COUNTER)})
    ),
}


def test_each_rule_of_the_suite_bites() -> None:
    assert complaints(ArtifactContract, good=lambda _: PlainType(), broken=BROKEN, at_most=2) == []


@pytest.mark.parametrize(
    ("schema", "sample"),
    [
        (SCHEMA, {"title": "x", "files": ["x", "x"]}),
        ({"type": "array", "maxItems": 1, "items": {"const": 3}}, [3]),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        ({"type": "integer", "minimum": 4}, 4),
        ({"type": "string", "minLength": 3}, "xxx"),
        (True, None),
    ],
)
def test_a_sample_satisfies_its_schema(schema: Any, sample: Any) -> None:
    assert sample_of(schema) == sample
    Draft202012Validator(schema).validate(sample)
