"""Findings under a schema: each has its keyword and its place, schemas are compiled once, and broken ones are told."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness_core.settings.paths import ConfigPath
from harness_core.shell import schemas
from harness_core.shell.config.shapes import Shape
from harness_core.shell.config.typing import Section
from harness_core.shell.config.validated import section_problems
from harness_core.shell.schemas import MAX_COMPILED, schema_findings
from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit.frozen import freeze
from harness_hookspecs.kit.json_schema import compiled_schema

SCHEMA = {
    "type": "object",
    "properties": {"a/b": {"type": "integer"}, "c": {"type": "array", "items": {"type": "string"}}},
    "required": ["c"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The schemas that were compiled, beginning with none kept."""
    seen: list[Any] = []
    real = compiled_schema

    def compiles(schema: Any) -> Any:
        seen.append(schema)
        return real(schema)

    monkeypatch.setattr(schemas, "_COMPILED", {})
    monkeypatch.setattr(schemas, "compiled_schema", compiles)
    return seen


def test_a_finding_has_its_keyword_its_pointer_and_its_sentence() -> None:
    found = schema_findings(freeze(SCHEMA), freeze({"a/b": "1", "d": 1}))
    assert [(one["code"], one["severity"], one["path"]) for one in found] == [
        ("schema.additionalProperties", "error", ""),
        ("schema.required", "error", ""),
        ("schema.type", "error", "/a~1b"),
    ]
    assert found[2]["message"] == '"1" is not of type "integer"'


def test_findings_are_few_and_short_whatever_is_wrong() -> None:
    found = schema_findings(SCHEMA, {"c": [["x" * 10_000]] * 100})
    assert [one["path"] for one in found][:3] == ["/c/0", "/c/1", "/c/10"]
    assert len(found) == 20
    assert {len(one["message"]) for one in found} == {300}


def test_a_schema_is_compiled_once_and_kept_under_what_stands_for_it(compiled: list[Any]) -> None:
    for _ in range(3):
        assert schema_findings(SCHEMA, {"c": []}) == []
        assert schema_findings(SCHEMA, {"c": []}, schema_hash="sha256:1") == []
    assert len(compiled) == 2


def test_only_so_many_schemas_are_kept(compiled: list[Any]) -> None:
    for number in range(MAX_COMPILED + 5):
        assert schema_findings({"const": number}, number) == []
    assert len(schemas._COMPILED) == MAX_COMPILED
    assert schema_findings({"const": 0}, 1) != []  # the oldest, compiled again
    assert len(compiled) == MAX_COMPILED + 6


def test_many_threads_find_the_same_in_more_schemas_than_are_kept() -> None:
    wrong: list[int] = []

    def is_wrong(number: int) -> bool:
        return bool(schema_findings({"const": number}, number)) or not schema_findings({"const": number}, "x")

    def judge() -> None:
        wrong.extend(filter(is_wrong, range(2 * MAX_COMPILED)))

    threads = [threading.Thread(target=judge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(schemas._COMPILED) <= MAX_COMPILED


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ({"type": "nope"}, "plugin.schema_invalid"),
        ({"$ref": "https://example.org/s.json"}, "plugin.schema_unresolvable"),
        ({"not": {"$ref": "#"}}, "plugin.schema_too_complex"),
    ],
)
def test_a_broken_schema_is_an_error_of_its_own_and_no_finding(broken: dict[str, Any], code: str) -> None:
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            schema_findings(broken, {})
        assert caught.value.code == code


def test_a_plugin_s_broken_schema_is_a_problem_of_its_section() -> None:
    shape = Shape.of({"type": "object", "properties": {"depth": {"type": "nope"}}})
    sections: dict[ConfigPath, Section] = {("plugins", "settings", "acme"): Section("tool", "acme", shape)}
    document = {"harness": {"plugins": {"settings": {"acme": {"depth": 1}}}}}
    problems, _ = section_problems(sections, document, None)
    [problem] = problems
    assert (problem.code, problem.path) == ("config.invalid", "plugins.settings.acme")
    assert "schema is broken: /properties/depth/type" in problem.message
