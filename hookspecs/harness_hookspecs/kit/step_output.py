"""A step's output contract and a value in, what the value has against it out; whoever makes outputs asks here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from harness_hookspecs.errors import RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.json_schema import compiled_schema, faults
from harness_hookspecs.workflow import StepOutput

__all__ = ["finding", "held", "schema_findings", "schema_of"]

_MAX_FINDINGS: Final = 10
_MAX_MESSAGE_CHARACTERS: Final = 200
_KEPT_SCHEMAS: Final = 64
_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "text": (str, "a text"),
    "object": (Mapping, "an object"),
    "array": (list, "an array"),
}


def schema_of(output: StepOutput, narrowed: Mapping[str, Any] | None = None) -> Any:
    """The schema an output must satisfy: the one narrowed for this visit, else the step's own, else None."""
    if output.mode == "choice":
        return {"enum": list(output.values or ())}
    return narrowed if narrowed is not None else output.schema_


def held(output: StepOutput, value: Any, *, code: str = "role.output_invalid") -> Any:
    """Give the value back when it is of the output's mode and satisfies its schema.

    Raises:
        RoleError: With ``code`` and all findings: it does not.
    """
    found = tuple(_findings(output, value))
    if not found:
        return value
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    message = f"The output is not valid: {first['path'] or 'output'}: {first['message']}{more}"
    raise RoleError(message, code=code, findings=list(found))


def schema_findings(value: Any, schema: Any) -> Iterator[dict[str, str]]:
    """What a value has against a JSON Schema; nothing where anything is allowed."""
    if schema is None or schema is True:
        return
    if schema is False:
        yield finding("output.schema", "", "No answer is allowed here")
        return
    compiled = _compiled(codec.dumps(schema))
    for fault in faults(compiled, value, at_most=_MAX_FINDINGS, longest=_MAX_MESSAGE_CHARACTERS):
        yield finding("output.schema", fault.pointer, fault.message)


def finding(code: str, pointer: str, message: str) -> dict[str, str]:
    """One finding, its message not longer than a line of a prompt."""
    text = message if len(message) <= _MAX_MESSAGE_CHARACTERS else message[:_MAX_MESSAGE_CHARACTERS] + "... (cut)"
    return {"code": code, "severity": "error", "path": pointer, "message": text}


def _findings(output: StepOutput, value: Any) -> Iterator[dict[str, str]]:
    kind, called = _KINDS.get(output.mode, (object, ""))
    if not isinstance(value, kind):
        yield finding("output.mode", "", f"{_shown(value)} where {called} belongs")
        return
    yield from schema_findings(value, schema_of(output))


def _shown(value: Any) -> str:
    """What is there, without its content."""
    named = [called for kind, called in _KINDS.values() if isinstance(value, kind)]
    return named[0] if named else "null" if value is None else f"a {type(value).__name__}"


@lru_cache(maxsize=_KEPT_SCHEMAS)
def _compiled(schema: bytes) -> Any:
    return compiled_schema(codec.loads_trusted(schema))
