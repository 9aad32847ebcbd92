"""A pydantic model goes in, the JSON Schema of its values comes out in one piece, as plans and decoders want it.

References are replaced by what they refer to, and what says nothing about a value (titles, defaults, formats) is left
out. What remains is the model's own: a keyword that a compiler of plans does not know is told by that compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from harness_hookspecs.errors import PluginError

__all__ = ["model_schema"]

_SAYS_NOTHING: Final = frozenset(
    "$defs $schema title default examples deprecated format readOnly writeOnly discriminator".split()
)
_OF_NAMES: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_VALUES: Final = frozenset({"const", "enum", "required"})
_HEAD: Final = "#/$defs/"


def model_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of what the model reads.

    Raises:
        PluginError: ``plugin.model_schema``: the model contains itself, or something that JSON cannot say.
    """
    try:
        schema = model.model_json_schema()
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        said = str(error).splitlines()[0]
        raise PluginError(f"{model.__name__} has no JSON Schema: {said}", code="plugin.model_schema") from error
    return _Inlined(model.__name__, schema.get("$defs", {})).of(schema, ())


class _Inlined:
    def __init__(self, name: str, parts: Mapping[str, Any]) -> None:
        self._name, self._parts = name, parts

    def of(self, schema: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
        """The schema with what it refers to in the place of references; ``above`` is what it stands in."""
        reference = schema.get("$ref")
        if reference is None:
            return {word: self._below(word, one, above) for word, one in schema.items() if word not in _SAYS_NOTHING}
        part = reference.removeprefix(_HEAD)
        if part in above:
            message = f"{self._name} contains itself by way of {part}, which no schema in one piece can say"
            raise PluginError(message, code="plugin.model_schema")
        beside = {word: one for word, one in schema.items() if word != "$ref"}
        return {**self.of(self._parts[part], (*above, part)), **self.of(beside, above)}

    def _below(self, word: str, one: Any, above: tuple[str, ...]) -> Any:
        if word in _VALUES:
            return one
        if word in _OF_NAMES:
            return {name: self._inner(schema, above) for name, schema in one.items()}
        return [self._inner(part, above) for part in one] if isinstance(one, list) else self._inner(one, above)

    def _inner(self, one: Any, above: tuple[str, ...]) -> Any:
        return self.of(one, above) if isinstance(one, Mapping) else one
