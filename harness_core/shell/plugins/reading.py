"""One distribution's metadata goes in, its plugins come out as records, each with the files it must be read again for.

None of the plugin's code runs: entry points and manifests are text, and of the package only the place is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness_core.shell.ports_startup import read_file
from harness_hookspecs.errors import PluginError
from harness_hookspecs.manifest import MANIFEST_FILE, Flaw, Manifest, manifest_from_table, parse_manifest

from .locate import code_of, package_folders
from .names import normalise
from .records import Record
from .scan import Found
from .shipped import origin_of

__all__ = ["Watched", "file_state", "read_plugins"]

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_WATCH_ALWAYS = ("", -1, -1)  # never the state of a file: what could not be found is looked for each time

FileState = tuple[str, int, int]


class Watched(NamedTuple):
    """A record and the files whose change makes it stale: path, modification time, size."""

    record: Record
    files: tuple[FileState, ...]


def file_state(path: str) -> FileState:
    """Give a file's path, modification time in nanoseconds and size, ``-1`` twice when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return path, -1, -1
    return path, found.st_mtime_ns, found.st_size


def read_plugins(found: Found, path: Sequence[str], contract: str) -> list[Watched]:
    """Read the plugins of one distribution, by id; most distributions have none.

    Args:
        found: The distribution.
        path: Where its packages are looked for.
        contract: The version of the contract that is installed.
    """
    groups = entry_points((read_file(found.file) or b"").decode("utf-8", "replace"))
    modules, manifests = groups.get("harness.plugins", {}), groups.get("harness.manifest", {})
    names = sorted({*modules, *manifests})
    if not names:
        return []
    version, source = _metadata(found.folder)
    return [
        _read(
            Record(
                id=normalise(name),
                distribution=found.distribution,
                version=version,
                module=modules.get(name, ""),
                source=source,
                origin=origin_of(normalise(name), found.distribution, source),
            ),
            manifests.get(name),
            path,
            contract,
        )
        for name in names
    ]


def entry_points(text: str) -> dict[str, dict[str, str]]:
    """Read ``entry_points.txt``: groups of names and values; extras and comments are dropped."""
    groups: dict[str, dict[str, str]] = {}
    group: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = groups.setdefault(line[1:-1].strip(), {})
        elif "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            group[name.strip()] = value.partition("[")[0].strip()
    return groups


def _metadata(folder: str) -> tuple[str, str]:
    """Version and install origin, as the installer wrote them down."""
    import json

    version = "unknown"
    for name in ("METADATA", "PKG-INFO"):
        for line in (read_file(os.path.join(folder, name)) or b"").decode("utf-8", "replace").splitlines():
            if not line.strip():  # the headers end here
                break
            if line.lower().startswith("version:"):
                version = line.partition(":")[2].strip()
    try:
        direct = json.loads(read_file(os.path.join(folder, "direct_url.json")) or b"null")
    except ValueError:
        direct = None
    if not isinstance(direct, dict):
        return version, "index"
    editable = (direct.get("dir_info") or {}).get("editable")
    return version, f"editable {direct.get('url')}" if editable else str(direct.get("url"))


def _read(record: Record, manifest: str | None, path: Sequence[str], contract: str) -> Watched:
    if not _MODULE.fullmatch(record.module):
        said = f"entry point {record.id} = {record.module!r} in harness.plugins is no module name"
        return Watched(record._replace(flaw=Flaw("HP015", said)), ())
    code = code_of(record.module, path)
    if code is None:
        said = f"the module {record.module} is not on the path"
        hint = f"install {record.distribution} again"
        return Watched(record._replace(flaw=Flaw("HP016", said, hint)), (_WATCH_ALWAYS,))
    record = record._replace(code=code)
    if manifest is None and code.endswith(".py"):
        return Watched(_described(record, contract, lambda: _literal(code)), (file_state(code),))
    file = _manifest_file(manifest, path)
    if file is None or not os.path.isfile(file):
        missing = manifest or f"{record.module}:{MANIFEST_FILE}"
        flaw = Flaw("HP001", f"there is no manifest {missing}", "ship harness-plugin.toml as package data")
        return Watched(record._replace(flaw=flaw, manifest=file), (file_state(file) if file else _WATCH_ALWAYS,))
    record = record._replace(manifest=file)
    read = [file]
    described = _described(record, contract, lambda: _parsed(file, read))
    return Watched(described, tuple(map(file_state, read)))


def _manifest_file(value: str | None, path: Sequence[str]) -> str | None:
    package, _, name = (value or "").partition(":")
    name = name or MANIFEST_FILE  # build backends refuse a hyphen behind the colon, so the usual name is left out
    if not _MODULE.fullmatch(package) or os.path.basename(name) != name:
        return None
    places = [os.path.join(folder, name) for folder in package_folders(package, path)]
    return next(filter(os.path.isfile, places), places[0] if places else None)


def _parsed(file: str, seen: list[str]) -> tuple[Manifest, bytes]:
    """The manifest and its bytes; the files that it names join ``seen``."""
    data = read_file(file) or b""

    def beside(name: str) -> bytes:
        folder = os.path.realpath(os.path.dirname(file))
        place = os.path.realpath(os.path.join(folder, name))
        seen.append(place)
        found = read_file(place) if place.startswith(folder + os.sep) else None
        if found is None:
            raise OSError(f"there is no {name} in the package")
        return found

    return parse_manifest(data, where=file, read=beside), data


def _literal(file: str) -> tuple[Manifest, bytes]:
    """The manifest of a single-file plugin: the literal ``HARNESS = {...}``, read from the syntax tree."""
    import ast

    data = read_file(file) or b""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError) as error:
        raise PluginError(f"the file cannot be parsed: {error}", code="HP002", where=file) from error
    for node in tree.body:
        targets: Sequence[Any] = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "HARNESS" for target in targets):
            try:
                table = ast.literal_eval(node.value)  # type: ignore[attr-defined]  # an assignment has a value
            except (ValueError, TypeError) as error:
                raise PluginError("HARNESS is not a literal", code="HP002", where=file) from error
            if isinstance(table, Mapping):
                return manifest_from_table(table, where=file), data
    raise PluginError("there is no literal HARNESS = {...}", code="HP001", where=file)


def _described(record: Record, contract: str, read: Callable[[], tuple[Manifest, bytes]]) -> Record:
    """The record with what its manifest says, or with what is wrong with that."""
    from hashlib import sha256

    from harness_hookspecs.kit.version_range import spec_allows

    try:
        manifest, data = read()
    except PluginError as error:
        return record._replace(flaw=Flaw(error.code, error.message, error.hint))
    flaw = None
    if normalise(manifest.id) != record.id:
        flaw = Flaw("HP012", f"the manifest's id is {manifest.id}, the entry point's name is {record.id}")
    elif not spec_allows(manifest.spec, contract):
        flaw = Flaw("HP011", f"made for contract {manifest.spec}, this is {contract}", "install a matching version")
    return record._replace(
        digest=sha256(data).hexdigest(),
        summary=manifest.summary,
        spec=manifest.spec,
        provides=manifest.provides,
        capabilities=None if manifest.capabilities is None else manifest.capabilities._asdict(),
        conflicts={normalise(name): reason for name, reason in manifest.conflicts.items()},
        flaw=flaw,
    )
