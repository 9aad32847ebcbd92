"""A ``decision`` step and the values handed in, the chosen target out, by the rules engine alone.

The cases are looked at in their order and the first that holds is taken. A condition that is no bool, or that cannot be
evaluated, ends the step: an error is never false. What the looked-at conditions read is part of the output, so that a
log tells why a run went where it went.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness_hookspecs.errors import RoleError
from harness_hookspecs.kit.canonical import canonical
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.role import ExecuteStepTask
from harness_hookspecs.rules import Rules
from harness_hookspecs.workflow import Case, DecisionStep

__all__ = ["ROOTS", "decide"]

ROOTS: Final = ("input", "item", "run", "steps", "visit")
"""All that a condition of a plan may read; ``item`` is there inside a parallel body."""

_MAX_VALUE_BYTES: Final = 1_024
_TEXT: Final = r"""[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_READ: Final = re.compile(rf"{_TEXT}|(?<![\w.])([A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)(\s*\()?", re.DOTALL)


def decide(task: ExecuteStepTask, step: DecisionStep, rules: Rules) -> dict[str, Any]:
    """Choose the next step.

    Args:
        task: Its input is the values, by root.
        step: The cases and the default.
        rules: Evaluates conditions.

    Returns:
        ``{chosen, caseIndex, values}``: the target, the case that led there (None: the default), and what the
        conditions up to it read, by path.

    Raises:
        RuleError: A condition does not compile, cannot be evaluated or is no bool; it names the case.
        RoleError: ``expr.not_boolean``: the engine holds something else to be a bool.
    """
    values = thaw(task.step_input) if isinstance(task.step_input, Mapping) else {}
    read: dict[str, Any] = {}
    for index, case in enumerate(step.with_.cases):
        read.update(_values_read(case.when, values))
        if _holds(case, values, rules):
            return {"chosen": case.to, "caseIndex": index, "values": read}
    return {"chosen": step.with_.default, "caseIndex": None, "values": read}


def _holds(case: Case, values: Mapping[str, Any], rules: Rules) -> bool:
    held = rules.condition(rules.compile(case.when, roots=ROOTS), values)
    if not isinstance(held, bool):
        message = f"The condition {case.when!r} gives {type(held).__name__} where a bool belongs."
        raise RoleError(message, code="expr.not_boolean")
    return held


def _values_read(text: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each path from a root that stands in the text, with what is there; a name before a bracket is a function's.

    This is for the record: what it does not see, for example an index, stands in the value of a shorter path.
    """
    for match in _READ.finditer(text):
        if match[1] is None:
            continue
        path = [part.strip() for part in match[1].split(".")]
        if match[2]:
            path.pop()
        if path and path[0] in ROOTS:
            yield from _value_at(path, values)


def _value_at(path: list[str], values: Any) -> Iterator[tuple[str, Any]]:
    for index, name in enumerate(path):
        if not isinstance(values, Mapping) or name not in values:
            if index and not isinstance(values, Mapping):
                yield ".".join(path[:index]), _bounded(values)
            return
        values = values[name]
    yield ".".join(path), _bounded(values)


def _bounded(value: Any) -> Any:
    """The value, or of a large one its size and digest."""
    content = canonical(value)
    if len(content) <= _MAX_VALUE_BYTES:
        return value
    return {"omitted": "too large", "sizeBytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
