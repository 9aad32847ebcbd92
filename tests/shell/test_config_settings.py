"""The settings models: every field explained, every limit finite, published as they are, linted where they deceive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pytest
from pydantic import ValidationError

from harness_core.cli.published import file_name, generated, published_names
from harness_core.kernel.approvals import Call
from harness_core.kernel.approvals import PolicyRule as Applied
from harness_core.settings.harness import Budget, HarnessSettings, RunSettings
from harness_core.settings.lint import lint
from harness_core.settings.models import ModelsSettings
from harness_core.settings.personas import persona_of
from harness_core.settings.policies import PoliciesSettings, PolicyRule
from harness_core.settings.references import check_references
from harness_core.settings.schemas import schemas
from harness_core.settings.stages import OutputLimits, Stage, StagesSettings
from harness_core.settings.transitions import rules_of
from harness_core.shell.config.core_shapes import read_schema
from harness_core.shell.config.shapes import Shape


def fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, definition in {"": schema, **schema.get("$defs", {})}.items():
        for key, field in definition.get("properties", {}).items():
            yield f"{name}.{key}", field


@pytest.mark.parametrize("name", sorted(schemas()))
def test_every_field_says_what_it_is_for(name: str) -> None:
    schema = schemas()[name]
    silent = [path for path, field in fields(schema) if len(Shape.of(field, schema).schema.get("description", "")) < 8]
    assert not silent


def test_the_published_schemas_are_the_models_own() -> None:
    kept = {name: read_schema(file_name(name)) for name in published_names()}
    made = generated()
    stale = sorted(name for name in kept.keys() | made.keys() if kept.get(name) != made.get(name))
    assert not stale, "python contrib/schemas.py writes them again"


@pytest.mark.parametrize("model", [RunSettings, Budget])
def test_every_limit_of_a_run_has_a_built_in_value_and_none_can_be_taken_away(
    model: type[RunSettings | Budget],
) -> None:
    for name in model.model_fields:
        assert getattr(model(), name) is not None
        with pytest.raises(ValidationError):
            model.model_validate({name: None})
        with pytest.raises(ValidationError):
            model.model_validate({name: float("inf")})


def test_settings_cannot_be_changed() -> None:
    models = ModelsSettings.model_validate({"models": {"m": {"provider": "p", "own": 1}}})
    with pytest.raises(ValidationError):
        setattr(models.models["m"], "context_size", 1)  # noqa: B010 - the assignment itself is a type error
    with pytest.raises(TypeError):
        models.models["n"] = models.models["m"]  # type: ignore[index]


def test_a_policy_rule_that_names_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="names at least one"):
        PoliciesSettings.model_validate({"rules": [{"mode": "auto"}]})


def test_a_policy_rule_knows_no_condition_that_the_kernel_does_not_look_at() -> None:
    conditions = {name for name in PolicyRule.model_fields if name != "mode"}
    assert conditions == {field.name for field in attrs.fields(Applied)} - {"mode", "origin"}
    call = Call(**dict.fromkeys(conditions, "said"))
    for name in conditions:
        said: dict[str, Any] = {name: "said"}
        other: dict[str, Any] = {name: "another"}
        assert Applied("deny", "rules.0", **said).covers(call)
        assert not Applied("deny", "rules.0", **other).covers(call)


def stage(**values: Any) -> Stage:
    return Stage.model_validate({"role": "x", **values})


def test_the_short_forms_are_rules_that_come_after_the_transitions() -> None:
    found = rules_of(
        stage(transitions=[{"goto": ["a", "b"], "when": "retries >= 3"}], on_failure="retry", on_success=["c", "d"])
    )
    assert [(rule.when, rule.goto) for rule in found] == [
        ("retries >= 3", ("a", "b")),
        ('artifact.status == "success"', ("c", "d")),
        ('artifact.status != "success"', ("retry",)),
    ]
    assert rules_of(stage(transitions=[{"goto": "end"}]))[0].when == "true"


RULE = 'artifact.status == "success"'


@pytest.mark.parametrize(
    ("expression", "most", "warned"),
    [
        ("retries > 3", 3, True),
        ("retries >= 3", 3, False),
        ("retries >= 4", 3, True),
        ("retries == 4", 3, True),
        ("3 < retries", 3, True),
        ("4 <= retries", 3, True),
        ('artifact.status == "x" && retries > 3', 3, True),
        ('artifact.status != "x" && retries > 3', 3, True),
        ("retries > 3 || stage == 's'", 3, False),
        ("!(retries > 3)", 3, False),
        ("retries < 9", 3, False),
        ("retries > 0", 1, False),
    ],
)
def test_a_rule_that_waits_for_more_failures_than_attempts_is_warned_about(
    expression: str, most: int, warned: bool
) -> None:
    settings = StagesSettings(
        stages={"s": stage(retry={"max_attempts": most}, transitions=[{"when": expression, "goto": "end"}])}
    )
    assert [problem.code for _, problem in lint(settings)] == (["config.never_fires"] if warned else [])


@pytest.mark.parametrize(
    ("rules", "where"),
    [
        ([{"goto": "end"}, {"when": "retries >= 1", "goto": "failed"}], ("transitions", 1)),
        ([{"when": RULE, "goto": "end"}, {"when": f" {RULE}  ", "goto": "failed"}], ("transitions", 1)),
        (
            [{"when": RULE, "goto": "end"}, {"when": RULE.replace("==", "!="), "goto": "failed"}, {"goto": "end"}],
            ("transitions", 2),
        ),
    ],
)
def test_a_rule_below_one_that_always_applies_is_warned_about(
    rules: list[dict[str, Any]], where: tuple[str, int]
) -> None:
    [(path, problem)] = lint(StagesSettings(stages={"s": stage(transitions=rules)}))
    assert (path, problem.code) == (("stages", "s", *where), "config.unreachable_rule")


def test_stages_that_lead_nowhere_or_are_never_reached_are_warned_about() -> None:
    found = lint(
        StagesSettings(initial="a", stages={"a": stage(on_success=["b"]), "b": stage(), "c": stage(on_success="end")})
    )
    assert [(path, problem.code) for path, problem in found] == [
        (("stages", "b"), "config.no_transitions"),
        (("stages", "c"), "config.unreached_stage"),
    ]


@pytest.mark.parametrize("name", ["retry", "failed", "completed", "cancelled", "end", "Upper", "a b", ""])
def test_a_stage_cannot_be_called_like_that(name: str) -> None:
    with pytest.raises(ValidationError):
        StagesSettings(stages={name: stage(on_success="end")})


def test_names_that_point_at_nothing_are_found() -> None:
    stages = StagesSettings.model_validate(
        {
            "initial": "z",
            "stages": {
                "a": {
                    "role": "x",
                    "model": "n",
                    "on_success": ["a", "ed"],
                    "context": {"sources": [{"kind": "artifact"}, {"kind": "files", "glob": "*", "stage": "q"}]},
                },
                "b": {"role": "x", "transitions": [{"goto": "aa"}]},
            },
            "roles": {"p": {"extends": "q", "model": "n"}, "r": {"extends": "r"}},
        }
    )
    models = ModelsSettings.model_validate(
        {"default": "mm", "models": {"m": {"provider": "p"}}, "routes": {"coding": "k"}}
    )
    found = check_references(HarnessSettings(), models, stages)
    assert [path for path, _ in found] == [
        ("default",),
        ("routes", "coding"),
        ("initial",),
        ("stages", "a", "model"),
        ("stages", "a", "on_success"),
        ("stages", "a", "context", "sources", 0),
        ("stages", "a", "context", "sources", 1, "stage"),
        ("stages", "b", "transitions", 0, "goto"),
        ("roles", "p", "model"),
        ("roles", "p", "extends"),
        ("roles", "r", "extends"),
    ]


def test_several_stages_need_an_initial_one_and_a_single_one_does_not() -> None:
    one, two = {"a": stage(on_success="end")}, {"a": stage(on_success="b"), "b": stage(on_success="end")}
    assert not check_references(HarnessSettings(), ModelsSettings(), StagesSettings(stages=one))
    [(path, _)] = check_references(HarnessSettings(), ModelsSettings(), StagesSettings(stages=two))
    assert path == ("stages",)


def test_a_persona_brings_what_it_inherits() -> None:
    roles = StagesSettings.model_validate(
        {
            "roles": {
                "a": {"prompt": "A", "tools": ["t"], "output": {"max_tokens": 1, "max_bytes": 64}},
                "b": {"extends": "a", "model": "m", "output": {"max_tokens": 2}},
                "c": {"extends": "b", "prompt": "C"},
            }
        }
    ).roles
    found = persona_of("c", roles)
    assert (found.prompt, found.model, found.tools, found.extends) == ("C", "m", ("t",), None)
    assert found.output == OutputLimits(max_tokens=2, max_bytes=64)
    assert persona_of("nobody", roles).prompt is None
