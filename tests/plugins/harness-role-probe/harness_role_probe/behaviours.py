"""A task and a context in, what a role of that name makes of them out; each function is one behaviour."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from harness_hookspecs.errors import HarnessError, Suspend, VocabularyError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import ChatInput, Message, TextPart, ToolCallRequest
from harness_hookspecs.role import DelegateToDefault, ExecuteStepResult, PlanResult, RoleContext, RoleTask

__all__ = ["BEHAVIOURS"]

Behaviour = Callable[[RoleTask, RoleContext], Any]
_kept: list[RoleContext] = []


def _said(value: Any) -> ExecuteStepResult:
    """A result whose one text is JSON, which fits the artifact type ``text``."""
    return ExecuteStepResult(output={"text": codec.dumps(value).decode()}, artifact_refs=())


def _question(text: str, tools: tuple[str, ...] | None = None) -> ChatInput:
    return ChatInput(messages=(Message(role="user", content=(TextPart(text=text),)),), tools=tools)


def probe(task: RoleTask, ctx: RoleContext) -> Any:
    """Tell what it was given; asks nobody."""
    wire = task.to_wire()
    ctx.durability.note("seen", role=ctx.scope.role)
    if ctx.trace is not None:
        ctx.trace("probe", {"seen": True})
    return _said(
        {
            "scope": ctx.scope.to_wire(),
            "model": [ctx.model.slot_id, ctx.model.provider, ctx.model.model_id, ctx.model.context_tokens],
            "wanted_model": wire["step"]["with"]["model"],
            "system": ctx.system,
            "tools": sorted(ctx.tools),
            "step": [wire["stepContext"]["stepPath"], wire["stepContext"]["visitIndex"]],
            "trace": ctx.trace is not None,
            "log_dir": ctx.log_dir.is_dir(),
            "writers": [name for name in dir(ctx.durability) if not name.startswith("_")],
        }
    )


def delegating(task: RoleTask, ctx: RoleContext) -> Any:
    """Chosen, and uses the default."""
    return DelegateToDefault()


def late_delegating(task: RoleTask, ctx: RoleContext) -> Any:
    """Delegates after it has asked the model."""
    ctx.model.complete(_question("mine"))
    return DelegateToDefault()


def wrong_kind(task: RoleTask, ctx: RoleContext) -> Any:
    """Answers another question than the one that was put."""
    return PlanResult(lwir={})


def wire(task: RoleTask, ctx: RoleContext) -> Any:
    """Gives its result in wire form."""
    return {"kind": "execute_step", "output": {"text": "on the wire"}, "artifactRefs": []}


def garbage(task: RoleTask, ctx: RoleContext) -> Any:
    """Gives something that is no result."""
    return {"kind": "dance"}


def raising(task: RoleTask, ctx: RoleContext) -> Any:
    """Breaks."""
    raise RuntimeError("boom")


def swallowing(task: RoleTask, ctx: RoleContext) -> Any:
    """Swallows the suspension, and then tries everything that a closed context has to refuse."""
    with suppress(BaseException):  # the very thing that no role should do
        return _said({"got": _call(ctx, "effects_network", "asked")})
    return _said({"tried": [_refused(ctx, action) for action in _ACTIONS]})


def _call(ctx: RoleContext, tool: str, note: str) -> Any:
    return ctx.tools[tool].execute({"note": note})


_ACTIONS: tuple[Callable[[RoleContext], Any], ...] = (
    lambda ctx: _call(ctx, "effects_unkeyed", "after"),
    lambda ctx: ctx.model.complete(_question("after")),
    lambda ctx: ctx.durability.note("after"),
    lambda ctx: ctx.call_tools([ToolCallRequest(call_id="c", tool_name="effects_unkeyed", args={"note": "after"})]),
)


def _refused(ctx: RoleContext, action: Callable[[RoleContext], Any]) -> str:
    try:
        action(ctx)
    except (HarnessError, Suspend) as error:
        return type(error).__name__
    return "allowed"


def returning_in_finally(task: RoleTask, ctx: RoleContext) -> Any:
    """Returns a result from a ``finally``, which drops the suspension."""
    try:
        _call(ctx, "effects_network", "asked")
    finally:
        return _said("finished all the same")  # noqa: B012  # the very thing that no role should do


def resuming(task: RoleTask, ctx: RoleContext) -> Any:
    """Looks at what it has recorded before and repeats no call of its own that has ended."""
    assert ctx.recorder is not None
    prior = ctx.recorder.prior_events()
    done = {e["payload"]["args"]["note"] for e in prior if e["type"] == "harness.tool_call.succeeded"}
    for note in ("first", "second"):
        if note not in done:
            _call(ctx, "effects_unkeyed", note)
    _call(ctx, "effects_network", "third")
    return _said(sorted(done))


def dying(task: RoleTask, ctx: RoleContext) -> Any:
    """Is killed, when the environment says so, right after an effect that cannot be repeated."""
    _call(ctx, "effects_unkeyed", "once")
    if os.environ.get("HARNESS_PROBE_DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    return _said("alive")


def counting(task: RoleTask, ctx: RoleContext) -> Any:
    """Makes equal calls and tells their results apart; the last one waits for a person."""
    tool = ctx.tools["effects_unkeyed"]
    found = [tool.execute({"note": "same"}) for _ in range(2)]
    found += [tool.execute({"note": "same"}, scope=scope) for scope in ("one", "two")]
    _call(ctx, "effects_network", "last")
    return _said(len(found))


def editing(task: RoleTask, ctx: RoleContext) -> Any:
    """Makes one call under one id, with the arguments that the environment says when it is made."""
    ctx.model.complete(_question("Which?"))
    args = {"note": os.environ["HARNESS_PROBE_NOTE"]}
    [done] = ctx.call_tools([ToolCallRequest(call_id="edited", tool_name="effects_network", args=args)])
    return _said(done.ok)


def unasked(task: RoleTask, ctx: RoleContext) -> Any:
    """Passes on a model's call although it asked no model, and says how it was refused."""
    try:
        ctx.call_tools([ToolCallRequest(call_id="unasked", tool_name="effects_pure", args={})])
    except HarnessError as refused:
        return _said(refused.code)
    return _said("called")


