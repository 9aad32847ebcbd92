"""Values: JSON goes in and frozen, strict, comparable models come out, and the same JSON again.

``Value`` is the base of what outlives the process in snake_case (configuration, the envelope), ``WireModel`` the base
of what crosses a wire in camelCase. Both refuse unknown fields and cannot be changed. What was read is written back as
it was read: an absent field stays absent. What was built in Python is written in full, except that None stands for
absent in every optional field but a ``Json`` one. On a wire a ``Maybe`` field is absent, never null.

A module of many models does without ``from __future__ import annotations``: every start would parse each annotation
from its text again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from .errors import CodecError, ValidationFailed
from .kit import codec
from .kit.frozen import FrozenDict, FrozenList, freeze, thaw
from .kit.strict import MAX_INTEGER

__all__ = [
    "Count",
    "Digest",
    "Flag",
    "FrozenDict",
    "FrozenList",
    "Json",
    "JsonObject",
    "Maybe",
    "Name",
    "Number",
    "PositiveCount",
    "Table",
    "Text",
    "Value",
    "WireModel",
    "explain",
    "freeze",
    "thaw",
]

T = TypeVar("T")


class _Frozen:
    """Field marker: any JSON value (or any JSON object), frozen when it is validated."""

    def __init__(self, schema: dict[str, Any], kind: type[object]) -> None:
        self._schema = schema
        self._kind = kind

    def _validate(self, value: Any) -> Any:
        if not isinstance(value, self._kind):
            raise PydanticCustomError("json.object", "Input should be a JSON object")
        try:
            return freeze(value)
        except CodecError as error:
            raise PydanticCustomError("json.strict", "{reason}", {"reason": str(error)}) from error

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self._schema)


class _AbsentOrSet:
    """Field marker of ``Maybe``: None stands for absent in Python and is refused on a wire."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._refuse_null, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler(schema)
        kinds = [kind for kind in found.get("anyOf", []) if kind != {"type": "null"}]
        return {**kinds[0]} if len(kinds) == 1 else {**found, "anyOf": kinds} if kinds else found

    @staticmethod
    def _refuse_null(value: Any) -> Any:
        if value is None:
            raise PydanticCustomError("json.null", "The field may be absent but not null")
        return value


Json = Annotated[Any, _Frozen({}, object)]
"""Any JSON value, null included; frozen. Refuses what ``kit.frozen.freeze`` refuses."""

JsonObject = Annotated[Mapping[str, Any], _Frozen({"type": "object"}, dict)]
"""Any JSON object; frozen."""

Maybe = Annotated[T | None, _AbsentOrSet()]
"""A field that may be absent; always with the default None."""

Table = Annotated[Mapping[str, T], AfterValidator(FrozenDict)]
"""A frozen mapping from names to values of one kind."""

Text = Annotated[str, StringConstraints(strict=True, min_length=0)]
"""Any text that UTF-8 can carry (a lone surrogate is refused, NUL is not)."""

Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=256)]
"""A short text that is not empty."""

Digest = Annotated[str, StringConstraints(strict=True, pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in lower-case hexadecimal."""

Flag = Annotated[bool, Strict()]
"""True or false, never 0, 1 or a word."""

Count = Annotated[int, Field(strict=True, ge=0, le=MAX_INTEGER)]
"""A whole number from 0 to 2^53-1; never a bool or a float."""

PositiveCount = Annotated[int, Field(strict=True, ge=1, le=MAX_INTEGER)]
"""A whole number from 1 to 2^53-1."""

Number = Annotated[int, Strict()] | Annotated[float, Strict()]
"""A finite number; 1 and 1.0 are written back as they were read."""


def _wire_name(name: str) -> str:
    return to_camel(name.rstrip("_"))


class Value(BaseModel):
    """A frozen snake_case value that refuses unknown fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        hide_input_in_errors=True,
        protected_namespaces=(),
        defer_build=True,  # a process uses few of the models it imports; pydantic 2.14 builds one under a lock
    )

    def __init__(self, /, **data: Any) -> None:
        none_is_absent, written_anyway = _optional_fields(type(self))
        for name in none_is_absent.intersection(data):
            if data[name] is None:
                del data[name]
        # What pydantic's own __init__ does, without handing every field on once more: messages are made of many values.
        self.__pydantic_validator__.validate_python(data, self_instance=self)
        self.__pydantic_fields_set__.update(written_anyway)

    # Tells pydantic that reading a document need not go through __init__, which only fills in what Python left out.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler(schema)
        for field in handler.resolve_ref_schema(found).get("properties", {}).values():
            if field.get("default", ...) is None:  # None stands for absent, not for null
                del field["default"]
        return found

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Build the model from plain JSON values.

        Raises:
            ValidationFailed: ``where`` is the JSON pointer of the first finding; ``facts["findings"]`` has all.
        """
        try:
            read: Self = cls.__pydantic_validator__.validate_python(value)  # model_validate without its own checks
        except ValidationError as error:
            raise explain(error, cls.__name__, value) from error
        return read

    @classmethod
    def from_json_bytes(cls, data: bytes | str) -> Self:
        """Build the model from one strict JSON document.

        Raises:
            CodecError: The document is not strict JSON.
            ValidationFailed: The document is not this model.
        """
        return cls.from_wire(codec.loads(data))

    def to_wire(self) -> dict[str, Any]:
        """The plain JSON object, in the order of the fields, absent fields left out; the caller may change it."""
        wire: dict[str, Any] = self.__pydantic_serializer__.to_python(
            self, mode="json", by_alias=True, exclude_unset=True
        )  # model_dump without its other options
        return wire

    def to_json_bytes(self) -> bytes:
        """The compact JSON document; equal to the bytes that were read, if those were compact and in field order."""
        return codec.dumps(self.to_wire())


class WireModel(Value):
    """A frozen value that is camelCase on the wire and snake_case in Python; both are read, one is written.

    A field whose name a Python keyword or pydantic has taken ends in an underscore, which the wire drops.
    """

    model_config = ConfigDict(alias_generator=_wire_name, populate_by_name=True)


@cache
def _optional_fields(model: type[BaseModel]) -> tuple[frozenset[str], frozenset[str]]:
    """The names and wire names of the fields where None means absent, and the names of those with another default."""
    fields = model.model_fields
    optional = {name for name, field in fields.items() if field.default is None}
    absent = {name for name in optional if not any(isinstance(mark, _Frozen) for mark in fields[name].metadata)}
    wire_names = {fields[name].alias or name for name in absent}
    others = {name for name, field in fields.items() if not field.is_required()} - optional
    return frozenset(absent | wire_names), frozenset(others)


def explain(error: ValidationError, name: str, value: Any) -> ValidationFailed:
    """Turn pydantic's error into ours: every finding with its JSON pointer into the value; no input is echoed.

    ``facts["findings"]`` is a list of ``{path, code, message}``.
    """
    findings = [
        {"path": _pointer(item, value), "code": item["type"], "message": item["msg"].rstrip(".")}
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    text = f"This is not a {name}: {first['message']}{more}."
    return ValidationFailed(text, where=first["path"] or None, findings=findings)


def _pointer(item: ErrorDetails, value: Any) -> str:
    """The JSON pointer of a finding: pydantic's path without the names of union members that it puts between."""
    parts: list[str] = []
    for part in item["loc"]:
        if (isinstance(value, dict) and part in value) or (isinstance(value, list) and isinstance(part, int)):
            value = value[part]  # type: ignore[index]  # a key of the dict or an index of the list
        elif part != item["loc"][-1] or item["type"] != "missing":
            continue
        parts.append(str(part).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in parts)
