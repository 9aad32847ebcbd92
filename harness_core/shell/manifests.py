"""A role call in, its manifest with content and hash out: what this call uses, and nothing installed beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableSet
from typing import Any, NamedTuple

from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.role_manifest import WorkerManifest

__all__ = ["MadeManifest", "worker_manifest"]

_EMPTY_HASH = digest("")


class MadeManifest(NamedTuple):
    """A manifest in its wire form, its canonical bytes and their SHA-256."""

    wire: Mapping[str, Any]
    content: bytes
    manifest_hash: str


def worker_manifest(
    wire: dict[str, Any], described: Mapping[str, str], *, system: str | None, known: MutableSet[str]
) -> MadeManifest:
    """Complete and check the manifest of an ``execute_step`` call.

    Args:
        wire: The fields the host knows, in wire spelling; optional ones absent.
        described: What the role says of its prompt (``DescribesPrompt.prompt_facts``).
        system: The developer's text.
        known: Hashes whose shape was checked before in this session; equal calls are not checked again.

    Raises:
        ValidationError: It is not a worker's manifest (A-57).
    """
    wire["promptTemplateVersion"] = described.get("prompt_template_version", "none")
    wire["addendumHash"] = described.get("addendum_hash", _EMPTY_HASH)
    if system is not None:
        wire["systemHash"] = digest(system)
    content = canonical(wire)
    manifest_hash = hashlib.sha256(content).hexdigest()
    if manifest_hash not in known:
        WorkerManifest.model_validate(wire)
        known.add(manifest_hash)
    return MadeManifest(wire, content, manifest_hash)
