from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

import pytest

from harness_hookspecs.contracts.role import FakeRoleContext, FakeTool, RoleContract, calls, says
from harness_hookspecs.errors import Cancelled, PluginError, RoleError, ToolError
from harness_hookspecs.manifest import MANIFEST_FILE, parse_manifest
from harness_hookspecs.messages import (
    Message,
    OracleResponse,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from harness_hookspecs.role import EXECUTOR_ROLES, RoleHarness, RoleTask, parse_task
from harness_role_workflow import harness_provide_roles

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"enum": ["ok", "no"]}, "note": {"type": "string", "maxLength": 10}},
    "required": ["verdict"],
    "additionalProperties": False,
}


def role(**settings: Any) -> RoleHarness:
    [offer] = harness_provide_roles()
    assert offer.settings is not None
    built: RoleHarness = offer.build(offer.settings()(**settings), None)
    return built


def step_task(output: Mapping[str, Any] | None = None, *, step_input: Any = None, **settings: Any) -> RoleTask:
    with_ = {"model": "small", "prompt": "Judge it.", **settings}
    step = {
        "id": "judge",
        "uses": "ai.generate",
        "with": with_,
        "output": output or {"mode": "object", "schema": SCHEMA},
    }
    where = {"stepPath": "judge", "visitIndex": 0}
    return parse_task({"kind": "execute_step", "step": step, "stepInput": step_input, "stepContext": where})


def output_of(ctx: FakeRoleContext, task: RoleTask | None = None, **settings: Any) -> Any:
    result = role(**settings).run(task or step_task(), ctx).to_wire()
    assert (result["kind"], result["artifactRefs"]) == ("execute_step", [])
    return result["output"]


def failure(ctx: FakeRoleContext, task: RoleTask | None = None, **settings: Any) -> RoleError:
    with pytest.raises(RoleError) as caught:
        role(**settings).run(task or step_task(), ctx)
    return caught.value


class TestWorkflowRole(RoleContract):
    def subject(self) -> RoleHarness:
        return role()


@pytest.mark.req("A-38")
def test_it_is_the_default_for_all_six_roles() -> None:
    [offer] = harness_provide_roles()
    assert (offer.kind, offer.name, offer.roles) == ("role", "workflow", EXECUTOR_ROLES)
    manifest = parse_manifest(resources.files("harness_role_workflow").joinpath(MANIFEST_FILE).read_bytes())
    [promised] = manifest.provides
    assert (promised.name, promised.roles, promised.default) == ("workflow", EXECUTOR_ROLES, True)


@pytest.mark.req("A-41")
@pytest.mark.inv("I-26")
def test_the_loop_goes_on_until_the_contract_is_met_and_the_conversation_is_wellformed() -> None:
    script = [calls(("c1", "look", {"name": "a"})), says('{"verdict": "maybe"}'), says('{"verdict": "ok"}')]
    ctx = FakeRoleContext(script, tools={"look": FakeTool({"lines": 3})})
    assert output_of(ctx) == {"verdict": "ok"}
    assert [[message.role for message in chat.messages] for chat in ctx.model.asked] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
        ["system", "user", "assistant", "tool", "assistant", "user"],
    ]
    system, question, asked, result, answer, correction = ctx.model.asked[-1].messages
    assert system.text.startswith("Be brief.\n\nYou do one step")
    assert asked.content == (ToolCallPart(call_id="c1", tool_name="look", args={"name": "a"}),)
    assert result.content == (ToolResultPart(call_id="c1", tool_name="look", result={"lines": 3}),)
    assert answer.text == '{"verdict": "maybe"}'
    assert '/verdict: "maybe" is not one of ["ok","no"]' in correction.text
    assert question.text.endswith('nothing else: {verdict: "ok"|"no", note?: string<=10}')
    assert {tuple(chat.tools or ()) for chat in ctx.model.asked} == {("look",)}


def test_the_question_has_what_stays_first_and_what_is_asked_last() -> None:
    ctx = FakeRoleContext([says("fine")], system=None)
    step_input = {"context": "changed: a.py\n", "feedback": "too long", "ticket": {"id": 7}}
    output_of(ctx, step_task({"mode": "text"}, step_input=step_input))
    assert ctx.model.asked[0].messages[1].text == (
        'Context:\nchanged: a.py\n\nInput:\n{"ticket":{"id":7}}\n\nTask:\nJudge it.\n\n'
        "The last attempt failed:\ntoo long"
    )


