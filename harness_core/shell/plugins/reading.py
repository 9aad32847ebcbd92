"""One distribution's metadata goes in, its plugins come out as records, each with the files it must be read again for.

None of the plugin's code runs: entry points and manifests are text, and of the package only the place is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from harness_core.shell.ports_startup import read_file
from harness_hookspecs.manifest import MANIFEST_FILE, Flaw

from .locate import code_of, package_folders
from .manifests import described, read_literal, read_manifest
from .names import normalise
from .records import Record
from .scan import FileState, Found, file_state
from .shipped import origin_of

__all__ = ["Watched", "read_plugins"]

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_WATCH_ALWAYS = ("", -1, -1)  # never the state of a file: what could not be found is looked for each time


class Watched(NamedTuple):
    """A record and the files whose change makes it stale: path, modification time, size."""

    record: Record
    files: tuple[FileState, ...]


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
        return Watched(described(record, contract, lambda: read_literal(code)), (file_state(code),))
    file = _manifest_file(manifest or record.module, path)
    if file is None or not os.path.isfile(file):
        missing = manifest or f"{record.module}:{MANIFEST_FILE}"
        flaw = Flaw("HP001", f"there is no manifest {missing}", "ship harness-plugin.toml as package data")
        return Watched(record._replace(flaw=flaw, manifest=file), (file_state(file) if file else _WATCH_ALWAYS,))
    record = record._replace(manifest=file)
    read = [file]
    record = described(record, contract, lambda: read_manifest(file, read))
    return Watched(record, tuple(map(file_state, read)))


def _manifest_file(value: str, path: Sequence[str]) -> str | None:
    package, _, name = value.partition(":")
    name = name or MANIFEST_FILE  # build backends refuse a hyphen behind the colon, so the usual name is left out
    if not _MODULE.fullmatch(package) or os.path.basename(name) != name:
        return None
    places = [os.path.join(folder, name) for folder in package_folders(package, path)]
    return next(filter(os.path.isfile, places), places[0] if places else None)
