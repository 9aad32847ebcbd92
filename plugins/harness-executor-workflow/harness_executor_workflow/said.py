"""What a person said to a stage goes in; it comes out as JSON where it is meant as the input itself."""

from __future__ import annotations

from typing import Any, Final

from harness_hookspecs.errors import CodecError
from harness_hookspecs.executor import StageInput
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.json_schema import best_fault, compiled_schema
from harness_hookspecs.value import thaw

__all__ = ["NO_JSON", "said_as_json"]

NO_JSON: Final = object()
"""In place of an input where none was said as JSON."""


def said_as_json(stage_input: StageInput) -> Any:
    """The input that was said, or ``NO_JSON``.

    An object is always meant so. The input of a workflow that is defined may be of any kind that its schema takes.
    """
    try:
        said = codec.loads(stage_input.prompt)
    except CodecError:
        return NO_JSON
    if isinstance(said, dict):
        return said
    definition = stage_input.definition
    schema = False if definition is None else thaw(definition)["inputSchema"]
    return said if best_fault(compiled_schema(schema), said) is None else NO_JSON
