"""A pending approval in, an answer posted to the inbox or the way it stays open out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs

from harness_core.kernel.commands import Unanswered
from harness_core.kernel.state import Approval, SessionState
from harness_hookspecs.approver import ApprovalAnswer, ApprovalRequest
from harness_hookspecs.host import CancelToken

from .perform_attempt import attempt
from .services import Services
from .session_parts import NamedApprover

__all__ = ["AskSite", "ask"]


@attrs.frozen
class AskSite:
    """Who may be asked in this run, and where an answer goes."""

    session_id: str
    approvers: Sequence[NamedApprover]
    on_ask: Literal["ask", "suspend", "deny"]
    has_terminal: bool
    leave: CancelToken  # set when this process stops while the session goes on waiting
    post_answer: Callable[[str, ApprovalAnswer], Any]


def ask(approval: Approval, state: SessionState, site: AskSite, services: Services) -> str:
    """Ask the approvers in order; the first answer is posted and stands.

    Returns:
        ``answered``, ``open`` (it stays pending) or ``deny`` (nobody may be asked in this run).
    """
    request = _request(approval, state, site, services)
    for named in site.approvers:
        if named.approver.interactive:
            continue
        if _answered_by(named, request, site, services):
            return "answered"
    people = [named for named in site.approvers if named.approver.interactive]
    if site.on_ask != "ask" or not site.has_terminal or not people:
        return "deny" if site.on_ask == "deny" else "open"
    # From here on a person is waited for, and the log says so before anyone is bothered (B-81).
    services.loop.submit(Unanswered(approval.approval_id, deny=False))
    token = services.ports.wait.token()
    forgets = [source.on_cancel(lambda: token.cancel("the session stops")) for source in (services.cancel, site.leave)]
    watch = services.ports.spawn(_watch, approval.approval_id, token, services, name="answer-watch")
    try:
        for named in people:
            if _answered_by(named, request, site, services, token=token):
                return "answered"
    finally:
        for forget in forgets:
            forget()
        token.cancel("closed")
        watch.join()
    return "open"


def _watch(approval_id: str, token: Any, services: Services) -> None:
    """Cancel the prompt as soon as the approval is decided elsewhere, naming who decided."""

    def decided(current: SessionState) -> bool:
        return (
            token.cancelled()
            or current.approvals[approval_id].status != "pending"
            or current.pausing is not None
            or current.final
        )

    forget = token.on_cancel(services.loop.wake)
    try:
        services.loop.wait_until(decided)
    finally:
        forget()
    if not token.cancelled():
        ended = services.loop.state.approvals[approval_id].ended or {}
        token.cancel(f"answered by {ended['by']}" if ended else "the session stops")


def _answered_by(
    named: NamedApprover, request: ApprovalRequest, site: AskSite, services: Services, *, token: Any = None
) -> bool:
    done = attempt(named.approver.ask, request, token or services.cancel, what=f"approver {named.name}")
    answer = done.value
    # A wrong digest is an answer to something else: nobody answered (I-23, fail closed).
    if answer is None or answer.digest != request.digest or answer.decision not in ("approve", "deny", "auto_session"):
        return False
    site.post_answer(request.approval_id, answer)
    return True


def _request(approval: Approval, state: SessionState, site: AskSite, services: Services) -> ApprovalRequest:
    payload = approval.payload
    preview = payload.get("preview_ref")
    return ApprovalRequest(
        approval_id=approval.approval_id,
        session_id=site.session_id,
        subject=payload["subject"],
        name=payload["name"],
        tier=payload["tier"],
        args=payload["args"],
        digest=payload["digest"],
        rule=payload["rule"],
        stage=state.visit.stage if state.visit is not None else "",
        persona=payload["persona"],
        preview=services.loop.read_blob(preview).decode(errors="replace") if preview else None,
        title=state.created.get("title", ""),
    )