def test_without_an_input_the_question_is_the_prompt() -> None:
    ctx = FakeRoleContext([says("fine")])
    output_of(ctx, step_task({"mode": "text"}))
    assert ctx.model.asked[0].messages[1].text == "Judge it."


@pytest.mark.req("A-22")
@pytest.mark.parametrize(
    ("of_context", "of_step", "expected"),
    [
        ("A", "A", "A\n\nYou"),
        ("A", "B", "A\n\nB\n\nYou"),
        (None, "B", "B\n\nYou"),
        (None, None, "You"),
        ("", " ", "You"),
    ],
)
def test_the_developers_text_stands_first_and_once(of_context: str | None, of_step: str | None, expected: str) -> None:
    ctx = FakeRoleContext([says("fine")], system=of_context)
    output_of(ctx, step_task({"mode": "text"}, **({} if of_step is None else {"system": of_step})))
    assert ctx.model.asked[0].messages[0].text.startswith(expected)


@pytest.mark.parametrize(
    ("output", "text", "expected"),
    [
        ({"mode": "text"}, " Fine.\n", "Fine."),
        ({"mode": "object", "schema": SCHEMA}, '{"verdict":"ok"}', {"verdict": "ok"}),
        ({"mode": "object", "schema": SCHEMA}, '```json\n{"verdict":"ok"}\n```', {"verdict": "ok"}),
        ({"mode": "object", "schema": SCHEMA}, '<think>{"verdict":"no"}</think>{"verdict":"ok"}', {"verdict": "ok"}),
        ({"mode": "array", "schema": {"type": "array", "items": {"type": "integer"}}}, " [1, 2]\n", [1, 2]),
        ({"mode": "choice", "values": ["billing", "refund"]}, " Billing.\n", "billing"),
        ({"mode": "choice", "values": ["Yes", "yes"]}, "yes", "yes"),
        ({"mode": "json"}, "null", None),
        ({"mode": "json", "schema": {"type": "number"}}, "1.5", 1.5),
    ],
)
def test_an_answer_is_read_by_the_steps_output_mode(output: dict[str, Any], text: str, expected: Any) -> None:
    assert output_of(FakeRoleContext([says(text)]), step_task(output)) == expected


@pytest.mark.parametrize(
    ("output", "text", "code", "path"),
    [
        ({"mode": "text"}, " \n", "output.empty", ""),
        ({"mode": "object", "schema": SCHEMA}, "The verdict is ok.", "codec.syntax", ""),
        ({"mode": "object", "schema": SCHEMA}, '[{"verdict":"ok"}]', "codec.not_object", ""),
        ({"mode": "object", "schema": SCHEMA}, '{"verdict":"ok","verdict":"no"}', "codec.duplicate_key", ""),
        ({"mode": "object", "schema": SCHEMA}, '{"verdict":"ok","note":"x y z a b c d"}', "output.schema", "/note"),
        ({"mode": "object", "schema": SCHEMA}, "{}", "output.schema", ""),
        ({"mode": "object", "schema": SCHEMA}, '<think>{"verdict":"ok"}', "codec.syntax", ""),
        ({"mode": "array", "schema": True}, "{", "codec.syntax", ""),
        ({"mode": "json", "schema": False}, "1", "output.schema", ""),
        ({"mode": "choice", "values": ["billing", "refund"]}, "billing or refund", "output.choice", ""),
        ({"mode": "choice", "values": ["billing", "refund"]}, "The route is billing", "output.choice", ""),
        ({"mode": "choice", "values": ["Yes", "yes"]}, "YES", "output.choice", ""),
    ],
)
def test_an_answer_that_breaks_the_contract_fails_with_its_findings(
    output: dict[str, Any], text: str, code: str, path: str
) -> None:
    error = failure(FakeRoleContext([says(text)] * 2), step_task(output, maxTurns=2))
    assert error.code == "role.output_invalid"
    [finding] = error.facts["findings"]
    assert (finding["code"], finding["path"], finding["severity"]) == (code, path, "error")


