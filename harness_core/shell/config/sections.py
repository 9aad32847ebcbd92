"""The nodes of all layers and the manifests' schemas in, the mappings that hold a plugin's own keys out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from harness_core.settings.paths import ConfigPath
from harness_core.shell.yaml_nodes import Map, Node, Scalar

from .origins import Branch, Leaf, Origin, Tree
from .shapes import Shape
from .typing import Section

__all__ = ["DEFAULT_STORE", "ENGINE_KEYS", "LISTED_KINDS", "PluginSchemas", "Said", "find_sections", "plugin_defaults"]

PluginSchemas = Mapping[tuple[str, str], Mapping[str, Any] | None]
"""Kind and offer name to the offer's ``config`` schema; None for an offer without settings."""

Said = tuple[ConfigPath, str]
"""A choice that the environment or a flag makes: its path and the text."""

DEFAULT_STORE: Final = "sqlite"

LISTED_KINDS: Final = (
    "role",
    "approver",
    "observer",
    "validator",
    "rules",
    "executor",
    "compression",
    "artifact",
    "engine",
    "sandbox",
    "mount",
    "broker",
    "surface",
    "workflow",
)
"""Kinds that no entry chooses; their settings stand in ``plugins.settings``."""

ENGINE_KEYS: Final = ("path", "kv_cache", "gpu")
"""Keys of a model entry that only some providers can do anything with; a provider that can names them in its schema."""

_NOTHING: Final[Mapping[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}


def find_sections(
    roots: Iterable[Mapping[str, Node]], said: Iterable[Said], schemas: PluginSchemas
) -> dict[ConfigPath, Section]:
    """Find out which offer each entry chooses.

    Args:
        roots: Per layer the top-level keys and their nodes, the layer that wins first.
        said: What the environment and the flags choose; they win over every file.
        schemas: What is known of the offers here.

    Returns:
        The sections by path. Only the choice is looked at; whether it is valid is seen later.
    """
    ordered = list(roots)
    chosen = dict(said)
    sections = dict(_entries(ordered, chosen, schemas))
    store = chosen.get(("store", "plugin")) or _first(ordered, ("store", "plugin")) or DEFAULT_STORE
    sections[("store",)] = _section("store", store, schemas)
    return sections


def _entries(
    roots: list[Mapping[str, Node]], chosen: Mapping[ConfigPath, str], schemas: PluginSchemas
) -> Iterator[tuple[ConfigPath, Section]]:
    for name in _names(roots, ("models",), chosen):
        provider = chosen.get(("models", name, "provider")) or _first(roots, ("models", name, "provider"))
        yield ("models", name), _section("provider", provider or "", schemas)
    for name in _names(roots, ("tools",), chosen):
        plugin = chosen.get(("tools", name, "plugin")) or _first(roots, ("tools", name, "plugin"))
        yield ("tools", name), _tool(name, plugin, schemas)
    for name in _names(roots, ("plugins", "settings"), chosen):
        kinds = [kind for kind in LISTED_KINDS if _lookup(kind, name, schemas)]
        yield ("plugins", "settings", name), _section(kinds[0] if kinds else "plugin", name, schemas)


def _names(roots: list[Mapping[str, Node]], path: tuple[str, ...], chosen: Mapping[ConfigPath, str]) -> list[str]:
    found = [key.text for root in roots if isinstance(node := _at(root, path), Map) for key, _ in node.entries]
    found += [str(at[len(path)]) for at in chosen if at[: len(path)] == path and len(at) > len(path)]
    return list(dict.fromkeys(found))


def _at(root: Mapping[str, Node], path: tuple[str, ...]) -> Node | None:
    node = root.get(path[0])
    for part in path[1:]:
        if not isinstance(node, Map):
            return None
        node = next((value for key, value in node.entries if key.text == part), None)
    return node


def _first(roots: list[Mapping[str, Node]], path: tuple[str, ...]) -> str | None:
    for root in roots:
        node = _at(root, path)
        if isinstance(node, Scalar) and node.text:
            return node.text
    return None


def _lookup(kind: str, name: str, schemas: PluginSchemas) -> list[Mapping[str, Any] | None]:
    return [schemas[key] for key in ((kind, name), (kind, name.rpartition(":")[2])) if key in schemas]


def _section(kind: str, name: str, schemas: PluginSchemas) -> Section:
    found = _lookup(kind, name, schemas)
    return Section(kind, name, Shape.of(found[0] or _NOTHING) if found else None)


def _tool(name: str, plugin: str | None, schemas: PluginSchemas) -> Section:
    choice = plugin if plugin and ":" in plugin else f"{plugin}:{name}" if plugin else name
    section = _section("tool", choice, schemas)
    if section.shape is None and any(kind == "tool" and name.startswith(f"{known}_") for kind, known in schemas):
        return Section("tool", name, Shape.of(_NOTHING))  # one tool of a set has no keys of its own
    return section


def plugin_defaults(
    sections: Mapping[ConfigPath, Section], core: Mapping[ConfigPath, frozenset[str]], present: Iterable[ConfigPath]
) -> Tree | None:
    """Give the defaults that manifests state, as the layer below the person's files.

    Args:
        sections: The sections.
        core: Per section the keys that are the core's own; their defaults are the core's too.
        present: The sections that the configuration has an entry for.
    """
    tree: dict[str, Any] = {}
    for path in present:
        section = sections[path]
        properties = section.shape.schema.get("properties", {}) if section.shape else {}
        stated = {
            key: value["default"]
            for key, value in properties.items()
            if isinstance(value, Mapping) and value.get("default") is not None
        }
        own = {key: value for key, value in stated.items() if key not in core.get(path, frozenset())}
        if own:
            _insert(tree, path, own, Origin("plugin", f"{section.kind} {section.name}"))
    return _branch(tree)


def _insert(tree: dict[str, Any], path: ConfigPath, values: Mapping[str, Any], origin: Origin) -> None:
    for part in path:
        tree = tree.setdefault(str(part), {})
    tree.update({key: Leaf(value, origin) for key, value in values.items()})


def _branch(tree: dict[str, Any]) -> Tree | None:
    if not tree:
        return None
    children = {key: child if isinstance(child, Leaf) else _branch(child) for key, child in tree.items()}
    return Branch({key: child for key, child in children.items() if child is not None}, Origin("plugin"))
