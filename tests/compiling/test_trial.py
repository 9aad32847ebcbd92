"""What a model wrote is tried in a child process: whatever it does there ends as a finding, never with the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness_executor_workflow.compiling.phases import compile_plan
from harness_hookspecs.errors import PluginError
from tests.compiling.there import PLANS, changed, surroundings, trial
from tests.compiling.there import rules as usual_rules

ROOT = str(Path(__file__).parents[2])
DEADLY = trial(module="tests.compiling.deadly", name="deadly", path=(ROOT, *trial().path))


def found_for(expression: str, *, way: Any = DEADLY, **places: Any) -> list[tuple[str, str]]:
    """The codes and messages for a plan whose prompt has one expression more."""
    prompt = f"{{{{ input.ticket_id == '{expression}' ? 1 : 2 }}}}"
    plan = changed("1", steps__1__with__prompt=prompt, **places)
    return [(one.code, one.message) for one in compile_plan(plan, surroundings(trial=way)).findings]


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_harms_nobody_passes_through_the_child(name: str) -> None:
    found = compile_plan(PLANS[name], surroundings(trial=trial()))
    assert found.ok and found.findings == ()


@pytest.mark.parametrize(
    ("misfortune", "told"),
    [("segfault", "signal 11"), ("kill", "signal 9"), ("exit", "exit code 0"), ("hang", "took more than"),
     ("memory", "MemoryError"), ("panic", "PanicError index out of bounds")],
)  # fmt: skip
def test_an_expression_that_breaks_the_parser_is_a_finding(misfortune: str, told: str) -> None:
    [(code, message)] = found_for(misfortune)
    assert code == "expr.too_complex"
    assert told in message


def test_the_child_has_no_key_of_anybody_s_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "the-secret-key")
    [(_, message)] = found_for("environment")
    assert "told" in message and "the-secret-key" not in message


def test_what_an_engine_prints_is_no_verdict() -> None:
    assert found_for("print") == []


def test_only_the_expressions_that_broke_the_child_are_blamed() -> None:
    found = compile_plan(
        changed("1", steps__1__with__prompt="{{ input.ticket_id == 'exit' ? 1 : 2 }}",
                steps__1__with__system="{{ input.ticket_id == 'kill' ? 1 : 2 }}"),
        surroundings(trial=DEADLY),
    ).findings  # fmt: skip
    assert [one.path for one in found] == ["/steps/1/with/prompt", "/steps/1/with/system"]


def test_a_plan_that_ends_child_after_child_is_refused_without_trying_it_all() -> None:
    prompt = " ".join(f"{{{{ input.ticket_id == 'exit{number}' ? 1 : 2 }}}}" for number in range(50))
    found = compile_plan(changed("1", steps__1__with__prompt=prompt), surroundings(trial=DEADLY)).findings
    assert len(found) == 50 + 2  # those of the output come behind; the argument of the first step was tried and is fine
    assert "could not be tried" in found[-1].message
    assert {one.code for one in found} == {"expr.too_complex"}


def test_an_engine_that_cannot_be_had_is_no_fault_of_the_plan() -> None:
    with pytest.raises(PluginError, match="No module named 'nowhere'") as caught:
        compile_plan(PLANS["1"], surroundings(trial=trial(module="nowhere")))
    assert caught.value.code == "plugin.no_trial"


def test_what_others_have_used_up_is_not_blamed_on_the_next() -> None:
    """Each uses up what a process has; alone, each can be read."""
    prompt = " ".join(f"{{{{ input.ticket_id == 'keep{number}' ? 1 : 2 }}}}" for number in range(3))
    found = compile_plan(changed("1", steps__1__with__prompt=prompt), surroundings(trial=DEADLY))
    assert found.ok


def test_this_process_compiles_nothing_that_the_child_did_not_survive() -> None:
    seen: list[str] = []

    class Watching(type(usual_rules())):  # type: ignore[misc]
        def compile(self, text: str, *, roots: Any) -> Any:
            seen.append(text)
            return super().compile(text, roots=roots)

    plan = changed("1", steps__1__with__prompt="{{ input.ticket_id == 'segfault' ? 1 : 2 }}")
    assert not compile_plan(plan, surroundings(rules=Watching(), trial=DEADLY)).ok
    assert seen == []


def test_a_source_that_is_no_python_is_found_in_the_child_too() -> None:
    plan = changed("2", steps__0__with__source="async def main(input, tools):\n    return tools.nothing\n")
    [one] = compile_plan(plan, surroundings(trial=trial())).findings
    assert (one.code, one.path) == ("code.tool_not_declared", "/steps/0/with/source")


HOSTILE = {
    "a long sum": "{{ " + "1+" * 50_000 + "1 }}",
    "deep brackets": "{{ " + "(" * 100_000 + ")" * 100_000 + " }}",
    "many signs": "{{ " + "!" * 100_000 + "true }}",
    "nested macros": "{{ " + "[1].map(a, " * 60 + "1" + ")" * 60 + " }}",
    "a bomb of braces": "{{ " + "{" * 5_000 + "}" * 5_000 + " }}",
    "a text that never ends": "{{ '" + "x" * 200_000,
    "many templates": "{{1}}" * 100_000,
    "a bomb of the parser": "{{ " + "[" * 41 + "\x00" * 41 + " }}",
    "a chain of choices": "{{ " + "true ? 1 : " * 80 + "1 }}",
    "a long path": "{{ input" + ".a" * 300 + " }}",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_template_is_refused_before_any_parser_sees_it(text: str) -> None:
    found = compile_plan(changed("1", steps__1__with__prompt=text), surroundings(trial=trial()))
    assert not found.ok
    assert {one.code.split(".")[0] for one in found.findings} == {"expr"}
