"""The sources of a sketch: what an input says, and the steps before, in; the template that it stands for out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from harness_executor_workflow.plan.templates import templates_in

from .shapes import kinds

__all__ = ["Earlier", "Reading", "needs_of"]

_SOURCE: Final = re.compile(r"([a-z][a-z0-9_]*)((?:\.[A-Za-z_][A-Za-z0-9_]*)*)", re.ASCII)
_STEP: Final = re.compile(r"\bsteps\.([a-z][a-z0-9_]*)")


class Reading(NamedTuple):
    """What one input stands for: an expression with its kinds, or a value as it is."""

    path: str | None
    kinds: frozenset[str]
    value: Any = None

    def as_value(self) -> Any:
        """The template that keeps the value's type."""
        return self.value if self.path is None else f"{{{{ {self.path} }}}}"

    def as_text(self) -> Any:
        """The template that is text whatever the value is; what is no text is written as JSON."""
        if self.path is None:
            return self.value
        return self.as_value() if self.kinds == {"string"} else f"{self.as_value()}\n"


class Earlier:
    """The steps of a sketch so far."""

    def __init__(self, input_schema: Any) -> None:
        self._input = input_schema
        self._names: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._last: tuple[str, Mapping[str, Any]] | None = None

    def add(self, said: str, name: str, output: Mapping[str, Any]) -> None:
        """A step that the next ones may read, by the id that the sketch says."""
        self._last = self._names[said] = (name, output)

    def read(self, value: Any) -> Reading:
        """What an input stands for."""
        match = _SOURCE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return Reading(None, frozenset(), value)
        root, fields = match[1], match[2]
        if root == "input" or (root == "previous" and self._last is None):
            return self._of_input(fields if root == "input" else "")
        step = self._last if root == "previous" else self._names.get(root)
        if step is None:
            return Reading(None, frozenset(), value)
        name, output = step
        is_text = output["mode"] in ("text", "choice") and not fields
        return Reading(f"steps.{name}.output{fields}", frozenset({"string"} if is_text else {"object"}))

    def filled(self, value: Any) -> Any:
        """A value with each source in it replaced."""
        if isinstance(value, Mapping):
            return {key: self.filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.filled(one) for one in value]
        return self.read(value).as_value()

    def _of_input(self, fields: str) -> Reading:
        path, shape = f"input{fields}", self._input
        names = fields.split(".")[1:]
        for name in names:
            properties = shape.get("properties", {}) if isinstance(shape, Mapping) else {}
            shape = properties.get(name, True)
        required = self._input.get("required", ()) if isinstance(self._input, Mapping) else ()
        if len(names) == 1 and isinstance(self._input, Mapping) and names[0] not in required:
            return Reading(f"has({path}) ? {path} : null", kinds(shape) | {"null"})
        return Reading(path, kinds(shape))


def needs_of(value: Any, earlier: Iterable[str]) -> list[str]:
    """The earlier steps that the templates in a value read, in their order."""
    read = {step for _, text in templates_in(value) for step in _STEP.findall(text)}
    return [step for step in earlier if step in read]
