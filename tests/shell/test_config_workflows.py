"""Workflows of a configuration: what cannot be meant is said with its place when it is read, and not by a session."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from harness_core.settings.harness import HarnessSettings
from harness_core.settings.lint import lint
from harness_core.settings.models import ModelsSettings
from harness_core.settings.references import check_references
from harness_core.settings.stages import StagesSettings

MODELS = ModelsSettings.model_validate({"default": "m", "models": {"m": {"provider": "p"}}})


@pytest.mark.parametrize(
    ("workflow", "place", "said"),
    [
        ({"input": {"type": "nosuch"}}, ("input",), "at /type"),
        ({"input": {"properties": {"name": {"pattern": "("}}}}, ("input",), "at /properties/name/pattern"),
        ({"output": {"$ref": "#/$defs/gone"}}, ("output",), "no JSON Schema"),
        ({"output": {"$ref": "https://elsewhere.example/schema"}}, ("output",), "no JSON Schema"),
    ],
)
def test_a_schema_of_a_definition_that_is_none_is_found_where_it_stands(
    workflow: Any, place: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        StagesSettings.model_validate({"workflows": {"jobs": workflow}})
    [problem] = caught.value.errors()
    assert problem["loc"][:3] == ("workflows", "jobs", *place)
    assert said in problem["msg"]


def test_a_definition_whose_model_is_not_there_is_found_before_anything_runs() -> None:
    settings = StagesSettings.model_validate({"workflows": {"jobs": {"models": {"words": {"bind": "nobody"}}}}})
    [(path, problem)] = check_references(HarnessSettings(), MODELS, settings)
    assert path == ("workflows", "jobs", "models", "words", "bind")
    assert 'no model "nobody"' in problem.message


@pytest.mark.parametrize("name", ["wfv_", "wfv_1234", "Upper", "a b", "grüße", "", "_a", "a" * 101])
def test_a_workflow_cannot_be_called_like_that(name: str) -> None:
    with pytest.raises(ValidationError):
        StagesSettings.model_validate({"workflows": {name: {}}})


def test_a_model_of_a_workflow_has_a_name() -> None:
    with pytest.raises(ValidationError):
        StagesSettings.model_validate({"workflows": {"jobs": {"models": {"": {}}}}})


@pytest.mark.parametrize(
    ("executor", "keys"),
    [
        ("agent", ["plan", "workflow", "workflows"]),
        ("workflow", ["workflows"]),
        ("some-plugin:workflow", ["workflows"]),
        ("orchestrate", ["plan", "workflow"]),
        ("of-a-plugin", []),
    ],
)
def test_what_the_executor_of_a_stage_does_not_look_at_is_warned_about(executor: str, keys: list[str]) -> None:
    said = {"plan": {}, "workflow": "jobs", "workflows": ["jobs"]}
    stage = {"role": "r", "executor": executor, "on_success": "end", **said}
    settings = StagesSettings.model_validate({"workflows": {"jobs": {}}, "stages": {"s": stage}})
    assert [(path[2], problem.code) for path, problem in lint(settings)] == [(key, "config.not_heeded") for key in keys]
