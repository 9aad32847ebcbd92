from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.rules_engine import RulesContract
from harness_hookspecs.errors import RuleError
from harness_hookspecs.rules import Rules
from harness_rules_cel import harness_provide_rules

HOSTILE = json.loads((Path(__file__).parent / "hostile.json").read_text(encoding="utf-8"))
ROOTS = ("artifact", "retries", "stage")
VALUES: dict[str, Any] = {
    "artifact": {
        "status": "success",
        "files": [{"path": "a.md", "lines": 3}, {"path": "b.py", "lines": 70}],
        "long": list(range(1_000)),
        "big": list(range(100_000)),
        "none": None,
        "half": 0.5,
    },
    "retries": 1,
    "stage": "write",
}


def engine() -> Rules:
    [offer] = harness_provide_rules()
    assert (offer.kind, offer.name) == ("rules", "cel")
    built: Rules = offer.build(None, None)
    return built


ENGINE = engine()


def condition(text: str, values: Mapping[str, Any] = VALUES) -> bool:
    return ENGINE.condition(ENGINE.compile(text, roots=ROOTS), values)


def failure(text: str, values: Mapping[str, Any] = VALUES) -> RuleError:
    with pytest.raises(RuleError) as caught:
        condition(text, values)
    return caught.value


class TestCelRules(RulesContract):
    def subject(self) -> Rules:
        return engine()


@pytest.mark.req("B-116")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('artifact.status == "success"', True),
        ('artifact.status != "success"', False),
        ("retries > 3", False),
        ("retries >= 1 && stage == 'write'", True),
        ("retries > 3 || artifact.status == 'success'", True),
        ("retries > 3 || stage == 'x' || artifact.half < 1", True),
        ("!(retries > 3) && !(stage == 'x')", True),
        ("retries > 3 ? artifact.nothing : true", True),
        ("has(artifact.verdict) && artifact.verdict == 'ok'", False),
        ("artifact.files.exists(f, f.path.endsWith('.md') && f.lines < 10)", True),
        ("artifact.files.all(f, f.lines > 5 || f.path == 'a.md')", True),
        ("artifact.files.filter(f, f.lines > 5 && true).size() == 1", True),
        ("artifact.files.map(f, f.lines).exists(n, n == 70)", True),
        ("artifact.none == null", True),
        ("stage in ['read', 'write'] && retries in [1]", True),
        ("{'a': true && false}['a'] == false", True),
        ("size('a && b || c') == 11", True),
        ("r'a\\d' == 'a\\\\d' && \"\"\"x\"\"\" == 'x'", True),
        ("retries == 1 // && false", True),
        ("retries - -1 == 2 && -retries < 0", True),
    ],
)
def test_a_condition_is_what_it_says(text: str, expected: bool) -> None:
    assert condition(text) is expected


@pytest.mark.req("B-118")
@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('artifact.statuz == "success"', "rule.error", "`statuz` is not found on `artifact`; did you mean `status`?"),
        ('artifact["Status"] == "a"', "rule.error", "did you mean `status`?"),
        ("artifact.files.exists(f, f.pth == 'a')", "rule.error", "`pth` is not found on `f`; did you mean `path`?"),
        ("artifact.files[0].line == 3", "rule.error", "did you mean `lines`?"),
        ("artifact.zzz == 1", "rule.error", "in scope: artifact (fields big, files"),
        ("artefact.status == 'a'", "expr.unknown_root", "`artefact` is not in scope; did you mean `artifact`?"),
        ("artifact.files.exists(f, true) && f == 1", "expr.unknown_root", "`f` is not in scope"),
        ('artifact.status = "success"', "expr.syntax", "                  ^"),
        ("siz(artifact.files) > 0", "expr.syntax", "did you mean `size`?"),
        ("(retries > 1", "expr.syntax", "This ( is never closed."),
        ("artifact.files[9].lines == 1", "rule.error", "shorter than the index"),
        ('retries > "3"', "rule.error", "types do not go together"),
        ("retries && true", "rule.error", "types do not go together"),
        ("retries", "expr.not_boolean", "this one is 1"),
        ("artifact.status", "expr.not_boolean", "success"),
        ("retries == 1 &&", "expr.syntax", "not an expression"),
    ],
)
def test_a_wrong_rule_is_an_error_that_says_what_is_meant(text: str, code: str, says: str) -> None:
    error = failure(text)
    assert error.code == code
    assert says in error.message
    assert text in error.message


