"""A model's answer against the output contract of its step."""

from __future__ import annotations

from typing import Any

import pytest

from harness_hookspecs.kit.frozen import MAX_VALUE_DEPTH
from harness_hookspecs.workflow import StepOutput
from harness_role_workflow.answer import read_answer


def test_a_schema_of_any_depth_that_a_workflow_may_have_is_held_to() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(MAX_VALUE_DEPTH - 1):
        schema = {"items": schema}
    output = StepOutput(mode="json", schema_=schema)
    assert read_answer("[1]", output, output.schema_).findings == ()


@pytest.mark.parametrize("schema", [None, True])
def test_without_a_schema_any_value_is_valid(schema: Any) -> None:
    assert read_answer("[1]", StepOutput(mode="json"), schema).value == [1]
