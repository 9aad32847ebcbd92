"""An expression's text goes in, compiled, with the names of what it reads; the values it is given come out.

The rule engine copies all it is given, so an expression is given the steps and the parts of the input that it names
and no others: a branch of ten thousand does not pay for the nine thousand nine hundred and ninety-nine around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.rules import Program as Compiled
from harness_hookspecs.rules import Rules

__all__ = ["MOST_GIVEN_BYTES", "MOST_READ_BYTES", "Meter", "Reader", "Scope", "reader_of", "values_for"]

MOST_READ_BYTES: Final = 256 * 1024 * 1024
"""What the expressions of a step may read together: an engine copies that in about a second, and nothing stops it."""

MOST_GIVEN_BYTES: Final = 16 * 1024 * 1024
"""What they may give together, as much as one document from outside; a single value is as large as where it is from."""

_NAMED: Final = {
    root: re.compile(rf"(?<![\w.]){root}(?!\w)\s*(?:\.\s*([A-Za-z_]\w*)\s*(\()?)?") for root in ("input", "steps")
}


class Reader(NamedTuple):
    """A compiled expression; ``steps`` and ``fields`` (of the input) are None where it may read any of them."""

    compiled: Compiled
    steps: frozenset[str] | None
    fields: frozenset[str] | None


class Meter:
    """What some expressions have read and given so far, in bytes of JSON."""

    __slots__ = ("_given", "_read")

    def __init__(self) -> None:
        self._read = self._given = 0

    def count(self, read: Any, given: Any) -> None:
        """Count one evaluation.

        Raises:
            RuleError: ``step.too_large``.
        """
        is_first = not self._given
        self._read += len(dumps(read))
        self._given += len(dumps(given))
        for verb, size, most in (("read", self._read, MOST_READ_BYTES), ("give", self._given, MOST_GIVEN_BYTES)):
            if size > most and not is_first:
                message = f"These expressions {verb} more than {most} bytes together."
                raise RuleError(message, code="step.too_large", hint="read less, or less often")


class Scope(NamedTuple):
    """Where an expression stands: what its roots are, and what a step looks like from there."""

    roots: Mapping[str, Any]
    names: Callable[[], Iterable[str]]
    look: Callable[[str], Mapping[str, Any]]


def reader_of(text: str, rules: Rules, roots: Iterable[str]) -> Reader:
    """Compile an expression.

    Raises:
        RuleError: As :meth:`harness_hookspecs.rules.Rules.compile` says.
    """
    return Reader(rules.compile(text, roots=tuple(roots)), _names(text, "steps"), _names(text, "input"))


def values_for(readers: Iterable[Reader], scope: Scope) -> dict[str, Any]:
    """The values that some expressions may read, each root that one of them names."""
    readers = tuple(readers)
    roots = frozenset().union(*(reader.compiled.roots for reader in readers))
    found = {name: scope.roots[name] for name in sorted(roots) if name in scope.roots}
    if "steps" in roots:
        named = _union(reader.steps for reader in readers)
        found["steps"] = {name: dict(scope.look(name)) for name in sorted(scope.names() if named is None else named)}
    fields = _union(reader.fields for reader in readers)
    if fields is not None and isinstance(found.get("input"), dict):
        found["input"] = {name: item for name, item in found["input"].items() if name in fields}
    return found


def _names(text: str, root: str) -> frozenset[str] | None:
    """What follows the root wherever it stands; None where it stands alone or what follows is computed."""
    found = [(match[1], match[2]) for match in _NAMED[root].finditer(text)]
    return None if any(name is None or called for name, called in found) else frozenset(name for name, _ in found)


def _union(all_names: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for names in all_names:
        if names is None:
            return None
        found |= names
    return found
