"""Parser events of one YAML file in, a tree of nodes out: scalars still text, places known, limits kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import yaml

from harness_core.settings.problems import Problem

__all__ = ["MAX_DEPTH", "MAX_NODES", "Builder", "Items", "Map", "Mark", "Node", "Scalar", "StopReading", "one_line"]

MAX_NODES: Final = 20_000
"""Most nodes of one file, each alias counted as what it stands for; parsing that many takes about half a second."""

MAX_DEPTH: Final = 64
"""Deepest nesting, aliases counted as what they stand for."""


@attrs.frozen
class Mark:
    """A place: file, line and column, both counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@attrs.frozen
class Scalar:
    """A text; ``plain`` when it stood there without quotes and not as a block."""

    text: str
    plain: bool
    mark: Mark
    size: int = 1
    height: int = 0


@attrs.frozen
class Items:
    """A list."""

    items: tuple[Node, ...]
    mark: Mark
    size: int
    height: int


@attrs.frozen
class Map:
    """A mapping, its entries in the order of the file; keys differ from each other."""

    entries: tuple[tuple[Scalar, Node], ...]
    mark: Mark
    size: int
    height: int


Node = Scalar | Items | Map


def one_line(text: str) -> str:
    """Shorten a foreign text to one line of a message."""
    return " ".join(text.split())[:200]


class StopReading(Exception):
    """Reading cannot go on; the problem is already noted. Never leaves the reader."""


@attrs.define
class _Open:
    """A list or mapping whose end has not come yet."""

    is_map: bool
    mark: Mark
    anchor: str | None
    nodes: list[Node] = attrs.field(factory=list)
    size: int = 1


class Builder:
    """Takes parser events one by one and keeps what is open, so that nothing here recurses.

    Attributes:
        root: The finished root node; None for a file without one.
        problems: What was wrong so far.
    """

    def __init__(self, file: str) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._file = file
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}  # None: still open
        self._documents = 0
        self._brought_in = 0

    def take(self, event: Any) -> None:
        """Take the next event of PyYAML's parser; raises StopReading when it makes no sense to go on."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            self._start(event)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._stop("config.yaml", "a second document begins here; one file holds one", self._mark(event))

    def _mark(self, event: Any) -> Mark:
        return Mark(self._file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _note(self, code: str, message: str, mark: Mark, hint: str | None = None) -> None:
        self.problems.append(Problem(code, message, where=str(mark), hint=hint))

    def _stop(self, code: str, message: str, mark: Mark, hint: str | None = None) -> None:
        self._note(code, message, mark, hint)
        raise StopReading

    def _begin(self, event: Any) -> Mark:
        """Check what every node may carry, and reserve its anchor."""
        mark = self._mark(event)
        if event.tag is not None:
            self._note(
                "config.yaml_tag", f"tags such as {one_line(event.tag)} are not read here", mark, "remove the tag"
            )
        if event.anchor is not None:
            if event.anchor in self._anchors:
                self._note("config.yaml_alias", f"the anchor &{event.anchor} is given twice", mark)
            self._anchors[event.anchor] = None
        return mark

    def _scalar(self, event: Any) -> None:
        mark = self._begin(event)
        try:
            event.value.encode()
        except UnicodeEncodeError:
            self._note("config.encoding", "the text holds half of a surrogate pair", mark)
        node = Scalar(event.value, event.style is None, mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._add(node, mark)

    def _alias(self, event: Any) -> None:
        mark = self._mark(event)
        if event.anchor not in self._anchors:
            self._stop("config.yaml_alias", f"there is no anchor &{event.anchor} above", mark)
        node = self._anchors[event.anchor]
        if node is None:
            self._stop("config.yaml_alias", f"*{event.anchor} stands inside what it names, which would never end", mark)
        else:
            self._add(node, mark)

    def _start(self, event: Any) -> None:
        mark = self._begin(event)
        if len(self._open) >= MAX_DEPTH:
            self._stop("config.too_deep", f"it is nested deeper than {MAX_DEPTH} levels", mark)
        self._open.append(_Open(isinstance(event, yaml.MappingStartEvent), mark, event.anchor))

    def _end(self) -> None:
        done = self._open.pop()
        node = self._map(done) if done.is_map else _items(done)
        if done.anchor is not None:
            self._anchors[done.anchor] = node
        self._add(node, done.mark)

    def _add(self, node: Node, mark: Mark) -> None:
        if node.size + sum(one.size for one in self._open) > MAX_NODES:
            self._stop(
                "config.yaml_bomb",
                f"written out it has more than {MAX_NODES} nodes (the limit on aliases and entries)",
                mark,
            )
        if node.height + len(self._open) > MAX_DEPTH:
            self._stop(
                "config.too_deep", f"with its aliases written out it is nested deeper than {MAX_DEPTH} levels", mark
            )
        if self._open:
            self._open[-1].nodes.append(node)
            self._open[-1].size += node.size
        else:
            self.root = node

    def _map(self, done: _Open) -> Map:
        own: dict[str, tuple[Scalar, Node]] = {}
        merge: tuple[Scalar, Node] | None = None
        for key, value in zip(done.nodes[::2], done.nodes[1::2], strict=True):
            if not isinstance(key, Scalar):
                self._note("config.yaml_key", "a key must be a text", key.mark)
                continue
            is_merge = key.plain and key.text == "<<"
            first = merge if is_merge else own.get(key.text)
            if first is not None:
                message = f'the key "{one_line(key.text)}" is given twice, first at {first[0].mark}'
                self._note("config.duplicate_key", message, key.mark)
            elif is_merge:
                merge = (key, value)
            else:
                own[key.text] = (key, value)
        return _map_of([*own.values(), *self._merged(own, merge[1] if merge else None)], done.mark)

    def _merged(self, own: dict[str, Any], value: Node | None) -> Iterator[tuple[Scalar, Node]]:
        seen = set(own)
        for source in value.items if isinstance(value, Items) else () if value is None else (value,):
            if not isinstance(source, Map):
                self._note("config.yaml_merge", "<< takes a mapping or a list of mappings", source.mark)
                continue
            for key, node in source.entries:
                if key.text not in seen:
                    seen.add(key.text)
                    self._bring_in(node, source.mark)
                    yield key, node

    def _bring_in(self, node: Node, mark: Mark) -> None:
        self._brought_in += 1 + node.size
        if self._brought_in > MAX_NODES:
            self._stop("config.yaml_bomb", f"merge keys bring in more than {MAX_NODES} nodes", mark)


def _items(done: _Open) -> Items:
    nodes = tuple(done.nodes)
    return Items(
        nodes, done.mark, 1 + sum(node.size for node in nodes), 1 + max((node.height for node in nodes), default=0)
    )


def _map_of(entries: list[tuple[Scalar, Node]], mark: Mark) -> Map:
    size = 1 + sum(1 + node.size for _, node in entries)
    return Map(tuple(entries), mark, size, 1 + max((node.height for _, node in entries), default=0))
