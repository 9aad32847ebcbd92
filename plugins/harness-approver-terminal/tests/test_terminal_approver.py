from __future__ import annotations

import json
import os
import pty
import select
import termios
import time
import tty
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from harness_approver_terminal import harness_provide_approvers
from harness_approver_terminal.approver import TerminalApprover, build
from harness_approver_terminal.settings import TerminalSettings
from harness_hookspecs.approver import SESSION_STOPS, ApprovalAnswer, ApprovalRequest, Approver, Decision
from harness_hookspecs.contracts.approver import ApproverContract, sample_request
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.host import CancelToken

PATIENCE_SECONDS = 10.0


class Person:
    """Someone at a pseudo-terminal: sees what is written there and types lines."""

    def __init__(self, host: FakeHost, approver: TerminalApprover | None = None) -> None:
        self.eyes, self.terminal = pty.openpty()
        attributes = termios.tcgetattr(self.terminal)
        attributes[1] &= ~termios.OPOST  # newlines arrive as they were written
        termios.tcsetattr(self.terminal, termios.TCSANOW, attributes)
        host.terminal = (self.terminal, self.terminal)
        self.host = host
        self.approver = approver or build(TerminalSettings(person="ada"), host)
        self.token = host.ports.wait.token()
        self.seen = ""
        self.answers: list[ApprovalAnswer | None] = []
        self.task: Any = None

    def is_asked(self, request: ApprovalRequest | None = None) -> Person:
        asked = request or sample_request()
        self.task = self.host.ports.spawn(lambda: self.answers.append(self.approver.ask(asked, self.token)))
        return self

    def sees(self, text: str) -> str:
        """Wait until the text is on the screen; give everything up to there and forget it."""
        end = time.monotonic() + PATIENCE_SECONDS
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} was never seen, only {self.seen!r}"
            if select.select([self.eyes], [], [], 0.1)[0]:
                self.seen += os.read(self.eyes, 65536).decode()
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def types(self, text: str, after: str = "\n> ") -> Person:
        self.sees(after)
        os.write(self.eyes, text.encode())
        return self

    def answer(self) -> ApprovalAnswer | None:
        assert self.task.join(PATIENCE_SECONDS), "it still waits"
        return self.answers[-1]

    def leaves(self) -> None:
        for handle in (self.eyes, self.terminal):
            try:
                os.close(handle)
            except OSError:
                continue


@pytest.fixture
def person(tmp_path: Path) -> Any:
    someone = Person(FakeHost(tmp_path))
    yield someone
    someone.leaves()


class TestTerminal(ApproverContract):
    decisions = ("approve", "deny", "auto_session")
    keys = {"approve": "y\n", "deny": "n\n", "auto_session": "s\n", None: "q\n"}

    def setup_method(self) -> None:
        super().setup_method()
        self.person = Person(self.host)

    def teardown_method(self) -> None:
        self.person.leaves()
        super().teardown_method()

    def subject(self) -> TerminalApprover:
        return build(TerminalSettings(person="ada"), self.host)

    def ask(
        self, subject: Approver, request: ApprovalRequest, decision: Decision | None, cancel: CancelToken
    ) -> ApprovalAnswer | None:
        assert isinstance(subject, TerminalApprover)
        self.person.approver = subject
        return self.person.is_asked(request).types(self.keys[decision]).answer()


def test_the_offer_builds_the_approver_and_the_manifest_has_its_settings(tmp_path: Path) -> None:
    [offer] = harness_provide_approvers()
    assert (offer.kind, offer.name) == ("approver", "terminal")
    assert offer.settings is not None
    assert isinstance(offer.build(offer.settings()(), FakeHost(tmp_path)), TerminalApprover)
    written = resources.files("harness_approver_terminal").joinpath("settings.json").read_text()
    assert json.loads(written) == offer.settings().model_json_schema()


SCREEN = """
Approval needed: write notes.md
   tool       filesystem_write   T2 a change that can be undone
   stage      build, persona coder
   why asked  policies.yaml:12
   bound to   sha256 9c1e9c...9c1e

   --- /dev/null
   +++ b/notes.md
   @@ -0,0 +1,1 @@
   +hello

 1 [y] yes, once          3 [n] no                          5 [?] show everything
 2 [s] yes, this session  4 [m] with a message to the role  6 [q] leave it open
 A message may follow at once, for example: n use the library instead
> """


