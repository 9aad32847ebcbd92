"""An approval request goes in, what the person sees comes out; a line they typed goes in, what they chose comes out."""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple

from harness_hookspecs.approver import ApprovalRequest
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.kit.render import clip_line, clip_lines, escape_for_terminal, escape_line, labels

__all__ = ["MENU", "Choice", "explanation", "how_to_answer_later", "parse_choice", "question"]

_COLUMNS: Final = 400

Action = Literal["approve", "auto_session", "deny", "message", "explain", "suspend"]

_TIERS: Final = {
    "T0": "inference only",
    "T1": "reads",
    "T2": "a change that can be undone",
    "T3": "reaches outside",
    "T4": "destroys",
}
_WORDS: Final[dict[str, Action]] = {
    **dict.fromkeys(("y", "yes", "1"), "approve"),
    **dict.fromkeys(("s", "session", "2"), "auto_session"),
    **dict.fromkeys(("n", "no", "3"), "deny"),
    **dict.fromkeys(("m", "message", "4"), "message"),
    **dict.fromkeys(("?", "explain", "5"), "explain"),
    **dict.fromkeys(("q", "quit", "6"), "suspend"),
}
_MAY_SAY: Final = ("approve", "auto_session", "deny")

MENU: Final = """\
 1 [y] yes, once          3 [n] no                          5 [?] show everything
 2 [s] yes, this session  4 [m] with a message to the role  6 [q] leave it open
 A message may follow at once, for example: n use the library instead
"""


class Choice(NamedTuple):
    """What the person typed; ``say`` is the message to the role."""

    action: Action
    say: str | None = None


def question(request: ApprovalRequest, *, preview_lines: int) -> str:
    """What is to be allowed, why it is asked and what the answer is bound to, then the beginning of the change."""
    facts = labels(
        [
            (request.subject, f"{escape_line(request.name)}   {request.tier} {_TIERS[request.tier]}"),
            ("stage", f"{escape_line(request.stage)}, persona {escape_line(request.persona)}"),
            ("why asked", escape_line(request.rule)),
            ("bound to", f"sha256 {request.digest[:6]}...{request.digest[-4:]}"),
        ]
    )
    body, note = _beginning(request, preview_lines)
    head = f"Approval needed: {escape_line(request.title)}"
    lines = ["", head, *(f"   {line}" for line in facts), "", *body, *note, "", MENU.rstrip("\n"), ""]
    return escape_for_terminal("\n".join(lines))


def _beginning(request: ApprovalRequest, preview_lines: int) -> tuple[list[str], list[str]]:
    """The first lines of what is to happen, and a note where that is not all of it."""
    shown, cut = clip_lines(escape_for_terminal(_content(request)), preview_lines)
    lines = [clip_line(line, _COLUMNS) for line in shown.split("\n")]
    missing = f"{cut} more lines" if cut else "longer lines" if lines != shown.split("\n") else ""
    return [f"   {line}" for line in lines], [f"   ({missing}; ? shows everything)"] if missing else []


def explanation(request: ApprovalRequest) -> str:
    """Everything that is known about the request, nothing cut."""
    facts = labels(
        [
            ("approval", request.approval_id),
            ("session", request.session_id),
            ("why asked", f"{escape_line(request.rule)} wants {request.tier} to be asked about"),
            ("bound to", f"exactly these arguments, sha256 {request.digest}"),
        ]
    )
    parts = ["", *facts, "", "arguments", _arguments(request)]
    if request.preview is not None:
        parts += ["", "change", request.preview.rstrip("\n")]
    return escape_for_terminal("\n".join([*parts, "", MENU]))


def _content(request: ApprovalRequest) -> str:
    return _arguments(request) if request.preview is None else request.preview.rstrip("\n")


def _arguments(request: ApprovalRequest) -> str:
    return json.dumps(thaw(dict(request.args)), ensure_ascii=False, indent=2)


def how_to_answer_later(request: ApprovalRequest) -> str:
    """The commands that answer it from anywhere."""
    return f"harness approvals answer {escape_line(request.approval_id)} --approve (or --deny)"


def parse_choice(line: str) -> Choice | None:
    """Understand a line; ``None`` for what is no answer, the empty line too: nothing is agreed to by default."""
    word, _, rest = line.strip().partition(" ")
    action = _WORDS.get(word.lower())
    say = rest.strip() or None
    if action is None or (say is not None and action not in _MAY_SAY):
        return None
    return Choice(action, say)
