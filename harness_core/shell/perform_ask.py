"""A pending approval in, an answer posted to the inbox or the way it stays open out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import attrs

from harness_core.kernel.commands import Unanswered
from harness_core.kernel.inbox import is_command
from harness_core.kernel.state import Approval, SessionState
from harness_hookspecs.approver import SESSION_STOPS, ApprovalAnswer, ApprovalRequest
from harness_hookspecs.errors import IllegalMove, PluginError, Refused
from harness_hookspecs.host import CancelToken
from harness_hookspecs.kit.frozen import thaw

from .answering import answer_body
from .deadlines import HEED_SECONDS
from .perform_attempt import Attempt, attempt
from .services import Services
from .session_parts import NamedApprover

__all__ = ["AskSite", "OnAsk", "ask", "attended", "close_prompt"]

OnAsk = Literal["auto", "ask", "suspend", "deny"]


@attrs.frozen
class AskSite:
    """Who may be asked in this run, and where an answer goes."""

    session_id: str
    approvers: Sequence[NamedApprover]
    timeout_seconds: float  # of one that waits for no person
    on_ask: OnAsk
    has_terminal: bool
    leave: CancelToken  # set when this process stops while the session goes on waiting
    post_answer: Callable[[str, Mapping[str, Any]], Any]
    prompts: dict[str, Prompt] = attrs.Factory(dict)  # open ones, by their approval


@attrs.define
class Prompt:
    """A question that a person has before them."""

    request: ApprovalRequest
    cancel: Any  # the token that ends it
    closed: Any  # the event that it is off the screen
    answered: bool = False  # elsewhere, which the log may not know yet


def close_prompt(site: AskSite, kind: Any, body: Any) -> None:
    """Take a question off the screen whose answer came from elsewhere, before anything that follows from it is told.

    Called with what any row of the inbox says, which need be no command. A prompt that does not heed it holds nobody
    up for long.
    """
    if kind != "answer" or not is_command(kind, body):
        return
    prompt = site.prompts.get(body["approval_id"])
    if prompt is not None and prompt.request.digest == body["digest"]:
        prompt.answered = True
        prompt.cancel.cancel(_answered_by(body))
        prompt.closed.wait(HEED_SECONDS)


def attended(on_ask: OnAsk, *, terminal: bool) -> OnAsk:
    """What ``auto`` comes to: on a terminal a person is asked, elsewhere nobody may be."""
    if on_ask != "auto":
        return on_ask
    return "ask" if terminal else "deny"


def ask(approval: Approval, state: SessionState, site: AskSite, services: Services) -> Unanswered | None:
    """Ask the approvers in order; the first answer is posted and stands.

    Returns:
        ``None`` when there is an answer; else whether it stays pending or nobody may be asked in this run, and what
        those said whose answer was none.
    """
    request = _request(approval, state, site, services)
    flaws: list[str] = []
    for named in site.approvers:
        if _waits_for_a_person(named):
            continue
        if _answered(_in_time(named, request, site, services), named, request, site, services, flaws):
            return None
    people = [named for named in site.approvers if _waits_for_a_person(named)]
    on_ask = attended(site.on_ask, terminal=site.has_terminal)
    if on_ask != "ask" or not site.has_terminal or not people:
        why = "there is no terminal and run.on_ask is auto" if site.on_ask == "auto" else "on_ask is deny"
        return Unanswered(approval.approval_id, deny=on_ask == "deny", flaws=tuple(flaws), why=why)
    # From here on a person is waited for, and the log says so before anyone is bothered (B-81).
    services.loop.submit(Unanswered(approval.approval_id, deny=False, flaws=tuple(flaws)))
    return _ask_people(people, request, site, services)


def _ask_people(
    people: Sequence[NamedApprover], request: ApprovalRequest, site: AskSite, services: Services
) -> Unanswered | None:
    flaws: list[str] = []
    token = services.ports.wait.token()
    forgets = [source.on_cancel(lambda: token.cancel(SESSION_STOPS)) for source in (services.cancel, site.leave)]
    watch = services.ports.spawn(_watch, request.approval_id, token, services, name="answer-watch")
    try:
        for named in people:
            prompt = Prompt(request, token, services.ports.wait.event())
            if _answered(_shown(prompt, named, site), named, request, site, services, flaws):
                return None
            if prompt.answered:  # the call that waits for it finds it decided, not left open
                decided = partial(_is_decided, approval_id=request.approval_id)
                services.loop.wait_until(decided, timeout_seconds=HEED_SECONDS)
            if token.cancelled():  # there is nothing to ask any more
                break
    finally:
        for forget in forgets:
            forget()
        token.cancel("closed")
        watch.join()
    return Unanswered(request.approval_id, deny=False, flaws=tuple(flaws))


def _shown(prompt: Prompt, named: NamedApprover, site: AskSite) -> Attempt[ApprovalAnswer | None]:
    """What a person says, who is interrupted as soon as it does not matter any more."""
    approval_id = prompt.request.approval_id
    site.prompts[approval_id] = prompt
    try:
        return attempt(named.approver.ask, _own(prompt.request), prompt.cancel, what=f"approver {named.name}")
    finally:  # before its answer is taken, which would wait for it
        del site.prompts[approval_id]
        prompt.closed.set()


def _waits_for_a_person(named: NamedApprover) -> bool:
    return bool(attempt(getattr, named.approver, "interactive", what=f"approver {named.name}").value)


def _watch(approval_id: str, token: Any, services: Services) -> None:
    """Cancel the prompt as soon as the approval is decided elsewhere, naming who decided."""

    def decided(current: SessionState) -> bool:
        return token.cancelled() or _is_decided(current, approval_id)

    forget = token.on_cancel(services.loop.wake)
    try:
        services.loop.wait_until(decided)
    finally:
        forget()
    if not token.cancelled():
        ended = services.loop.state.approvals[approval_id].ended or {}
        token.cancel(_answered_by(ended) if ended else SESSION_STOPS)


def _answered_by(ended: Mapping[str, Any]) -> str:
    return f"answered by {ended['by']}"


def _is_decided(state: SessionState, approval_id: str) -> bool:
    return state.approvals[approval_id].status != "pending" or state.pausing is not None or state.final


def _in_time(
    named: NamedApprover, request: ApprovalRequest, site: AskSite, services: Services
) -> Attempt[ApprovalAnswer | None]:
    """Ask one that waits for no person; whatever it does, what follows comes in time."""
    ports, seconds = services.ports, site.timeout_seconds
    results: list[Attempt[ApprovalAnswer | None]] = []
    what = f"approver {named.name}"
    with services.deadlines.limit(services.cancel, seconds) as token:

        def work() -> None:
            results.append(attempt(named.approver.ask, _own(request), token, what=what))

        if getattr(ports, "concurrent", True):
            ports.spawn(work, name="approver").join(seconds + HEED_SECONDS)
        else:  # with one thread nobody could look at the time
            work()
        if results and token.reason != "timeout":  # an answer that comes late is none
            return results[0]
    return Attempt(None, PluginError(f"{what} gave no answer within {seconds:g} s", code="approval.timeout"))


def _answered(
    done: Attempt[ApprovalAnswer | None],
    named: NamedApprover,
    request: ApprovalRequest,
    site: AskSite,
    services: Services,
    flaws: list[str],
) -> bool:
    """Post what an approver said, if it is an answer to this question; else nobody answered (I-23, fail closed)."""
    answer, flaw, who = done.value, None, f"approver {named.name}"
    if done.error is not None:
        said = str(services.recorded(done.error)["message"])
        flaw = said if said.startswith(who) else f"{who}: {said}"
    elif answer is not None and not isinstance(answer, ApprovalAnswer):
        flaw = f"{who} gave no ApprovalAnswer but a {type(answer).__name__}"
    elif answer is not None:
        fields = {"digest": answer.digest, "by": answer.by, "kind": answer.kind, "say": answer.say}
        try:
            site.post_answer(request.approval_id, answer_body(request.approval_id, answer.decision, **fields))
        except (IllegalMove, Refused) as error:
            if error.code == "session.not_run":  # it counts, and stands when the session goes on: ask nobody else
                raise
            flaw = f"{who} gave no answer that counts: {error.message}"
    if flaw is not None:
        flaws.append(services.redactor.text(flaw))
    return flaw is None and services.loop.state.approvals[request.approval_id].status != "pending"


def _own(request: ApprovalRequest) -> ApprovalRequest:
    """A copy for one approver: what it does to it changes neither what runs nor what the next one is shown (I-23)."""
    return request._replace(args=thaw(request.args))


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
