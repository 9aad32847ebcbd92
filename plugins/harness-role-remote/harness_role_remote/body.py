"""A task and its context in, the JSON that is sent out: what the contract names and nothing else (A-96, A-98)."""

from __future__ import annotations

import hashlib
from typing import Any

from harness_hookspecs.kit import codec
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.role import RoleContext, RoleTask, Scope

__all__ = ["wire_body"]


def wire_body(task: RoleTask, ctx: RoleContext) -> bytes:
    """The body of the question, the same for the same call in every run.

    Raises:
        CodecError: Something in it is no strict JSON, a tool's schema for example.
    """
    body: dict[str, Any] = {"task": task.to_wire(), "scope": _scope(ctx.scope), "modelSlotId": ctx.model.slot_id}
    if ctx.system:
        body["system"] = ctx.system
    body["toolsManifest"] = {
        name: {"description": tool.description, "inputSchema": thaw(tool.input_schema)}
        for name, tool in sorted(ctx.tools.items())
    }
    return codec.dumps(body)


def _scope(scope: Scope) -> dict[str, Any]:
    """The folder of the log would tell how this machine is laid out: a mark of the run stands in its place (K-36)."""
    return {**scope.to_wire(), "logDir": f"log:{hashlib.sha256(scope.run_id.encode()).hexdigest()[:16]}"}