def test_the_question_says_what_why_and_what_it_is_bound_to(person: Person) -> None:
    assert person.is_asked().sees("\n> ") == SCREEN
    os.write(person.eyes, b"y\n")
    assert person.answer() == ApprovalAnswer("approve", "9c1e" * 16, "ada", "person", None)


@pytest.mark.parametrize(
    ("typed", "decision", "say"),
    [
        ("y\n", "approve", None),
        ("  YES  \n", "approve", None),
        ("1\n", "approve", None),
        ("y but check the auth edge cases first\n", "approve", "but check the auth edge cases first"),
        ("s\n", "auto_session", None),
        ("n  use importlib.metadata instead \n", "deny", "use importlib.metadata instead"),
        ("no\n", "deny", None),
        ("3\n", "deny", None),
        ("n\r", "deny", None),
    ],
)
def test_an_answer_is_one_key_or_word_and_a_message(person: Person, typed: str, decision: str, say: str | None) -> None:
    answer = person.is_asked().types(typed).answer()
    assert answer is not None
    assert (answer.decision, answer.say, answer.kind) == (decision, say, "person")


@pytest.mark.parametrize("typed", ["\n", "yy\n", "nope\n", "q now\n", "approve\n", "\x1b[A\n", "ｙ\n", "0\n"])
def test_what_is_no_answer_is_asked_again_and_never_agreed_to(person: Person, typed: str) -> None:
    person.is_asked().types(typed)
    answer = person.types("n\n", after="Please answer y, s, n, m, ? or q.\n> ").answer()
    assert answer is not None and answer.decision == "deny"


def test_a_message_is_asked_for_and_then_the_answer(person: Person) -> None:
    person.is_asked().types("m\n").types("keep the old name ü\n", after="message to the role> ")
    answer = person.types("y\n", after="y, s or n> ").answer()
    assert answer is not None
    assert (answer.decision, answer.say) == ("approve", "keep the old name ü")


def test_a_message_without_an_answer_decides_nothing(person: Person) -> None:
    person.is_asked().types("m\n").types("\n", after="message to the role> ")
    person.types("m\n", after="Please answer y, s, n, m, ? or q.\n> ")
    person.types("text\n", after="message to the role> ").types("maybe\n", after="y, s or n> ")
    answer = person.types("n\n", after="Please answer y, s, n, m, ? or q.\n> ").answer()
    assert answer is not None and (answer.decision, answer.say) == ("deny", None)


def test_everything_is_shown_on_request(person: Person) -> None:
    preview = "".join(f"+line {number}\n" for number in range(200))
    person.is_asked(sample_request(preview=preview))
    first = person.sees("\n> ")
    assert "+line 59\n" in first and "+line 60\n" not in first and "(140 more lines; ? shows everything)" in first
    os.write(person.eyes, b"?\n")
    whole = person.sees("\n> ")
    assert "+line 199\n" in whole and '"content": "hello\\n"' in whole and "9c1e" * 16 in whole
    os.write(person.eyes, b"q\n")
    assert person.answer() is None
    assert "harness approvals answer appr_00000000000000000000000001 --approve (or --deny)" in person.sees("deny)")


def test_a_long_line_is_cut_and_said_to_be_cut(person: Person) -> None:
    shown = person.is_asked(sample_request(preview=f"+{'x' * 5000}\n")).sees("\n> ")
    assert "x...\n   (longer lines; ? shows everything)" in shown and len(shown) < 1500
    os.write(person.eyes, b"n\n")
    person.answer()


HOSTILE = "\x1b[2J\x1b[1;1Hls\r\u202e\u200b\x07\x9b31m\u2028"


@pytest.mark.parametrize("field", ["title", "name", "stage", "persona", "rule", "preview", "args", "approval_id"])
def test_nothing_foreign_moves_the_cursor(person: Person, field: str) -> None:
    changes: dict[str, Any] = {"preview": None, field: {HOSTILE: HOSTILE} if field == "args" else HOSTILE}
    person.is_asked(sample_request(**changes)).types("?\n").types("q\n")
    person.answer()
    screen = person.sees("deny)")
    assert not set(screen) & set(HOSTILE) - set("ls[2J1;H31m")


