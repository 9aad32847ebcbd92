"""Plans that a model might write to harm: the text of each, with the code and the place that it is refused with, out.

Those in ``REFUSED`` are refused when they are checked; those in ``RUNNING`` are sound, and only a run can tell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.reference import cases

__all__ = ["BIG", "GIVEN", "GOOD", "REFUSED", "RUNNING", "Refused", "running"]

BIG: Final = 1_000_000
GIVEN: Final[Mapping[str, Any]] = {"word": "x" * BIG, "many": [str(number % 9_999) for number in range(10_000)]}
"""What the run of each is given: texts and lists that an expression may read again and again."""

GOOD: Final[Mapping[str, Any]] = {
    "apiVersion": "harness.lwir/v1",
    "kind": "Workflow",
    "metadata": {"name": "say.it"},
    "input": {"schema": True},
    "output": {"schema": True, "value": "{{ steps.look.output }}"},
    "permissions": {"models": ["scripted"], "tools": ["effects_pure"]},
    "steps": [{"id": "look", "uses": "ai.generate", "with": {"model": "scripted", "prompt": "Say it."},
               "output": {"mode": "text"}}],
}  # fmt: skip
"""A plan that harms nobody."""


class Refused(NamedTuple):
    """A plan as it is written, the code that it is refused with, and where."""

    source: bytes
    code: str
    path: str = ""


# ------------------------------------------------------------------------------------------------ its parts


def _written(**changes: Any) -> bytes:
    return json.dumps({**GOOD, "output": {"schema": True, "value": 1}, **changes}).encode()


def _generate(prompt: str, **more: Any) -> dict[str, Any]:
    return {**GOOD["steps"][0], "with": {"model": "scripted", "prompt": prompt}, **more}


def _says(expression: str) -> bytes:
    return _written(steps=[_generate(f"Say {{{{ {expression} }}}}")])


def _decides(*cases: str) -> dict[str, Any]:
    settings = {"cases": [{"when": one, "to": "end"} for one in cases], "default": "end"}
    return {"id": "choose", "uses": "decision", "with": settings}


def _code(*lines: str, **more: Any) -> dict[str, Any]:
    source = "\n    ".join(["async def main(input, tools):", *lines]) + "\n"
    settings = {"language": "python", "source": source}
    return {"id": "look", "uses": "code.run", "with": settings, "output": {"mode": "json"}, **more}


def _runs(*lines: str) -> bytes:
    return _written(steps=[_code(*lines)])


def _fan(items: Any, key: str = "{{ item }}", **more: Any) -> dict[str, Any]:
    settings = {"items": items, "itemKey": key, "maxBranches": 10_000, "maxConcurrency": 1, "failureMode": "fail_fast"}
    inner = _generate("Say {{ item }}", id="each")
    return {"id": "fan", "uses": "parallel", "with": {**settings, **more}, "steps": [inner]}


def _calls(note: Any) -> dict[str, Any]:
    return {"id": "call", "uses": "tool.call", "with": {"tool": "effects_pure", "args": {"note": note}},
            "output": {"mode": "json"}}  # fmt: skip


def _beside(text: str) -> bytes:
    """The good plan with one member more, which is no strict JSON."""
    return _written()[:-1] + b', "limits": {"maxStepExecutions": ' + text.encode() + b"}}"


def _nested(macro: str, body: str, depth: int) -> str:
    return f"[1, 2].{macro}(a, " * depth + body + ")" * depth


# ------------------------------------------------------------------------------- what is refused when checked

_SAID: Final = cases("runtime")["BR-084"]["steps"].removeprefix("Rules: ").split("; ")[:4]
"""Expressions that got out of, or burnt, another evaluator."""

_EXPRESSIONS: Final[Mapping[str, tuple[str, str]]] = {
    "a sum of 100 kB": ("+".join("1" * 50_000), "expr.too_long"),
    "texts of 100 kB": ("+".join(["'ab'"] * 20_000), "expr.too_long"),
    "a text of 100 kB": ("'" + "x" * 100_000 + "'", "expr.too_long"),
    "100,000 signs": ("-" * 100_000 + "1", "expr.too_long"),
    "100,000 negations": ("!" * 100_000 + "true", "expr.too_long"),
    "100,000 brackets": ("(" * 100_000 + "1" + ")" * 100_000, "expr.too_long"),
    "a few brackets too many": ("(" * 17 + "1" + ")" * 17, "expr.too_complex"),
    "a few signs too many": ("- - - -1", "expr.too_complex"),
    "map in map": (_nested("map", "a", 3), "expr.too_many_macros"),
    "filter in filter": (_nested("filter", "true", 3), "expr.too_many_macros"),
    "all in exists": (_nested("all", _nested("exists", "true", 2), 1), "expr.too_many_macros"),
    "sixty macros": (_nested("map", "a", 60), "expr.too_long"),
    "choices in choices": ("true ? 1 : " * 80 + "1", "expr.too_long"),
    "a pattern": ("input.word.matches('(a+)+$')", "expr.syntax"),
    "a bomb of the parser": ("[" * 16 + "\x00" * 16, "expr.syntax"),
    "a huge whole number": ("9" * 1_000, "expr.syntax"),
    "a huge number": ("1e400", "expr.syntax"),
    "half a surrogate pair": (r"'\ud800'", "expr.syntax"),
    "a character beyond all": (r"'\U00110000'", "expr.syntax"),
    "another's function": ("cel.bind(x, input, x)", "expr.unknown_root"),
    **{one: (one, "expr.syntax") for one in _SAID},
}
_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "10,000 brackets": ("return " + "[" * 10_000 + "]" * 10_000, "code.syntax"),
    "a long sum": ("return 1" + "+1" * 30_000, "code.syntax"),
    "texts in texts": ("return " + "f'{" * 500 + "1" + "}'" * 500, "code.syntax"),
    "60,000 digits": ("return " + "9" * 60_000, "code.syntax"),
    "a nul": ("return '\x00'", "code.syntax"),
    "blocks in blocks": ("\n".join(" " * (depth + 4) + "if 1:" for depth in range(300)).lstrip(), "code.syntax"),
    "1 MB of source": ("return 1 #" + "x" * BIG, "schema.invalid"),
}
_CASES: Final = [{"when": "true", "to": "end"}] * 20_000

REFUSED: Final[Mapping[str, Refused]] = {
    **{name: Refused(_says(text), code, "/steps/0/with/prompt") for name, (text, code) in _EXPRESSIONS.items()},
    **{name: Refused(_runs(text), code, "/steps/0/with/source") for name, (text, code) in _SOURCES.items()},
    "100,000 expressions": Refused(_written(steps=[_generate("{{1}}" * 100_000)]), "expr.too_complex"),
    "braces that never close": Refused(_written(steps=[_generate("{{ '" * 100_000)]), "expr.syntax",
                                       "/steps/0/with/prompt"),
    "20,000 cases": Refused(_written(steps=[{**_decides("true"), "with": {"cases": _CASES, "default": "end"}}]),
                            "schema.invalid", "/steps/0/with/cases"),
    "100,000 cases": Refused(_written(steps=[_decides(*["true"] * 100_000)]), "lwir.too_large"),
    "4,000 steps": Refused(_written(steps=[*GOOD["steps"]] * 4_000), "schema.invalid", "/steps"),
    "10 million branches": Refused(_written(steps=[_fan("{{ [1] }}", maxBranches=10_000_000)]), "schema.invalid",
                                   "/steps/0/with/maxBranches"),
    "items that are none": Refused(_written(steps=[_fan("{{ 10000000 }}")]), "parallel.items_not_array",
                                   "/steps/0/with/items"),
    "one key for all": Refused(_written(steps=[_fan("{{ [1] }}", "k" * 900_000)]), "parallel.item_key_type",
                               "/steps/0/with/itemKey"),
    "words": Refused(b"Here is the plan:", "lwir.non_hashable"),
    "nothing": Refused(b"", "lwir.non_hashable"),
    "over 1 MiB": Refused(_written(output={"schema": True, "value": "x" * 1_048_576}), "lwir.too_large"),
    "100,000 lists": Refused(b"[" * 100_000 + b"]" * 100_000, "lwir.too_large"),
    "100,000 objects": Refused(b'{"steps":' * 100_000 + b"1" + b"}" * 100_000, "lwir.too_large"),
    "a key twice": Refused(_written().replace(b'"kind"', b'"kind": "Workflow", "kind"'), "lwir.non_hashable"),
    "a lone surrogate": Refused(_written().replace(b"Say it", rb"\udc00"), "lwir.non_hashable"),
    "a byte order mark": Refused(b"\xef\xbb\xbf" + _written(), "lwir.non_hashable"),
    "UTF-16": Refused(_written().decode().encode("utf-16"), "lwir.non_hashable"),
    "a nul behind it": Refused(_written() + b"\x00", "lwir.non_hashable"),
    "NaN": Refused(_beside("NaN"), "lwir.non_hashable"),
    "10 to the power of 400": Refused(_beside("1" + "0" * 400), "lwir.non_hashable"),
    "1e400": Refused(_beside("1e400"), "lwir.non_hashable"),
    "an unknown field": Refused(_written(secrets={}), "schema.invalid", "/secrets"),
    "another version": Refused(_written(apiVersion="harness.lwir/v2"), "schema.invalid", "/apiVersion"),
    "60,000 keys": Refused(json.dumps({f"k{number}": 1 for number in range(60_000)}).encode(), "schema.invalid",
                           "/apiVersion"),
    "a pattern in a schema": Refused(_written(input={"schema": {"type": "string", "pattern": "(a+)+$"}}),
                                     "schema.unsupported_key", "/input/schema/pattern"),
}  # fmt: skip

# ------------------------------------------------------------------------------------- what only a run can tell

_GROWS: Final = "{{ has(steps.call.last) ? steps.call.last.note + steps.call.last.note : 'abcdefgh' }}"
_LOOP: Final = [
    {**_calls(_GROWS), "maxVisits": 40, "output": {"mode": "object", "schema": {"type": "object", "properties": {
        "note": {"type": "string"}}, "required": ["note"]}}},
    {"id": "again", "uses": "decision", "needs": ["call"], "maxVisits": 40,
     "with": {"cases": [{"when": "visit.index >= 39", "to": "end"}], "default": "call"}},
]  # fmt: skip

RUNNING: Final[Mapping[str, tuple[list[dict[str, Any]], str]]] = {
    "a prompt that grows": ([_generate("{{ input.word }}" * 500)], "step.too_large"),
    "arguments that grow": ([_calls("{{ input.word }}" * 500)], "step.too_large"),
    "a text that doubles": (_LOOP, "tool.args_too_large"),
    "keys that read too much": ([_fan("{{ input.many }}", "{{ size(input.word) > 0 ? item : '' }}")],
                                "step.too_large"),
    "a key twice": ([_fan("{{ input.many }}")], "parallel.duplicate_key"),
    "a long key": ([_fan("{{ [input.word] }}")], "parallel.key_too_long"),
    "too many items": ([_fan("{{ input.many }}", maxBranches=9_999)], "parallel.too_many_items"),
    "items that are a text": ([_fan("{{ dyn(input.word) }}")], "parallel.items_not_array"),
    "a long list": ([_decides("input.many.exists(a, a == '')")], "rule.error"),
    "lists of lists": ([_generate("Say {{ size(input.many.map(a, input.many)) }}")], "rule.error"),
    "texts of texts": ([_generate("Say {{ size([1, 2].map(a, input.many.map(b, input.word + b))) }}")], "rule.error"),
    "no number": ([_generate("Say {{ 0.0 / 0.0 }}")], "rule.error"),
    "no end": ([_generate("Say {{ 1.0 / 0.0 }}")], "rule.error"),
    "nothing to divide by": ([_generate("Say {{ size(input.word) / (size(input.word) - 1000000) }}")], "rule.error"),
    "too large a number": ([_generate("Say {{ 9223372036854775807 * size(input.word) }}")], "rule.error"),
    "no number of JSON": ([_generate("Say {{ 9223372036854775807 }}")], "rule.error"),
    "no key of JSON": ([_generate("Say {{ {1: 1} }}")], "rule.error"),
    "neither true nor false": ([_decides("dyn(size(input.word))")], "expr.not_boolean"),
    "code that allocates": ([_code("x = []", "while True: x.append('a' * 1000000)")], "engine.memory"),
    "code that gives 1 GB": ([_code("return 'x' * 10 ** 9")], "engine.memory"),
    "code that calls itself": ([_code("def f(): return f()", "return f()")], "engine.runtime"),
    "code that opens a file": ([_code("return open('/etc/passwd').read()")], "engine.runtime"),
    "code that imports": ([_code("import socket", "return 1")], "engine.runtime"),
    "code that ends the process": ([_code("raise SystemExit(1)")], "engine.runtime"),
    "code that gives no JSON": ([_code("return float('nan')")], "engine.runtime"),
    "code that gives itself": ([_code("x = []", "x.append(x)", "return x")], "engine.runtime"),
}  # fmt: skip


def running(name: str) -> dict[str, Any]:
    """One of them, whole."""
    lists = {"type": "array", "items": {"type": "string"}}
    given = {"type": "object", "required": ["word", "many"], "properties": {"word": {"type": "string"}, "many": lists}}
    steps, _ = RUNNING[name]
    return {**GOOD, "input": {"schema": given}, "output": {"schema": True, "value": 1}, "steps": steps}
