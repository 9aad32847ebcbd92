"""The manifests of many calls in, what a session remembers of them out."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.shell.manifests import made_manifest

WIRE: dict[str, Any] = {
    "role": "orchestrator", "pluginId": "role-workflow", "pluginVersion": "0.1.0", "slot": "main", "provider": "p",
    "modelId": "m", "params": {}, "tools": [], "skills": [], "mounts": [], "limits": {}, "availableHashes": [],
    "toolsProvided": [],
}  # fmt: skip


def test_of_ever_so_many_different_calls_a_session_remembers_few() -> None:
    known: set[str] = set()
    for number in range(2_000):
        made = made_manifest({**WIRE, "slot": f"slot {number}"}, {}, system=None, known=known)
        assert made.manifest_hash in known
        assert len(known) <= 256


def test_what_has_not_the_shape_of_its_role_is_not_remembered() -> None:
    known: set[str] = set()
    lacking = {name: one for name, one in WIRE.items() if name != "toolsProvided"}
    for _ in range(2):
        with pytest.raises(ValueError, match="toolsProvided"):
            made_manifest({**lacking}, {}, system=None, known=known)
    assert known == set()
