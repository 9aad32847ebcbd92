"""A role call in, its manifest with content and hash out: what this call uses, and nothing installed beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableSet
from typing import Any, Final, NamedTuple

from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.role_manifest import FixerManifest, OrchestratorManifest, PlannerManifest, WorkerManifest

__all__ = ["MadeManifest", "made_manifest"]

_EMPTY_HASH = digest("")
_MOST_KNOWN: Final = 256
"""Equal calls follow each other; of a plan with thousands of branches hardly two are equal."""
_SHAPES: Final[Mapping[str, Any]] = {
    "planner": PlannerManifest,
    "orchestrator": OrchestratorManifest,
    "fixer": FixerManifest,
}
"""The shape of a role's manifest; that of all others is a worker's (A-57)."""


class MadeManifest(NamedTuple):
    """A manifest in its wire form, its canonical bytes and their SHA-256."""

    wire: Mapping[str, Any]
    content: bytes
    manifest_hash: str


def made_manifest(
    wire: dict[str, Any], described: Mapping[str, str], *, system: str | None, known: MutableSet[str]
) -> MadeManifest:
    """Complete and check the manifest of a call.

    Args:
        wire: The fields the host knows, in wire spelling; optional ones absent.
        described: What the role says of its prompt (``DescribesPrompt.prompt_facts``).
        system: The developer's text.
        known: Hashes whose shape was checked before in this session; equal calls are not checked again.

    Raises:
        ValidationError: It has not the shape of its role (A-57).
    """
    wire["promptTemplateVersion"] = described.get("prompt_template_version", "none")
    wire["addendumHash"] = described.get("addendum_hash", _EMPTY_HASH)
    if system is not None:
        wire["systemHash"] = digest(system)
    content = canonical(wire)
    manifest_hash = hashlib.sha256(content).hexdigest()
    if manifest_hash not in known:
        _SHAPES.get(wire["role"], WorkerManifest).model_validate(wire)
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known.add(manifest_hash)
    return MadeManifest(wire, content, manifest_hash)
