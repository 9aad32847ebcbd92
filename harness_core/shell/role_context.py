"""One role call's model, tools and facts in, the context object its role is given out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness_core.kernel.facts import Event, derive
from harness_hookspecs.errors import HarnessError, RoleError, Suspend, ToolError, VocabularyError
from harness_hookspecs.host import CancelToken, Ports, Task
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.messages import ToolCallRequest, find_cost
from harness_hookspecs.role import REMOTE_EVENTS, Scope, ToolOutcome

from .dispatcher import Dispatcher, ToolCall
from .earlier_calls import Earlier
from .model_handle import BoundModel
from .no_model import NoModel
from .ports import NoThread
from .recorder import RoleCallRecorder
from .redaction import Redactor
from .toolbox import Tool

__all__ = ["BoundRoleTool", "CallContextOfRole", "Durability"]


class Durability:
    """The event writer a role is given; it takes notes, and what is said far away as notes, and nothing else (K-28)."""

    def __init__(self, recorder: RoleCallRecorder, prior: Sequence[Event], redactor: Redactor) -> None:
        self._recorder, self._prior, self._redactor = recorder, prior, redactor

    def prior_events(self) -> Sequence[Mapping[str, Any]]:
        self._recorder.journal.take_as_read()
        said = [{"type": event.type, "payload": event.payload} for event in self._prior]
        return thaw(said)  # type: ignore[no-any-return]  # the role's own: the journal stays as it was

    def note(self, text: str, **facts: Any) -> None:
        self._recorder.note(self._redactor.text(text), self._redactor.value(facts))

    def remote(self, event: Mapping[str, Any]) -> None:
        kind, payload = event.get("type"), event.get("payload")
        if kind not in REMOTE_EVENTS or not isinstance(payload, Mapping):
            raise VocabularyError("an event of somebody far away is a note, or of a model or a tool, with a payload",
                                  code="role.remote_event", type=str(kind)[:80])  # fmt: skip
        if find_cost(thaw(payload)) is not None:
            raise VocabularyError("an event may not record cost", code="usage.cost", type=kind)
        self._recorder.note(kind, self._redactor.value(payload), remote=True)


class CodeCalls:
    """The calls that a role's own code makes, told apart from equal ones by counting them (A-73).

    It knows nothing of the context that holds the tools: with a way back, each role call would be garbage that only a
    look at all objects finds.
    """

    def __init__(self, dispatcher: Dispatcher, recorder: RoleCallRecorder, earlier: Earlier) -> None:
        self._dispatcher, self._recorder, self._earlier = dispatcher, recorder, earlier
        self.reused = 0
        self._made: dict[tuple[str, str, str], int] = {}

    def make(self, name: str, args: Mapping[str, Any], scope: str) -> ToolOutcome:
        """One call."""
        self._recorder.check_open()
        plain = self._dispatcher.redacted(thaw(args))
        key = (scope, name, digest(plain))
        nth = self._made[key] = self._made.get(key, -1) + 1
        record = self._recorder.journal.code_tool(key, nth)
        call_id = derive("call", self._recorder.role_call_id, *key, nth)
        known = self._earlier.get((*key, nth)) if record is None else None
        if known is not None:  # it has happened, and need not for a repair's sake
            self.reused += 1
            return ToolOutcome(call_id, True, self._dispatcher.recorded_result("code", known))
        call = ToolCall(call_id, "code", name, plain, scope=scope, call_index=nth, args_digest=key[2])
        return self._dispatcher.run(call, record)


class BoundRoleTool:
    """One tool as a role's code calls it (caller ``code``)."""

    def __init__(self, tool: Tool, calls: CodeCalls) -> None:
        self._tool, self._calls = tool, calls
        self.description = tool.spec.description
        self.input_schema: Mapping[str, Any] = tool.spec.input_schema

    def execute(self, args: Mapping[str, Any], *, scope: str = "") -> Any:
        outcome = self._calls.make(self._tool.name, args, scope)
        if not outcome.ok:
            raise ToolError(outcome.value["error"], code=outcome.value["code"])
        return outcome.value


