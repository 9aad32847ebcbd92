"""The approver ``terminal``: requests come in, the question goes to the person's terminal and the answer comes back."""

from __future__ import annotations

import locale
import os
import pwd
import termios
from typing import Final

from harness_hookspecs.approver import SESSION_STOPS, ApprovalAnswer, ApprovalRequest, Decision
from harness_hookspecs.errors import Cancelled
from harness_hookspecs.host import ApproverHost, CancelToken
from harness_hookspecs.kit.render import escape_for_terminal, escape_line

from .question import Choice, explanation, how_to_answer_later, parse_choice, question
from .settings import TerminalSettings

__all__ = ["TerminalApprover", "build"]

_PROMPT: Final = "> "
_DECISIONS: Final[dict[str, Decision]] = {"approve": "approve", "auto_session": "auto_session", "deny": "deny"}


def build(settings: TerminalSettings, host: ApproverHost) -> TerminalApprover:
    """Build the approver; without a terminal it passes everything on."""
    return TerminalApprover(settings, host)


class TerminalApprover:
    """Asks one question at a time; holds the bytes that were typed beyond the last line."""

    def __init__(self, settings: TerminalSettings, host: ApproverHost) -> None:
        self._settings = settings
        self._host = host
        self._person = settings.person or _user()
        self._ascii_only = not locale.getencoding().lower().replace("-", "").startswith("utf8")
        self._typed = b""
        self._turn = host.ports.wait.queue()
        self._turn.put("free")

    @property
    def interactive(self) -> bool:
        """Always."""
        return True

    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        """Ask the person; ``None`` when they leave it open, the input ends or someone else answers."""
        terminal = self._host.terminal
        if terminal is None or cancel.cancelled():
            return None
        try:
            turn = self._turn.get(None, cancel)
        except Cancelled:
            return None
        try:
            return self._ask(request, cancel, *terminal)
        except (OSError, termios.error):  # the terminal was closed
            return None
        finally:
            self._turn.put(turn)

    def _ask(self, request: ApprovalRequest, cancel: CancelToken, read: int, write: int) -> ApprovalAnswer | None:
        self._say(write, question(request, preview_lines=self._settings.preview_lines))
        self._forget_typed(read)
        choice = self._choice(request, cancel, read, write)
        if choice is None:
            self._say(write, f"\n{_unanswered(request, cancel)}\n")
            return None
        return ApprovalAnswer(_DECISIONS[choice.action], request.digest, self._person, "person", choice.say)

    def _choice(self, request: ApprovalRequest, cancel: CancelToken, read: int, write: int) -> Choice | None:
        """Ask until there is an answer; ``None`` when there will be none."""
        while True:
            line = self._line(cancel, read, write, _PROMPT)
            choice = None if line is None else parse_choice(line)
            if line is None or (choice is not None and choice.action == "suspend"):
                return None
            if choice is not None and choice.action == "message":
                choice = self._with_message(cancel, read, write)
            if choice is None:
                self._say(write, "Please answer y, s, n, m, ? or q.\n")
            elif choice.action == "explain":
                self._say(write, explanation(request))
            else:
                return choice

    def _with_message(self, cancel: CancelToken, read: int, write: int) -> Choice | None:
        say = self._line(cancel, read, write, "message to the role> ")
        if not say or not say.strip():
            return None
        verdict = parse_choice(self._line(cancel, read, write, "and the answer, y, s or n> ") or "")
        return Choice(verdict.action, say.strip()) if verdict and verdict.action in _DECISIONS else None

    def _line(self, cancel: CancelToken, read: int, write: int, prompt: str) -> str | None:
        """One whole line; ``None`` when cancelled or when the input ends, half a line before the end included."""
        self._say(write, prompt)
        while b"\n" not in self._typed:
            if not self._host.ports.wait.readable(read, cancel):
                return None
            data = os.read(read, 4096)
            if not data:
                self._typed = b""
                return None
            self._typed += data.replace(b"\r", b"\n")  # a terminal in raw mode sends CR for Enter
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace")

    def _forget_typed(self, read: int) -> None:
        """What was typed before the question was on the screen cannot be an answer to it."""
        if os.isatty(read):
            self._typed = b""
            termios.tcflush(read, termios.TCIFLUSH)

    def _say(self, write: int, text: str) -> None:
        data = escape_for_terminal(text, ascii_only=self._ascii_only).encode()
        while data:
            data = data[os.write(write, data) :]


def _unanswered(request: ApprovalRequest, cancel: CancelToken) -> str:
    if not cancel.cancelled():
        return f"Left open; answer with: {how_to_answer_later(request)}"
    if cancel.reason == SESSION_STOPS:
        return f"Not answered: {SESSION_STOPS}."
    return f"Answered elsewhere: {escape_line(cancel.reason or 'someone else was faster')}."


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
