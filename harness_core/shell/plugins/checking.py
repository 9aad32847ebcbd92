"""Everything that is wrong with a plugin: a row, or a folder that is not installed, goes in, findings come out."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness_core.shell.ports_startup import read_file
from harness_hookspecs import __version__ as contract_version
from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit.json_schema import compiled_schema
from harness_hookspecs.manifest import MANIFEST_FILE, Flaw, Provided

from .manifests import described, read_literal, read_manifest
from .names import normalise, plugin_id_of
from .policy import Row
from .records import Record

if TYPE_CHECKING:
    from harness_hookspecs.host import Processes

__all__ = ["CheckFinding", "check_rows", "folder_row", "try_rows"]

_LITERAL = re.compile(rb"^HARNESS\s*(:[^=\n]*)?=\s*\{", re.MULTILINE)  # another HARNESS is anybody's variable

Tried = tuple[Record, list[Flaw]]


class CheckFinding(NamedTuple):
    """One finding of ``plugins check``: the plugin and what is wrong, with its stable code."""

    plugin: str
    distribution: str
    code: str
    message: str
    hint: str | None


def check_rows(rows: Sequence[Row], tried: Sequence[Tried] = ()) -> list[CheckFinding]:
    """Check plugins: names, manifests, schemas, rivals; none of their code is run.

    Args:
        rows: The plugins.
        tried: What ``try_rows`` has found by running it.

    Returns:
        The findings by plugin; empty when everything is well.
    """
    found = [(row.record, flaw) for row in rows for flaw in _static(row)]
    found += [(record, flaw) for record, flaws in tried for flaw in flaws]
    unique = dict.fromkeys((record.id, record.distribution, *flaw) for record, flaw in found)
    return sorted((CheckFinding(*one) for one in unique), key=lambda one: one[:4])


def try_rows(rows: Sequence[Row], path: Sequence[str], processes: Processes) -> list[Tried]:
    """Import each plugin whose manifest is sound in a child process; check hooks, offers, settings and tools there.

    Args:
        rows: The plugins.
        path: The path that imports see.
        processes: The port.
    """
    from .trial import try_imports

    sound = [row.record for row in rows if row.record.flaw is None]
    return list(zip(sound, try_imports(sound, path, processes, settings=True), strict=True))


def _static(row: Row) -> list[Flaw]:
    record = row.record
    flaws = [] if row.code is None or row.reason is None else [Flaw(row.code, row.reason, row.hint)]
    flaws += [] if record.flaw is None else [record.flaw]
    flaws += _manifest_flaws(record)
    wanted = plugin_id_of(record.distribution)
    if record.id and record.distribution and record.id != wanted:
        flaws.append(Flaw("HP013", f"the id is {record.id}, the distribution {record.distribution} asks for {wanted}"))
    if record.flaw is None and record.capabilities is None:
        flaws.append(Flaw("HP014", "no capabilities are declared", "add [capabilities], which may be empty"))
    return [*flaws, *(flaw for provided in record.provides for flaw in _schema_flaws(provided))]


def _manifest_flaws(record: Record) -> list[Flaw]:
    """Every flaw of the manifest, where the record keeps only the first."""
    file = record.manifest or record.code
    if file is None or not os.path.isfile(file):
        return []
    try:
        (read_literal if record.manifest is None else read_manifest)(file)
    except PluginError as error:
        return [Flaw(code, message) for code, message in error.facts.get("flaws", [])[1:]]
    return []


def _schema_flaws(provided: Provided) -> list[Flaw]:
    if provided.config is None:
        return []
    try:
        compiled_schema(provided.config)
    except PluginError as error:
        return [Flaw("HP009", f"config of {provided.kind}:{provided.name} is no JSON Schema: {error.message}")]
    return []


def folder_row(folder: str) -> tuple[Row, list[str]]:
    """Read a plugin that is not installed: a distribution's folder or a package's.

    Args:
        folder: The folder that holds the manifest or the module that carries one, or one whose subfolder does.

    Returns:
        Its row, and the folders that imports need in front of the path.

    Raises:
        PluginError: There is no manifest in it (code ``HP001``).
    """
    place = os.path.abspath(folder)
    folders = [place, *filter(os.path.isdir, _entries(place))]
    found = next(filter(None, map(_packaged, folders)), None) or next(filter(None, map(_single_file, folders)), None)
    if found is None:
        said = f"there is no {MANIFEST_FILE} and no module with HARNESS = {{...}} in {folder}"
        raise PluginError(said, code="HP001", where=folder)
    code, manifest = found
    module = os.path.basename(code).removesuffix(".py")
    plain = Record("", _distribution(place), "unknown", module, code=code, manifest=manifest, source=f"file://{place}")
    record = described(plain, contract_version, lambda: read_manifest(manifest) if manifest else read_literal(code))
    flaw = record.flaw
    row = Row(record, "ok") if flaw is None else Row(record, "broken", flaw.message, flaw.code, flaw.hint)
    return row, [os.path.dirname(code)]


def _packaged(folder: str) -> tuple[str, str | None] | None:
    """The code and the manifest of a package."""
    manifest = os.path.join(folder, MANIFEST_FILE)
    return (folder, manifest) if os.path.isfile(manifest) else None


def _single_file(folder: str) -> tuple[str, str | None] | None:
    """The code of a module in this folder that carries its manifest itself."""
    modules = [path for path in _entries(folder) if path.endswith(".py") and os.path.isfile(path)]
    found = next((module for module in modules if _LITERAL.search(read_file(module) or b"")), None)
    return (found, None) if found else None


def _entries(folder: str) -> list[str]:
    """What is in a folder; nothing where it cannot be looked into."""
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return []


def _distribution(folder: str) -> str:
    """The distribution's name as its pyproject.toml says it; empty without one."""
    import tomllib

    try:
        project = tomllib.loads((read_file(os.path.join(folder, "pyproject.toml")) or b"").decode())
        return normalise(str(project["project"]["name"]))
    except (ValueError, KeyError, TypeError):
        return ""