@attrs.define(eq=False)
class CallContextOfRole:
    """Implements :class:`~harness_hookspecs.role.RoleContext`. Without a durability sink there is none (A-29)."""

    scope: Scope
    model: BoundModel | NoModel
    durability: Durability
    ports: Ports
    abort_signal: CancelToken
    log_dir: Path
    dispatcher: Dispatcher = attrs.field(repr=False)
    call_recorder: RoleCallRecorder = attrs.field(repr=False)
    parallel_tools: int = 4
    system: str | None = None
    response_schema: Mapping[str, Any] | None = None
    trace: Callable[[str, Mapping[str, Any]], object] | None = None
    memory_mounts: Sequence[Any] = ()
    scratch_mounts: Sequence[Any] = ()
    skills: Sequence[Any] = ()
    mounts: Sequence[Any] = ()
    bash_capabilities: Any = None
    earlier: Earlier = attrs.field(factory=dict, repr=False)
    tools: Mapping[str, BoundRoleTool] = attrs.field(init=False)
    _calls: CodeCalls = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.durability, Durability):
            raise HarnessError("a role context needs a durability sink", code="role.no_durability")
        self._calls = calls = CodeCalls(self.dispatcher, self.call_recorder, self.earlier)
        self.tools = {name: BoundRoleTool(tool, calls) for name, tool in self.dispatcher.site.tools.items()}

    @property
    def reused(self) -> int:
        """How many calls by code were given what an earlier run of it was given."""
        return self._calls.reused

    @property
    def recorder(self) -> Durability:
        """The same sink under the seed's optional name (A-33)."""
        return self.durability

    def call_tools(self, calls: Sequence[ToolCallRequest]) -> Sequence[ToolOutcome]:
        self.call_recorder.check_open()
        made = [self._of_model(call) for call in calls]
        if len(made) == 1:
            return [self._run_model_call(made[0])]
        with self.call_recorder.side_by_side():
            return self._run_side_by_side(made)

    def _of_model(self, call: ToolCallRequest) -> ToolCall:
        turn = self.model.turn_of(call.call_id) or self.model.last_turn
        if turn is None:
            raise RoleError("a role passes a model's calls on after it asked one", code="role.no_model_turn")
        return ToolCall(call.call_id, "model", call.tool_name, self.dispatcher.redacted(thaw(call.args)), turn=turn)

    def _run_model_call(self, call: ToolCall) -> ToolOutcome:
        record = self.call_recorder.recorded_tool(call.call_id, call.name, call.args)
        return self.dispatcher.run(call, record)

    def _run_side_by_side(self, calls: Sequence[ToolCall]) -> Sequence[ToolOutcome]:
        """At most ``parallel_tools`` at once; a sibling's end is kept whatever happens to another (I-22).

        Where the machine gives no further thread, those that are there make all calls, and so does this one.
        """
        outcomes: list[ToolOutcome | BaseException | None] = [None] * len(calls)
        waiting = list(range(len(calls)))[::-1]

        def work() -> None:
            while waiting:
                try:
                    index = waiting.pop()
                except IndexError:
                    return
                try:
                    outcomes[index] = self._run_model_call(calls[index])
                except (HarnessError, Suspend) as stop:
                    outcomes[index] = stop
                except NoThread as stop:  # the call stays begun, as after a crash, and so would all that follow
                    outcomes[index] = stop
                    waiting.clear()

        self._work_beside(work, min(self.parallel_tools, len(calls)))
        stops = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if stops:
            outcomes.clear()  # else what is raised and the frames that it went through hold each other
            raise stops.pop(0)
        return [outcome for outcome in outcomes if isinstance(outcome, ToolOutcome)]

    def _work_beside(self, work: Callable[[], None], workers: int) -> None:
        tasks: list[Task] = []
        try:
            tasks.extend(self.ports.spawn(work, name="tool") for _ in range(workers))  # keeps those that were spawned
        except NoThread:
            work()
        for task in tasks:
            task.join()
