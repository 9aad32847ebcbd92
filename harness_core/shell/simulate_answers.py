"""A model or tool call of a simulated role in, what the record says of it out; nothing is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from harness_core.kernel.facts import Event, Fact
from harness_hookspecs.errors import Suspend
from harness_hookspecs.kit.canonical import read_canonical
from harness_hookspecs.kit.codec import loads_trusted
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.messages import Message, OracleResponse
from harness_hookspecs.provider import CallContext, ModelRequest, ToolSchema
from harness_hookspecs.tool import Settled, ToolContext, ToolResult, ToolSpec

from .error_told import error_told
from .ports.strand import Abandoned
from .recorder import closed_context
from .simulate_record import Record, call_id_of

__all__ = ["Answers", "RecordedProvider", "RecordedTime", "RecordedTools"]

UNFIT_ID = "?"
"""An id that the host does not keep: it derives one, as it did for the call that is recorded under a derived one."""


@attrs.define(eq=False)
class Answers:
    """How one role call is answered.

    Attributes:
        record: The session's.
        role_call_id: The role call.
        read_blob: Content by digest.
        wait_for: Blocks until a condition holds.
        changed: Has everyone who waits look again.
        laid: The seqs of ends that wait to be written.
        suspends: Whether somebody has given up waiting, by which the role call will suspend.
        left: The approvals that nobody waits for any more.
        lost: Whether a call was made that has no end.
        shown: Whether what is not recorded is written, so that the difference is seen.
        granted: The approvals of calls that wait to be started, by where they are.
        cut: Ends the role call amid what it computes; ``None`` for one that ended by itself.
    """

    record: Record
    role_call_id: str
    read_blob: Callable[[str], bytes]
    wait_for: Callable[[Callable[[], bool]], None]
    changed: Callable[[], None]
    laid: set[int] = attrs.field(factory=set)
    suspends: bool = False
    left: set[str] = attrs.field(factory=set)
    lost: bool = False
    shown: bool = False
    granted: dict[int, str] = attrs.field(factory=dict)
    cut: Callable[[], None] | None = None

    def answered(self) -> None:
        """Cut the role call off where it made no further call: what it computed then might take for ever here."""
        if self.cut is not None and not self.record.calls_ahead(self.role_call_id):
            self.cut()

    def end_of(self, intent: Event | None) -> Event:
        """How a call ended.

        Raises:
            Abandoned: It did not: its process died, or nobody waited for it any more, and so ends this run of the role.
        """
        end = None if intent is None else self.record.answer(intent)
        if end is None:
            self.lost = True
            self.wait_for(lambda: False)
            raise Abandoned
        return end

    def in_turn(self, fact: Fact) -> Suspend | None:
        """Hold whoever is about to write an event until it is its turn; ends of calls find theirs by themselves.

        One that is not recorded comes behind a cancel and what was made by then, where it was refused, as it was by a
        pause or for a budget; or it is seen when nobody else goes on. A question that an earlier process asked stands,
        and is no event when it is asked again.

        Returns:
            What a call waits for that cannot be its turn, since it was given up before its answer came.
        """
        if fact.type == "role.suspended":
            self._suspend_in_turn(fact)
            return None
        events = self.record.ahead_in_run(self.role_call_id, fact.type)
        same = (one for one in events if one.seq not in self.laid and call_id_of(one) == call_id_of(fact))
        event = next(same, None)
        if event is None:
            return self._turn_of_unrecorded(fact)
        if not self.record.is_result(event):
            return self._hold(event)
        self.laid.add(event.seq)
        self.changed()
        return None

    def _turn_of_unrecorded(self, fact: Fact) -> Suspend | None:
        waits = self.record.suspended_by(self.role_call_id, fact)
        if waits is None and not self.record.has_asked(self.role_call_id, fact):
            self.wait_for(lambda: self.shown or self.record.are_all_in(self.role_call_id, self.laid))
            if not self.shown and self.record.is_closed_to(self.role_call_id, fact):
                raise closed_context()
        return None if waits is None else Suspend(*waits)

    def _hold(self, event: Event) -> Suspend | None:
        """Hold a call until its turn; one whose approval was waited for no longer when it came has none here."""
        approval_id = self.record.granted_to(event)
        if approval_id is None:
            self.wait_for(lambda: self.record.is_due(event.seq, self.role_call_id, self.laid))
            return None
        self.granted[event.seq] = approval_id
        self.wait_for(
            lambda: event.seq not in self.granted or self.record.is_due(event.seq, self.role_call_id, self.laid)
        )
        return Suspend("approval", approval_id) if self.granted.pop(event.seq, None) is None else None

    def leave_granted(self) -> bool:
        """Have it be that the last one of the calls that wait to be started was given up before its approval came, so
        that another one is made in its place; whether there is one."""
        return bool(self.granted) and bool(self.granted.pop(max(self.granted)))

    def _suspend_in_turn(self, fact: Fact) -> None:
        """Of several that wait, the one gives up first by which the record says that the role call suspended."""
        own = fact.payload["wait_id"]
        event = next(self.record.ahead(self.role_call_id, "role.suspended"), fact)
        self.record.gives_up(self.role_call_id, own, event.payload["wait_id"])
        if _wait_of(event) != _wait_of(fact):
            self.wait_for(lambda: self.suspends or self.shown)
            if self.suspends:
                raise Suspend(*_wait_of(event))
            self.record.gives_up(self.role_call_id, own, own)
        self.suspends = True
        self.changed()


def _wait_of(fact: Event | Fact) -> tuple[str, str]:
    return fact.payload["kind"], fact.payload["wait_id"]


_BEYOND_ANY_LIMIT: Final = 2**62
"""Tokens of a prompt whose call was refused; how many it had is not recorded."""


class RecordedProvider:
    """Stands where a provider would: the answers are the recorded ones, and so is what a prompt was counted as."""

    def __init__(self, answers: Answers, *, reply_tokens: int | None) -> None:
        self._answers, self._reply_tokens = answers, reply_tokens
        self._taken: set[int] = set()

    def count_tokens(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> int | None:
        """What the next call's prompt was counted as, or estimated; ``None`` when there is no further call."""
        record, role_call_id = self._answers.record, self._answers.role_call_id
        wanted = {"budget.reserved": "tokens", "budget.exhausted": "wanted"}
        ahead = [event for name in wanted for event in record.ahead(role_call_id, name)]
        if not ahead:
            failed = next(record.ahead(role_call_id, "role.failed"), None)
            refused = failed is not None and failed.payload["error"].get("code") == "limits.max_tokens"
            return _BEYOND_ANY_LIMIT if refused else None
        event = min(ahead, key=lambda one: one.seq)
        called = next(record.ahead(role_call_id, "harness.model.called"), None)
        params = {} if called is None else called.payload["request"].get("params") or {}
        reply_tokens = params.get("max_output_tokens", self._reply_tokens)
        return int(event.payload[wanted[event.type]]) - int(reply_tokens or 1024)

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        """The recorded answer, or the recorded failure raised."""
        answers, turn = self._answers, request.routing.turn
        intent = answers.record.model_call(answers.role_call_id, turn, self._taken)
        end = answers.end_of(intent)
        assert intent is not None
        self._taken.add(intent.seq)
        if end.type == "harness.model.failed":
            raise error_told(end.payload["error"])
        return _as_given(end.payload["response"], turn, answers.read_blob)

    def close(self) -> None:
        """Nothing was opened."""


