"""What is wrong with a manifest: its table goes in, the flaws come out, each with the code that manifest.py lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .kit.nearest import nearest
from .kit.version_range import is_range
from .manifest import Flaw, ReadFile
from .offer import EXECUTOR_ROLES, KINDS, WORKFLOW_NAME

__all__ = [
    "CAPABILITY_FLAGS",
    "CAPABILITY_LISTS",
    "MANIFEST_VERSION",
    "OFFER_NAME",
    "manifest_flaws",
    "read_config",
]

MANIFEST_VERSION = 1
OFFER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
CAPABILITY_LISTS = ("network", "filesystem", "subprocess", "environment", "secrets")
CAPABILITY_FLAGS = ("native_code", "gpu", "threads")

_KEYS = {"manifest", "id", "summary", "spec", "provides", "capabilities", "conflicts"}
_PROVIDES_KEYS = {"kind", "name", "roles", "default", "config", "config_file"}
_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_TRUST = ("ok", "tighten", "no")


def manifest_flaws(table: Mapping[str, Any], *, read: ReadFile | None = None) -> list[Flaw]:
    """List everything that is wrong with a manifest's table, in the order of the keys; empty when it is sound."""
    if type(table.get("manifest")) is not int or table["manifest"] != MANIFEST_VERSION:
        given = table.get("manifest", "nothing")
        return [Flaw("HP003", f"manifest = {given!r} is not known", f"write manifest = {MANIFEST_VERSION}")]
    flaws = [*_unknown(table, _KEYS, ""), *_heads(table)]
    provides = table.get("provides")
    if not isinstance(provides, list) or not provides or not all(isinstance(entry, dict) for entry in provides):
        flaws.append(Flaw("HP005", "there is no [[provides]] table", "say at least one kind and name"))
    else:
        flaws += [flaw for number, entry in enumerate(provides) for flaw in _provides_flaws(entry, number, read)]
        flaws += _twice(provides)
    return [*flaws, *_capability_flaws(table.get("capabilities")), *_conflict_flaws(table.get("conflicts", {}))]


def _unknown(table: Mapping[str, Any], known: set[str], place: str) -> Iterator[Flaw]:
    for key in table:
        if key not in known:
            yield Flaw("HP004", f"unknown key {place}{key}", _nearest(key, known))


def _nearest(name: str, known: set[str]) -> str | None:
    found = nearest(name, known)
    return f"did you mean {found!r}?" if found else None


def _heads(table: Mapping[str, Any]) -> Iterator[Flaw]:
    if not isinstance(table.get("id"), str) or not _ID.fullmatch(table["id"]):
        yield Flaw("HP005", "id is missing or not a name", "letters, digits, '.', '_' and '-', like a distribution's")
    if not isinstance(table.get("summary"), str) or not table["summary"].strip():
        yield Flaw("HP005", "summary is missing", "say in one line what it provides")
    spec = table.get("spec")
    if not isinstance(spec, str) or not is_range(spec):
        yield Flaw("HP010", f"spec = {spec!r} is not a version range", 'write for example spec = ">=0.1,<0.2"')


def _provides_flaws(entry: Mapping[str, Any], number: int, read: ReadFile | None) -> Iterator[Flaw]:
    place = f"provides[{number}]."
    yield from _unknown(entry, _PROVIDES_KEYS, place)
    kind, name = entry.get("kind"), entry.get("name")
    if kind not in KINDS:
        yield Flaw("HP006", f"{place}kind = {kind!r} is not a kind", _nearest(str(kind), set(KINDS)))
    if not isinstance(name, str) or not OFFER_NAME.fullmatch(name):
        yield Flaw("HP005", f"{place}name = {name!r} is not an offer's name", f"it must match {OFFER_NAME.pattern}")
    elif kind == "workflow" and not re.fullmatch(WORKFLOW_NAME, name):
        yield Flaw("HP005", f"{place}name = {name!r} is not a workflow's name", f"it must match {WORKFLOW_NAME}")
    if not isinstance(entry.get("default", False), bool):
        yield Flaw("HP005", f"{place}default is not true or false")
    yield from _role_flaws(entry, place)
    yield from _config_flaws(entry, place, read)


