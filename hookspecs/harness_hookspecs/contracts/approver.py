"""What every approver promises: an approver and sample requests go in, the rules that it breaks come out."""

from __future__ import annotations

from typing import Any, Final

from harness_hookspecs.approver import ApprovalAnswer, ApprovalRequest, Approver, Decision
from harness_hookspecs.host import CancelToken

from .rules import Contract, rule

__all__ = ["ApproverContract", "sample_request"]

_PATIENCE_SECONDS: Final = 10.0
_CANCEL_SECONDS: Final = 0.5


def sample_request(**changes: Any) -> ApprovalRequest:
    """A request as the host makes them, its arguments a copy of its own; ``changes`` are other fields."""
    request = ApprovalRequest(
        approval_id="appr_00000000000000000000000001",
        session_id="019b76da-a800-7000-8000-000000000001",
        subject="tool",
        name="filesystem_write",
        tier="T2",
        args={"path": "notes.md", "content": "hello\n"},
        digest="9c1e" * 16,
        rule="policies.yaml:12",
        stage="build",
        persona="coder",
        preview="--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1,1 @@\n+hello\n",
        title="write notes.md",
    )
    return request._replace(**changes)


class ApproverContract(Contract):
    """The suite of kind ``approver``.

    Attributes:
        decisions: What the subject can be brought to answer.
    """

    decisions: tuple[Decision, ...] = ("approve", "deny")

    def subject(self) -> Approver:
        """The approver, over ``self.host``."""
        raise NotImplementedError("override subject()")

    def ask(
        self, subject: Approver, request: ApprovalRequest, decision: Decision | None, cancel: CancelToken
    ) -> ApprovalAnswer | None:
        """Ask so that the answer is ``decision`` (``None``: "not mine"): choose the request, or type at a terminal."""
        raise NotImplementedError("override ask()")

    @rule("approver.says_if_it_waits")
    def test_whether_it_waits_for_a_person_is_told_and_stays(self) -> None:
        subject = self.subject()
        before = subject.interactive
        self._answers(subject)
        assert before is subject.interactive is self.subject().interactive
        assert before in {True, False}

    @rule("approver.decides_as_decided")
    def test_the_decision_is_the_one_that_was_taken(self) -> None:
        for decision, answer in self._answers(self.subject()):
            assert isinstance(answer, ApprovalAnswer), decision
            assert answer.decision == decision
            assert answer.say is None or answer.say.strip()

    @rule("approver.carries_the_digest")
    def test_an_answer_carries_the_digest_of_its_request(self) -> None:
        for place, decision in enumerate(self.decisions):
            request = sample_request(digest=f"{place:064x}")
            answer = self.ask(self.subject(), request, decision, self._token())
            assert answer is not None and answer.digest == request.digest

    @rule("approver.says_who_decided")
    def test_an_answer_says_who_took_it_and_of_what_kind_that_is(self) -> None:
        subject = self.subject()
        for _, answer in self._answers(subject):
            assert answer is not None
            assert answer.by.strip()
            assert answer.kind == ("person" if subject.interactive else "policy")

    @rule("approver.passes_on_what_is_not_its_own")
    def test_what_it_does_not_decide_stays_open(self) -> None:
        assert self.ask(self.subject(), sample_request(), None, self._token()) is None

    @rule("approver.request_is_left_alone")
    def test_asking_does_not_change_the_arguments(self) -> None:
        for decision in self.decisions:
            request = sample_request()
            self.ask(self.subject(), request, decision, self._token())
            assert request == sample_request()

    @rule("approver.cancel_ends_the_question")
    def test_a_question_that_someone_else_answered_ends_in_time(self) -> None:
        token = self._token()
        done, answers = self._asked(token)
        token.cancel("answered elsewhere")
        assert done.join(_CANCEL_SECONDS), "it still waits"
        assert not self.subject().interactive or answers == [None]

    @rule("approver.cancel_ends_the_question")
    def test_a_question_that_was_answered_before_is_not_asked(self) -> None:
        token = self._token()
        token.cancel("answered elsewhere")
        done, answers = self._asked(token)
        assert done.join(_CANCEL_SECONDS), "it still waits"
        assert not self.subject().interactive or answers == [None]

    @rule("approver.never_waits_for_nobody")
    def test_without_a_terminal_nobody_is_waited_for(self) -> None:
        self.host.terminal = None
        token = self._token()
        done, answers = self._asked(token)
        ended = done.join(_PATIENCE_SECONDS if not self.subject().interactive else _CANCEL_SECONDS)
        token.cancel("the test is over")
        assert ended, "it waits for someone who is not there"
        assert not self.subject().interactive or answers == [None]

    # -------------------------------------------------------------------------------------------- helpers

    def _token(self) -> Any:
        return self.host.ports.wait.token()

    def _answers(self, subject: Approver) -> list[tuple[Decision, ApprovalAnswer | None]]:
        return [(decision, self.ask(subject, sample_request(), decision, self._token())) for decision in self.decisions]

    def _asked(self, token: CancelToken) -> tuple[Any, list[ApprovalAnswer | None]]:
        subject = self.subject()
        answers: list[ApprovalAnswer | None] = []
        return self.host.ports.spawn(lambda: answers.append(subject.ask(sample_request(), token))), answers