def test_what_is_wrong_with_an_answer_is_told_by_place_ten_times_and_in_short() -> None:
    items = {"type": "object", "properties": {"a/b": {"maxLength": 3}}}
    text = json.dumps([{"a/b": "x" * 1_000}] * 30)
    output = {"mode": "array", "schema": {"type": "array", "items": items}}
    findings = failure(FakeRoleContext([says(text)] * 2), step_task(output, maxTurns=2)).facts["findings"]
    assert [finding["path"] for finding in findings][:3] == ["/0/a~1b", "/1/a~1b", "/10/a~1b"]
    assert len(findings) == 10
    assert {len(finding["message"]) for finding in findings} == {200}
    assert findings[0]["message"].endswith("is longer than 3 characters")


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ({"properties": {"a": {"type": "nope"}}}, "plugin.schema_invalid"),
        ({"properties": {"a": {"$ref": "https://example.org/s.json"}}}, "plugin.schema_unresolvable"),
        ({"$ref": "#/$defs/gone"}, "plugin.schema_unresolvable"),
        ({"not": {"$ref": "#"}}, "plugin.schema_too_complex"),
    ],
)
def test_a_schema_that_is_broken_is_no_fault_of_the_model(schema: Mapping[str, Any], code: str) -> None:
    ctx = FakeRoleContext([says("{}")] * 2)
    with pytest.raises(PluginError) as caught:
        role().run(step_task({"mode": "object", "schema": schema}), ctx)
    assert caught.value.code == code
    assert len(ctx.model.asked) == 1


def test_what_was_taken_away_around_an_answer_is_noted() -> None:
    ctx = FakeRoleContext([says('<think>x</think>\n```\n{"verdict": "ok"}\n```')])
    output_of(ctx)
    [note] = [noted.given for noted in ctx.noted if noted.what == "note"]
    assert note["facts"] == {"stripped": ["think", "fence"]}


def test_the_narrowed_schema_is_asked_for_and_checked() -> None:
    narrowed = {**SCHEMA, "properties": {"verdict": {"const": "ok"}}}
    ctx = FakeRoleContext([says('{"verdict": "no"}'), says('{"verdict": "ok"}')], response_schema=narrowed)
    assert output_of(ctx) == {"verdict": "ok"}
    assert all(chat.response_schema == narrowed for chat in ctx.model.asked)


def test_a_reply_that_is_only_reasoning_is_empty() -> None:
    thought = OracleResponse(content=(ReasoningPart(text="hm"),), finish_reason="stop", usage=Usage.unknown())
    error = failure(FakeRoleContext([thought]), step_task({"mode": "text"}, maxTurns=1))
    assert error.facts["findings"][0]["code"] == "output.empty"


@pytest.mark.inv("I-25")
def test_calls_of_a_cut_or_failed_answer_never_run() -> None:
    tool = FakeTool("ran")
    for finish, code in (
        ("length", "role.answer_truncated"),
        ("error", "role.model_error"),
        ("refusal", "role.refused"),
    ):
        answer = calls(("c1", "look", {}), finish=finish)  # type: ignore[arg-type]
        assert failure(FakeRoleContext([answer], tools={"look": tool})).code == code
    assert tool.runs == []


def test_a_refusal_inside_an_answer_is_a_refusal() -> None:
    said = (TextPart(text='{"verdict": "ok"}'), RefusalPart(text="I must not."))
    error = failure(FakeRoleContext([OracleResponse(content=said, finish_reason="stop", usage=Usage())]))
    assert (error.code, error.facts["said"]) == ("role.refused", "I must not.")


@pytest.mark.inv("I-25")
@pytest.mark.parametrize("limit", [1, 3])
def test_equal_failing_calls_end_the_step(limit: int) -> None:
    tool = FakeTool(ToolError("/items: is not of type array", code="tool.arguments"))
    stringified = {"items": '[{"a":1}]'}
    ctx = FakeRoleContext(lambda turn, chat: calls((f"c{turn}", "save", stringified)), tools={"save": tool})
    error = failure(ctx, equal_failures=limit)
    assert error.code == "role.repeated_failure"
    assert (error.facts["tool"], len(tool.runs)) == ("save", limit)
    shown = [message for chat in ctx.model.asked for message in chat.messages if message.role == "tool"]
    assert all(_error_of(message) == ("/items: is not of type array", "tool.arguments") for message in shown)


