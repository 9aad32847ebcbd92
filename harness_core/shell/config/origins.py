"""Typed values with where they come from: trees of them go in, layer over layer, and one merged tree comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, Literal

import attrs

from harness_core.settings.paths import ConfigPath

__all__ = [
    "LAYERS",
    "UNSET",
    "Branch",
    "Layer",
    "Leaf",
    "Origin",
    "Tree",
    "Unset",
    "find",
    "is_unset",
    "leaves",
    "merge",
    "place_of",
    "plain",
]

Layer = Literal["flag", "environment", "project", "user", "plugin", "built-in", "session"]

LAYERS: Final[tuple[Layer, ...]] = ("flag", "environment", "project", "user", "plugin", "built-in")
"""From the one that wins to the one that loses. ``session`` stands alone: a config that a session has kept."""


@attrs.frozen
class Origin:
    """Where a value comes from.

    Attributes:
        layer: Which layer said it.
        source: The file as it is shown, the environment variable, the flag, or the plugin's offer.
        line: Line in the file, counted from 1; 0 where there are no lines.
        column: Column in the file, counted from 1; 0 where there are none.
    """

    layer: Layer
    source: str = ""
    line: int = 0
    column: int = 0

    def text(self) -> str:
        """Give the place as people write it: ``.harness/stages.yaml:18:5``."""
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        return place or self.layer


class Unset(Enum):
    """The type of ``UNSET``."""

    UNSET = "null"


UNSET: Final = Unset.UNSET
"""The value of a leaf that says ``null``: what lower layers say does not count."""


@attrs.frozen
class Leaf:
    """A scalar, a whole list or an empty mapping, typed.

    Attributes:
        value: Plain JSON, or ``UNSET``.
        origin: Where it stands.
        inner: Where the parts of a list stand, by their path below it.
        untrusted: What a project that is not trusted may do to it: ``ok``, ``tighten`` or ``no``.
        comparator: What stricter means for ``tighten``.
        default: What holds where nobody says anything; None when that is no value.
    """

    value: Any
    origin: Origin
    inner: Mapping[ConfigPath, Origin] = {}
    untrusted: str = "no"
    comparator: str | None = None
    default: Any = None


@attrs.frozen
class Branch:
    """A mapping that has entries."""

    children: Mapping[str, Tree]
    origin: Origin


Tree = Branch | Leaf


def merge(lower: Tree | None, upper: Tree) -> Tree | None:
    """Lay one layer over another: mappings merge, all else replaces, ``UNSET`` removes.

    Returns:
        The merged tree; None when nothing is left.
    """
    if isinstance(upper, Leaf):
        if upper.value is UNSET:
            return None
        keeps = upper.value == {} and isinstance(lower, Branch)  # an empty mapping adds nothing to a full one
        return lower if keeps else upper
    children = dict(lower.children) if isinstance(lower, Branch) else {}
    for key, child in upper.children.items():
        merged = merge(children.get(key), child)
        if merged is None:
            children.pop(key, None)
        else:
            children[key] = merged
    return Branch(children, upper.origin) if children else Leaf({}, upper.origin)


def plain(tree: Tree | None) -> Any:
    """Give the plain JSON of a merged tree; None becomes an empty mapping."""
    if tree is None:
        return {}
    if isinstance(tree, Leaf):
        return tree.value
    return {key: plain(child) for key, child in tree.children.items() if not is_unset(child)}


def is_unset(tree: Tree) -> bool:
    """Whether the tree is just ``null``."""
    return isinstance(tree, Leaf) and tree.value is UNSET


def leaves(tree: Tree | None, path: ConfigPath = ()) -> Iterator[tuple[ConfigPath, Leaf]]:
    """Walk the leaves in the order of the files."""
    if isinstance(tree, Leaf):
        yield path, tree
    elif tree is not None:
        for key, child in tree.children.items():
            yield from leaves(child, (*path, key))


def find(tree: Tree | None, path: ConfigPath) -> Tree | None:
    """Give the subtree at a path, None when nothing stands there."""
    for part in path:
        if not isinstance(tree, Branch) or not isinstance(part, str):
            return None
        tree = tree.children.get(part)
    return tree


def place_of(tree: Tree | None, path: ConfigPath) -> Origin | None:
    """Give the nearest place that is known for a path: its own, else that of what holds it."""
    nearest: Origin | None = None
    for depth, part in enumerate(path):
        if isinstance(tree, Leaf):
            inner = [
                tree.inner[path[depth:end]] for end in range(depth, len(path) + 1) if path[depth:end] in tree.inner
            ]
            return inner[-1] if inner else tree.origin
        if tree is None or not isinstance(part, str) or part not in tree.children:
            break
        tree = tree.children[part]
        nearest = tree.origin
    return nearest
