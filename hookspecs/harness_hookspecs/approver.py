"""Kind ``approver``: one approval request in, an answer or "not me" out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from .host import CancelToken
from .tool import Tier

__all__ = ["SESSION_STOPS", "ApprovalAnswer", "ApprovalRequest", "Approver", "Decision"]

Decision = Literal["approve", "deny", "auto_session"]


SESSION_STOPS = "the session stops"
"""The reason of a cancelled question that nobody answered: it stays open if its session can go on."""


class ApprovalRequest(NamedTuple):
    """What someone is asked to allow, and exactly that (invariant I-23).

    ``digest`` is SHA-256 over tool, canonical arguments, run, step and generation; an answer carries it back.
    ``rule`` names the place that asked, for example ``policies.yaml:12``. ``preview`` is text to show, already
    redacted; whoever shows it escapes it.
    """

    approval_id: str
    session_id: str
    subject: Literal["tool", "artifact", "inference"]
    name: str  # tool name or artifact type
    tier: Tier
    args: Mapping[str, Any]
    digest: str
    rule: str
    stage: str
    persona: str
    preview: str | None
    title: str


class ApprovalAnswer(NamedTuple):
    """A decision and who took it; ``say`` is steering text that enters the next context."""

    decision: Decision
    digest: str
    by: str  # a person's name as the system knows it, or the rule that decided
    kind: Literal["person", "policy"]
    say: str | None = None


class Approver(Protocol):
    """What an offer of kind ``approver`` builds; asked in configured order until one answers."""

    @property
    def interactive(self) -> bool:
        """Whether it waits for a person; such a one is asked only with ``--on-ask ask`` and a terminal."""

    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        """Decide, or ``None`` for "not mine": the next is asked, after the last one the request stays pending.

        An interactive approver returns ``None`` within 0.5 s after ``cancel`` is set (the reason says who answered
        elsewhere, or is ``SESSION_STOPS``) and raises nothing for end of file. For any other ``cancel`` is set when its
        time (``run.approver_timeout_sec``) is over. Who raises, answers too late, to another digest or with a field
        of another type has not answered; the log names it.
        """
