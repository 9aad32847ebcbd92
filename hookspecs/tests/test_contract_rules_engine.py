from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from harness_hookspecs.contracts.rules import complaints
from harness_hookspecs.contracts.rules_engine import RulesContract
from harness_hookspecs.errors import RuleError

Evaluate = Callable[[Mapping[str, Any]], Any]


def _typo(values: Mapping[str, Any], text: str) -> Any:
    raise RuleError(f"`statuz` is not found; did you mean `status`?\n  {text}")


def _short(values: Mapping[str, Any]) -> bool:
    if len(values["artifact"]["risks"]) > 1_000:
        raise RuleError("The list is too long.")
    return all(risk >= 0 for risk in values["artifact"]["risks"])


def _types(values: Mapping[str, Any]) -> Any:
    raise RuleError("number and text")


TABLE: dict[str, tuple[set[str], Evaluate]] = {
    'artifact.status == "success"': ({"artifact"}, lambda v: v["artifact"]["status"] == "success"),
    "retries > 3": ({"retries"}, lambda v: v["retries"] > 3),
    'artifact.risks.exists(risk, risk.level == "high")': (
        {"artifact"},
        lambda v: any(risk["level"] == "high" for risk in v["artifact"]["risks"]),
    ),
    "artifact.risks": ({"artifact"}, lambda v: v["artifact"]["risks"]),
    'retries > "3"': ({"retries"}, _types),
    "retries": ({"retries"}, lambda v: v["retries"]),
    "artifact.status": ({"artifact"}, lambda v: v["artifact"]["status"]),
    "artifact.risks.all(risk, retries < size(risk.level))": ({"artifact", "retries"}, lambda v: True),
    "artifact.risks.all(risk, risk >= 0)": ({"artifact"}, _short),
    "size(artifact.risks) == 2": ({"artifact"}, lambda v: len(v["artifact"]["risks"]) == 2),
    "retries == 1": ({"retries"}, lambda v: v["retries"] == 1),
    **{
        text: ({"artifact", "retries"}, partial(_typo, text=text))
        for text in (
            'artifact.statuz == "success"',
            'artifact.statuz == "x" && retries > 3',
            'artifact.statuz == "x" || retries == 1',
        )
    },
}


class TableProgram:
    def __init__(self, text: str, roots: set[str], evaluate: Evaluate) -> None:
        self.text, self.roots = text, frozenset(roots)
        self._evaluate = evaluate

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        return self._evaluate(values)


class TableRules:
    """Knows just the expressions of the suite."""

    version = "table 1"
    table = TABLE

    def compile(self, text: str, *, roots: Sequence[str]) -> TableProgram:
        if text.startswith("artefact"):
            raise RuleError("`artefact` is not in scope", code="expr.unknown_root")
        if text not in self.table:
            raise RuleError("not an expression", code="expr.syntax")
        return TableProgram(text, *self.table[text])

    def condition(self, program: TableProgram, values: Mapping[str, Any]) -> bool:
        result = program.evaluate(values)
        if type(result) is not bool:
            raise RuleError("not a bool", code="expr.not_boolean")
        return result


def _with(**changed: Any) -> Callable[[Any], TableRules]:
    return lambda suite: type("Broken", (TableRules,), changed)()


def _knowing(text: str, roots: set[str], evaluate: Evaluate) -> Callable[[Any], TableRules]:
    return _with(table={**TABLE, text: (roots, evaluate)})


def _touching(values: Mapping[str, Any]) -> bool:
    values["artifact"]["risks"].append({})
    return len(values["artifact"]["risks"]) == 3


BROKEN = {
    "rules.evaluates": _knowing("retries > 3", {"retries"}, lambda v: True),
    "rules.typo_is_named": _knowing('artifact.statuz == "success"', {"artifact"}, _types),
    "rules.error_is_never_false": _knowing('artifact.statuz == "x" && retries > 3', {"artifact"}, lambda v: False),
    "rules.condition_is_boolean": _with(condition=lambda self, program, values: program.evaluate(values)),
    "rules.roots": _knowing(
        "artifact.risks.all(risk, retries < size(risk.level))", {"artifact", "retries", "risk"}, lambda v: True
    ),
    "rules.bounded": _knowing("artifact.risks.all(risk, risk >= 0)", {"artifact"}, lambda v: True),
    "rules.pure": _knowing("size(artifact.risks) == 2", {"artifact"}, _touching),
    "rules.says_its_version": _with(version="table"),
}


def test_each_rule_of_the_suite_bites() -> None:
    assert complaints(RulesContract, good=lambda _: TableRules(), broken=BROKEN, at_most=1) == []
