"""A JSON Schema goes in; it comes out compiled, with what its patterns ask for where they are held to a text.

How large a pattern becomes when it is written out (``[ab]{3000}``) only the engine knows, which takes a limit of it: so
the schema is compiled with small limits first. A text may be looked at by all of a pattern at each character.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from harness_hookspecs.kit.schema_graph import TooComplex

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions, RegexOptions

__all__ = ["Compiled", "compiled_patterns"]

_SIZES: Final = (1_280, 2 << 10, 4 << 10, 16 << 10, 128 << 10, 1 << 20)  # bytes of a pattern that is written out
_MAX_BYTES: Final = 64 << 20  # of all patterns, if each were as large as it may be; half a second, and as much memory
_LOOKS_OF_KIB: Final = 4  # at each character; a state takes 70 bytes and some 7 ns, a look 25 ns
_BACKTRACKS: Final = 1_000  # of a pattern with look-around or back references, each through the text; others take none
_LOOKS_BACK: Final = 100  # at each character, of these, while the engine keeps all states that it finds
_LOOKS_BACK_OF_KIB: Final = 4_000  # where it cannot, and finds them again with each step back


class Compiled(NamedTuple):
    """A schema, compiled, and how often one of its patterns looks at each character, at most."""

    validator: Draft202012Validator
    pattern_looks: int


def compiled_patterns(schema: Any, patterns: int) -> Compiled | TooComplex:
    """Compile a schema.

    Args:
        schema: A plain mapping, or a boolean.
        patterns: How many there are in it.

    Raises:
        ValidationError: It is no schema, or a pattern is none, or becomes larger than 1 MiB when it is written out.
        ValueError: It is no mapping.
    """
    from jsonschema_rs import FancyRegexOptions, RegexOptions, ValidationError

    if not patterns:
        return Compiled(_compiled(schema, FancyRegexOptions()), 0)
    for size in _SIZES:
        if size * patterns > _MAX_BYTES:
            break
        try:
            validator = _compiled(schema, FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=size))
        except ValidationError:
            if size == _SIZES[-1]:
                raise
            continue
        try:
            _compiled(schema, RegexOptions(size_limit=_SIZES[-1]))  # which knows nothing but what takes linear time
        except ValidationError:
            return Compiled(validator, _LOOKS_BACK if size == _SIZES[0] else _LOOKS_BACK_OF_KIB * size >> 10)
        return Compiled(validator, _LOOKS_OF_KIB * size >> 10)
    return TooComplex("has patterns that become too large when they are written out", "")


def _compiled(schema: Any, options: FancyRegexOptions | RegexOptions) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(schema, offline=True, validate_formats=False, pattern_options=options)
