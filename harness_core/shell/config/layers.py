"""What was read and the manifests' schemas in, one typed tree per layer out, with every problem of every layer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from harness_core.settings.paths import ConfigPath, format_path, parse_path
from harness_core.settings.problems import Problem
from harness_core.shell.yaml_nodes import Items, Map, Mark, Node, Scalar, read_yaml
from harness_hookspecs.errors import ConfigError

from .addresses import locate
from .core_shapes import file_shapes, homes, top_shapes
from .origins import Branch, Layer, Origin, Tree, find
from .sections import PluginSchemas, Said, find_sections
from .sources import PREFIX, Sources
from .typing import Section, Typist

__all__ = ["Layers", "build_layers"]


@attrs.frozen
class Layers:
    """The layers as typed trees, with all that was found wrong in any of them.

    Attributes:
        trees: Per layer its tree; None where a layer says nothing.
        sections: The mappings with keys of plugins, by path.
        problems: What stops a run.
        warnings: What does not.
    """

    trees: Mapping[Layer, Tree | None]
    sections: Mapping[ConfigPath, Section]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


@attrs.frozen
class _Setting:
    """One variable or flag: the parts of its key, its value as a node, and where it comes from."""

    segments: tuple[str, ...]
    node: Node
    origin: Origin


def build_layers(sources: Sources, schemas: PluginSchemas) -> Layers:
    """Read, type and sort what each layer says."""
    problems = list(sources.problems)
    ours: tuple[Layer, ...] = ("project", "user")
    roots = {layer: _roots(sources, layer, problems) for layer in ours}
    flags = list(_flags(sources.flags, problems))
    variables = list(_variables(sources.environment, problems))
    tops = [{key: node for file in roots[layer].values() for key, node in _top(file)} for layer in ours]
    sections = find_sections(tops, _said([*variables, *flags]), schemas)
    order: tuple[Layer, ...] = ("user", "project", "environment", "flag")
    typists = {layer: Typist(layer, sections, homes()) for layer in order}
    trees: dict[Layer, Tree | None] = {}
    for layer in ours:
        trees[layer] = _typed_files(roots[layer], typists[layer])
    trees["environment"] = _typed_settings(variables, typists["environment"], list(trees.values()))
    trees["flag"] = _typed_settings(flags, typists["flag"], list(trees.values()))
    problems += [problem for layer in order for problem in typists[layer].problems]
    warnings = [warning for layer in order for warning in typists[layer].warnings]
    return Layers(trees, sections, tuple(problems), tuple(warnings))


def _roots(sources: Sources, layer: str, problems: list[Problem]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for source in sources.files:
        if source.layer == layer:
            try:
                node = read_yaml(source.data, source.shown)
            except ConfigError as error:
                problems += [Problem(**problem) for problem in error.facts["problems"]]
                continue
            if node is not None:
                found[source.name] = node
    return found


def _top(node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node, Map):
        for key, value in node.entries:
            yield key.text, value


def _typed_files(roots: Mapping[str, Node], typist: Typist) -> Tree | None:
    tree: Tree | None = None
    for name, node in roots.items():
        if not isinstance(node, Map):
            where = str(node.mark)
            typist.problems.append(Problem("config.type", "the file must hold a mapping of settings", where=where))
            continue
        typed = typist.type(node, file_shapes()[name], ())
        tree = Branch({**_children(tree), **_children(typed)}, typed.origin)
    return tree


def _children(tree: Tree | None) -> Mapping[str, Tree]:
    return tree.children if isinstance(tree, Branch) else {}


def _flags(flags: Mapping[str, Any], problems: list[Problem]) -> Iterator[_Setting]:
    for key, value in flags.items():
        origin = Origin("flag", f"--set {key}")
        try:
            segments = tuple(str(part) for part in parse_path(key))
            yield _Setting(segments, _node(value, origin.source), origin)
        except ConfigError as error:
            problems.append(_problem(error, key, origin))


def _variables(environment: Mapping[str, str], problems: list[Problem]) -> Iterator[_Setting]:
    for name, text in sorted(environment.items()):
        origin = Origin("environment", name)
        segments = tuple(name.removeprefix(PREFIX).split("__"))
        try:
            if not all(segments):
                raise ConfigError("a part of the key is empty", code="config.path")
            yield _Setting(segments, _node(text, name), origin)
        except ConfigError as error:
            problems.append(_problem(error, "", origin))


def _problem(error: ConfigError, path: str, origin: Origin) -> Problem:
    return Problem(error.code, error.message, path, origin.text(), error.hint)


def _node(value: Any, source: str) -> Node:
    """Make a node of a value; a text that begins like a list, a mapping or a quoted text is read as YAML."""
    mark = Mark(source, 0, 0)
    if isinstance(value, str):
        if value[:1] in {"[", "{", '"', "'"}:
            return read_yaml(value.encode(errors="surrogateescape"), source) or Scalar("", False, mark)
        return Scalar(value, bool(value), mark)
    if isinstance(value, Mapping):
        entries = tuple((Scalar(str(key), False, mark), _inner(item, mark)) for key, item in value.items())
        return Map(entries, mark, 1, 1)
    if isinstance(value, (list, tuple)):
        return Items(tuple(_inner(item, mark) for item in value), mark, 1, 1)
    return Scalar(json.dumps(value, allow_nan=False), True, mark)


def _inner(value: Any, mark: Mark) -> Node:
    return Scalar(value, False, mark) if isinstance(value, str) else _node(value, mark.file)


def _said(settings: Sequence[_Setting]) -> Iterator[Said]:
    """The choices of offers among the settings; a key that cannot be found is reported when it is typed."""
    typist = Typist("flag", {}, {})
    for setting in settings:
        if not isinstance(setting.node, Scalar) or len(setting.segments) not in {2, 3}:
            continue
        try:
            path, _ = locate(
                setting.segments, top_shapes(), typist, lambda path: (), folded=setting.origin.layer == "environment"
            )
        except ConfigError:
            continue
        yield path, setting.node.text


def _typed_settings(settings: Sequence[_Setting], typist: Typist, below: Sequence[Tree | None]) -> Tree | None:
    tree: Tree | None = None
    seen: dict[ConfigPath, Origin] = {}

    def known(path: ConfigPath) -> list[str]:
        return [key for one in below if isinstance(at := find(one, path), Branch) for key in at.children]

    for setting in settings:
        try:
            path, shape = locate(
                setting.segments, top_shapes(), typist, known, folded=setting.origin.layer == "environment"
            )
        except ConfigError as error:
            typist.problems.append(_problem(error, "", setting.origin))
            continue
        if path in seen:
            message = f"{seen[path].text()} sets the same key"
            typist.problems.append(Problem("config.duplicate_key", message, format_path(path), setting.origin.text()))
        seen[path] = setting.origin
        grown = _grown(typist.type(setting.node, shape, path, setting.origin), path, setting.origin)
        tree = grown if tree is None else _overlay(tree, grown)
    return tree


def _grown(tree: Tree, path: ConfigPath, origin: Origin) -> Tree:
    for part in reversed(path):
        tree = Branch({str(part): tree}, origin)
    return tree


def _overlay(lower: Tree, upper: Tree) -> Tree:
    """Join two trees of one layer; unlike ``merge`` it keeps what says null, which layers below still have to hear."""
    if isinstance(lower, Branch) and isinstance(upper, Branch):
        children = dict(lower.children)
        for key, child in upper.children.items():
            children[key] = _overlay(children[key], child) if key in children else child
        return Branch(children, upper.origin)
    return upper
