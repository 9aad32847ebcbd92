"""The nodes of a layer and the schemas in, a typed tree out, and every key or value that does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness_core.settings.paths import ConfigPath, format_path
from harness_core.settings.problems import Problem, nearest
from harness_core.shell.yaml_nodes import Items, Map, Mark, Node, Scalar

from .origins import UNSET, Branch, Layer, Leaf, Origin, Tree, is_unset, leaves, plain
from .scalars import is_null, misfit, typed_scalar
from .shapes import ANYTHING, Shape

__all__ = ["Section", "Typist"]

_FEW = 8
"""As many known keys are listed when none is near."""


@attrs.frozen
class Section:
    """A mapping that chooses a plugin's offer and holds that offer's own keys.

    Attributes:
        kind: Kind of the offer.
        name: The name by which it is chosen.
        shape: What its manifest says of its own keys; None when no such offer is known here.
    """

    kind: str
    name: str
    shape: Shape | None


@attrs.define
class Typist:
    """Types the nodes of one layer; what it finds is added to ``problems`` and ``warnings``.

    Attributes:
        layer: The layer the nodes belong to.
        sections: The mappings with keys of plugins, by path.
        homes: The file that each top-level key belongs to.
    """

    layer: Layer
    sections: Mapping[ConfigPath, Section]
    homes: Mapping[str, str]
    problems: list[Problem] = attrs.field(factory=list)
    warnings: list[Problem] = attrs.field(factory=list)

    def type(self, node: Node, shape: Shape, path: ConfigPath, origin: Origin | None = None) -> Tree:
        """Type a node; a part that does not fit is left out and noted."""
        here = origin or self.origin(node.mark)
        if is_null(node):
            if isinstance(node, Scalar) and not node.text:
                self._warn(
                    "config.empty",
                    path,
                    "it has no value, which is taken as null: unset",
                    here,
                    "write null, or remove it",
                )
            return self._leaf(UNSET, here, shape)
        kinds = [one.kinds() for one in shape.alternatives()]
        if isinstance(node, Map) and any(not kind or "object" in kind for kind in kinds):
            return self._map(node, shape, path, here)
        if isinstance(node, Items) and any(not kind or "array" in kind for kind in kinds):
            return self._items(node, shape, path, here)
        if isinstance(node, Scalar):
            fits, value = typed_scalar(node, shape)
            if fits:
                return self._leaf(value, here, shape)
        message, hint = misfit(node, shape)
        self._note("config.type", path, message, here, hint)
        return self._leaf(UNSET, here, shape)

    def origin(self, mark: Mark) -> Origin:
        """Give the origin of a place in this layer."""
        return Origin(self.layer, mark.file, mark.line, mark.column)

    def child(self, shape: Shape, path: ConfigPath, key: str) -> Shape | None:
        """Give the shape of a key: the core's, else the plugin's, else that of any key; None when it is unknown."""
        found = shape.child(key)
        section = self.sections.get(path)
        if found is not None or section is None:
            return found or shape.free()
        if section.shape is None:
            return attrs.evolve(ANYTHING, untrusted=shape.untrusted, comparator=shape.comparator)
        return section.shape.child(key) or section.shape.free()

    def names(self, shape: Shape, path: ConfigPath) -> list[str]:
        """Give the keys that are known by name, the plugin's included."""
        section = self.sections.get(path)
        own = section.shape.property_names() if section is not None and section.shape is not None else []
        return [*shape.property_names(), *own]

    def _leaf(self, value: object, origin: Origin, shape: Shape) -> Leaf:
        default = shape.schema.get("default")
        return Leaf(value, origin, untrusted=shape.untrusted, comparator=shape.comparator, default=default)

    def _map(self, node: Map, shape: Shape, path: ConfigPath, here: Origin) -> Tree:
        children: dict[str, Tree] = {}
        section = self.sections.get(path)
        for key, value in node.entries:
            found = self.child(shape, path, key.text)
            if found is None:
                self._unknown(key, self.names(shape, path), path, section)
                continue
            children[key.text] = self.type(value, found, (*path, key.text))
            if section is not None and section.shape is None and shape.child(key.text) is None:
                message = f'nothing here knows the keys of {section.kind} "{section.name}", so this one is not checked'
                self._warn(
                    "config.no_schema", (*path, key.text), message, self.origin(key.mark), "is its plugin installed?"
                )
        return Branch(children, here) if children else self._leaf({}, here, shape)

    def _unknown(self, key: Scalar, known: Iterable[str], path: ConfigPath, section: Section | None = None) -> None:
        home = self.homes.get(key.text) if not path else None
        names = list(known)
        hint = f"it belongs in {home}.yaml" if home else nearest(key.text, names)
        if hint is None and section is not None and section.shape is not None and not section.shape.property_names():
            hint = f'{section.kind} "{section.name}" declares no settings of its own (config in its manifest)'
        if hint is None and 0 < len(names) <= _FEW:
            hint = f"known: {', '.join(names)}"
        self._note("config.unknown_key", (*path, key.text), f'unknown key "{key.text}"', self.origin(key.mark), hint)

    def _items(self, node: Items, shape: Shape, path: ConfigPath, here: Origin) -> Leaf:
        shape_of_items = shape.items()
        value: list[object] = []
        inner: dict[ConfigPath, Origin] = {}
        for index, item in enumerate(node.items):
            tree = self.type(item, shape_of_items, (*path, index))
            if is_unset(tree):
                if is_null(item):
                    self._note(
                        "config.type",
                        (*path, index),
                        "null stands in a list",
                        self.origin(item.mark),
                        "remove it, or put it in quotes",
                    )
                continue
            inner[(index,)] = tree.origin
            for below, leaf in leaves(tree):
                inner |= {(index, *below): leaf.origin} | {
                    (index, *below, *part): at for part, at in leaf.inner.items()
                }
            value.append(plain(tree))
        return attrs.evolve(self._leaf(value, here, shape), inner=inner)

    def _note(self, code: str, path: ConfigPath, message: str, origin: Origin, hint: str | None = None) -> None:
        self.problems.append(Problem(code, message, format_path(path), origin.text(), hint))

    def _warn(self, code: str, path: ConfigPath, message: str, origin: Origin, hint: str | None = None) -> None:
        self.warnings.append(Problem(code, message, format_path(path), origin.text(), hint))