def _role_flaws(entry: Mapping[str, Any], place: str) -> Iterator[Flaw]:
    roles = entry.get("roles", [])
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        yield Flaw("HP007", f"{place}roles is not a list of executor roles")
    elif entry.get("kind") != "role":
        if roles:
            yield Flaw("HP007", f"{place}roles stands only beside kind role")
    elif not roles:
        yield Flaw("HP007", f"{place}roles is empty", f"say which it serves of: {', '.join(EXECUTOR_ROLES)}")
    else:
        for role in roles:
            if role not in EXECUTOR_ROLES:
                hint = _nearest(role, set(EXECUTOR_ROLES))
                yield Flaw("HP007", f"{place}roles: {role!r} is not an executor role", hint)


def _config_flaws(entry: Mapping[str, Any], place: str, read: ReadFile | None) -> Iterator[Flaw]:
    config = entry.get("config")
    if "config_file" in entry:
        if config is not None:
            yield Flaw("HP009", f"{place}config and config_file exclude each other")
            return
        try:
            config = read_config(entry, read)
        except (OSError, ValueError, TypeError) as error:
            yield Flaw("HP009", f"{place}config_file {entry['config_file']!r} cannot be read as JSON: {error}")
            return
    if config is None:
        return
    if not isinstance(config, dict) or config.get("type", "object") != "object":
        yield Flaw("HP009", f"{place}config is not the JSON Schema of an object")
    elif any(mark not in _TRUST for mark in _marks(config)):
        yield Flaw("HP009", f"{place}config has an x-untrusted that is none of: {', '.join(_TRUST)}")


def _marks(schema: Any) -> Iterator[Any]:
    """Every ``x-untrusted`` in a schema, at any depth."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "x-untrusted":
                yield value
            else:
                yield from _marks(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _marks(value)


def _twice(provides: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    seen: set[tuple[str, str]] = set()
    for entry in provides:
        key = (str(entry.get("kind")), str(entry.get("name")))
        if key in seen:
            yield Flaw("HP008", f"{key[0]}:{key[1]} stands there twice")
        seen.add(key)


def _capability_flaws(table: Any) -> Iterator[Flaw]:
    if table is None:
        return
    if not isinstance(table, dict):
        yield Flaw("HP005", "capabilities is not a table")
        return
    yield from _unknown(table, {*CAPABILITY_LISTS, *CAPABILITY_FLAGS}, "capabilities.")
    for key, value in table.items():
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if key in CAPABILITY_LISTS and not texts:
            yield Flaw("HP005", f"capabilities.{key} is not a list of texts")
        if key in CAPABILITY_FLAGS and not isinstance(value, bool):
            yield Flaw("HP005", f"capabilities.{key} is not true or false")
    roots = table.get("filesystem", [])
    for root in roots if isinstance(roots, list) else []:
        if isinstance(root, str) and not root.startswith(("read:", "write:")):
            yield Flaw("HP005", f"capabilities.filesystem: {root!r} says neither read: nor write:")


def _conflict_flaws(table: Any) -> Iterator[Flaw]:
    if not isinstance(table, dict) or not all(isinstance(reason, str) for reason in table.values()):
        yield Flaw("HP005", "conflicts is not a table of plugin ids and reasons")


def read_config(entry: Mapping[str, Any], read: ReadFile | None) -> Any:
    """Give the JSON that ``config_file`` names; raises ``OSError``, ``ValueError`` or ``TypeError`` when it cannot."""
    import json

    if read is None:
        raise OSError("nothing can be read beside this manifest")
    return json.loads(read(entry["config_file"]))
