"""A plugin's manifest where it lies: its file goes in, its record with what the manifest says comes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness_core.shell.ports_startup import read_file
from harness_hookspecs.errors import PluginError
from harness_hookspecs.manifest import Capabilities, Flaw, Manifest, manifest_from_table, parse_manifest

from .names import normalise
from .records import Record

__all__ = ["described", "read_literal", "read_manifest"]


def read_manifest(file: str, seen: list[str] | None = None) -> tuple[Manifest, bytes]:
    """Give a manifest and its bytes; the files that it names join ``seen``.

    Raises:
        PluginError: It has flaws.
    """
    data = read_file(file) or b""
    named = [] if seen is None else seen

    def beside(name: str) -> bytes:
        folder = os.path.realpath(os.path.dirname(file))
        place = os.path.realpath(os.path.join(folder, name))
        named.append(place)
        found = read_file(place) if place.startswith(folder + os.sep) else None
        if found is None:
            raise OSError(f"there is no {name} in the package")
        return found

    return parse_manifest(data, where=file, read=beside), data


def read_literal(file: str) -> tuple[Manifest, bytes]:
    """Give the manifest of a single-file plugin: the literal ``HARNESS = {...}``, read from the syntax tree.

    Raises:
        PluginError: There is none, or it has flaws.
    """
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


def described(record: Record, contract: str, read: Callable[[], tuple[Manifest, bytes]]) -> Record:
    """Give the record with what its manifest says, or with what is wrong with that.

    Args:
        record: What is known without the manifest; an empty id takes the manifest's.
        contract: The version of the contract that is installed.
        read: Reads the manifest.
    """
    from hashlib import sha256

    from harness_hookspecs.kit.version_range import spec_allows

    try:
        manifest, data = read()
    except PluginError as error:
        return record._replace(flaw=Flaw(error.code, error.message, error.hint))
    flaw = None
    if normalise(manifest.id) != (record.id or normalise(manifest.id)):
        flaw = Flaw("HP012", f"the manifest's id is {manifest.id}, the entry point's name is {record.id}")
    elif not spec_allows(manifest.spec, contract):
        flaw = Flaw("HP011", f"made for contract {manifest.spec}, this is {contract}", "install a matching version")
    return record._replace(
        id=record.id or normalise(manifest.id),
        digest=sha256(data).hexdigest(),
        summary=manifest.summary,
        spec=manifest.spec,
        provides=manifest.provides,
        capabilities=None if manifest.capabilities is None else _as_json(manifest.capabilities),
        conflicts={normalise(name): reason for name, reason in manifest.conflicts.items()},
        flaw=flaw,
    )


def _as_json(capabilities: Capabilities) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in capabilities._asdict().items()}
