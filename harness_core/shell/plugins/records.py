"""What is known of one plugin without running it: a value that goes to JSON, for the index, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness_hookspecs.manifest import Flaw, Provided

from .names import normalise

__all__ = ["Record", "record_from_json", "record_to_json"]


class Record(NamedTuple):
    """One installed plugin.

    Attributes:
        id: The entry point's name, normalised.
        distribution: The distribution's name, normalised.
        version: The distribution's version, as its metadata says.
        module: The module that is registered.
        code: The package's folder or the module's file; ``None`` when it was not found.
        manifest: The manifest's file; ``None`` when there is none.
        digest: SHA-256 of the manifest's bytes.
        summary: The manifest's own words.
        spec: The range of contract versions; empty while the manifest is flawed.
        provides: What it promises to offer.
        capabilities: What it says it touches; ``None`` when it says nothing.
        conflicts: Ids of plugins that must not take part with it, and why.
        source: Where it was installed from: ``index``, a URL, ``editable URL``.
        origin: ``built-in``, ``local`` or ``third-party``, computed by the host.
        flaw: The first thing that is wrong with it, as far as it can be seen without running it.
    """

    id: str
    distribution: str
    version: str
    module: str
    code: str | None = None
    manifest: str | None = None
    digest: str | None = None
    summary: str = ""
    spec: str = ""
    provides: tuple[Provided, ...] = ()
    capabilities: Mapping[str, Any] | None = None
    conflicts: Mapping[str, str] = {}
    source: str = "index"
    origin: str = "third-party"
    flaw: Flaw | None = None

    def is_called(self, name: str) -> bool:
        """Tell whether a name means this plugin: its id, its distribution or its module."""
        return normalise(name) in {self.id, self.distribution, normalise(self.module)}


def record_to_json(record: Record) -> dict[str, Any]:
    """Give the record as plain JSON."""
    return {**record._asdict(), "provides": [list(provided) for provided in record.provides]}


def record_from_json(document: Mapping[str, Any]) -> Record:
    """Read what ``record_to_json`` gave; raises ``TypeError``, ``KeyError`` or ``ValueError`` for anything else."""
    provides = tuple(
        Provided(kind, name, tuple(roles), default, config)
        for kind, name, roles, default, config in document["provides"]
    )
    flaw = None if document["flaw"] is None else Flaw(*document["flaw"])
    return Record(**{**document, "provides": provides, "flaw": flaw})
