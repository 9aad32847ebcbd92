"""A JSON Schema 2020-12 goes in, compiled; what is wrong with a value under it comes out. Nothing is ever fetched.

A schema is checked as a whole when it is compiled: one that is none, and one that refers to something that is not in
it, is refused before any value is looked at. A compiled one may be used by many threads. ``format`` is not asserted,
a ``pattern`` is mostly ECMA's (what it leaves out: decision 0012), and gives up, against the value, where it would take
too long.

The library follows values and references on the stack, without a limit, would take the whole process with it, and
holds the lock of the interpreter until it is done. So what a schema can ask for is computed before (``schema_cost``),
a schema that asks for too much is refused when it is compiled, and a value that would, under that schema, has one
fault that says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import orjson

from harness_hookspecs.errors import CodecError, PluginError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.frozen import freeze
from harness_hookspecs.kit.schema_cost import MAX_LOOKS, Cost, TooComplex, schema_cost
from harness_hookspecs.kit.schema_patterns import Compiled, compiled_patterns
from harness_hookspecs.kit.strict import MAX_WRITE_DEPTH

Found = TypeVar("Found")

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ["UNRESOLVABLE", "CompiledSchema", "SchemaFault", "best_fault", "compiled_schema", "faults"]

UNRESOLVABLE: Final = "plugin.schema_unresolvable"
"""The code of the error for a schema that refers to something that is not in it."""

_INVALID: Final = "plugin.schema_invalid"
_TOO_COMPLEX: Final = "plugin.schema_too_complex"
_MAX_LOOKS: Final = 50_000_000  # at all parts of a value; a second or two
_MAX_TOLD: Final = 1_000_000  # looks, each as long as the way to it; all messages take half a second and 100 MB
# No way is longer than 700 so: a value has a part for each level, and each subschema on the way is two looks or more.
# Of messages of alternatives, which are in each other, a stack of 8 MiB holds some 4,000.
_MAX_BYTES: Final = 8_000_000  # of values in messages
_MAX_NAMED: Final = 64 << 20  # of those of the schema; the library keeps three copies of each
_NAMED_BY_KIND: Final = frozenset({"falseSchema", "pattern"})  # their place in the schema may end with a name
_REFERS: Final = re.compile(rb'\$(?:dynamicR|r)ef"|"unevaluated')  # such ask for more than they say
_PATTERN: Final = re.compile(rb'"pattern(?:Properties)?"')
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


class CompiledSchema:
    """A schema that values can be held to, by ``faults`` and ``best_fault``. Nothing of it changes."""

    def __init__(self, compiled: Compiled, schema: Any, most_looks: int | None) -> None:
        self.validator: Final = compiled.validator
        self.schema: Final = schema
        self.most_looks: Final = most_looks
        """How often each byte of a value is looked at, at most; None where that depends on how deep it is."""
        self.pattern_looks: Final = compiled.pattern_looks
        """How often a pattern looks at each character, at most."""

    @cached_property
    def cost(self) -> Cost:
        """What the schema can ask for; it is computed when a value is large, or has faults."""
        return _bounded(self.schema)


def compiled_schema(schema: Any) -> CompiledSchema:
    """Compile a schema, to be kept where it is used again.

    Args:
        schema: A mapping, plain or frozen, or a boolean.

    Raises:
        PluginError: It is no JSON Schema 2020-12, or not strict JSON, such as one with an integer beyond 2^53-1, which
            no event could keep (``plugin.schema_invalid``); a reference in it leads nowhere or out of it
            (``plugin.schema_unresolvable``); or it could ask for too much of the stack or of time
            (``plugin.schema_too_complex``). ``where`` is a JSON pointer into the schema, None for the whole of it.
    """
    from jsonschema_rs import ValidationError, ValidationErrorKind

    cost = None
    try:
        text = codec.dumps(schema)
        plain = codec.loads_trusted(text)  # as text, 1e300 would be another number than a value's 1e300
        has_patterns = _PATTERN.search(text) is not None
        cost = _bounded(plain) if has_patterns or len(text) > MAX_LOOKS or _REFERS.search(text) else None
        compiled = _allowed(compiled_patterns(plain, cost.all_patterns if cost is not None else 0))
    except CodecError as error:
        message = f"A schema is strict JSON, as events keep it; this is not. {error.message}"
        raise PluginError(message, code=_INVALID, where=error.where) from error
    except ValidationError as error:
        if isinstance(error.kind, ValidationErrorKind.Referencing):
            where = cost.unresolved[0] if cost is not None and cost.unresolved else None
            raise PluginError(_shortened(error.message, 300), code=UNRESOLVABLE, where=where) from None
        found = _fault(error, schema, 300)
        raise PluginError(found.message, code=_INVALID, where=found.pointer or None) from None
    except ValueError as error:  # no mapping
        raise PluginError(str(error), code=_INVALID) from None
    if cost is not None and cost.unresolved:  # the library has found it, but how much is there is not known
        raise PluginError("The reference leads nowhere.", code=UNRESOLVABLE, where=cost.unresolved[0])
    return CompiledSchema(compiled, plain, len(text) if cost is None else _most_looks(cost, compiled.pattern_looks))


def _bounded(schema: Any) -> Cost:
    return _allowed(schema_cost(schema if isinstance(schema, Mapping) else {}))


def _allowed(found: Found | TooComplex) -> Found:
    if isinstance(found, TooComplex):
        message = f"The schema {found.reason}, and might take the process, or its time, with it."
        raise PluginError(message, code=_TOO_COMPLEX, where=found.where or None)
    return found


def _most_looks(cost: Cost, pattern_looks: int) -> int | None:
    return cost.looks[-1] + cost.patterns[-1] * pattern_looks if cost.levels == MAX_WRITE_DEPTH else None


def faults(compiled: CompiledSchema, value: Any, *, at_most: int = 20, longest: int = 300) -> list[SchemaFault]:
    """Say what is wrong with a value, by place; a value with nothing wrong costs next to nothing.

    Args:
        compiled: What ``compiled_schema`` gave.
        value: Strict JSON, plain or frozen.
        at_most: How many faults are told.
        longest: Characters of a message; of a longer one both ends are kept.

    Returns:
        The faults. Of a value that is so large that the messages of all might take long, only the first that is found;
        one of ``tooComplex`` where not even that can be said.

    Raises:
        CodecError: The value is nested more deeply than ``codec`` writes, or the schema looks at something in it that
            is no JSON. A float that is none in JSON (NaN, infinity) has no type, and thus is a fault.
    """
    errors = _errors(compiled, value)
    if not errors:
        return []
    if isinstance(errors, SchemaFault):
        return [errors]
    errors.sort(key=lambda error: [str(part) for part in error.instance_path])
    return [_fault(error, value, longest) for error in errors[:at_most]]


def best_fault(compiled: CompiledSchema, value: Any) -> SchemaFault | None:
    """Say the one fault that helps most: the outermost, and of alternatives what the one that fits best lacks.

    Of a value that is too large for that, see ``faults``.

    Raises:
        CodecError: As for ``faults``.
    """
    errors = _errors(compiled, value)
    if not errors:
        return None
    if isinstance(errors, SchemaFault):
        return errors
    found = min(errors, key=_rank)
    while inner := [error for branch in getattr(found.kind, "context", ()) for error in branch]:
        *others, deepest = sorted(inner, key=_rank)
        if others and _rank(others[-1]) == _rank(deepest):
            break  # no alternative fits better than the others
        found = deepest
    return _fault(found, value, 300)


def _errors(compiled: CompiledSchema, value: Any) -> list[ValidationError] | SchemaFault:
    most = compiled.most_looks
    try:  # as _size does: this is where most values end
        size = len(orjson.dumps(value))
    except orjson.JSONEncodeError:
        size = _size(value)
    if most is None or size * most > _MAX_LOOKS:
        refused = _refused(compiled, value, size)
        if refused is not None:
            return refused
    try:
        if compiled.validator.is_valid(value):
            return []
    except ValueError:  # a subclass of a plain type, or no JSON
        value = freeze(value)
    return _told(compiled, value)


def _refused(compiled: CompiledSchema, value: Any, size: int) -> SchemaFault | None:
    cost = compiled.cost
    most = _most_looks(cost, compiled.pattern_looks)
    if most is not None and size * most <= _MAX_LOOKS:
        return None
    parts, depth = _measured(value)
    if depth > cost.levels:
        return _too_complex(f"is nested more deeply than the {cost.levels} levels that its schema can be held to")
    if parts * _at_depth(cost.looks, depth) > _MAX_LOOKS:
        return _too_complex("is too large for its schema, which has many ways to look at each part of it")
    if _patterned_size(cost, value, size) * _at_depth(cost.patterns, depth) * compiled.pattern_looks > _MAX_LOOKS:
        return _too_complex("is too large for its schema, which has patterns that would take long to be held to it")
    return None


def _patterned_size(cost: Cost, value: Any, size: int) -> int:
    """Bytes of what patterns are held to."""
    if cost.patterned is None:
        return size
    return sum(_size(value[name]) for name in cost.patterned if name in value) if isinstance(value, dict) else 0


def _told(compiled: CompiledSchema, value: Any) -> list[ValidationError] | SchemaFault:
    """All faults, as the library makes no less than all of them, or the first, which it stops at."""
    cost, choice = compiled.cost, compiled.cost.until_choice
    _, depth = _measured(value)
    if _is_tellable(cost, value, depth):
        return list(compiled.validator.iter_errors(value))
    if choice is None or (choice and all(_is_tellable(cost, one, depth) for one in _below(value, choice))):
        return _first(compiled, value)
    return _too_complex("does not fit its schema, and is too large, or nested too deeply, to say where")


def _first(compiled: CompiledSchema, value: Any) -> list[ValidationError]:
    from jsonschema_rs import ValidationError

    try:
        compiled.validator.validate(value)
    except ValidationError as error:
        return [error]
    return []


def _is_tellable(cost: Cost, value: Any, depth: int) -> bool:
    parts, looks, way = _measured(value)[0], _at_depth(cost.looks, depth), cost.chain * (depth + 1)
    named = parts * _at_depth(cost.named, depth) << 10
    return parts * looks * (8 + way) <= _MAX_TOLD and _size(value) * looks <= _MAX_BYTES and named <= _MAX_NAMED


def _at_depth(looks: tuple[int, ...], depth: int) -> int:
    return looks[min(depth, len(looks) - 1)]


def _below(value: Any, levels: int) -> list[Any]:
    """What a value has so many levels below it."""
    found = [value]
    for _ in range(levels):
        found = [inner for one in found for inner in _children(one)]
    return found


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _too_complex(what: str) -> SchemaFault:
    return SchemaFault("tooComplex", (), f"The value {what}.")


def _size(value: Any) -> int:
    """Bytes of a value; the quickest way to look through the whole of it, which refuses what is nested too deeply."""
    try:
        return len(orjson.dumps(value))
    except orjson.JSONEncodeError:  # for that, or for something else, which is the library's to judge
        _measured(value)
        return 4 * len(repr(value))  # bytes of a character


def _measured(value: Any) -> tuple[int, int]:
    """How many parts a value has, itself included, and how deeply it is nested."""
    parts, deepest = 0, 0
    waiting = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        parts += 1
        if isinstance(item, dict | list | tuple):
            deepest = max(deepest, depth + 1)
            if deepest > MAX_WRITE_DEPTH:
                raise CodecError("The value is nested too deeply for a schema.", code="codec.too_deep") from None
            waiting += [(child, depth + 1) for child in _children(item)]
    return parts, deepest


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
    """Whether it is the keyword that says no, and not a schema under a name like it, which a reference may lead to."""
    is_name, keyword = False, None
    for part in error.evaluation_path:
        keyword = None if is_name or isinstance(part, int) else part
        is_name = keyword in _OF_NAMES
    return error.kind.name == "falseSchema" and keyword == "additionalProperties"


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
