"""The layers and a key in, what each layer says of it, which one wins and why the others lose, out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from harness_core.settings.paths import ConfigPath, format_path

from .core_shapes import homes
from .folders import PROJECT_FOLDER
from .origins import LAYERS, UNSET, Branch, Layer, Leaf, Origin, Tree, find, leaves, plain
from .sources import PREFIX

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
    taken = ""  # why the layers below do not count
    for layer in LAYERS:
        found = _said(trees.get(layer), path)
        if found is None:
            voices.append(Voice(layer, _where_to_say(layer, path), False, None, False, "not set"))
            continue
        voice, taken = _voice(layer, found, taken, untrusted=layer == "project" and path in ignored)
        voices.append(voice)
    if value is not None and not any(voice.wins for voice in voices):
        voices[-1] = Voice("built-in", "built-in", True, value, True, "")
    return Explanation(format_path(path), value, tuple(voices))


def _voice(layer: Layer, found: tuple[Any, Origin], taken: str, *, untrusted: bool) -> tuple[Voice, str]:
    value, origin = found
    shown = None if value is UNSET else value
    if untrusted:
        reason = "ignored: untrusted project, see harness trust"
        return Voice(layer, origin.text(), True, shown, False, reason), taken
    if taken:
        return Voice(layer, origin.text(), True, shown, False, taken), taken
    if value is UNSET:
        reason = "null takes back what the layers below say"
        return Voice(layer, origin.text(), True, None, False, reason), f"taken back by {origin.text()}"
    return Voice(layer, origin.text(), True, shown, True, ""), "lower layer"


def _where_to_say(layer: Layer, path: ConfigPath) -> str:
    """Where a layer that is silent would say it."""
    home = homes().get(str(path[0]), "harness")
    places = {
        "flag": f"--set {format_path(path)}",
        "environment": PREFIX + "__".join(re.sub(r"[^A-Za-z0-9]", "_", str(part)).upper() for part in path),
        "project": f"{PROJECT_FOLDER}/{home}.yaml",
        "user": f"user's {home}.yaml",
    }
    return places.get(layer, layer)


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
