"""Plugins that are not installed: what one wants of them goes in, a folder that looks like an installation comes out.

``make_distribution`` writes a package and its metadata; put the folder on ``sys.path`` or ``PYTHONPATH`` and the
plugin is there, good or broken on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

from harness_hookspecs.hooks import HOOK_OF_KIND
from harness_hookspecs.manifest import MANIFEST_FILE

__all__ = ["FakeDistribution", "make_distribution", "manifest_text", "offers_code"]


class FakeDistribution(NamedTuple):
    """A distribution that was written: its names and where its parts lie."""

    name: str
    plugin_id: str
    module: str
    package: Path
    metadata: Path

    @property
    def manifest(self) -> Path:
        """The manifest's file."""
        return self.package / MANIFEST_FILE


def make_distribution(
    folder: Path,
    name: str = "acme-tool",
    *,
    provides: Sequence[Mapping[str, Any]] = ({"kind": "tool", "name": "acme"},),
    code: str | None = None,
    manifest: str | None = None,
    **more: Any,
) -> FakeDistribution:
    """Write a distribution that offers something; without further words a good one.

    Args:
        folder: Stands for ``site-packages``.
        name: The distribution's name.
        provides: What its manifest promises: tables of kind, name, roles, default, config.
        code: The module's source; by default it offers what is promised.
        manifest: The manifest's text; by default it fits, empty for none at all.
        more: ``version``, ``module``, ``plugin_id``, ``manifest_id``, ``spec``, ``capabilities`` (``None`` for
            undeclared), ``conflicts``, ``direct_url`` (the installer's record of where it came from).
    """
    version = more.get("version", "1.0")
    module = more.get("module", name.replace("-", "_").replace(".", "_"))
    plugin_id = more.get("plugin_id", name.removeprefix("harness-"))
    made = FakeDistribution(name, plugin_id, module, folder / module, folder / f"{_escaped(name)}-{version}.dist-info")
    made.package.mkdir(parents=True, exist_ok=True)
    (made.package / "__init__.py").write_text(offers_code(provides) if code is None else code, encoding="utf-8")
    if manifest is None:
        manifest = manifest_text(more.get("manifest_id", plugin_id), provides, **_parts(more))
    if manifest:
        made.manifest.write_text(manifest, encoding="utf-8")
    _write_metadata(made, version, more.get("direct_url"))
    return made


def _parts(more: Mapping[str, Any]) -> dict[str, Any]:
    return {key: more[key] for key in ("spec", "capabilities", "conflicts") if key in more}


def _escaped(name: str) -> str:
    return name.replace("-", "_")


def _write_metadata(made: FakeDistribution, version: str, direct_url: Mapping[str, Any] | None) -> None:
    made.metadata.mkdir(exist_ok=True)
    entry = f"{made.plugin_id} = {made.module}\n"
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {made.name}\nVersion: {version}\n",
        "entry_points.txt": f"[harness.plugins]\n{entry}\n[harness.manifest]\n{entry}",
        "INSTALLER": "contracts\n",
        "RECORD": "",
    }
    if direct_url is not None:
        texts["direct_url.json"] = json.dumps(direct_url)
    for name, text in texts.items():
        (made.metadata / name).write_text(text, encoding="utf-8")


def manifest_text(
    plugin_id: str,
    provides: Sequence[Mapping[str, Any]],
    *,
    spec: str = ">=0.1,<0.2",
    capabilities: Mapping[str, Any] | None = {},
    conflicts: Mapping[str, str] = {},
) -> str:
    """Write a manifest as TOML."""
    heads = {"manifest": 1, "id": plugin_id, "summary": "Made for a test.", "spec": spec}
    parts = [_table(heads)]
    parts += [f"[[provides]]\n{_table(entry)}" for entry in provides]
    parts += [] if capabilities is None else [f"[capabilities]\n{_table(capabilities)}"]
    parts += [f"[conflicts]\n{_table(conflicts)}"] if conflicts else []
    return "\n".join(parts)


def _table(values: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in values.items())


def _toml(value: Any) -> str:
    """JSON is TOML but for tables, which here are inline."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def offers_code(provides: Sequence[Mapping[str, Any]]) -> str:
    """Write a module that offers exactly what is promised; what is built has any method, and each gives ``None``.

    A tool set that is built has no tools.
    """
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for entry in provides:
        by_kind.setdefault(entry["kind"], []).append(entry)
    hooks = "".join(_hook(kind, entries) for kind, entries in by_kind.items())
    return (
        "from harness_hookspecs import hooks\n"
        "from harness_hookspecs.markers import implements\n"
        "from harness_hookspecs.offer import Offer\n\n\n"
        "class Thing:\n"
        "    def __init__(self, settings):\n        self.settings = settings\n\n"
        "    def specs(self):\n        return ()\n\n"
        "    def __getattr__(self, name):\n"
        "        if name.startswith('_'):\n            raise AttributeError(name)\n"
        "        return lambda *args, **kwargs: None\n\n\n"
        "def build(settings, host):\n    return Thing(settings)\n\n\n"
        "def settings_class():\n    from pydantic import BaseModel, ConfigDict\n\n"
        "    class Anything(BaseModel):\n        model_config = ConfigDict(extra='allow')\n\n"
        "    return Anything\n" + hooks
    )


def _hook(kind: str, entries: Sequence[Mapping[str, Any]]) -> str:
    hook = HOOK_OF_KIND[kind]
    offers = "".join(f"Offer({_words(entry)}),\n" for entry in entries)
    return f"\n\n@implements(hooks.{hook})\ndef {hook}():\n    return [\n{indent(offers, '        ')}    ]\n"


def _words(entry: Mapping[str, Any]) -> str:
    settings = ", settings=settings_class" if entry.get("config") is not None else ""
    roles = f", roles={tuple(entry.get('roles', ()))!r}"
    return f"kind={entry['kind']!r}, name={entry['name']!r}, build=build{settings}{roles}"
