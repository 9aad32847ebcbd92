"""A call that a child session is to answer in, its reservation out; later how the child ended in, the result out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from harness_core.kernel.children import child_effect_id, child_session_id
from harness_core.kernel.state import SessionState
from harness_hookspecs.errors import HarnessError, ToolError
from harness_hookspecs.kit.canonical import canonical, read_canonical

from .child_tools import ChildCall, ChildTools
from .error_told import error_told

__all__ = ["asked_child", "child_failure", "child_result", "requested_child"]


def asked_child(
    tools: ChildTools | None, name: str, args: Mapping[str, Any], state: SessionState, max_depth: int
) -> ChildCall:
    """What a call asks of a child, where there may be one.

    Raises:
        ToolError: ``child.too_deep``: the session is a child of so many already (B-153); or as ``ChildTools.call``.
    """
    assert tools is not None, "a call of a child outside of an orchestration"
    depth = state.created.get("depth", 0)
    if depth >= max_depth:
        message = f"{name} would begin a session {depth + 1} deep; run.max_depth is {max_depth}"
        raise ToolError(message, code="child.too_deep", limit=max_depth, hint="raise run.max_depth, or do it here")
    return tools.call(name, args, state)


def requested_child(
    call: ChildCall, state: SessionState, place: tuple[str, str], read_blob: Callable[[str], bytes]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The payload of ``child.requested``, and its content; ``place`` is the role call and the call in it."""
    visit, (role_call_id, call_id) = state.visit, place
    assert visit is not None, "a call of a child outside of a visit"
    spec = canonical(call.spec(visit.stage, read_blob))
    ref = hashlib.sha256(spec).hexdigest()
    payload: dict[str, Any] = {
        "effect_id": child_effect_id(role_call_id, call_id),
        "effect_class": "keyed",
        "digest": ref,
        "child_id": child_session_id(state.session_id, role_call_id, call_id),
        "visit_id": visit.visit_id,
        "attempt": visit.attempt,
        "role_call_id": role_call_id,
        "call_id": call_id,
        "goal": call.goal,
        "workflow_id": call.workflow.workflow_id,
        "depth": state.created.get("depth", 0) + 1,
        "spec_ref": ref,
    }
    if call.version is not None:
        payload["workflow_version_id"] = call.version["id"]
    return payload, {ref: spec}


def child_failure(ended: Mapping[str, Any]) -> HarnessError | None:
    """The error of a child that failed, with its own code; whoever asked for it decides what follows.

    What it had planned before it failed runs as often as is asked for: so its version is named.
    """
    if ended["type"] != "child.failed":
        return None
    error, version = ended["error"], ended.get("version")
    if version is None or ended["goal"] != "start":
        return error_told(error)
    version_id = version["workflow_version_id"]
    said = f"{error['message']}; its plan is registered: run_workflow takes {version_id}"
    return error_told({**error, "message": said})


def child_result(ended: Mapping[str, Any], read_blob: Callable[[str], bytes]) -> Any:
    """What a call is answered: of a plan its version, of a run its output, of both all three."""
    version = ended.get("version") or {}
    if ended["goal"] == "plan":
        return {"workflowVersionId": version.get("workflow_version_id")}
    output = read_canonical(read_blob(ended["output_ref"]))
    if ended["goal"] == "run":
        return output
    return {
        "workflowVersionId": version.get("workflow_version_id"),
        "runId": ended["child_id"],
        "output": output,
    }
