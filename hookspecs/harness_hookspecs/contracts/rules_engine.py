"""The promises of kind ``rules``: an engine goes in, the rules that it breaks come out."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from typing import Any, Final

import pytest

from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit import codec
from harness_hookspecs.rules import Program, Rules

from .rules import Contract, rule

__all__ = ["ROOTS", "VALUES", "RulesContract"]

ROOTS: Final = ("artifact", "retries")
VALUES: Final[Mapping[str, Any]] = {
    "artifact": {"status": "success", "risks": [{"level": "low"}, {"level": "high"}]},
    "retries": 1,
}

_HOSTILE: Final = (
    "().__class__.__base__.__subclasses__()",
    "7**7**7**7 > 0",
    "[x for x in x]",
    "true" + " && true" * 20_000,
    "(" * 100_000 + "true" + ")" * 100_000,
    "!" * 1_000 + "true",
    "1" + " + 1" * 200 + " > 0",
    'artifact.status = "success"',
    "",
)


class RulesContract(Contract):
    """What every engine of kind ``rules`` keeps; expressions are CEL."""

    def subject(self) -> Rules:
        """The engine under test."""
        raise NotImplementedError("override subject()")

    def _program(self, text: str) -> tuple[Rules, Program]:
        engine = self.subject()
        return engine, engine.compile(text, roots=ROOTS)

    def _condition(self, text: str) -> bool:
        engine, program = self._program(text)
        return engine.condition(program, VALUES)

    @rule("rules.evaluates")
    def test_the_conditions_of_the_seed_are_evaluated(self) -> None:
        assert self._condition('artifact.status == "success"') is True
        assert self._condition("retries > 3") is False
        assert self._condition('artifact.risks.exists(risk, risk.level == "high")') is True

    @rule("rules.evaluates")
    def test_a_value_is_plain_json(self) -> None:
        _, program = self._program("artifact.risks")
        value = program.evaluate(VALUES)
        assert value == VALUES["artifact"]["risks"]
        assert codec.loads(codec.dumps(value)) == value

    @rule("rules.typo_is_named")
    def test_a_misspelt_field_is_an_error_that_names_the_nearest(self) -> None:
        text = 'artifact.statuz == "success"'
        error = self._fails(text)
        assert error.code == "rule.error"
        assert text in error.message
        assert "`status`" in error.message

    @rule("rules.error_is_never_false")
    def test_an_error_is_not_swallowed_by_what_stands_beside_it(self) -> None:
        for text in ('artifact.statuz == "x" && retries > 3', 'artifact.statuz == "x" || retries == 1'):
            assert self._fails(text).code == "rule.error"

    @rule("rules.error_is_never_false")
    def test_types_are_not_guessed(self) -> None:
        assert self._fails('retries > "3"').code == "rule.error"

    def _fails(self, text: str) -> RuleError:
        with pytest.raises(RuleError) as caught:
            self._condition(text)
        return caught.value

    @rule("rules.condition_is_boolean")
    def test_a_condition_that_is_no_bool_is_an_error(self) -> None:
        for text in ("retries", "artifact.status"):
            assert self._fails(text).code == "expr.not_boolean"

    @rule("rules.roots")
    def test_the_roots_are_what_is_read_and_not_what_a_macro_binds(self) -> None:
        _, program = self._program("artifact.risks.all(risk, retries < size(risk.level))")
        assert program.roots == frozenset({"artifact", "retries"})

    @rule("rules.roots")
    def test_another_root_is_refused_when_it_is_compiled(self) -> None:
        with pytest.raises(RuleError) as caught:
            self._program("artefact.status == 'success'")
        assert caught.value.code == "expr.unknown_root"

    @rule("rules.bounded")
    def test_hostile_text_is_refused_when_it_is_compiled_and_soon(self) -> None:
        engine = self.subject()
        for text in _HOSTILE:
            started = time.process_time()
            with pytest.raises(RuleError) as caught:
                engine.compile(text, roots=ROOTS)
            assert caught.value.code.startswith("expr.")
            assert time.process_time() - started < 0.5

    @rule("rules.bounded")
    def test_long_lists_are_not_walked(self) -> None:
        engine, program = self._program("artifact.risks.all(risk, risk >= 0)")
        with pytest.raises(RuleError):
            engine.condition(program, {"artifact": {"risks": list(range(1_001))}, "retries": 1})

    @rule("rules.pure")
    def test_values_are_not_touched_and_the_answer_stays(self) -> None:
        engine, program = self._program("size(artifact.risks) == 2")
        values = copy.deepcopy(dict(VALUES))
        answers = [engine.condition(program, values) for _ in range(3)]
        assert answers == [True, True, True]
        assert values == VALUES

    @rule("rules.says_its_version")
    def test_engine_and_text_are_named(self) -> None:
        engine, program = self._program("retries == 1")
        assert any(letter.isdigit() for letter in engine.version)
        assert program.text == "retries == 1"
