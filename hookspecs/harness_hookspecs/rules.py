"""Kind ``rules``: an expression and values in, a value out; an error is never false."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

__all__ = ["Program", "Rules"]


class Program(Protocol):
    """A compiled expression."""

    @property
    def text(self) -> str:
        """The expression as written."""

    @property
    def roots(self) -> frozenset[str]:
        """The names it reads, without those a macro binds."""

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Evaluate over plain JSON values.

        Raises:
            RuleError: ``rule.error`` for anything that goes wrong; the message has the expression, what is in scope
                and the nearest name.
        """


class Rules(Protocol):
    """What an offer of kind ``rules`` builds. Pure and quick; both calls are made inside ``decide``."""

    @property
    def version(self) -> str:
        """Engine and version, for the version lock."""

    def compile(self, text: str, *, roots: Sequence[str]) -> Program:
        """Check and compile.

        Args:
            text: The expression.
            roots: The only names it may read.

        Raises:
            RuleError: ``expr.syntax``, ``expr.too_long``, ``expr.too_many_macros``, ``expr.unknown_root`` or
                ``expr.too_complex``.
        """

    def condition(self, program: Program, values: Mapping[str, Any]) -> bool:
        """Evaluate a condition; anything but a bool raises ``RuleError(code="expr.not_boolean")``."""
