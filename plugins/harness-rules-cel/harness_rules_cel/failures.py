"""Why an evaluation failed: what the binding raised goes in, a RuleError in words a person can act on comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit.expression import refuse
from harness_hookspecs.kit.nearest import nearest

from .explain import describe_scope
from .scope import Scope, look_up, primary_start

__all__ = ["explain_failure"]

_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (IndexError, "A list is shorter than the index."),
    (ZeroDivisionError, "A number is divided by zero."),
    (OverflowError, "A number grows out of range."),
    (TypeError, "The types do not go together; nothing is converted by itself: use int(), double() or string()."),
)
_COMPARING = {"<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "%", "in"}


def explain_failure(problem: BaseException, text: str, scope: Scope, values: Mapping[str, Any]) -> RuleError:
    """Rewrite what the binding raised, with the place, what is in scope and the nearest name."""
    if isinstance(problem, KeyError) and problem.args:
        return _no_such_field(str(problem.args[0]), text, scope, values)
    shown = describe_scope(values)
    for kind, reason in _REASONS:
        if isinstance(problem, kind):
            at = _only_operator(scope) if kind is TypeError else None
            return refuse(text, at, reason, code="rule.error", scope=shown)
    said = str(problem).splitlines()[0][:200] if str(problem) else type(problem).__name__
    return refuse(text, None, f"The expression cannot be evaluated: {said}", code="rule.error", scope=shown)


def _only_operator(scope: Scope) -> int | None:
    found = [token.at for token in scope.tokens if token.text in _COMPARING]
    return found[0] if len(found) == 1 else None


def _no_such_field(name: str, text: str, scope: Scope, values: Mapping[str, Any]) -> RuleError:
    places = list(_places(name, scope, values))
    lacking = [place for place in places if place[2] and not all(name in fields for fields in place[2])]
    shown = describe_scope(values)
    if not places:
        return refuse(text, None, f"`{name}` is not found.", code="rule.error", scope=shown)
    at, owner, fields = (lacking or places)[0]
    meant = nearest(name, {key for one in fields for key in one})
    message = f"`{name}` is not found on `{owner}`" + (f"; did you mean `{meant}`?" if meant else ".")
    hint = f"write {owner}.{meant}" if meant else f"ask has({owner}.{name}) first"
    return refuse(text, at, message, code="rule.error", hint=hint, scope=shown)


def _places(name: str, scope: Scope, values: Mapping[str, Any]) -> Iterator[tuple[int, str, list[dict[str, Any]]]]:
    """Where the name is read: its offset, what it is read from, and the objects that this can be."""
    tokens = scope.tokens
    for index in range(2, len(tokens)):
        token, before = tokens[index], tokens[index - 1].text
        is_field = before == "." and token.kind == "name" and token.text == name
        is_key = before == "[" and token.kind == "string" and token.text[1:-1] == name
        if not is_field and not is_key:
            continue
        span = range(primary_start(tokens, index - 2), index - 1)
        found = look_up(scope, span, values) or []
        owner = "".join(tokens[place].text for place in span)
        yield token.at, owner, [one for one in found if isinstance(one, dict)]
