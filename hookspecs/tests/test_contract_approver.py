from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness_hookspecs.approver import ApprovalAnswer, ApprovalRequest, Approver, Decision
from harness_hookspecs.contracts.approver import ApproverContract
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.rules import Contract, complaints, failing_rules
from harness_hookspecs.errors import Cancelled
from harness_hookspecs.host import CancelToken


class Desk:
    """Keeps every rule: answers what is laid on it, waits for a person while nothing is."""

    interactive = True

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.laid = host.ports.wait.queue()

    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        if self.host.terminal is None:
            return None
        try:
            decision = self.laid.get(None, cancel)
        except Cancelled:
            return None
        return None if decision == "pass" else self.answer(request, decision)

    def answer(self, request: ApprovalRequest, decision: Decision) -> ApprovalAnswer:
        return ApprovalAnswer(decision, request.digest, "ada", "person", None)


class DeskContract(ApproverContract):
    decisions = ("approve", "deny", "auto_session")

    def setup_method(self) -> None:
        super().setup_method()
        self.host.terminal = (0, 1)

    def ask(
        self, subject: Approver, request: ApprovalRequest, decision: Decision | None, cancel: CancelToken
    ) -> ApprovalAnswer | None:
        assert isinstance(subject, Desk)
        subject.laid.put(decision or "pass")
        return subject.ask(request, cancel)


def answering(**changes: Any) -> type[Desk]:
    class Answering(Desk):
        def answer(self, request: ApprovalRequest, decision: Decision) -> ApprovalAnswer:
            return super().answer(request, decision)._replace(**changes)

    return Answering


class Moody(Desk):
    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        answer = super().ask(request, cancel)
        self.interactive = self.interactive and answer is None
        return answer and answer._replace(kind="policy") if not self.interactive else answer


class Greedy(Desk):
    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        answer = super().ask(request, cancel)
        return answer if answer or cancel.cancelled() or not self.host.terminal else self.answer(request, "deny")


class Meddling(Desk):
    def answer(self, request: ApprovalRequest, decision: Decision) -> ApprovalAnswer:
        assert isinstance(request.args, dict)
        request.args["approved"] = True
        return super().answer(request, decision)


class Deaf(Desk):
    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        cancel.on_cancel(self.let_go_later)
        return super().ask(request, self.host.ports.wait.token())

    def let_go_later(self) -> None:
        self.host.ports.spawn(self.let_go)

    def let_go(self) -> None:
        self.host.ports.wait.event().wait(0.7)
        self.laid.put("pass")


class Hasty(Desk):
    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        return self.answer(request, "deny") if cancel.cancelled() else super().ask(request, cancel)


class Patient(Desk):
    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        self.host.terminal = (0, 1)
        return super().ask(request, cancel)


BROKEN: dict[str, type[Desk]] = {
    "approver.says_if_it_waits": Moody,
    "approver.decides_as_decided": answering(decision="approve"),
    "approver.carries_the_digest": answering(digest="0" * 64),
    "approver.says_who_decided": answering(by=" "),
    "approver.passes_on_what_is_not_its_own": Greedy,
    "approver.request_is_left_alone": Meddling,
    "approver.cancel_ends_the_question": Deaf,
    "approver.never_waits_for_nobody": Patient,
}


class TestDesk(DeskContract):
    def subject(self) -> Desk:
        return Desk(self.host)


def made(kind: type[Desk]) -> Callable[[Contract], Desk]:
    return lambda running: kind(running.host)


def test_each_rule_of_an_approver_bites() -> None:
    broken = {label: made(kind) for label, kind in BROKEN.items()}
    assert complaints(DeskContract, good=made(Desk), broken=broken, at_most=2) == []


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (answering(kind="policy"), "approver.says_who_decided"),
        (answering(say=""), "approver.decides_as_decided"),
        (Hasty, "approver.cancel_ends_the_question"),
    ],
)
def test_other_ways_to_break_a_rule_are_noticed(kind: type[Desk], label: str) -> None:
    assert failing_rules(DeskContract, made(kind), only=[label]) == {label}
