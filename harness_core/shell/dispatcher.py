"""A tool call in, its outcome out: schema, tier, approval, intent, effect, result, in this order and nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs

from harness_core.kernel.approvals import Call, ToolPolicy, judge
from harness_core.kernel.children import child_effect_id, end_of_child
from harness_core.kernel.facts import Fact, effect_id
from harness_hookspecs.errors import HarnessError, Refused, StoreError, ToolError, ValidationFailed
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.codec import dumps, loads_trusted
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.messages import find_cost
from harness_hookspecs.role import ToolOutcome

from .child_calls import asked_child, child_failure, child_result, requested_child
from .child_tools import ChildTools
from .journal import OMITTED, CallRecord
from .perform_tool import execute, preview, probe
from .recorder import RoleCallRecorder
from .schemas import schema_findings
from .services import Services, elapsed
from .toolbox import Tool

__all__ = ["CallSite", "Dispatcher", "ToolCall"]

MAX_ARGS_BYTES = 262_144
"""Arguments above this are refused: a call of that size is a file, and belongs into one."""

_UNATTENDED = "approval.denied_unattended"


@attrs.frozen
class CallSite:
    """Where calls come from, and the rules that hold there."""

    stage: str
    visit_id: str
    persona: str
    policy: ToolPolicy
    yolo: str
    tools: Mapping[str, Tool]
    output_bytes: int
    children: ChildTools | None = None  # in an orchestration, the tools that child sessions answer
    max_depth: int = 0  # how deep these may nest


@attrs.frozen
class ToolCall:
    """One call: who asked for it and how it is told apart."""

    call_id: str
    caller: str
    name: str
    args: Any
    turn: int | None = None
    scope: str = ""
    call_index: int | None = None
    args_digest: str = ""  # where it is known already

    def payload(self) -> dict[str, Any]:
        """The fields common to its three events (A-69 to A-72)."""
        payload: dict[str, Any] = {
            "callId": self.call_id,
            "caller": self.caller,
            "toolName": self.name,
            "args": self.args,
        }
        if self.turn is not None and self.caller == "model":
            payload["turn"] = self.turn
        if self.call_index is not None:
            payload["callIndex"] = self.call_index
        if self.scope:
            payload["scope"] = {"scope": self.scope}
        return payload


class Dispatcher:
    """Runs the tool calls of one role call."""

    def __init__(
        self,
        site: CallSite,
        *,
        recorder: RoleCallRecorder,
        services: Services,
    ) -> None:
        self.site = site
        self._recorder, self._loop, self._ports = recorder, services.loop, services.ports
        self._deadlines, self._redactor, self._cancel = services.deadlines, services.redactor, services.cancel
        self._recorded_error, self._active = services.recorded, services.active

    def redacted(self, args: Any) -> Any:
        """Arguments as they go on: no call carries a secret, whoever makes it (D-18)."""
        return self._redactor.value(args)

    def run(self, call: ToolCall, record: CallRecord | None) -> ToolOutcome:
        """Run one call, or answer it from its record.

        Args:
            call: The call.
            record: What the journal has of it.

        Returns:
            The outcome as the caller is shown it; whatever goes wrong with the call is inside.

        Raises:
            Suspend: Someone must decide first.
            Cancelled: The session is over.
        """
        if record is not None and record.ended is not None:
            return self._recorded(call, record)
        tool = self.site.tools.get(call.name)
        start = 1 if record is None else record.starts
        try:
            if tool is None:
                raise self._unknown(call.name)
            if record is None:
                self._admit(call, tool)
            elif record.intent["effectClass"] == "unkeyed":
                settled = self._settle(call, tool, record)
                if settled is not None:
                    return settled
                self._admit(call, tool)  # started anew, and on the disk: if this is lost too, it is in doubt again
                start += 1
        except HarnessError as error:
            if error.code == "cancelled" or self._recorder.fatal is not None:
                raise
            return self._failed(call, error, None)
        return self._execute(call, tool, start)

    def _recorded(self, call: ToolCall, record: CallRecord) -> ToolOutcome:
        assert record.ended is not None
        if record.ended_type == "harness.tool_call.succeeded":
            return ToolOutcome(call.call_id, True, self.recorded_result(call.caller, record.ended))
        return self._shown(call, record.ended["error"])

    def recorded_result(self, caller: str, ended: Mapping[str, Any]) -> Any:
        """A recorded result: code is given the whole of a long one, a model what the log shows of it."""
        if caller == "code" and "resultRef" in ended:
            return loads_trusted(self._recorder.read_blob(ended["resultRef"]))
        return thaw(ended["result"])

    def _shown(self, call: ToolCall, envelope: Mapping[str, Any]) -> ToolOutcome:
        """A failure as the caller sees it; one that nobody may be asked about ends the role call anyhow."""
        code = envelope.get("code", envelope["name"])
        if code == _UNATTENDED and self._recorder.refused is None:
            self._recorder.refused = str(envelope["message"])
        return ToolOutcome(call.call_id, False, {"error": envelope["message"], "code": code})

    # -- before ---

    def _unknown(self, name: str) -> ToolError:
        known = ", ".join(self.site.tools) or "none"
        return ToolError(f"there is no tool {name!r} here; tools: {known}", code="tool.unknown", tool=name)

    def _admit(self, call: ToolCall, tool: Tool) -> None:
        """Everything that may stand between a call and its effect; ends with the intent on the disk."""
        if not isinstance(call.args, Mapping):
            raise ValidationFailed("arguments must be an object", code="tool.invalid_args")
        if len(dumps(call.args)) > MAX_ARGS_BYTES:  # what is nested too deeply for its schema is refused here too
            raise ValidationFailed(
                f"arguments are larger than {MAX_ARGS_BYTES} bytes", code="tool.args_too_large", limit=MAX_ARGS_BYTES
            )
        findings = schema_findings(tool.spec.input_schema, call.args, schema_hash=tool.schema_hash)
        if findings:
            message = "; ".join(f"{f['path'] or '/'}: {f['message']}" for f in findings)
            raise ValidationFailed(message, code="tool.invalid_args", findings=findings)
        if self._is_of_child(call):
            asked_child(self.site.children, call.name, call.args, self._loop.state, self.site.max_depth)
        cause = self._approve(call, tool)
        started = {
            **call.payload(),
            "effectClass": tool.spec.effect,
            "argsDigest": call.args_digest or digest(call.args),
            "tier": tool.tier,
        }
        refs = {"causation_id": cause} if cause else {}
        actor = "model" if call.caller == "model" else "agent"
        self._recorder.intend([self._recorder.fact("harness.tool_call.started", started, actor=actor, **refs)])
        if cause:
            self._recorder.reach("approval.consumed")

    def _approve(self, call: ToolCall, tool: Tool) -> str | None:
        """The event id of the grant this call runs under; ``None`` when its tier needs none."""
        site = self.site
        judged = Call(call.name, tool.tier, site.stage, tool.set_name)
        verdict = judge(site.policy, judged, grants=self._loop.state.grants, yolo=site.yolo)
        if verdict.kind == "run":
            return None
        if verdict.kind == "denied":
            raise Refused(f"policy denies {call.name} ({tool.tier}): {verdict.rule}", code="tool.denied_by_policy")
        payload: dict[str, Any] = {
            "subject": "tool",
            "name": call.name,
            "tier": tool.tier,
            "args": call.args,
            "rule": verdict.rule,
            "visit_id": site.visit_id,
            "persona": site.persona,
            "role_call_id": self._recorder.role_call_id,
            "call_id": call.call_id,
        }
        blobs = self._preview(call, tool, payload) if verdict.kind == "ask" else {}
        approval_id = self._recorder.ask(payload, verdict.kind, verdict.by, blobs)
        return self._decision(approval_id)

    def _preview(self, call: ToolCall, tool: Tool, payload: dict[str, Any]) -> dict[str, bytes]:
        shown = preview(tool, call.args)
        if not shown:
            return {}
        content = self._redactor.text(shown).encode()
        payload["preview_ref"] = _sha256(content)
        return {payload["preview_ref"]: content}

    def _decision(self, approval_id: str) -> str:
        """Wait while somebody is being asked; without an answer the role call suspends."""
        self._loop.wait_until(
            lambda state: (
                state.approvals[approval_id].status != "pending"
                or state.pausing is not None
                or not self._loop.is_running(approval_id)
            ),
            cancel=self._cancel,
        )
        approval = self._loop.state.approvals[approval_id]
        if approval.status == "pending":
            kind = "pause" if self._loop.state.pausing else "approval"
            raise self._recorder.suspend(kind, approval_id)
        if approval.status in ("granted", "bypassed"):
            return str(approval.grant_event_id)
        ended = approval.ended or {}
        said = ended.get("say") or ended.get("reason") or "no reason given"
        raise Refused(
            f"{approval.payload['name']} was denied by {ended.get('by', 'nobody')}: {said}",
            code=_UNATTENDED if ended.get("kind") == "on_ask" else "approval.denied",
        )

    def _settle(self, call: ToolCall, tool: Tool, record: CallRecord) -> ToolOutcome | None:
        """An unkeyed call whose result was lost: its record decides, or a probe, or it stays in doubt (I-16).

        ``None`` when it never happened.
        """
        effect = effect_id(self._recorder.role_call_id, call.call_id, record.starts)
        settled = self._loop.state.settled.get(effect) or self._probed(call, tool, effect, record)
        if settled is None:
            doubt = {
                "effect_id": effect,
                "role_call_id": self._recorder.role_call_id,
                "call_id": call.call_id,
                "tool_name": call.name,
                "args_digest": digest(call.args),
            }
            if effect not in self._loop.state.in_doubt:
                self._recorder.result([self._recorder.fact("effect.in_doubt", doubt)], flush=True)
            raise self._recorder.suspend("in_doubt", effect)
        if settled["outcome"] == "never_happened":
            return None
        return self._succeeded(call, settled.get("value"), truncated=False, duration_ms=None)

    def _probed(self, call: ToolCall, tool: Tool, effect: str, record: CallRecord) -> Mapping[str, Any] | None:
        """What the tool itself finds out, recorded; ``None`` when it does not know."""
        found = probe(tool, call.args, effect)
        if found is None:
            return None
        settled = {"effect_id": effect, "outcome": found.outcome, "by": call.name, "kind": "probe"}
        if found.value is not None:
            settled["value"] = self._redactor.value(found.value)
        fact = self._recorder.fact("effect.settled", settled, causation_id=record.event_id)
        self._recorder.result([fact], flush=True)
        return settled

    # -- the effect and after ---

    def _is_of_child(self, call: ToolCall) -> bool:
        return self.site.children is not None and call.name in self.site.children.tools

    def _asked_of_child(self, call: ToolCall) -> ToolOutcome:
        """As for a tool: what no child can be begun for any more, or is no result, is an error of the call."""
        try:
            return self._by_child(call)
        except HarnessError as error:
            if error.code == "cancelled" or self._recorder.fatal is not None or isinstance(error, StoreError):
                raise
            return self._failed(call, error, None)

    def _by_child(self, call: ToolCall) -> ToolOutcome:
        """What the call's child session came to; until then the role call waits without a thread."""
        recorder, state, site = self._recorder, self._loop.state, self.site
        ended = end_of_child(state, recorder.role_call_id, call.call_id)
        if ended is not None:
            failure = child_failure(ended)
            if failure is not None:
                return self._failed(call, failure, None)
            return self._succeeded(call, child_result(ended, recorder.read_blob), truncated=False, duration_ms=None)
        effect = child_effect_id(recorder.role_call_id, call.call_id)
        if effect not in state.children:
            asked = asked_child(site.children, call.name, call.args, state, site.max_depth)
            payload, blobs = requested_child(asked, state, (recorder.role_call_id, call.call_id), recorder.read_blob)
            payload |= elapsed(self._active)
            recorder.intend([recorder.fact("child.requested", payload)], blobs)
        raise recorder.suspend("child", effect)

    def _execute(self, call: ToolCall, tool: Tool, start: int) -> ToolOutcome:
        if self._recorder.fatal is not None:  # a call beside this one stopped the session; what was begun waits for it
            raise self._recorder.fatal
        if self._is_of_child(call):
            return self._asked_of_child(call)
        key = effect_id(self._recorder.role_call_id, call.call_id, start)
        started = self._ports.clock.monotonic()
        done = execute(tool, call.args, key, cancel=self._cancel, ports=self._ports, deadlines=self._deadlines)
        duration_ms = int((self._ports.clock.monotonic() - started) * 1000)
        self._recorder.reach("effect.done")
        flush = tool.spec.effect == "unkeyed"
        if done.value is None:
            assert done.error is not None
            return self._failed(call, done.error, duration_ms, flush=flush)
        value, truncated = done.value
        try:
            return self._succeeded(call, value, truncated=truncated, duration_ms=duration_ms, flush=flush)
        except HarnessError as unrecordable:
            if self._recorder.fatal is not None:  # what stops the session is no result, and one may be kept already
                raise
            return self._failed(call, unrecordable, duration_ms, flush=flush)

    def _succeeded(
        self, call: ToolCall, value: Any, *, truncated: bool, duration_ms: int | None, flush: bool = False
    ) -> ToolOutcome:
        content = dumps(value)  # first, since only strict JSON can be looked through
        clean = self._redactor.value(value)
        if clean is not value:
            value, content = clean, dumps(clean)
        money = find_cost(value)
        if money is not None:
            raise ToolError(f"a result may not record cost ({money})", code="usage.cost", path=money)
        payload = {**call.payload(), "result": value, "truncated": truncated}
        blobs: dict[str, bytes] = {}
        if len(content) > self.site.output_bytes:
            payload["resultRef"] = _sha256(content)
            blobs[payload["resultRef"]] = content
            payload["result"] = _head_and_tail(content, self.site.output_bytes, payload["resultRef"])
            payload["truncated"] = True
            if call.caller == "model":
                value = payload["result"]
        if duration_ms is not None:
            payload["durationMs"] = duration_ms
        self._recorder.result([self._end("succeeded", payload)], blobs, flush=flush)
        return ToolOutcome(call.call_id, True, thaw(value))  # what is recorded stays as it was, whatever a role does

    def _failed(
        self, call: ToolCall, error: HarnessError, duration_ms: int | None, *, flush: bool = False
    ) -> ToolOutcome:
        envelope = self._recorded_error(error)
        payload = {**call.payload(), "error": envelope}
        if duration_ms is not None:
            payload["durationMs"] = duration_ms
        payload["args"] = _bounded_args(call.args)
        self._recorder.result([self._end("failed", payload)], flush=flush)
        return self._shown(call, envelope)

    def _end(self, ending: str, payload: dict[str, Any]) -> Fact:
        return self._recorder.fact(f"harness.tool_call.{ending}", payload)


def _bounded_args(args: Any) -> Any:
    """Arguments as they stand in a failure: those too large to keep are named by size and digest."""
    content = dumps(args)
    if len(content) <= MAX_ARGS_BYTES:
        return args
    return {"omitted": OMITTED, "sizeBytes": len(content), "sha256": digest(args)}


def _head_and_tail(content: bytes, limit_bytes: int, ref: str) -> dict[str, Any]:
    """The two ends of a result too long to show, and where the whole of it is; truncation is marked (D-22)."""
    half = limit_bytes // 2
    return {
        "truncated": True,
        "head": content[:half].decode(errors="replace"),
        "tail": content[-half:].decode(errors="replace"),
        "sizeBytes": len(content),
        "ref": f"artifact://sha256-{ref}",
    }


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