def _as_given(response: Mapping[str, Any], turn: int, read_blob: Callable[[str], bytes]) -> OracleResponse:
    """An answer as the provider gave it: the host makes the ids of tool calls its own, and will do so again."""
    content = read_canonical(read_blob(response["messageRef"]))["content"]
    wire = {
        "content": [_with_given_id(part, turn) if part["type"] == "tool_call" else part for part in content],
        "finishReason": response["finishReason"],
        "usage": response["usage"],
    }
    calls = [_with_given_id(call, turn) for call in response.get("toolCalls", ())]
    return OracleResponse.from_wire({**wire, "toolCalls": calls} if calls else wire)


def _with_given_id(call: Mapping[str, Any], turn: int) -> dict[str, Any]:
    kept, suffix = call["callId"], f"-t{turn}"
    return {**call, "callId": kept.removesuffix(suffix) if kept.endswith(suffix) else UNFIT_ID}


class RecordedTime:
    """Stands where the session's own time would be measured; what it measured is in the record."""

    def __init__(self, answers: Answers, loop: Any) -> None:
        self._answers, self._loop = answers, loop

    def seconds(self) -> float:
        """Enough to use the budget up where it was used up, else nothing."""
        spent = next(self._answers.record.ahead(self._answers.role_call_id, "budget.exhausted"), None)
        if spent is None or spent.payload["dimension"] != "seconds":
            return 0.0
        reserved = next(self._answers.record.ahead(self._answers.role_call_id, "budget.reserved"), None)
        if reserved is not None and reserved.seq < spent.seq:
            return 0.0
        before: float = self._loop.state.active_ms / 1000
        return float(spent.payload["used"]) - before

    def lap_ms(self) -> int:
        """Nothing: the reading is taken from the record where the event is compared."""
        return 0


class RecordedTools:
    """Stands where a tool set would: what a call gave, what a preview showed and a probe found is the record's."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def specs(self) -> Sequence[ToolSpec]:
        """Not asked: the specs were read before."""
        return ()

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """The recorded result, or the recorded failure raised."""
        end = self._answers.end_of(self._answers.record.tool_call(ctx.key))
        self._answers.answered()
        if end.type == "harness.tool_call.failed":
            raise error_told(end.payload["error"])
        if "resultRef" in end.payload:
            return ToolResult(loads_trusted(self._answers.read_blob(end.payload["resultRef"])))
        return ToolResult(thaw(end.payload["result"]), truncated=end.payload["truncated"])

    def preview(self, name: str, args: Mapping[str, Any]) -> str | None:
        """What was shown of the call that is about to be asked about."""
        for event in self._answers.record.ahead(self._answers.role_call_id, "approval.requested"):
            asked = event.payload
            if (asked["name"], asked["args"]) == (name, args) and asked.get("preview_ref"):
                return self._answers.read_blob(asked["preview_ref"]).decode()
        return None

    def probe(self, name: str, args: Mapping[str, Any], key: str) -> Settled:
        """What was found of a call whose result was lost."""
        for event in self._answers.record.ahead(self._answers.role_call_id, "effect.settled"):
            found = event.payload
            if (found["effect_id"], found["kind"]) == (key, "probe"):
                return Settled(found["outcome"], found.get("value"))
        return Settled("unknown")
