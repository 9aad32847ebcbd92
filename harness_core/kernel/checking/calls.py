"""The calls inside role calls in, effects without intent, second results and silent repetitions out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from harness_core.kernel.facts import Event, effect_id
from harness_core.kernel.own_steps import is_own_step
from harness_hookspecs.kit.canonical import digest

from .history import Broken, Payload

__all__ = ["Calls"]


@attrs.define
class _Tool:
    """One tool call of a role call."""

    name: str
    unkeyed: bool
    starts: int = 1
    open: bool = True


@attrs.define
class _Role:
    """One open role call."""

    tools: dict[str, _Tool] = attrs.Factory(dict)  # by call id
    refused: set[str] = attrs.Factory(set)  # calls that failed before they were started
    models: dict[str, Payload | None] = attrs.Factory(dict)  # call id -> its question, as long as it has no answer
    turns: set[tuple[str, int]] = attrs.Factory(set)
    asked: dict[str, str] = attrs.Factory(dict)  # call id -> the tool that a model asked for


class Calls:
    """Models and tools: intents (I-15), one result (I-17), what may be started again (I-16), the ledger (I-27)."""

    def __init__(self) -> None:
        self._roles: dict[str, _Role] = {}
        self._reserved: dict[str, int] = {}  # call id -> what its answer used, -1 while it is not known
        self._doubts: set[str] = set()
        self._settled: dict[str, str] = {}  # effect id -> outcome

    def see(self, event: Event) -> Iterator[Broken]:
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            yield from handler(self, event)
        if event.type.startswith("harness.") and self._role(event) is None and not is_own_step(event):
            yield Broken("I-20", event.seq, f"{event.type} belongs to no open role call")

    def _role(self, event: Event) -> _Role | None:
        return self._roles.get(str(event.refs.get("role_call_id")))

    def _requested(self, event: Event) -> Iterator[Broken]:
        self._roles[event.payload["role_call_id"]] = _Role()
        yield from ()

    def _ended(self, event: Event) -> Iterator[Broken]:
        role = self._roles.pop(event.payload["role_call_id"], None)
        if role is None or event.type == "role.failed":  # what it leaves open is ignored when it comes
            return
        left = [call for call, tool in role.tools.items() if tool.open]
        left += [call for call, question in role.models.items() if question is not None]
        if left:
            yield Broken("I-17", event.seq, f"a role call returned without the result of {', '.join(left)}")

    # -- models ---

    def _reserve(self, event: Event) -> Iterator[Broken]:
        call_id = event.payload["call_id"]
        if call_id in self._reserved:
            yield Broken("I-27", event.seq, f"{call_id} is reserved for a second time")
        self._reserved[call_id] = -1

    def _called(self, event: Event) -> Iterator[Broken]:
        role, payload = self._role(event), event.payload
        call_id, turn = payload["callId"], (payload.get("scope", ""), payload["turn"])
        if call_id not in self._reserved:
            yield Broken("I-27", event.seq, f"the call {call_id} has nothing reserved")
        if role is None:
            return
        lost = role.models.get(call_id)
        if lost is None and (call_id in role.models or turn in role.turns):
            yield Broken("I-16", event.seq, f"turn {turn[1]} is asked for a second time")
        elif lost not in (None, payload):
            yield Broken("I-16", event.seq, f"{call_id} is asked again, and something else than before")
        role.models[call_id] = payload
        role.turns.add(turn)

    def _answered(self, event: Event) -> Iterator[Broken]:
        role, call_id = self._role(event), event.payload["callId"]
        if role is None:
            return
        if call_id not in role.models:
            yield Broken("I-15", event.seq, f"{event.type} answers {call_id}, which nobody asked")
        elif role.models[call_id] is None:
            yield Broken("I-17", event.seq, f"{event.type} is a second answer to {call_id}")
        role.models[call_id] = None
        if event.type == "harness.model.responded":
            response = event.payload["response"]
            role.asked |= {call["callId"]: call["toolName"] for call in response.get("toolCalls", ())}
            if call_id in self._reserved:
                self._reserved[call_id] = _used(response["usage"])
        yield from _times(event, event.payload.get("timing") or {})

    def _settle(self, event: Event) -> Iterator[Broken]:
        payload = event.payload
        used = self._reserved.pop(payload["call_id"], None)
        if used is None:
            yield Broken("I-27", event.seq, f"{payload['call_id']} is settled, and nothing is reserved for it")
        elif payload.get("known", True) and used != payload["tokens"]:
            yield Broken("I-27", event.seq, f"{payload['tokens']} tokens are settled for a call that used {used}")

    # -- tools ---

    def _started(self, event: Event) -> Iterator[Broken]:
        role, payload = self._role(event), event.payload
        call_id, name = payload["callId"], payload["toolName"]
        yield from _arguments(event)
        if role is None:
            return
        if payload["caller"] == "model" and call_id not in role.asked:
            yield Broken("I-15", event.seq, f"{call_id} is started, and no answer of the model asks for it")
        if role.asked.get(call_id, name) != name:
            yield Broken("I-25", event.seq, f"the model asked for {role.asked[call_id]}, and {name} is started")
        before = role.tools.get(call_id)
        if before is None:
            if call_id in role.refused:
                yield Broken("I-17", event.seq, f"{call_id} is started after it has failed")
            role.tools[call_id] = _Tool(name, payload["effectClass"] == "unkeyed")
            return
        lost = effect_id(str(event.refs["role_call_id"]), call_id, before.starts)
        if not before.open:
            yield Broken("I-16", event.seq, f"{call_id} is started again after its result")
        elif not before.unkeyed or self._settled.get(lost) != "never_happened":
            yield Broken("I-16", event.seq, f"{call_id} is started again, and nobody said that it never happened")
        before.starts, before.open = before.starts + 1, True

    def _result(self, event: Event) -> Iterator[Broken]:
        role, call_id = self._role(event), event.payload["callId"]
        yield from _times(event, {"durationMs": event.payload.get("durationMs")})
        if role is None:
            return
        tool = role.tools.get(call_id)
        if (tool is not None and not tool.open) or call_id in role.refused:
            yield Broken("I-17", event.seq, f"{event.type} is a second result of {call_id}")
        elif tool is None and event.type == "harness.tool_call.succeeded":
            yield Broken("I-15", event.seq, f"{call_id} succeeded, and nothing says that it was started")
        elif tool is None:
            role.refused.add(call_id)
        elif tool.name != event.payload["toolName"]:
            yield Broken("I-17", event.seq, f"the result of {call_id} is of another tool than was started")
        if tool is not None:
            tool.open = False

    # -- doubt ---

    def _doubted(self, event: Event) -> Iterator[Broken]:
        effect = event.payload["effect_id"]
        if effect not in self._in_question(event.payload["role_call_id"]):
            yield Broken("I-16", event.seq, f"{effect} is in doubt, and it is no unkeyed effect without a result")
        if effect in self._doubts:
            yield Broken("I-17", event.seq, f"{effect} is said to be in doubt for a second time")
        self._doubts.add(effect)

    def _outcome(self, event: Event) -> Iterator[Broken]:
        effect = event.payload["effect_id"]
        if effect in self._settled:
            yield Broken("I-17", event.seq, f"{effect} is settled for a second time")
        elif effect not in self._in_question(str(event.refs.get("role_call_id"))):
            yield Broken("I-16", event.seq, f"{effect} is settled, and it is no unkeyed effect without a result")
        self._settled[effect] = event.payload["outcome"]

    def _in_question(self, role_call_id: str) -> set[str]:
        role = self._roles.get(role_call_id, _Role())
        lost = {call: tool for call, tool in role.tools.items() if tool.unkeyed and tool.open}
        return {effect_id(role_call_id, call, tool.starts) for call, tool in lost.items()}


def _used(usage: Mapping[str, Any]) -> int:
    return int(usage.get("inputTokens", 0)) + int(usage.get("outputTokens", 0))


def _times(event: Event, times: Mapping[str, Any]) -> Iterator[Broken]:
    negative = [name for name, value in times.items() if isinstance(value, int | float) and value < 0]
    if negative:
        yield Broken("I-10", event.seq, f"{', '.join(negative)} of {event.type} is less than nothing")


def _arguments(event: Event) -> Iterator[Broken]:
    args = event.payload["args"]
    if not isinstance(args, Mapping):
        yield Broken("I-25", event.seq, f"{event.payload['callId']} is started with what are no arguments")
    elif digest(args) != event.payload["argsDigest"]:
        yield Broken("I-15", event.seq, f"the arguments of {event.payload['callId']} do not hash to argsDigest")


_HANDLERS: dict[str, Callable[[Calls, Event], Iterator[Broken]]] = {
    "role.requested": Calls._requested,
    "role.returned": Calls._ended,
    "role.failed": Calls._ended,
    "budget.reserved": Calls._reserve,
    "budget.settled": Calls._settle,
    "harness.model.called": Calls._called,
    "harness.model.responded": Calls._answered,
    "harness.model.failed": Calls._answered,
    "harness.tool_call.started": Calls._started,
    "harness.tool_call.succeeded": Calls._result,
    "harness.tool_call.failed": Calls._result,
    "effect.in_doubt": Calls._doubted,
    "effect.settled": Calls._outcome,
}
