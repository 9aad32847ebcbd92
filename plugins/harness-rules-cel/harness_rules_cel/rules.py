"""The engine ``cel``: an expression and plain values go in, a plain value comes out, or a RuleError that says why."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from harness_hookspecs.errors import CodecError, RuleError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.expression import refuse
from harness_hookspecs.kit.nearest import nearest
from harness_hookspecs.rules import Program

from .cost import check_cost
from .explain import describe_scope
from .failures import explain_failure
from .guard import tokens_of
from .rewrite import left_to_right
from .scope import Scope, scope_of

__all__ = ["FUNCTIONS", "CelRules"]

FUNCTIONS: Final = frozenset(
    {"bool", "contains", "double", "dyn", "endsWith", "has", "int", "size", "startsWith", "string", "type", "uint"}
)
"""What may be called besides the macros; not ``matches``, whose pattern may come from data and cost minutes."""

_KEPT_PROGRAMS: Final = 512


class CelProgram:
    """A compiled expression; evaluating it changes nothing and reads nothing but its values."""

    def __init__(self, text: str, scope: Scope, compiled: Any) -> None:
        self.text = text
        self.roots = frozenset(scope.roots)
        self._scope = scope
        self._compiled = compiled

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Evaluate; see :class:`harness_hookspecs.rules.Program`."""
        known = self._plain(values)
        check_cost(self.text, self._scope, known)
        try:
            result = self._compiled.execute(known)
        except BaseException as problem:  # a panic of the binding is no Exception
            if not isinstance(problem, (KeyboardInterrupt, SystemExit)):
                raise explain_failure(problem, self.text, self._scope, known) from problem
            raise
        return self._through_json(result, "The result is not a JSON value.")

    def _plain(self, values: Mapping[str, Any]) -> dict[str, Any]:
        missing = sorted(self.roots - values.keys())
        if missing:
            at = self._scope.roots[missing[0]].at
            scope = describe_scope(values)
            raise refuse(self.text, at, f"`{missing[0]}` has no value here.", code="rule.error", scope=scope)
        used = {name: values[name] for name in sorted(self.roots)}
        return dict(self._through_json(used, "The values are not JSON.")) if used else {}

    def _through_json(self, value: Any, otherwise: str) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value
        try:
            return codec.loads_trusted(codec.dumps(value))
        except CodecError as error:
            raise refuse(self.text, None, otherwise, code="rule.error", hint=error.message) from error


class CelRules:
    """Rules in CEL, through the Rust binding; compiled programs are kept by their text."""

    def __init__(self) -> None:
        self._cel = _binding()
        self._compiled = lru_cache(maxsize=_KEPT_PROGRAMS)(self._compile)

    @property
    def version(self) -> str:
        """The binding's name and version."""
        from importlib import metadata

        return f"common-expression-language {metadata.version('common-expression-language')}"

    def compile(self, text: str, *, roots: Sequence[str]) -> Program:
        """Check and compile; see :class:`harness_hookspecs.rules.Rules`."""
        program, scope = self._compiled(text)
        for name, token in scope.roots.items():
            if name not in roots:
                meant = nearest(name, roots)
                message = f"`{name}` is not in scope" + (f"; did you mean `{meant}`?" if meant else ".")
                scope_text = ", ".join(sorted(roots)) or "nothing"
                raise refuse(text, token.at, message, code="expr.unknown_root", hint=_instead(meant), scope=scope_text)
        return program

    def condition(self, program: Program, values: Mapping[str, Any]) -> bool:
        """Evaluate a condition; see :class:`harness_hookspecs.rules.Rules`."""
        result = program.evaluate(values)
        if type(result) is not bool:
            shown = codec.dumps(result)[:60].decode(errors="replace")
            message = f"A condition must be true or false; this one is {shown}."
            raise refuse(program.text, None, message, code="expr.not_boolean", hint="compare it with something")
        return result

    def _compile(self, text: str) -> tuple[CelProgram, Scope]:
        tokens = tokens_of(text)
        scope = scope_of(text, tokens)
        written = self._parse(text, text)
        self._check_functions(text, scope, written.functions())
        bound = {macro.variable for macro in scope.macros}
        if set(written.variables()) - bound - set(scope.roots):
            raise refuse(text, None, "The expression cannot be read with certainty.", code="expr.syntax")
        strict = left_to_right(text, tokens)
        compiled = written if strict == text else self._parse(strict, text)
        return CelProgram(text, scope, compiled), scope

    def _parse(self, source: str, text: str) -> Any:
        try:
            return self._cel.compile(source)
        except BaseException as problem:
            if isinstance(problem, ValueError):
                raise _syntax_error(problem, text) from problem
            if not isinstance(problem, (KeyboardInterrupt, SystemExit)):
                raise refuse(text, None, "The parser gave up on it.", code="expr.too_complex") from problem
            raise

    def _check_functions(self, text: str, scope: Scope, called: Sequence[str]) -> None:
        for name in sorted(set(called) - FUNCTIONS):
            if not name.replace("_", "").isalnum():
                continue  # an operator, such as _==_ or @in
            meant = nearest(name, FUNCTIONS)
            message = f"There is no function `{name}`" + (f"; did you mean `{meant}`?" if meant else ".")
            at = next((token.at for token in scope.tokens if token.text == name), None)
            available = ", ".join(sorted(FUNCTIONS))
            hint = _instead(meant) or f"functions: {available}"
            raise refuse(text, at, message, code="expr.syntax", hint=hint)


def _instead(meant: str | None) -> str | None:
    return f"write {meant}" if meant else None


def _syntax_error(problem: ValueError, text: str) -> RuleError:
    """The binding's ``ERROR: <input>:LINE:COLUMN: reason`` with our own caret."""
    from re import search

    found = search(r"ERROR: <input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)", str(problem))
    if "Recursion limit" in str(problem):
        return refuse(text, None, "The expression is nested too deeply.", code="expr.too_complex")
    if found is None:
        return refuse(text, None, "This is not an expression.", code="expr.syntax")
    line, column = int(found[1]), int(found[2])
    before = sum(len(one) + 1 for one in text.split("\n")[: line - 1])
    reason = found[3].split(" expecting {", 1)[0]
    at = min(before + column - 1, len(text))
    return refuse(text, at, f"This is not an expression: {reason}.", code="expr.syntax")


def _binding() -> ModuleType:
    """Import the binding without the command line that its package imports (0.15 s of typer and rich)."""
    if "cel" in sys.modules or "cel.cli" in sys.modules:
        import cel

        return cel
    sys.modules["cel.cli"] = ModuleType("cel.cli")
    try:
        import cel
    finally:
        del sys.modules["cel.cli"]
    if hasattr(cel, "cli"):
        del cel.cli
    return cel
