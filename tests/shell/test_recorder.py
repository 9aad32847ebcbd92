"""The recorder of a role call: what is buffered comes into the log before whatever follows from it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from harness_core.kernel.facts import Fact
from harness_core.shell.journal import Journal
from harness_core.shell.ports import HostPorts
from harness_core.shell.recorder import RoleCallRecorder

ASKED = Fact("harness.model.responded", {"callId": "m1"})


class Order:
    """Stands where the loop would: keeps the order in which commands were laid down.

    Attributes:
        beside: What somebody else does, from beginning to end, while the first command is being laid down.
    """

    def __init__(self) -> None:
        self.laid: list[list[str]] = []
        self.beside: Callable[[], None] | None = None
        self.thread: Thread | None = None

    def lay_down(self, command: Any, *, durable: bool) -> Any:
        beside, self.beside = self.beside, None
        if beside is not None:
            self.thread = Thread(target=beside)
            self.thread.start()
            self.thread.join(0.2)  # whoever does not wait has laid down his own by now
        self.laid.append([fact.type for fact in (*command.results, *getattr(command, "intent", ()))])
        return command

    def carry_out(self, command: Any) -> str:
        return "appr_1"


@pytest.fixture
def order() -> Order:
    return Order()


@pytest.fixture
def recorder(order: Order, threads: HostPorts) -> RoleCallRecorder:
    loop: Any = order
    blob: Any = None
    return RoleCallRecorder(loop, threads, role_call_id="role_1", refs={}, journal=Journal(), read_blob=blob)


@pytest.mark.parametrize("beside", ["intent", "question", "result"])
def test_no_call_made_beside_another_comes_into_the_log_before_the_answer_that_asked_for_both(
    recorder: RoleCallRecorder, order: Order, beside: str
) -> None:
    recorder.result([ASKED])
    order.beside = {
        "intent": lambda: recorder.intend([Fact("harness.tool_call.started", {"callId": "t2"})]),
        "question": lambda: (recorder.ask({"name": "b"}, "ask", "policy", {}), None)[1],
        "result": lambda: recorder.result([Fact("harness.tool_call.failed", {"callId": "t2"})], flush=True),
    }[beside]
    recorder.intend([Fact("harness.tool_call.started", {"callId": "t1"})])
    assert order.thread is not None
    order.thread.join()
    assert order.laid[0] == ["harness.model.responded", "harness.tool_call.started"]
    assert len(order.laid) == 2
