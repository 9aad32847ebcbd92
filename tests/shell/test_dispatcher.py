"""The dispatcher: what was begun before a crash runs again only while its session goes on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness_core.kernel.approvals import ToolPolicy
from harness_core.shell.deadlines import Deadlines
from harness_core.shell.dispatcher import CallSite, Dispatcher, ToolCall
from harness_core.shell.journal import CallRecord, Journal
from harness_core.shell.ports import HostPorts
from harness_core.shell.recorder import RoleCallRecorder
from harness_core.shell.toolbox import tool_of_host
from harness_hookspecs.errors import Diverged
from harness_hookspecs.tool import ToolResult, ToolSpec

READ = ToolSpec(name="read", description="Reads.", input_schema={"type": "object"}, tier="T0", effect="pure")
BEGUN = CallRecord(3, "evt_3", {"effectClass": "pure"})
CALL = ToolCall("call_1", "model", "read", {}, turn=1)


class Reads:
    """A tool set that counts how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def execute(self, *asked: Any) -> ToolResult:
        self.calls += 1
        return ToolResult("text")


def _dispatcher(reads: Reads, threads: HostPorts) -> tuple[Dispatcher, RoleCallRecorder]:
    nothing: Any = None
    recorder = RoleCallRecorder(nothing, threads, role_call_id="r", refs={}, journal=Journal(), read_blob=nothing)
    toolset: Any = reads
    tools = {"read": tool_of_host(READ, toolset, "set")}
    site = CallSite("work", "v", "p", ToolPolicy((), {}), "off", tools, 1000)
    services: Any = SimpleNamespace(
        loop=None,
        ports=threads,
        deadlines=Deadlines(threads),
        redactor=SimpleNamespace(value=lambda value: value),
        cancel=threads.wait.token(),
        recorded=None,
        active=None,
    )
    return Dispatcher(site, recorder=recorder, services=services), recorder


def test_a_call_that_was_begun_is_made_again(threads: HostPorts) -> None:
    reads = Reads()
    dispatcher, _ = _dispatcher(reads, threads)
    assert dispatcher.run(CALL, BEGUN).value == "text"
    assert reads.calls == 1


def test_a_call_that_was_begun_is_not_made_again_once_a_call_beside_it_has_stopped_the_session(
    threads: HostPorts,
) -> None:
    reads = Reads()
    dispatcher, recorder = _dispatcher(reads, threads)
    recorder.fail(Diverged("another call than the one recorded", seq=4))
    with pytest.raises(Diverged):
        dispatcher.run(CALL, BEGUN)
    assert reads.calls == 0