@pytest.mark.req("B-118")
@pytest.mark.parametrize(
    "text",
    [
        "artifact.statuz == 'x' && false",
        "artifact.statuz == 'x' || true",
        "true && (artifact.statuz == 'x' && false)",
        "[false && artifact.status == '', artifact.statuz == 'x' && false][0]",
        "artifact.files.exists(f, f.linez > 1 && false)",
        "artifact.files.all(f, f.linez > 1 || true)",
        "(artifact.statuz == 'x' && false ? 1 : 2) == 2",
        "!(artifact.statuz == 'x') && retries > 3",
        "size([artifact.statuz == 'x' && false]) == 1",
    ],
)
def test_no_operator_swallows_an_error(text: str) -> None:
    assert failure(text).code == "rule.error"


@pytest.mark.inv("I-36")
@pytest.mark.parametrize("text", HOSTILE["refused_when_compiled"])
def test_hostile_text_is_refused_at_load(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        ENGINE.compile(text, roots=ROOTS)
    assert caught.value.code.startswith("expr.")


@pytest.mark.inv("I-36")
@pytest.mark.parametrize("text", HOSTILE["refused_when_evaluated"])
def test_what_would_burn_time_or_memory_is_an_error_soon(text: str) -> None:
    program = ENGINE.compile(text, roots=ROOTS)
    started = time.process_time()
    with pytest.raises(RuleError) as caught:
        ENGINE.condition(program, VALUES)
    assert caught.value.code == "rule.error"
    assert time.process_time() - started < 0.5  # 0.1 s on a machine of its own


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("true" + " && true" * 127, "expr.too_long"),
        ("1" * 1_025, "expr.too_long"),
        ("!!!!true", "expr.too_complex"),
        ("(" * 17 + "true" + ")" * 17, "expr.too_complex"),
        (" && ".join(["artifact.files.exists(f, true)"] * 3), "expr.too_many_macros"),
    ],
)
def test_each_limit_has_its_code(text: str, code: str) -> None:
    assert failure(text).code == code


@pytest.mark.parametrize(
    "text",
    [
        "true" + " && true" * 63,
        "(" * 16 + "true" + ")" * 16,
        "(true && " * 15 + "true" + ")" * 15,
        "(false || true && " * 14 + "true" + ")" * 14,
        "!!!false",
        " && ".join(["artifact.files.exists(f, true)"] * 2),
        "artifact.long.exists(i, i == 999)",
        "artifact.long.all(i, i >= 0)",
    ],
)
def test_what_is_within_the_limits_works(text: str) -> None:
    assert condition(text) is True


def test_values_go_through_json_first() -> None:
    class Text(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise AssertionError("code of a value was run")

        __hash__ = str.__hash__

    assert condition("stage == 'write'", {"stage": Text("write")}) is True
    assert failure("stage == 'x'", {"stage": object()}).code == "rule.error"
    assert failure("artifact.x > 1", {"artifact": {"x": float("nan")}}).code == "rule.error"
    assert failure("retries == 1", {}).message.startswith("`retries` has no value here.")


def test_a_result_that_is_no_json_is_an_error() -> None:
    program = ENGINE.compile("9007199254740993", roots=())
    with pytest.raises(RuleError):
        program.evaluate({})


def test_a_program_is_compiled_once_a_text_and_checked_against_each_set_of_roots() -> None:
    one = ENGINE.compile("retries == 7", roots=ROOTS)
    assert ENGINE.compile("retries == 7", roots=("retries",)) is one
    with pytest.raises(RuleError):
        ENGINE.compile("retries == 7", roots=("artifact",))


def test_the_bindings_command_line_is_not_imported() -> None:
    code = (
        "import sys; from harness_rules_cel import harness_provide_rules as offers;"
        "assert not any(name in sys.modules for name in ('cel', 'harness_rules_cel.rules'));"
        "offers()[0].build(None, None);"
        "assert 'cel' in sys.modules and not {'typer', 'rich', 'cel.cli'} & set(sys.modules);"
        "import cel.cli; assert hasattr(cel.cli, 'app')"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
