"""A project's folder, the environment and the flags in, the effective configuration out, or every problem at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from harness_core.settings.lint import Finding, lint
from harness_core.settings.paths import ConfigPath, format_path
from harness_core.settings.problems import Problem, config_error
from harness_core.settings.references import check_references
from harness_core.settings.transitions import rules_of
from harness_core.settings.unused import unused
from harness_hookspecs.host import Files

from .effective import EffectiveConfig, digest_of
from .folders import folders_of
from .layers import Layers, build_layers
from .origins import UNSET, Branch, Layer, Origin, Tree, find, leaves, merge, place_of
from .sections import PluginSchemas, plugin_defaults
from .sources import Sources, read_sources
from .trust import is_trusted, marked, read_trust, untrusted_leaves
from .validated import CORE_KEYS, Six, section_problems, validate

__all__ = ["RuleCheck", "effective_config", "load_config"]

RuleCheck = Callable[[str], str | None]
"""An expression in, None when it compiles or the reason why it does not."""


def load_config(
    project: Path,
    files_at: Callable[[Path], Files],
    *,
    env: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    schemas: PluginSchemas | None = None,
    check_rule: RuleCheck | None = None,
) -> EffectiveConfig:
    """Read the layers of a project and lay them over each other.

    Args:
        project: The folder that holds ``.harness`` (``find_project``); the folder need not be there.
        files_at: ``ports.files``.
        env: The environment: ``HOME``, ``XDG_*`` and what begins with ``HARNESS__``.
        flags: Config paths to values, from ``--set`` and other flags, or ``Host.open(overrides=...)``.
        schemas: The settings schemas of the offers that are installed, by kind and name; None where nothing is
            known of plugins, then their keys are not checked and each is a warning.
        check_rule: Compiles a transition's expression; None leaves that to the host.

    Returns:
        The configuration. While the project is not trusted, what only a trusted project may set is left out of it.

    Raises:
        ConfigError: The files are wrong in one or more places; the fact ``problems`` has each.
    """
    project = project.resolve()
    folders = folders_of(env)
    sources = read_sources(project, folders, files_at, env=env, flags=flags or {})
    found = effective_config(sources, schemas=schemas or {}, check_rule=check_rule)
    needing = found.untrusted_leaves
    earlier = read_trust(files_at, folders.state, project) if needing else None
    trusted = is_trusted(needing, earlier)
    if not trusted:
        found = _without(found, sources, schemas or {})
    return attrs.evolve(
        found,
        project=project,
        folders=folders,
        trusted=trusted,
        trusted_earlier=earlier,
        untrusted_leaves=marked(needing, earlier),
    )


def effective_config(
    sources: Sources, *, schemas: PluginSchemas, check_rule: RuleCheck | None = None
) -> EffectiveConfig:
    """Make the configuration of what was read: a function of these bytes and texts and of nothing else.

    Raises:
        ConfigError: As for ``load_config``.
    """
    layers = build_layers(sources, schemas)
    problems, warnings = list(layers.problems), list(layers.warnings)
    tree, trees = _laid(layers, layers.trees)
    six, found = validate(tree)
    problems += _new(found, problems)
    if six is not None:
        found, warned = section_problems(layers.sections, six.document(), tree)
        offered = {name for kind, name in schemas if kind == "workflow" and ":" not in name}
        named = check_references(six.harness, six.models, six.stages, offered)
        problems += _new(found, problems) + _placed(named, tree)
        problems += _placed(_bad_rules(six, check_rule), tree)
        warnings += warned + _placed([*lint(six.stages), *unused(_written(tree))], tree)
    if problems or six is None:
        raise config_error(problems)
    return EffectiveConfig(
        six=six,
        digest=digest_of(six),
        origins=_origins(tree),
        warnings=tuple(warnings),
        untrusted_leaves=untrusted_leaves(layers.trees.get("project"), _without_project(layers)),
        trees=trees,
        files=tuple(source.shown for source in sources.files),
    )


def _laid(layers: Layers, trees: Mapping[Layer, Tree | None]) -> tuple[Tree | None, dict[Layer, Tree | None]]:
    """Lay the layers over each other, the plugins' defaults at the bottom."""
    configured: Tree | None = None
    for layer in ("user", "project", "environment", "flag"):
        tree = trees.get(layer)
        configured = merge(configured, tree) if tree is not None else configured
    present = [path for path in layers.sections if path == ("store",) or find(configured, path) is not None]
    core = {path: CORE_KEYS.get(layers.sections[path].kind, frozenset()) for path in present}
    defaults = plugin_defaults(layers.sections, core, present)
    whole = configured if defaults is None else merge(defaults, configured) if configured is not None else defaults
    return whole, {**trees, "plugin": defaults}


