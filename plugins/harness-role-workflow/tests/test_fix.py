"""The fixer: what a model is told of a failed code step, and what is taken for a source."""

from __future__ import annotations

from typing import Any

import pytest

from harness_hookspecs.contracts.role import FakeRoleContext, FakeTool, says
from harness_hookspecs.errors import RoleError
from harness_hookspecs.role import parse_task
from harness_role_workflow import harness_provide_roles
from harness_role_workflow.addenda import ADDENDA

SOURCE = "async def main(input, tools):\n    return input['gone']\n"
MENDED = "async def main(input, tools):\n    return input['name']\n"
ERROR = {
    "name": "RoleError", "message": "KeyError: 'gone'", "code": "engine.runtime",
    "details": {"traceback": "line 2, in main"},
}  # fmt: skip


def fixing(ctx: FakeRoleContext, *, prior: int = 0, **more: Any) -> dict[str, Any]:
    fixer = {"model": "coder", "maxAttempts": 3, "system": "Keep the filter rule."}
    step = {
        "id": "pick", "uses": "code.run", "with": {"language": "python", "source": SOURCE, "tools": ["ats.all"]},
        "output": {"mode": "array", "schema": {"type": "array", "items": {"type": "string"}}},
        "onFailure": {"fixer": fixer},
    }  # fmt: skip
    wire = {
        "kind": "fix_step", "step": step, "stepInput": {"name": "x"}, "originalAttemptError": ERROR,
        "priorFixAttempts": prior, **more,
    }  # fmt: skip
    [offer] = harness_provide_roles()
    wired: dict[str, Any] = offer.build(None, None).run(parse_task(wire), ctx).to_wire()
    return wired


@pytest.mark.req("A-06")
def test_the_model_is_told_source_input_error_promise_and_what_was_tried() -> None:
    tried = [{"source": "async def main(input, tools):\n    return 7\n", "error": {
        "name": "RoleError", "message": "The output is not valid", "code": "engine.output_invalid",
        "details": {"findings": [{"path": "/0", "message": "7 is no text"}]},
    }}]  # fmt: skip
    tool = FakeTool(description="All candidates.")
    ctx = FakeRoleContext([says(MENDED)], tools={"ats_all": tool}, role="fixer")
    assert fixing(ctx, prior=1, priorAttempts=tried) == {
        "kind": "fix_step", "output": None, "fixedSource": MENDED, "attempts": 2
    }  # fmt: skip
    [chat] = ctx.model.asked
    system, question = chat.messages
    assert system.text.startswith(f"Be brief.\n\nKeep the filter rule.\n\n{ADDENDA['fixer'].text}")
    assert "- ats_all: All candidates. Input: {name?: string}" in system.text
    assert chat.tools is None and tool.runs == []
    assert question.text == (
        f"Source:\n```python\n{SOURCE.strip()}\n```\n\n"
        'Input:\n{"name":"x"}\n\n'
        "Output:\n[string]\n\n"
        "Error:\nengine.runtime: KeyError: 'gone'\nline 2, in main\n\n"
        "Repair 1 that did not help:\n```python\nasync def main(input, tools):\n    return 7\n```\n"
        "engine.output_invalid: The output is not valid\n- /0: 7 is no text\n\n"
        "Task:\nRepair the source. This is repair 2 of 3."
    )


@pytest.mark.parametrize(
    "answer",
    [
        MENDED,
        f"```python\n{MENDED}```",
        f"\n```\n{MENDED}\n```\n",
        f"<think>the key is name</think>\n```py\n{MENDED}```",
    ],
)
def test_a_source_is_taken_out_of_a_fence_and_nothing_else(answer: str) -> None:
    assert fixing(FakeRoleContext([says(answer)]))["fixedSource"] == MENDED


def test_an_answer_without_an_entry_is_asked_for_again_and_then_given_up() -> None:
    ctx = FakeRoleContext([says("Use name."), says(MENDED)])
    assert fixing(ctx)["fixedSource"] == MENDED
    assert "async def main(input, tools)" in ctx.model.asked[1].messages[-1].text
    ctx = FakeRoleContext(lambda turn, chat: says("    async def main(): indented, so no entry"))
    with pytest.raises(RoleError) as caught:
        fixing(ctx)
    assert (caught.value.code, len(ctx.model.asked)) == ("fixer.no_source", 3)


@pytest.mark.parametrize(("finish", "code"), [("length", "role.answer_truncated"), ("refusal", "role.refused")])
def test_a_source_that_is_not_whole_is_never_proposed(finish: Any, code: str) -> None:
    with pytest.raises(RoleError) as caught:
        fixing(FakeRoleContext([says(MENDED, finish=finish)]))
    assert caught.value.code == code
