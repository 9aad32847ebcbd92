from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.rules import Contract, complaints, failing_rules
from harness_hookspecs.contracts.tool import ToolContract
from harness_hookspecs.errors import ToolError
from harness_hookspecs.tool import Settled, ToolContext, ToolResult, ToolSpec


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


READ = ToolSpec(
    name="notes_read",
    description="Read all notes.",
    input_schema=closed(),
    output_schema={"type": "array", "items": {"type": "string"}},
    tier="T1",
    effect="pure",
)
ADD = ToolSpec(
    name="notes_add", description="Add a note.", input_schema=closed(text={"type": "string"}), tier="T2", effect="keyed"
)
SEND = ToolSpec(name="notes_send", description="Send them.", input_schema=closed(), tier="T3", timeout_seconds=5.0)


class Notes:
    """Keeps every rule: one file a note, named by the key of the call that added it."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host

    def specs(self) -> Sequence[ToolSpec]:
        return (READ, ADD, SEND)

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        ctx.cancel.raise_if_cancelled()
        match name:
            case "notes_read":
                return ToolResult([path.read_text() for path in sorted(self.host.project_dir.iterdir())])
            case "notes_add":
                self.file(ctx.key).write_text(args["text"])
                return ToolResult(None)
            case "notes_send":
                return ToolResult({"sent": True})
        raise ToolError("There is no such tool.")

    def probe(self, name: str, args: Mapping[str, Any], key: str) -> Settled:
        return Settled("happened" if self.file(key).exists() else "never_happened")

    def preview(self, name: str, args: Mapping[str, Any]) -> str | None:
        return f"+{args['text']}\n" if name == "notes_add" else None

    def file(self, key: str) -> Any:
        return self.host.project_dir / key


class NotesContract(ToolContract):
    set_name = "notes"

    def calls(self) -> Mapping[str, Mapping[str, Any]]:
        return {"notes_read": {}, "notes_add": {"text": "milk"}, "notes_send": {}}


def saying(change: Callable[[ToolSpec], ToolSpec]) -> type[Notes]:
    class Saying(Notes):
        def specs(self) -> Sequence[ToolSpec]:
            return [change(spec) if spec.name == "notes_send" else spec for spec in super().specs()]

    return Saying


def doing(tool: str, act: Callable[[Notes, ToolContext, dict[str, Any]], ToolResult]) -> type[Notes]:
    class Doing(Notes):
        def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
            if name != tool or ctx.cancel.cancelled():
                return super().execute(name, args, ctx)
            assert isinstance(args, dict)
            return act(self, ctx, args)

    return Doing


class Growing(Notes):
    calls = 0

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        self.calls += 1
        return super().execute(name, args, ctx)

    def specs(self) -> Sequence[ToolSpec]:
        return [*super().specs()[:2], replace(SEND, description=f"Send them, after {self.calls} calls.")]


class Deaf(Notes):
    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return super().execute(name, args, ToolContext(self.host.ports.wait.token(), *ctx[1:]))


class Untyped(Notes):
    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        try:
            return super().execute(name, args, ctx)
        except ToolError as error:
            raise KeyError(name) from error


class Lying(Notes):
    def probe(self, name: str, args: Mapping[str, Any], key: str) -> Settled:
        return Settled("happened")


class Eager(Notes):
    def preview(self, name: str, args: Mapping[str, Any]) -> str | None:
        self.file("preview").write_text("seen")
        return None


def _write(notes: Notes, name: str) -> ToolResult:
    notes.file(name).write_text("x")
    return ToolResult([])


def _forget(args: dict[str, Any]) -> ToolResult:
    args["seen"] = True
    return ToolResult(None)


def _set_environment() -> ToolResult:
    os.environ["NOTES_SENT"] = "1"
    return ToolResult(None)


BROKEN: dict[str, type[Notes]] = {
    "tool.specs_are_stable": Growing,
    "tool.names_begin_with_the_set": saying(lambda spec: replace(spec, name="notes_send"[6:])),
    "tool.says_how_far_it_reaches": saying(lambda spec: replace(spec, tier="T9")),  # type: ignore[arg-type]
    "tool.is_described": saying(lambda spec: replace(spec, description=" ")),
    "tool.input_is_a_closed_object": saying(lambda spec: replace(spec, input_schema={"type": "object"})),
    "tool.samples_cover_the_set": saying(lambda spec: replace(spec, input_schema=closed(to={"type": "string"}))),
    "tool.results_are_strict_json": doing("notes_send", lambda *_: ToolResult(float("nan"))),
    "tool.results_fit_their_schema": doing("notes_read", lambda *_: ToolResult("none")),
    "tool.pure_changes_nothing": doing("notes_read", lambda notes, *_: _write(notes, "read")),
    "tool.keyed_happens_once": doing("notes_add", lambda notes, ctx, _: _write(notes, ctx.ports.ids.ulid("note"))),
    "tool.arguments_are_left_alone": doing("notes_send", lambda _, __, args: _forget(args)),
    "tool.environment_is_left_alone": doing("notes_send", lambda *_: _set_environment()),
    "tool.cancel_is_respected": Deaf,
    "tool.errors_are_typed": Untyped,
    "tool.probe_is_truthful": Lying,
    "tool.preview_changes_nothing": Eager,
}


class TestNotes(NotesContract):
    def subject(self) -> Notes:
        return Notes(self.host)


def test_each_rule_of_a_tool_set_bites() -> None:
    def made(kind: type[Notes]) -> Callable[[Contract], Notes]:
        return lambda running: kind(running.host)

    broken = {label: made(kind) for label, kind in BROKEN.items()}
    assert complaints(NotesContract, good=made(Notes), broken=broken, at_most=3) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: replace(spec, effect="pure", tier="T2"),
        lambda spec: replace(spec, timeout_seconds=0.0),
        lambda spec: replace(spec, effect="sometimes"),
    ],
)
def test_a_reach_that_is_no_reach_is_noticed(change: Callable[[ToolSpec], ToolSpec]) -> None:
    kind = saying(change)
    broken = failing_rules(NotesContract, lambda running: kind(running.host), only=["tool.says_how_far_it_reaches"])
    assert broken