def _new(found: list[Problem], known: list[Problem]) -> list[Problem]:
    """Leave out what a wrong value has already been called wrong for."""
    paths = {problem.path for problem in known}
    return [problem for problem in found if problem.path not in paths]


def _placed(found: list[Finding], tree: Tree | None) -> list[Problem]:
    placed: list[Problem] = []
    for path, problem in found:
        place = place_of(tree, path)
        placed.append(attrs.evolve(problem, path=format_path(path), where=place.text() if place else None))
    return placed


def _bad_rules(six: Six, check: RuleCheck | None) -> list[Finding]:
    if check is None:
        return []
    written = [
        (("stages", name, *rule.path), rule.when)
        for name, stage in six.stages.stages.items()
        for rule in rules_of(stage)
    ]
    found = [(path, check(when)) for path, when in written]
    return [(path, Problem("config.rule", f"the rule does not compile: {reason}")) for path, reason in found if reason]


def _written(tree: Tree | None) -> list[ConfigPath]:
    """The keys that somebody set: a plugin's default, ``null`` and an empty mapping set nothing."""
    said = [(path, leaf) for path, leaf in leaves(tree) if leaf.origin.layer != "plugin"]
    said = [(path, leaf) for path, leaf in said if leaf.value is not UNSET and leaf.value != {}]
    return [one for path, leaf in said for one in (path, *((*path, *below) for below in leaf.inner))]


def _origins(tree: Tree | None) -> dict[str, Origin]:
    found: dict[str, Origin] = {}
    for path, leaf in leaves(tree):
        found[format_path(path)] = leaf.origin
        found |= {format_path((*path, *below)): origin for below, origin in leaf.inner.items()}
        for end in range(1, len(path)):
            place = place_of(tree, path[:end])
            if place is not None:
                found.setdefault(format_path(path[:end]), place)
    return found


def _without_project(layers: Layers) -> dict[str, Any]:
    """What holds for the person without this project, by top-level key; empty where their own files do not hold."""
    tree, _ = _laid(layers, {"user": layers.trees.get("user")})
    six, _ = validate(tree)
    return {key: value for file in six.document().values() for key, value in file.items()} if six else {}


def _without(found: EffectiveConfig, sources: Sources, schemas: PluginSchemas) -> EffectiveConfig:
    """Leave out what an untrusted project may not set; where the rest does not hold by itself, the whole project."""
    layers = build_layers(sources, schemas)
    project = layers.trees.get("project")
    every = tuple(path for path, _ in leaves(project))
    needing = tuple(leaf.path for leaf in found.untrusted_leaves)
    pruned = {**layers.trees, "project": _pruned(project, frozenset(needing))}
    without: dict[Layer, Tree | None] = {**layers.trees, "project": None}
    user: dict[Layer, Tree | None] = {"user": layers.trees.get("user")}  # flags may speak of what the project made
    problems: list[Problem] = []
    for kept, ignored in ((pruned, needing), (without, every), (user, every)):
        tree, trees = _laid(layers, kept)
        six, problems = validate(tree)
        if six is not None:
            shown = {**trees, "project": project}
            return attrs.evolve(
                found, six=six, digest=digest_of(six), origins=_origins(tree), trees=shown, ignored=ignored
            )
    raise config_error(problems)


def _pruned(tree: Tree | None, without: frozenset[ConfigPath], path: ConfigPath = ()) -> Tree | None:
    if not isinstance(tree, Branch):
        return None if path in without else tree
    children = {
        key: kept for key, child in tree.children.items() if (kept := _pruned(child, without, (*path, key))) is not None
    }
    return Branch(children, tree.origin) if children else None