def keeping(task: RoleTask, ctx: RoleContext) -> Any:
    """Keeps its context, and in the next visit uses the one of the visit before."""
    tried = [_refused(one, action) for one in _kept for action in _ACTIONS]
    _kept[:] = [ctx]
    return _said({"tried": tried})


def asking(task: RoleTask, ctx: RoleContext) -> Any:
    """Asks twice in one scope and once in another."""
    asked = (("a", ""), ("b", ""), ("c", "s"))
    return _said([ctx.model.complete(_question(text), scope=scope).text for text, scope in asked])


def asking_at_once(task: RoleTask, ctx: RoleContext) -> Any:
    """Asks in four scopes side by side, each about many messages of its own, and eight times in each."""
    answers: dict[str, list[str]] = {}

    def ask(scope: str) -> None:
        messages = [Message(role="user", content=(TextPart(text=f"{scope}{number}"),)) for number in range(1500)]
        chat = ChatInput(messages=messages)
        answers[scope] = [ctx.model.complete(chat, scope=scope).text or "" for _ in range(8)]

    for one in [ctx.ports.spawn(ask, scope) for scope in "ABCD"]:
        one.join()
    return _said(sorted(answers.items()))


def impostor(task: RoleTask, ctx: RoleContext) -> Any:
    """Tries to write events that are the host's to write."""
    for kind in ("harness.model.called", "session.cancelled", "session.completed"):
        ctx.durability.note(kind, step_path="elsewhere")
    for kind in ("harness.session.completed", "approval.granted", "role.returned"):
        with suppress(VocabularyError):
            ctx.durability.remote({"type": kind, "payload": {}})
    writer: Any = ctx.durability
    return _said([name for name in ("append", "emit", "write", "record") if hasattr(writer, name)])


BEHAVIOURS: dict[str, Behaviour] = {
    function.__name__.replace("_", "-"): function
    for function in (
        probe,
        delegating,
        late_delegating,
        wrong_kind,
        wire,
        garbage,
        raising,
        swallowing,
        returning_in_finally,
        resuming,
        dying,
        counting,
        editing,
        unasked,
        keeping,
        asking,
        asking_at_once,
        impostor,
    )
}
