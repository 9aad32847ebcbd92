"""A rules engine that knows its conditions by heart: what each of them gives goes in, an engine comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness_hookspecs.errors import RuleError

__all__ = ["FakeProgram", "FakeRules"]


class FakeProgram(NamedTuple):
    """A condition that was accepted."""

    text: str
    roots: frozenset[str] = frozenset()

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Nothing asks for it: a fake is asked for conditions."""
        raise RuleError("A fake evaluates conditions only.")


class FakeRules:
    """Fits ``Rules``.

    Attributes:
        asked: The conditions it was asked, each with the values it was given, in order.
    """

    version = "fake@1"

    def __init__(self, known: Mapping[str, Any]) -> None:
        """Take what each condition gives; an exception is raised."""
        self._known = dict(known)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def compile(self, text: str, *, roots: Sequence[str]) -> FakeProgram:
        """Accept a condition that is known."""
        if text not in self._known:
            raise RuleError(f"{text!r} is no condition.", code="expr.syntax")
        return FakeProgram(text)

    def condition(self, program: Any, values: Mapping[str, Any]) -> Any:
        """What it gives."""
        self.asked.append((program.text, values))
        found = self._known[program.text]
        if isinstance(found, BaseException):
            raise found
        return found
