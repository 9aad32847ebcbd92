"""Usage: tokens only, subsets that stay subsets, sums that add nothing twice and count what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.messages import OracleResponse, Usage, find_cost

USAGE = {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 4, "reasoningTokens": 1, "known": True}


@pytest.mark.req("A-61")
@pytest.mark.parametrize("key", ["costUsd", "cost_usd", "cost", "totalCost", "priceUsd", "amountUSD"])
def test_usage_with_a_cost_is_refused(key: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        Usage.from_wire({**USAGE, key: 0})
    assert caught.value.facts["findings"][0]["code"] == "usage.cost"
    with pytest.raises(ValidationFailed):
        OracleResponse.from_wire({"content": [], "finishReason": "stop", "usage": {**USAGE, key: 0.1}})


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"usage": {"costUsd": 1}}, "/usage/costUsd"),
        ([{"a": {"Usage": {"by/model": {"total_cost": 1}}}}], "/0/a/Usage/by~1model/total_cost"),
        ({"input_tokens": 1, "price": 2}, "/price"),
        ({"costUsd": 1}, None),
        ({"usage": "costs nothing", "costs": [{"item": 3}]}, None),
        (None, None),
    ],
)
def test_a_cost_is_found_in_a_usage_block_and_nowhere_else(value: Any, pointer: str | None) -> None:
    assert find_cost(value) == pointer


@pytest.mark.req("A-68")
@pytest.mark.parametrize(
    "bad",
    [
        {"inputTokens": 3, "cachedInputTokens": 4},
        {"outputTokens": 3, "reasoningTokens": 4},
        {"cachedInputTokens": 1},
        {"inputTokens": -1},
        {"inputTokens": True},
        {"inputTokens": 1.0},
        {"inputTokens": 2**53},
    ],
)
def test_usage_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        Usage.from_wire(bad)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    inputs, outputs = draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6))
    return Usage(
        input_tokens=inputs,
        output_tokens=outputs,
        cached_input_tokens=draw(st.integers(0, inputs)),
        reasoning_tokens=draw(st.integers(0, outputs)),
        known=draw(st.booleans()),
    )


@pytest.mark.req("A-68")
@given(st.lists(usages(), max_size=6))
def test_totals_never_add_the_subsets_and_count_what_is_unknown(calls: list[Usage]) -> None:
    whole = sum(calls, start=Usage())
    assert whole.total_tokens == sum(call.input_tokens + call.output_tokens for call in calls)
    assert whole.cached_input_tokens == sum(call.cached_input_tokens for call in calls)
    assert whole.calls_unknown == sum(not call.known for call in calls)
    assert whole.known == all(call.known for call in calls)
    assert (whole.unknown_calls is None) == whole.known
    assert Usage.sum_of(calls) == whole


def test_unknown_usage_is_not_zero() -> None:
    assert Usage.unknown() != Usage()
    assert Usage.unknown().to_wire()["known"] is False
    assert (Usage.unknown() + Usage.unknown()).unknown_calls == 2
    assert Usage(input_tokens=1).to_wire() == {**dict.fromkeys(USAGE, 0), "inputTokens": 1, "known": True}
