"""The layers and a key in, what each layer says of it, which one wins and why the others lose, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from harness_core.settings.paths import ConfigPath, format_path

from .origins import LAYERS, UNSET, Branch, Layer, Leaf, Origin, Tree, find, leaves, plain

__all__ = ["ORDER", "Explanation", "Voice", "dig", "explain_leaf", "leaves_below"]

ORDER: Final = "flags > environment > project > user > plugin defaults > built-in"


@attrs.frozen
class Voice:
    """What one layer says.

    Attributes:
        layer: The layer.
        where: The place; the name of the layer where there is none.
        said: Whether it says anything.
        value: What it says; None for null.
        wins: Whether this is the value that holds.
        reason: Why it does not win; empty for the winner.
    """

    layer: Layer
    where: str
    said: bool
    value: Any
    wins: bool
    reason: str


@attrs.frozen
class Explanation:
    """One key with its value and every layer's word on it, the strongest first."""

    path: str
    value: Any
    voices: tuple[Voice, ...]

    def document(self) -> dict[str, Any]:
        """Give it as plain JSON."""
        return attrs.asdict(self)


def explain_leaf(
    path: ConfigPath, value: Any, trees: Mapping[Layer, Tree | None], ignored: Sequence[ConfigPath]
) -> Explanation:
    """Explain one leaf.

    Args:
        path: The key.
        value: The value that holds.
        trees: What each layer says.
        ignored: Leaves of the project that do not count because it is not trusted.
    """
    voices: list[Voice] = []
    state = ""
    for layer in LAYERS:
        voice, state = _voice(layer, path, trees.get(layer), state, path in ignored)
        voices.append(voice)
    if value is not None and not any(voice.wins for voice in voices):
        voices[-1] = Voice("built-in", "built-in", True, value, True, "")
    return Explanation(format_path(path), value, tuple(voices))


def _voice(layer: Layer, path: ConfigPath, tree: Tree | None, state: str, untrusted: bool) -> tuple[Voice, str]:
    found = _said(tree, path)
    if found is None:
        return Voice(layer, layer, False, None, False, "not set"), state
    value, origin = found
    shown = None if value is UNSET else value
    if layer == "project" and untrusted:
        return Voice(layer, origin.text(), True, shown, False, "ignored: untrusted project, see harness trust"), state
    if state:
        return Voice(layer, origin.text(), True, shown, False, state), state
    if value is UNSET:
        return Voice(
            layer, origin.text(), True, None, False, "null unsets what the files below say"
        ), f"unset by {origin.text()}"
    return Voice(layer, origin.text(), True, shown, True, ""), "lower layer"


def _said(tree: Tree | None, path: ConfigPath) -> tuple[Any, Origin] | None:
    """What a layer says at a key: itself, or by a null or a value further up that takes its place."""
    for end in range(1, len(path) + 1):
        found = find(tree, path[:end])
        if isinstance(found, Leaf):
            return _inside(found, path[end:])
        if found is None:
            return None
    found = find(tree, path)
    return (plain(found), found.origin) if isinstance(found, Branch) else None


def _inside(leaf: Leaf, rest: ConfigPath) -> tuple[Any, Origin] | None:
    if leaf.value is UNSET or not rest:
        return leaf.value, leaf.origin
    value = leaf.value
    for part in rest:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value, leaf.inner.get(rest, leaf.origin)


def leaves_below(path: ConfigPath, values: Mapping[str, Any], trees: Mapping[Layer, Tree | None]) -> list[ConfigPath]:
    """List what can be explained at a key or below it: what holds, and what a layer says and yet does not hold."""
    held = _every_leaf(dig(values, path), path) if _holds(values, path) else []
    said = [(*path, *below) for tree in trees.values() for below, _ in leaves(find(tree, path))]
    extra = [at for at in said if not _holds(values, at)]
    return list(dict.fromkeys([*held, *extra]))


def _every_leaf(value: Any, path: ConfigPath) -> Iterator[ConfigPath]:
    if isinstance(value, Mapping) and value:
        for key, child in value.items():
            yield from _every_leaf(child, (*path, key))
    else:
        yield path


def _holds(values: Any, path: ConfigPath) -> bool:
    try:
        for part in path:
            values = values[part]
    except (KeyError, IndexError, TypeError):
        return False
    return True


def dig(values: Any, path: ConfigPath) -> Any:
    """Give the value at a path, None where there is none."""
    return _reach(values, path) if _holds(values, path) else None


def _reach(values: Any, path: ConfigPath) -> Any:
    for part in path:
        values = values[part]
    return values
