"""One YAML document as text goes in; plain JSON values and the line of each come out, or an error with file and line.

Only what is written counts: ``yes``, ``12:30`` and dates are text, a key stands once, nothing refers to something
elsewhere in the file, and nothing is built but maps, lists, texts, numbers, true, false and null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from harness_hookspecs.errors import ConfigError

__all__ = ["load"]

_MAX_CHARACTERS: Final = 4 * 1024 * 1024
_MAX_DEPTH: Final = 48


class _Loader(yaml.SafeLoader):
    """PyYAML's parser with YAML 1.2's idea of a number and nothing that refers elsewhere."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # PyYAML's own way
    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        self.depth += 1
        try:
            if self.depth > _MAX_DEPTH:
                self._refuse("it is nested too deep")
            if self.check_event(yaml.events.AliasEvent):
                self._refuse("aliases are not allowed")
            node: Node | None = super().compose_node(parent, index)
            return node
        finally:
            self.depth -= 1

    def _refuse(self, why: str) -> NoReturn:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it out
        raise yaml.composer.ComposerError(None, None, why, event.start_mark)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str) or key in found:
                why = "stands twice" if isinstance(key, str) else "is not text"
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} {why}", key_node.start_mark)
            found[key] = self.construct_object(value_node, deep=deep)
        return found


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


_resolve("null", r"(?:null|~|)$", "n~\0")
_resolve("bool", r"(?:true|false)$", "tf")
_resolve("int", r"[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789")
_resolve("float", r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?$", "-+0123456789")
_Loader.yaml_implicit_resolvers[""] = _Loader.yaml_implicit_resolvers.pop("\0")


def load(text: str, file: str) -> tuple[Any, dict[str, int]]:
    """Read one document.

    Args:
        text: The document.
        file: What it is called in errors.

    Returns:
        The value, and the line of every value in it, by JSON pointer.

    Raises:
        ConfigError: It is not such a document; ``where`` is ``FILE:LINE:COLUMN`` where known.
    """
    if len(text) > _MAX_CHARACTERS:
        raise ConfigError(f"The file is larger than {_MAX_CHARACTERS} characters.", where=file)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, ValueError) as error:
        _refuse(error, file)
    return value, dict(_lines(node, "")) if node is not None else {}


def _refuse(error: Exception, file: str) -> NoReturn:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    raise ConfigError(f"This is not the YAML that is read here: {problem}.", where=where) from error


def _lines(node: Node, pointer: str) -> Iterator[tuple[str, int]]:
    yield pointer, node.start_mark.line + 1
    if isinstance(node, SequenceNode):
        for index, child in enumerate(node.value):
            yield from _lines(child, f"{pointer}/{index}")
    elif isinstance(node, MappingNode):
        for key, child in node.value:
            name = key.value if isinstance(key, ScalarNode) else ""
            yield from _lines(child, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
