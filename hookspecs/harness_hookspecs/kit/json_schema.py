"""A JSON Schema 2020-12 goes in, compiled; what is wrong with a value under it comes out. Nothing is ever fetched.

A schema is checked as a whole when it is compiled: one that is none, and one that refers to something that is not in
it, is refused before any value is looked at. A compiled one may be used by many threads. ``format`` is not asserted,
a ``pattern`` is ECMA's and gives up, against the value, where it would take too long.

The library follows the nesting of a value on the stack, without a limit, and would take the whole process with it: no
value goes there that is nested more deeply than ``codec`` writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from harness_hookspecs.errors import CodecError, PluginError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.frozen import freeze
from harness_hookspecs.kit.strict import MAX_WRITE_DEPTH

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

__all__ = ["UNRESOLVABLE", "SchemaFault", "best_fault", "compiled_schema", "faults"]

UNRESOLVABLE: Final = "plugin.schema_unresolvable"
"""The code of the error for a schema that refers to something that is not in it."""

_INVALID: Final = "plugin.schema_invalid"
_BACKTRACKS: Final = 1_000  # of a pattern with look-around or back references, each through the text; others take none
_NAMED_BY_KIND: Final = frozenset({"falseSchema", "pattern"})  # their place in the schema may end with a name
_OF_NAMES: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_COUNTED: Final = frozenset({"minContains", "maxContains"})
_OF_MANY: Final = frozenset({"anyOf", "oneOf"})


class SchemaFault(NamedTuple):
    """One thing that is wrong with a value: the schema's keyword that says so, where in the value, and a sentence.

    A subschema ``false`` is told as the keyword ``falseSchema``.
    """

    keyword: str
    path: tuple[str | int, ...]
    message: str

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer."""
        return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in self.path)


def compiled_schema(schema: Any) -> Draft202012Validator:
    """Compile a schema, to be kept where it is used again.

    Args:
        schema: A mapping, plain or frozen, or a boolean.

    Raises:
        PluginError: It is no JSON Schema 2020-12 (``plugin.schema_invalid``), or a reference in it leads nowhere or out
            of it (``plugin.schema_unresolvable``); ``where`` is a JSON pointer into the schema.
    """
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError, ValidationErrorKind

    limits = FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    try:
        plain = codec.loads_trusted(codec.dumps(schema))  # as text, 1e300 would be another number than a value's 1e300
        return Draft202012Validator(plain, offline=True, validate_formats=False, pattern_options=limits)
    except CodecError as error:
        raise PluginError(error.message, code=_INVALID, where=error.where) from error
    except ValidationError as error:
        code = UNRESOLVABLE if isinstance(error.kind, ValidationErrorKind.Referencing) else _INVALID
        found = _fault(error, schema, 300)
        raise PluginError(found.message, code=code, where=found.pointer or None) from None
    except ValueError as error:  # no mapping
        raise PluginError(str(error), code=_INVALID) from None


def faults(compiled: Draft202012Validator, value: Any, *, at_most: int = 20, longest: int = 300) -> list[SchemaFault]:
    """Say what is wrong with a value, by place; a value with nothing wrong costs next to nothing.

    Args:
        compiled: What ``compiled_schema`` gave.
        value: Strict JSON, plain or frozen.
        at_most: How many faults are told.
        longest: Characters of a message; of a longer one both ends are kept.

    Raises:
        CodecError: The value is nested too deeply, or is not strict JSON where the schema looks at it.
    """
    errors = _errors(compiled, value)
    if not errors:
        return []
    errors.sort(key=lambda error: [str(part) for part in error.instance_path])
    return [_fault(error, value, longest) for error in errors[:at_most]]


def best_fault(compiled: Draft202012Validator, value: Any) -> SchemaFault | None:
    """Say the one fault that helps most: the outermost, and of alternatives what the one that fits best lacks.

    Raises:
        CodecError: As for ``faults``.
    """
    errors = _errors(compiled, value)
    if not errors:
        return None
    found = min(errors, key=_rank)
    while inner := [error for branch in getattr(found.kind, "context", ()) for error in branch]:
        *others, deepest = sorted(inner, key=_rank)
        if others and _rank(others[-1]) == _rank(deepest):
            break  # no alternative fits better than the others
        found = deepest
    return _fault(found, value, 300)


def _errors(compiled: Draft202012Validator, value: Any) -> list[ValidationError]:
    _check_depth(value)
    try:
        if compiled.is_valid(value):
            return []
    except ValueError:  # a subclass of a plain type, or no JSON
        value = freeze(value)
    return list(compiled.iter_errors(value))


def _check_depth(value: Any) -> None:
    try:
        orjson.dumps(value)  # the quickest way to look through the whole of it, and refuses that depth itself
    except orjson.JSONEncodeError:  # or for something else, which is the library's to judge
        waiting = [(value, 1)]
        while waiting:
            item, depth = waiting.pop()
            if isinstance(item, dict | list | tuple):
                if depth > MAX_WRITE_DEPTH:
                    raise CodecError("The value is nested too deeply for a schema.", code="codec.too_deep") from None
                waiting += [(child, depth + 1) for child in (item.values() if isinstance(item, dict) else item)]


def _rank(error: ValidationError) -> tuple[int, bool]:
    return len(error.instance_path), error.kind.name in _OF_MANY


def _fault(error: ValidationError, value: Any, longest: int) -> SchemaFault:
    keyword, message = error.kind.name, error.message
    if keyword == "enum":  # the library names two of the options
        message = f"{_json(error.instance)} is not one of {_json(error.kind.value)}"
    elif _forbids_all_properties(error):  # the library does not name them
        keyword, message = "additionalProperties", _unexpected(value, error.instance_path)
    elif keyword not in _NAMED_BY_KIND:
        keyword = _last_keyword(error)
    if keyword in _COUNTED:  # the library says that there are none
        message = f"{_json(error.instance)} does not hold as many fitting items as {keyword} asks for"
    return SchemaFault(keyword, tuple(error.instance_path), _shortened(message, longest))


def _last_keyword(error: ValidationError) -> str:
    last = error.schema_path[-1] if error.schema_path else error.kind.name
    return last if isinstance(last, str) else "falseSchema"  # a place in a list of schemas


def _forbids_all_properties(error: ValidationError) -> bool:
    path: list[str | int] = ["", *error.schema_path]
    return error.kind.name == "falseSchema" and path[-1] == "additionalProperties" and path[-2] not in _OF_NAMES


def _unexpected(value: Any, path: Iterable[str | int]) -> str:
    for part in path:
        value = value[part]
    names = ", ".join(f"'{name}'" for name in value)
    return f"Additional properties are not allowed ({names} {'was' if len(value) == 1 else 'were'} unexpected)"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _shortened(text: str, longest: int) -> str:
    """Both ends of a long text: the library begins with the value and ends with what is wrong with it."""
    if len(text) <= longest:
        return text
    mark = " ... "
    kept = longest - len(mark)
    return text[: kept - kept // 2] + mark + text[-(kept // 2) :]
