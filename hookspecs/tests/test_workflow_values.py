"""LWIR as values: the sample plans come back byte for byte, and the models accept what the schema accepts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.workflow import DecisionStep, ParallelStep, Workflow, WorkflowBashCapabilities

FOLDER = Path(__file__).parents[2] / "tests/cases/lwir"
PLANS = {path.stem: codec.loads(path.read_bytes()) for path in sorted(FOLDER.glob("[0-9]-*.json"))}
SCHEMA = jsonschema.Draft202012Validator(codec.loads((FOLDER / "schema.json").read_bytes()))
VERSIONS = {
    "1-summarise-ticket": "wfv_a245673b561da9832927c7f75eba087f",
    "2-code-with-fixer": "wfv_828be39c6c6e68896837b72133b75726",
    "3-draft-review-loop": "wfv_5361bb610128ab8c715131cc8886a0f2",
    "4-fan-out-and-join": "wfv_b6de6eb101239e473af81e302ca64bcc",
}


@pytest.mark.parametrize("name", VERSIONS)
def test_a_sample_plan_keeps_its_bytes_and_its_version_id(name: str) -> None:
    plan = Workflow.from_wire(PLANS[name])
    assert canonical(plan.to_wire()) == canonical(PLANS[name])
    assert f"wfv_{digest(plan.to_wire())[:32]}" == VERSIONS[name]
    in_order = plan.to_json_bytes()
    assert Workflow.from_json_bytes(in_order).to_json_bytes() == in_order


def test_steps_are_typed_by_what_they_use() -> None:
    plan = Workflow.from_wire(PLANS["4-fan-out-and-join"])
    audit, triage = plan.steps[:2]
    assert isinstance(audit, ParallelStep)
    assert [step.id for step in audit.steps] == ["scan", "judge"]
    assert audit.with_.fan_in is not None
    assert audit.with_.fan_in.output_step == "judge"
    assert isinstance(triage, DecisionStep)
    assert triage.with_.cases[0].to == "deep"


def agrees(document: Any) -> bool:
    """Whether the models accept the document; fails when the schema is of another opinion."""
    by_schema = SCHEMA.is_valid(document)
    try:
        plan = Workflow.from_wire(document)
    except ValidationFailed:
        assert not by_schema, "the schema accepts it and the models do not"
        return False
    assert by_schema, "the models accept it and the schema does not"
    assert canonical(plan.to_wire()) == canonical(document)
    return True


def changed(pointer: str, value: Any, plan: str = "1-summarise-ticket") -> Any:
    """A plan with one place set, or taken away when the value is ``...``."""
    document = copy.deepcopy(PLANS[plan])
    *path, last = [int(part) if part.isdigit() else part for part in pointer.strip("/").split("/")]
    place = document
    for part in path:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


BROKEN = [
    ("/apiVersion", "harness.lwir/v2"),
    ("/kind", ...),
    ("/extra", 1),
    ("/metadata/name", "Upper"),
    ("/metadata/description", "x" * 2001),
    ("/input/schema", "any"),
    ("/output/value", ...),
    ("/permissions/models", ["a", "a"]),
    ("/permissions/tools", [""]),
    ("/permissions/maxTier", "T5"),
    ("/limits", {"maxStepExecutions": 0}),
    ("/limits", None),
    ("/steps", []),
    ("/steps/0/id", "end"),
    ("/steps/0/id", "with-hyphen"),
    ("/steps/0/uses", "shell.run"),
    ("/steps/0/uses", "decision"),
    ("/steps/0/with/surprise", 1),
    ("/steps/0/with/args", []),
    ("/steps/0/output", ...),
    ("/steps/0/output", {"mode": "object"}),
    ("/steps/0/output", {"mode": "choice"}),
    ("/steps/0/output", {"mode": "choice", "values": ["a"]}),
    ("/steps/0/output", {"mode": "choice", "values": ["a", "a"]}),
    ("/steps/0/retry", {"maxAttempts": 11}),
    ("/steps/0/retry", {"maxAttempts": True}),
    ("/steps/0/retry", {"maxAttempts": "3"}),
    ("/steps/0/retry", {"maxAttempts": 2.5}),
    ("/steps/0/onFailure", {}),
    ("/steps/0/maxVisits", 101),
    ("/steps/0/sensitive", 1),
    ("/steps/0/needs", ["a", "a"]),
    ("/steps/0/needs", None),
    ("/steps/0/steps", []),
    ("/steps/1/with/prompt", ""),
    ("/steps/1/with/maxTurns", 0),
    ("/steps/0/retry", {"maxAttempts": 2, "backoff": "linear"}),
    ("/steps/0/retry", {"maxAttempts": 2, "jitter": 0.5}),
    ("/steps/0/retry", {"maxAttempts": 2, "delayMs": 0}),
    ("/steps/0/retry", {"maxAttempts": 2, "delayMs": 86_400_001}),
    ("/steps/0/retry", {"maxAttempts": 2, "delayMs": 5, "backoff": "random"}),
    ("/steps/0/retry", {"maxAttempts": 2, "delayMs": 5, "jitter": 1.5}),
    ("/steps/0/retry", {"maxAttempts": 2, "delayMs": 5, "jitter": True}),
    ("/finally", "end"),
    ("/finally", ["summarise"]),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {}}),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"durationMs": 0}}),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"durationMs": 31_536_000_001}}),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"durationMs": 5, "event": "paid"}}),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"durationMs": 5, "limitMs": 5}}),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"event": "Paid"}}),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"event": "paid"}, "retry": {"maxAttempts": 2}}),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"event": "paid"}, "timeoutMs": 5}),
]

FINE: list[tuple[str, Any]] = [
    ("/output/value", None),
    ("/output/schema", False),
    ("/metadata/description", ""),
    ("/limits", {}),
    ("/limits", {"maxTokens": 5, "timeoutMs": 3.0}),
    ("/steps/0/retry", {"maxAttempts": 3.0, "strategy": "corrective"}),
    ("/steps/0/onFailure", {"to": "summarise"}),
    ("/steps/0/input", {"x": None, "y": 1.5}),
    ("/steps/0/output", {"mode": "json"}),
    ("/steps/0/output", {"mode": "object", "schema": True, "values": ["a", "b"]}),
    ("/steps/0/with/args", ...),
    ("/steps/0/needs", []),
    ("/steps/1/with", {"model": "", "prompt": "p", "system": "", "tools": ["t"], "maxTurns": 100}),
    ("/steps/0/retry", {"maxAttempts": 3, "delayMs": 1000, "backoff": "exponential", "jitter": 0.5}),
    ("/steps/0/retry", {"maxAttempts": 3, "delayMs": 86_400_000, "jitter": 0}),
    ("/finally", "summarise"),
    ("/steps/0", {"id": "rest", "uses": "wait", "with": {"durationMs": 31_536_000_000}}),
    (
        "/steps/0",
        {
            "id": "rest", "uses": "wait", "needs": [], "maxVisits": 2, "sensitive": True,
            "with": {"event": "payment.received", "limitMs": 5.0},
            "output": {"mode": "object", "schema": {"type": "object"}}, "onFailure": {"to": "fail"},
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pointer", "value"), BROKEN)
def test_a_broken_plan_is_refused_as_the_schema_refuses_it(pointer: str, value: Any) -> None:
    assert not agrees(changed(pointer, value))


@pytest.mark.parametrize(("pointer", "value"), FINE)
def test_a_plan_that_the_schema_allows_is_accepted_and_keeps_its_bytes(pointer: str, value: Any) -> None:
    assert agrees(changed(pointer, value))


@pytest.mark.parametrize("field", ["output", "retry", "onFailure", "steps"])
def test_a_decision_has_nothing_that_only_work_has(field: str) -> None:
    values = {
        "output": {"mode": "text"},
        "retry": {"maxAttempts": 2},
        "onFailure": {"to": "fail"},
        "steps": [PLANS["1-summarise-ticket"]["steps"][0]],
    }
    assert not agrees(changed(f"/steps/1/{field}", values[field], "4-fan-out-and-join"))


def places(value: Any, pointer: str = "") -> list[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [place for key, item in items for place in places(item, f"{pointer}/{key}")]
    return [pointer, *inner] if pointer else inner


ODD: list[Any] = [
    ..., None, True, False, 0, 0.5, 1, 3, 1.5, 2.0, -1, 10**7, "", "x", "end", "fail", "T1", [], ["a"], ["a", "b"], {},
]  # fmt: skip


def furnished(document: Any) -> Any:
    """The plan with everything that none of the samples has: a delay, a wait and a last step."""
    document["steps"][0]["retry"] = {"maxAttempts": 3, "delayMs": 5, "backoff": "linear", "jitter": 0.5}
    document["steps"] += [
        {"id": "rest", "uses": "wait", "with": {"durationMs": 5}},
        {"id": "paid", "uses": "wait", "with": {"event": "paid", "limitMs": 5}, "onFailure": {"to": "fail"}},
    ]
    return {**document, "finally": "rest"}


@given(st.data())
def test_models_and_schema_agree_on_any_plan_with_a_few_places_changed(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(PLANS)))
    document = furnished(changed("/kind", "Workflow", name))
    for _ in range(data.draw(st.integers(1, 2))):
        pointer = data.draw(st.sampled_from(places(document)))
        value = data.draw(st.sampled_from(ODD))
        *path, last = [int(part) if part.isdigit() else part for part in pointer.strip("/").split("/")]
        place = document
        for part in path:
            place = place[part]
        if value is ...:
            del place[last]
        else:
            place[last] = copy.deepcopy(value)
    agrees(json.loads(json.dumps(document)))


def test_an_error_points_into_the_plan() -> None:
    with pytest.raises(ValidationFailed) as caught:
        Workflow.from_wire(changed("/steps/0/steps/1/with/nope", 1, "4-fan-out-and-join"))
    assert caught.value.where == "/steps/0/steps/1/with/nope"


def test_bash_keeps_private_ranges_closed_unless_told() -> None:
    read = WorkflowBashCapabilities.from_wire({"network": {"allow": ["https://a.example/"], "methods": ["GET"]}})
    assert read.network is not None
    assert read.network.deny_private_ranges is True
    assert read.to_wire() == {"network": {"allow": ["https://a.example/"], "methods": ["GET"]}}
    assert WorkflowBashCapabilities().network is None
