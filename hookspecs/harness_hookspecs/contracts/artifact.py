"""The promises of kind ``artifact``: an artifact type goes in, the rules that it breaks come out."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

import pytest

from harness_hookspecs.artifact import ArtifactStatus, ArtifactType, Narrows
from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.json_schema import best_fault, compiled_schema

from .rules import Contract, rule

__all__ = ["ArtifactContract", "sample_of"]

_FACTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"changed_files": ["README.md", "src/a b.py", "ü.txt"]},
    {"changed_files": [f"src/file_{number}.py" for number in range(1_000)]},
    {"changed_files": []},
    {"changed_files": None},
    {},
)


def sample_of(schema: Any) -> Any:
    """One value that a bounded schema allows: every field, short lists, shortest texts; an example if given."""
    if not isinstance(schema, Mapping):
        return None
    if schema.get("examples"):
        return schema["examples"][0]
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return sample_of(choices[0])
    return _sample_of_type(schema, schema.get("type"))


def _sample_of_type(schema: Mapping[str, Any], kind: Any) -> Any:
    if kind == "object":
        return {name: sample_of(inner) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        length = min(schema.get("maxItems", 1), max(schema.get("minItems", 0), 2))
        return [sample_of(schema.get("items"))] * length
    if kind == "string":
        return "x" * max(schema.get("minLength", 0), 1)
    return True if kind == "boolean" else schema.get("minimum", 0) if kind in {"integer", "number"} else None


def _walk(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        inner = [schema.get("items"), *schema.get("properties", {}).values()]
        for key in ("anyOf", "oneOf", "allOf"):
            inner += schema.get(key, [])
        for one in inner:
            yield from _walk(one)


class ArtifactContract(Contract):
    """What every artifact type keeps."""

    def subject(self) -> ArtifactType:
        """The type under test."""
        raise NotImplementedError("override subject()")

    def output(self) -> Any:
        """An output that the type takes; overridden where the schema's sample is none."""
        return sample_of(self.subject().schema())

    @rule("artifact.schema_is_closed")
    def test_the_schema_is_valid_and_each_object_is_closed(self) -> None:
        schema = self.subject().schema()
        compiled_schema(schema)
        assert schema["type"] == "object"
        for one in _walk(schema):
            assert "$ref" not in one, "a decoder wants the schema in one piece"
            if one.get("type") == "object":
                assert one.get("additionalProperties") is False

    @rule("artifact.schema_is_bounded")
    def test_each_text_and_list_is_bounded(self) -> None:
        for one in _walk(self.subject().schema()):
            if one.get("type") == "string":
                assert {"maxLength", "enum", "const"} & one.keys()
            if one.get("type") == "array":
                assert "maxItems" in one
                assert isinstance(one.get("items"), Mapping)

    @rule("artifact.takes_what_its_schema_allows")
    def test_an_output_of_the_schema_becomes_a_body_with_a_status(self) -> None:
        subject, output = self.subject(), self.output()
        assert best_fault(compiled_schema(subject.schema()), output) is None
        parsed = subject.parse(output)
        assert parsed.status in get_args(ArtifactStatus)
        assert codec.loads(codec.dumps(parsed.body)) == parsed.body
        assert all(finding.severity == "warning" for finding in parsed.warnings)

    @rule("artifact.refuses_with_a_pointer")
    def test_a_wrong_field_is_refused_and_located(self) -> None:
        output = self.output()
        for name in output:
            assert f"/{name}" in self._paths({**output, name: {"not": "it"}}), f"{name} is not located"

    @rule("artifact.refuses_with_a_pointer")
    def test_a_missing_or_unknown_field_is_refused(self) -> None:
        output = self.output()
        for name in self.subject().schema().get("required", ()):
            assert self._paths({key: value for key, value in output.items() if key != name})
        assert self._paths({**output, "surely_unknown": 1})

    def _paths(self, output: Any) -> list[str]:
        with pytest.raises(ValidationFailed) as caught:
            self.subject().parse(output)
        assert caught.value.code == "payload.invalid"
        findings = caught.value.facts["findings"]
        assert findings
        assert all(finding["message"] and finding["code"] for finding in findings)
        assert all(finding["path"] == "" or finding["path"].startswith("/") for finding in findings)
        return ["/" + finding["path"].split("/")[1] if finding["path"] else "" for finding in findings]

    @rule("artifact.prose_is_no_artifact")
    def test_what_is_no_object_is_refused(self) -> None:
        for output in ("It is all done.", None, [], 7, [self.output()], codec.dumps(self.output()).decode()):
            assert self._paths(output)

    @rule("artifact.parse_is_stable")
    def test_a_body_parses_to_itself_and_the_output_is_untouched(self) -> None:
        subject, output = self.subject(), self.output()
        before = copy.deepcopy(output)
        first = subject.parse(output)
        assert output == before
        again = subject.parse(first.body)
        assert (again.body, again.status) == (first.body, first.status)

    @rule("artifact.narrowing_only_tightens")
    def test_a_narrowed_schema_allows_no_more_than_the_whole_one(self) -> None:
        subject = self.subject()
        if not isinstance(subject, Narrows):
            return
        schema = subject.schema()
        before = copy.deepcopy(schema)
        for facts in _FACTS:
            narrowed = subject.narrow(schema, facts)
            assert schema == before, "the whole schema was changed"
            sample = sample_of(narrowed)
            assert best_fault(compiled_schema(narrowed), sample) is None
            assert best_fault(compiled_schema(schema), sample) is None
            subject.parse(sample)

    @rule("artifact.is_the_same_twice")
    def test_name_validators_and_schema_do_not_change(self) -> None:
        one, two = self.subject(), self.subject()
        assert one.name
        facts = [(each.name, list(each.validators), codec.dumps(each.schema())) for each in (one, two, one)]
        assert facts[0] == facts[1] == facts[2]