def test_arguments_are_shown_where_there_is_no_preview(person: Person) -> None:
    shown = person.is_asked(sample_request(preview=None, args={"argv": ["rm", "-rf", "ü\n"]})).sees("\n> ")
    assert '     "argv": [\n       "rm",\n       "-rf",\n       "ü\\n"\n' in shown
    os.write(person.eyes, b"n\n")
    person.answer()


def test_a_terminal_that_knows_ascii_only_gets_ascii(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getencoding", lambda: "ANSI_X3.4-1968")
    person = Person(FakeHost(tmp_path))
    assert "write \\xfc" in person.is_asked(sample_request(title="write ü")).sees("\n> ")
    person.token.cancel("by Jörg")
    person.sees("by J\\xf6rg")
    assert person.answer() is None
    person.leaves()


# --------------------------------------------------------------------------------- how the waiting can end


def test_an_answer_from_elsewhere_ends_the_question_and_is_named(person: Person) -> None:
    person.is_asked().types("half a li")
    person.token.cancel("approved by grace in the page\x1b[2J")
    assert person.task.join(0.5), "it still waits"
    assert person.answer() is None
    person.sees("Answered elsewhere: approved by grace in the page\\x1b[2J.\n")


def test_a_session_that_stops_is_no_answer_from_elsewhere(person: Person) -> None:
    person.is_asked().sees("\n> ")
    person.token.cancel(SESSION_STOPS)
    assert person.answer() is None
    person.sees("\nNot answered: the session stops.\n")


@pytest.mark.parametrize("typed", ["\x04", "y\x04\x04"])
def test_the_end_of_the_input_leaves_the_request_open(person: Person, typed: str) -> None:
    assert person.is_asked().types(typed).answer() is None
    person.sees("Left open")


def test_a_terminal_that_is_closed_leaves_the_request_open(person: Person) -> None:
    person.is_asked().sees("\n> ")
    os.close(person.eyes)
    assert person.answer() is None


def test_what_was_typed_before_the_question_is_no_answer_to_it(person: Person) -> None:
    os.write(person.eyes, b"y\ny\n")
    answer = person.is_asked().types("n\n").answer()
    assert answer is not None and answer.decision == "deny"
    answer = person.is_asked().types("n\ny\n").answer()
    assert answer is not None and answer.decision == "deny"
    answer = person.is_asked().types("n\n").answer()  # the second line of before is gone
    assert answer is not None and answer.decision == "deny"


class Hasty(TerminalApprover):
    """Its person types when the question is about to be drawn."""

    person: Person

    def _say(self, write: int, text: str) -> None:
        if "Approval needed" in text:
            os.write(self.person.eyes, b"y\n")
        super()._say(write, text)


def test_what_was_typed_while_the_question_was_drawn_is_no_answer_to_it(person: Person) -> None:
    person.approver = Hasty(TerminalSettings(person="ada"), person.host)
    person.approver.person = person
    answer = person.is_asked().types("n\n").answer()
    assert answer is not None and answer.decision == "deny"


def test_a_line_may_come_in_pieces_and_in_raw_mode(person: Person) -> None:
    tty.setraw(person.terminal)
    person.is_asked().sees("\n> ")
    for piece in (b"n us", b"e \xc3", b"\xbc", b" then", b"\r"):
        os.write(person.eyes, piece)
    answer = person.answer()
    assert answer is not None and (answer.decision, answer.say) == ("deny", "use ü then")


def test_two_questions_are_asked_one_after_the_other(person: Person) -> None:
    other = Person.__new__(Person)
    other.__dict__ = {**person.__dict__, "answers": [], "token": person.host.ports.wait.token()}
    person.is_asked(sample_request(title="first")).sees("first")
    other.is_asked(sample_request(title="second"))
    person.types("y\n").answer()
    person.sees("Approval needed: second")
    person.types("n\n")
    assert [one.decision if one else None for one in (person.answer(), other.answer())] == ["approve", "deny"]


def test_a_question_that_waits_for_its_turn_can_be_answered_elsewhere(person: Person) -> None:
    person.is_asked().sees("\n> ")
    token = person.host.ports.wait.token()
    answers: list[ApprovalAnswer | None] = []
    waiting = person.host.ports.spawn(lambda: answers.append(person.approver.ask(sample_request(), token)))
    token.cancel("grace was faster")
    assert waiting.join(0.5)
    assert answers == [None]
    os.write(person.eyes, b"q\n")
    person.answer()
