"""A role call without a host: scripted answers and tools go in, a context that notes every call comes out.

Like the real one it closes when something must be waited for: every later call raises ``Suspend`` again, whatever the
role has done with the first, and is noted in ``after_close``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness_hookspecs.errors import HarnessError, Suspend, VocabularyError
from harness_hookspecs.messages import ChatInput, OracleResponse, TextPart, ToolCallRequest, Usage
from harness_hookspecs.mount import HarnessRuntimeMount, MemoryMount, ScratchMount, SkillDescriptor
from harness_hookspecs.provider import CallContext, ModelRequest
from harness_hookspecs.role import REMOTE_EVENTS, ExecutorRole, Scope, ToolOutcome
from harness_hookspecs.workflow import WorkflowBashCapabilities

from .host import FakePorts
from .waiting import FakeToken

__all__ = ["FakeElsewhere", "FakeModel", "FakeRecorder", "FakeRoleContext", "FakeTool", "Noted", "calls", "says"]

Answer = OracleResponse | BaseException
Asked = Callable[[ModelRequest, CallContext], OracleResponse]
Finish = Literal["stop", "length", "tool_calls", "refusal", "error"]


class Noted(NamedTuple):
    """One call of the context: what was called, and with what, as plain JSON."""

    what: str
    given: Any


def says(text: str, *, finish: Finish = "stop") -> OracleResponse:
    """An answer of the model in words."""
    usage = Usage(input_tokens=10, output_tokens=5)
    return OracleResponse(content=(TextPart(text=text),), finish_reason=finish, usage=usage)


def calls(*wanted: tuple[str, str, Mapping[str, Any]], finish: Finish = "tool_calls") -> OracleResponse:
    """An answer of the model that asks for tools: (call id, tool, arguments) each."""
    asked = tuple(ToolCallRequest(call_id=one, tool_name=name, args=dict(args)) for one, name, args in wanted)
    usage = Usage(input_tokens=10, output_tokens=5)
    return OracleResponse(content=(), tool_calls=asked, finish_reason=finish, usage=usage)


class FakeTool:
    """A tool whose answers are given: values are returned, exceptions raised; the last one stays."""

    def __init__(self, *answers: Any, description: str = "Looks.", schema: Mapping[str, Any] | None = None) -> None:
        self.description = description
        self.input_schema = schema or {"type": "object", "properties": {"name": {"type": "string"}}}
        self.answers = list(answers) or [None]
        self.runs: list[Mapping[str, Any]] = []
        self.context: FakeRoleContext | None = None

    def execute(self, args: Mapping[str, Any], *, scope: str = "") -> Any:
        """Called from code."""
        if self.context is not None:
            self.context.enter("tool", {"args": dict(args), "scope": scope})
        return self.answer(args)

    def answer(self, args: Mapping[str, Any]) -> Any:
        """The next answer."""
        found = self.answers[min(len(self.runs), len(self.answers) - 1)]
        self.runs.append(dict(args))
        if isinstance(found, Suspend) and self.context is not None:
            self.context.closed = found
        if isinstance(found, BaseException):
            raise found
        return found


class FakeModel:
    """The model of a call; a script is a sequence of answers, or what makes the n-th one."""

    slot_id = "small"
    provider = "fake"
    model_id = "fake-1"
    capabilities: Sequence[str] = ("tool_calling",)
    context_tokens = 4_096
    params: Mapping[str, Any] = {}

    def __init__(self, context: FakeRoleContext, script: Sequence[Answer] | Callable[[int, ChatInput], Answer]) -> None:
        self._context, self._script = context, script
        self.asked: list[ChatInput] = []

    def complete(self, chat: ChatInput, *, scope: str = "", on_chunk: Any = None) -> OracleResponse:
        """The next answer of the script."""
        self._context.enter("model", {**chat.to_wire(), "scope": scope})
        self.asked.append(chat)
        number = len(self.asked) - 1
        if callable(self._script):
            found = self._script(number, chat)
        else:
            assert number < len(self._script), f"the script has no answer for turn {number + 1}"
            found = self._script[number]
        if isinstance(found, Suspend):
            self._context.closed = found
        if isinstance(found, BaseException):
            raise found
        return found

    def elsewhere(self, answer: Asked, *, provider: str, model_id: str) -> FakeElsewhere:
        """A handle that has ``answer`` asked; where the script has something to raise, that comes first."""
        return FakeElsewhere(self._context, self._script, answer, provider, model_id)


class FakeElsewhere(FakeModel):
    """The model of a call that is answered somewhere else: its script says only what is raised in place of asking."""

    def __init__(
        self,
        context: FakeRoleContext,
        script: Sequence[Answer] | Callable[[int, ChatInput], Answer],
        answer: Asked,
        provider: str,
        model_id: str,
    ) -> None:
        super().__init__(context, () if callable(script) else script)
        self.asked = context.model.asked
        self._answer, self.provider, self.model_id = answer, provider, model_id

    def complete(self, chat: ChatInput, *, scope: str = "", on_chunk: Any = None) -> OracleResponse:
        """Whatever is answered elsewhere."""
        number = len(self.asked)
        planned = self._script[number] if not callable(self._script) and number < len(self._script) else None
        if isinstance(planned, BaseException):
            return super().complete(chat, scope=scope)
        self._context.enter("model", {**chat.to_wire(), "scope": scope})
        self.asked.append(chat)
        call = CallContext(self._context.abort_signal, lambda chunk: None, None)
        return self._answer(ModelRequest(self.model_id, list(chat.messages)), call)


class FakeRecorder:
    """Takes notes, and gives none of the events that it does not have."""

    def __init__(self, context: FakeRoleContext) -> None:
        self._context = context

    def prior_events(self) -> Sequence[Mapping[str, Any]]:
        """What was noted so far."""
        return [{"type": noted.what, "payload": noted.given} for noted in self._context.noted]

    def note(self, text: str, **facts: Any) -> None:
        """Keep a note."""
        self._context.enter("note", {"text": text, "facts": facts})

    def remote(self, event: Mapping[str, Any]) -> None:
        """Keep what is said to have happened far away."""
        kind, payload = event.get("type"), event.get("payload")
        if kind not in REMOTE_EVENTS or not isinstance(payload, Mapping):
            raise VocabularyError(code="role.remote_event")
        self._context.enter("note", {"text": kind, "facts": dict(payload), "remote": True})


class FakeRoleContext:
    """Fits ``RoleContext``.

    Attributes:
        noted: Every call that was let in, in order.
        closed: Why nothing is let in any more.
        after_close: What the role tried after that.
    """

    def __init__(
        self,
        script: Sequence[Answer] | Callable[[int, ChatInput], Answer] = (),
        *,
        tools: Mapping[str, FakeTool] | None = None,
        system: str | None = "Be brief.",
        response_schema: Mapping[str, Any] | None = None,
        skills: Iterable[SkillDescriptor] = (),
        memory: Iterable[MemoryMount] = (),
        scratch: Iterable[ScratchMount] = (),
        role: ExecutorRole = "worker.ai-generate",
    ) -> None:
        self.noted: list[Noted] = []
        self.closed: Suspend | None = None
        self.after_close: list[Noted] = []
        self.model = FakeModel(self, script)
        self.tools = dict(tools or {})
        for tool in self.tools.values():
            tool.context = self
        self.system = system
        self.response_schema = response_schema
        self.skills = tuple(skills)
        self.memory_mounts = tuple(memory)
        self.scratch_mounts = tuple(scratch)
        self.mounts: Sequence[HarnessRuntimeMount] = ()
        self.bash_capabilities: WorkflowBashCapabilities | None = None
        self.durability = FakeRecorder(self)
        self.recorder = self.durability
        self.trace: Callable[[str, Mapping[str, Any]], None] | None = None
        self.abort_signal = FakeToken()
        self.ports = FakePorts()
        self.log_dir = Path("log")
        self.scope = Scope(run_id="019b76da-a800-7000-8000-000000000001", log_dir="log", role=role)

    def enter(self, what: str, given: Any) -> None:
        """Note a call, or raise again when the context is closed."""
        noted = Noted(what, given)
        if self.closed is not None:
            self.after_close.append(noted)
            raise Suspend(self.closed.kind, self.closed.wait_id)
        self.noted.append(noted)

    def call_tools(self, calls: Sequence[ToolCallRequest]) -> Sequence[ToolOutcome]:
        """Run the calls of one turn; the finished ones stay noted when one of them must wait."""
        self.enter("tools", [call.to_wire() for call in calls])
        return [self._outcome(call) for call in calls]

    def _outcome(self, call: ToolCallRequest) -> ToolOutcome:
        tool = self.tools.get(call.tool_name)
        if tool is None:
            known = ", ".join(sorted(self.tools))
            return ToolOutcome(call.call_id, False, {"error": f"There is no such tool; there are: {known}"})
        try:
            return ToolOutcome(call.call_id, True, tool.answer(call.args))
        except HarnessError as error:
            return ToolOutcome(call.call_id, False, {"error": error.message, "code": error.code})
