"""A child that is given up at the moment it is opened in, its end out."""

from __future__ import annotations

from typing import Any

from harness_core.kernel.children import child_effect_id
from harness_core.kernel.definition import Limits
from harness_core.kernel.state import OpenRequest, SessionState
from harness_core.shell.children import ChildOrder, Children, Nursery, Started
from harness_core.shell.ports.inline import InlinePorts
from harness_core.shell.services import ActiveTime
from harness_hookspecs.errors import IllegalMove
from harness_hookspecs.kit.canonical import canonical

CHILD = "01990000-0000-7000-8000-000000000001"
LIMITS = Limits(max_visits=10, budget_tokens=100, budget_calls=10, budget_seconds=60)


class Opened:
    """Stands where a session would that has been begun: what it is asked is kept."""

    session_id = CHILD

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask_to_end(self, reason: str) -> None:
        self.asked.append(reason)

    def wait(self) -> bool:
        raise IllegalMove("it is run no more", code="session.not_run")


class Log:
    """Stands where a store would: it has what the child is begun with."""

    def blob(self, digest: str) -> bytes:
        return canonical({})


def test_a_child_that_was_given_up_while_it_was_opened_is_asked_to_end_when_it_is_there() -> None:
    state = SessionState(session_id="parent", created={"seed": 1})
    asked = {"child_id": CHILD, "depth": 1, "spec_ref": ""}
    request = OpenRequest("child", child_effect_id("role", "call"), asked, 1, "")
    request.grant = {"tokens": 1, "calls": 1, "seconds": 1.0}
    state.children[request.effect_id] = request
    opened, unowned = Opened(), list[str]()

    def opens(order: ChildOrder) -> Any:
        del state.children[request.effect_id]
        state.given_up.append(CHILD)
        children.end_given_up([CHILD])  # who ends it finds nobody who runs it, and cannot own it either
        return opened

    nursery: Any = Nursery(opens, lambda session: None, unowned.append)
    log: Any = Log()
    ports = InlinePorts()
    children = Children(log, nursery, Started(lambda: state, "suspend", False, False), ports.spawn)
    assert children.run(request, LIMITS, ActiveTime(ports)) is None
    assert (unowned, opened.asked) == ([CHILD], ["the role call that asked for it has ended"])
