"""The bytes of an answer in, the result of the task and what it used out, or why it is none (A-97, A-99)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from harness_hookspecs.errors import CodecError, RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.json_schema import compiled_schema, faults
from harness_hookspecs.messages import Usage
from harness_hookspecs.role import REMOTE_EVENTS, RoleResult, RoleTask, parse_result
from harness_hookspecs.workflow import StepOutput

__all__ = ["Envelope", "read_answer", "read_result", "take_apart"]

_MAX_EVENTS: Final = 1_000
_MAX_FINDINGS: Final = 10
_MAX_MESSAGE_CHARACTERS: Final = 200
_KEPT_SCHEMAS: Final = 64
_REPORTED: Final = frozenset({"inputTokens", "outputTokens"})
_SHAPES: Final[Mapping[str, tuple[type, str]]] = {
    "text": (str, "a text"),
    "choice": (str, "one of the values"),
    "object": (dict, "an object"),
    "array": (list, "an array"),
}


class Envelope(NamedTuple):
    """An answer taken apart: what is to be the result, what it used, and what the other side says that it did."""

    result: dict[str, Any]
    usage: Usage
    events: list[dict[str, Any]]


def read_answer(data: bytes | str) -> dict[str, Any]:
    """Read an answer as strict JSON.

    Raises:
        RoleError: ``role.remote_not_json``, or ``role.remote_invalid`` for what is no object.
    """
    try:
        value = codec.loads(data)
    except CodecError as error:
        raise RoleError(
            f"The answer is no strict JSON: {error.message}", code="role.remote_not_json", reason=error.code
        ) from None  # the cause would quote what stands there
    if not isinstance(value, dict):
        raise _invalid("it is no object")
    return value


def take_apart(answer: dict[str, Any]) -> Envelope:
    """Tell the parts of an answer; usage that is not reported, or only in part, is unknown and never zero.

    Raises:
        RoleError: ``role.remote_invalid`` or ``role.remote_event``.
    """
    events = answer.get("events")
    result = {key: value for key, value in answer.items() if key not in ("usage", "events")}
    return Envelope(result, _usage(answer.get("usage")), _events([] if events is None else events))


def _usage(told: Any) -> Usage:
    if told is None:
        return Usage.unknown()
    try:
        usage = Usage.model_validate(told)
    except ValidationError as error:
        raise _invalid(f"usage: {_first(error)}") from None
    return usage if told.keys() >= _REPORTED else usage.model_copy(update={"known": False})


def _events(told: Any) -> list[dict[str, Any]]:
    if not isinstance(told, list) or len(told) > _MAX_EVENTS:
        raise _invalid(f"events are no list of at most {_MAX_EVENTS}")
    for event in told:
        if not isinstance(event, dict) or event.keys() != {"type", "payload"}:
            raise _invalid("an event is not {type, payload}")
        if event["type"] not in REMOTE_EVENTS or not isinstance(event["payload"], dict):
            raise RoleError(
                "The answer tells an event that only the host may write, or one without a payload.",
                code="role.remote_event",
                type=str(event["type"])[:80],
            )
    return told


def read_result(found: dict[str, Any], task: RoleTask, schema: Mapping[str, Any] | None) -> RoleResult:
    """Make the result of what an answer has beside usage and events.

    Args:
        found: That.
        task: What was asked.
        schema: What the output must satisfy in this visit; absent: what the step says.

    Raises:
        RoleError: ``role.result_kind_mismatch``, ``role.remote_invalid`` or ``role.output_invalid`` with its findings.
    """
    kind = found.get("kind")
    if kind != task.kind:
        said = f"a {kind[:40]}" if isinstance(kind, str) else "no"
        message = f"A {task.kind} task was answered with {said} result."
        raise RoleError(message, code="role.result_kind_mismatch", hint="what is not wanted is said in the settings")
    try:
        result = parse_result(found)
    except ValidationError as error:
        raise _invalid(_first(error)) from None
    output = getattr(getattr(task, "step", None), "output", None)
    if isinstance(output, StepOutput):
        findings = list(_findings(found.get("output"), output, schema))
        if findings:
            message = f"The output is not what the step promises: {findings[0]['path']}: {findings[0]['message']}"
            raise RoleError(message, code="role.output_invalid", findings=findings)
    return result


def _findings(value: Any, output: StepOutput, narrowed: Mapping[str, Any] | None) -> Iterator[dict[str, str]]:
    shape, named = _SHAPES.get(output.mode, (object, ""))
    if not isinstance(value, shape):
        yield _finding("", f"is not {named}")
        return
    schema = narrowed if narrowed is not None else output.schema_
    if output.mode == "choice":
        schema = {"enum": list(output.values or ())}
    if schema is None or schema is True:
        return
    compiled = _compiled(codec.dumps(schema))
    for fault in faults(compiled, value, at_most=_MAX_FINDINGS, longest=_MAX_MESSAGE_CHARACTERS):
        yield _finding(fault.pointer, fault.message)


@lru_cache(maxsize=_KEPT_SCHEMAS)
def _compiled(schema: bytes) -> Any:
    return compiled_schema(codec.loads_trusted(schema))


def _finding(pointer: str, message: str) -> dict[str, str]:
    return {"code": "output.schema", "severity": "error", "path": pointer, "message": message}


def _invalid(why: str) -> RoleError:
    return RoleError(f"The answer is none: {why}.", code="role.remote_invalid")


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, without the value."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ".".join(str(part) for part in found["loc"])[:_MAX_MESSAGE_CHARACTERS]
    return f"{path}: {found['msg']}" if path else str(found["msg"])