def _error_of(message: Message) -> tuple[str, str | None]:
    [part] = message.content
    assert isinstance(part, ToolResultPart) and part.error is not None
    return part.error.message, part.error.code


def test_different_failing_calls_are_no_repetition() -> None:
    script = [*(calls((f"c{n}", "look", {"name": str(n)})) for n in range(5)), says('{"verdict": "ok"}')]
    ctx = FakeRoleContext(script, tools={"look": FakeTool(ToolError("no such file"))})
    assert output_of(ctx) == {"verdict": "ok"}


def test_the_same_wrong_answer_is_not_asked_for_again_and_again() -> None:
    ctx = FakeRoleContext(lambda turn, chat: says("{}"))
    assert failure(ctx, step_task(maxTurns=50)).code == "role.output_invalid"
    assert len(ctx.model.asked) == 3


def test_tools_asked_for_in_the_last_turn_are_not_run() -> None:
    tool = FakeTool("ran")
    ctx = FakeRoleContext(lambda turn, chat: calls((f"c{turn}", "look", {"n": turn})), tools={"look": tool})
    error = failure(ctx, step_task(maxTurns=3))
    assert (error.code, error.facts["turns"]) == ("role.turns_exhausted", 3)
    assert error.hint == "raise max_turns of the stage where it sets one, else run.max_turns, or ask for less"
    assert (len(ctx.model.asked), len(tool.runs)) == (3, 2)


def test_a_step_without_turns_of_its_own_has_the_configured_ones() -> None:
    ctx = FakeRoleContext(lambda turn, chat: calls((f"c{turn}", "look", {"n": turn})), tools={"look": FakeTool()})
    error = failure(ctx, step_task(), max_turns=4)
    assert error.code == "role.turns_exhausted"
    assert error.hint == "raise plugins.settings.workflow.max_turns, or ask for less"
    assert len(ctx.model.asked) == 4


def test_a_tool_call_that_stands_among_the_parts_is_run_once() -> None:
    part = ToolCallPart(call_id="c1", tool_name="look", args={})
    answer = OracleResponse(content=(TextPart(text="Looking."), part), finish_reason="tool_calls", usage=Usage())
    tool = FakeTool({"lines": 1})
    ctx = FakeRoleContext([answer, says('{"verdict": "ok"}')], tools={"look": tool})
    assert output_of(ctx) == {"verdict": "ok"}
    assert len(tool.runs) == 1
    assert ctx.model.asked[1].messages[2].content == (TextPart(text="Looking."), part)


def test_a_cancelled_call_asks_nothing() -> None:
    ctx = FakeRoleContext([says('{"verdict": "ok"}')])
    ctx.abort_signal.cancel("by the person")
    with pytest.raises(Cancelled):
        role().run(step_task(), ctx)
    assert ctx.model.asked == []


@pytest.mark.req("A-40")
def test_a_parallel_step_is_refused_with_the_reason() -> None:
    inner = {"id": "one", "uses": "ai.generate", "with": {"model": "m", "prompt": "x"}, "output": {"mode": "text"}}
    settings = {"items": "x", "itemKey": "k", "maxBranches": 1, "maxConcurrency": 1, "failureMode": "fail_fast"}
    step = {"id": "fan", "uses": "parallel", "with": settings, "steps": [inner]}
    where = {"stepPath": "fan", "visitIndex": 0}
    task = parse_task({"kind": "execute_step", "step": step, "stepInput": None, "stepContext": where})
    error = failure(FakeRoleContext(), task)
    assert error.code == "role.parallel"
    assert "fan-out and waiting belong to the runtime" in error.message


def test_settings_and_manifest_say_the_same() -> None:
    import tomllib
    from importlib import resources

    text = resources.files("harness_role_workflow").joinpath("harness-plugin.toml").read_text(encoding="utf-8")
    [provided] = tomllib.loads(text)["provides"]
    [offer] = harness_provide_roles()
    assert offer.settings is not None
    schema = offer.settings().model_json_schema()
    kept = ("type", "description", "minimum", "maximum", "default", "x-untrusted", "x-tighten")
    ours = {name: {key: leaf[key] for key in kept} for name, leaf in schema["properties"].items()}
    assert json.loads(json.dumps(provided["config"]["properties"])) == ours
    assert tuple(provided["roles"]) == offer.roles
