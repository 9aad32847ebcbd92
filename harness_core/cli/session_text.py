"""A session's document in, its exit code, what people read of it and what they may type next out."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_hookspecs.kit.paths import decode_path, encode_path
from harness_hookspecs.kit.render import escape_line

from .errors import exit_of_code
from .numbers import moment
from .output import columns, fitted, labelled

if TYPE_CHECKING:
    from harness_hookspecs.store import StoredEvent

__all__ = [
    "Beside",
    "exit_of_session",
    "next_commands",
    "project_names",
    "ref_shown",
    "result_text",
    "session_text",
    "short",
    "stage_with_context",
    "value_text",
    "waits_text",
]

_SUSPENDED, _BUDGET, _FAILED = 10, 12, 1
_MAX_WAITS = 10
"""Of what a session waits for so many are named in words; its document has all."""
_MAX_SETTLED = 6


class Beside(NamedTuple):
    """What is known of a session beside its document, for what is worth typing next.

    Attributes:
        context: The stage whose context was assembled last (``stage_with_context``); offered where no model was asked.
        reached: What the last ``budget.exhausted`` said, for a session that waits for more.
        version: The version of a workflow that it planned.
        below: The documents of the sessions that it waits for, and of those that they wait for in turn.
    """

    context: str | None = None
    reached: Mapping[str, Any] | None = None
    version: str | None = None
    below: Sequence[Mapping[str, Any]] = ()


def short(session_id: str) -> str:
    """What people see of an id: its last eight characters."""
    return session_id[-8:]


def project_names(items: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What each project is called in a narrow table: its folder's own name, where no two have the same."""
    names = {item["project"]: encode_path(PurePath(decode_path(item["project"])).name) for item in items}
    return names if len(set(names.values())) == len(names) else {project: project for project in names}


def ref_shown(ref: str) -> str:
    """A reference to content: whole, but its short id on a terminal, which has no room for 64 digits."""
    return short(ref) if columns() else ref


def exit_of_session(document: Mapping[str, Any]) -> int:
    """The exit of a command that ran this session: 0 completed, 10 or 12 when it can be resumed, else why it failed."""
    status = document["status"]
    if status == "completed":
        return 0
    if status == "failed":
        return exit_of_code(document["failure"]["code"]) or _FAILED
    if status == "cancelled":
        return _FAILED
    kinds = {waiting["kind"] for waiting in document["waiting"]}
    return _BUDGET if "budget" in kinds and status == "active" else _SUSPENDED


def next_commands(document: Mapping[str, Any], beside: Beside = Beside()) -> list[str]:
    """What is worth typing now, the likeliest first."""
    name, status = short(document["id"]), document["status"]
    if status == "completed":
        made = [f"harness artifacts get {short(document['artifacts'][-1])}"] if document["artifacts"] else []
        if beside.version is not None:
            made = [f"harness workflows show {beside.version}", f"harness workflows run {beside.version} --input FILE"]
            return [*made, f"harness report {name}"]
        return [f"harness report {name}", f"harness replay {name}", *made]
    if status == "failed":
        unattended = document["failure"]["code"] == "approval.denied_unattended"
        asked = ["harness run TEXT --on-ask suspend    # leaves the question open"]
        looks = [f"harness transitions {name}", f"harness events {name}", *_shown_to_model(document, beside.context)]
        return [*asked, *looks] if unattended else looks
    if status == "cancelled":
        return [f"harness events {name}"]
    found = [command for waiting in document["waiting"] for command in _settle(waiting, name, beside.reached)]
    found = [*dict.fromkeys(found)]  # several steps may wait for one event
    kinds = {waiting["kind"] for waiting in document["waiting"]}
    if "child" in kinds:  # what it waits for in turn
        found += [*_settle_below(beside.below), f"harness sessions tree {name}"]
    budget = "budget" in kinds
    return found if budget else [*found, f"harness resume {name}{_not_before(document, beside.below)}"]


def _shown_to_model(document: Mapping[str, Any], context: str | None) -> list[str]:
    """The look at what a model saw, or would have seen; there is none where nothing was assembled for it."""
    name = short(document["id"])
    if _calls(document):
        return [f"harness prompt show {name}"]
    return [f"harness context show {name} {shlex.quote(context)}"] if context is not None else []


def _calls(document: Mapping[str, Any]) -> bool:
    """Whether a model was asked: each call is priced or counted as unpriced."""
    return bool(document["unpriced_calls"]) or document["cost_usd"] is not None


def stage_with_context(document: Mapping[str, Any], events: Callable[[], Iterable[StoredEvent]]) -> str | None:
    """The stage whose context was assembled last, where a session failed before it asked a model; else ``None``.

    Args:
        document: The session's document.
        events: Reads its log; called only where that tells anything.
    """
    if document["status"] != "failed" or _calls(document):
        return None
    from harness_core.kernel.projections.event import payload_of

    stage, found = None, None
    for event in events():
        if event.type == "stage.entered":
            stage = str(payload_of(event)["stage"])
        elif event.type == "context.assembled":
            found = stage
    return found


def _settle(waiting: Mapping[str, Any], name: str, reached: Mapping[str, Any] | None) -> list[str]:
    kind, what = waiting["kind"], waiting["id"]
    if kind == "approval":
        return [f"harness approvals show {short(what)}", f"harness approvals answer {short(what)} --approve"]
    if kind == "in_doubt":
        settle = f"harness approvals settle {short(what)}"
        return [f"{settle} --happened", f"{settle} --never-happened"]
    if kind == "event":
        return [f"harness sessions deliver {name} {waiting['name']} --data JSON"]
    if kind == "budget":
        total, said = _more(reached)
        return [f"harness resume {name} --budget {what}={total}  # {said}"]
    return []


def _settle_below(below: Iterable[Mapping[str, Any]]) -> list[str]:
    """What those need from a person that a session waits for; of very many the first ones."""
    found = [
        command
        for one in below
        for waiting in one["waiting"]
        if waiting["kind"] != "budget"  # which is that of the whole tree
        for command in _settle(waiting, short(one["id"]), None)
    ]
    return found[:_MAX_SETTLED] + (["harness approvals"] if len(found) > _MAX_SETTLED else [])


def _not_before(document: Mapping[str, Any], below: Sequence[Mapping[str, Any]] = ()) -> str:
    """Of a session that waits for timers alone, its own or of those below it, from when on going on leads further."""
    told = {one["id"] for one in below}
    every = [document, *below]
    waiting = [wait for one in every for wait in one["waiting"] if wait["kind"] != "child" or wait["id"] not in told]
    rests = any(one["status"] == "paused" or not one["waiting"] for one in every)
    if rests or any(one["kind"] != "timer" for one in waiting):
        return ""
    return f"    # from {moment(min(one['until'] for one in waiting))} on"


def _below_lines(below: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each session below that says what it waits for itself; of very many the first ones."""
    found = []
    for one in below:
        waits = waits_text([wait for wait in one["waiting"] if wait["kind"] != "child"])
        said = "is paused" if one["status"] == "paused" else f"waits for {', '.join(waits)}" if waits else None
        found += [] if said is None else [fitted(f"  {short(one['id'])} ({escape_line(one['stage'])}) {said}")]
    more = len(found) - _MAX_WAITS
    return found[:_MAX_WAITS] + ([f"  and {more} more"] if more > 0 else [])


def waits_text(waiting: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a session waits for, a text each; of very many the first ones."""
    said = [_wait_text(one) for one in waiting[:_MAX_WAITS]]
    more = len(waiting) - len(said)
    return [*said, f"{more} more"] if more else said


def _wait_text(waiting: Mapping[str, Any]) -> str:
    what = waiting["name"] if waiting["kind"] == "event" else "" if waiting["until"] else short(waiting["id"])
    until = f"until {moment(waiting['until'])}" if waiting["until"] else ""
    return " ".join(filter(None, (waiting["kind"], what, until)))


def _more(reached: Mapping[str, Any] | None) -> tuple[str, str]:
    """A limit with which the session goes on: as much again as it had, beyond what it has used and wants next."""
    if reached is None:
        return "N", "in total"
    used, wanted, limit = reached["used"], reached["wanted"], reached["limit"]
    return str(math.ceil(used + wanted + limit)), f"in total; {math.ceil(used)} used"


def session_text(
    document: Mapping[str, Any],
    artifacts: Iterable[Mapping[str, Any]],
    *,
    beside: Beside = Beside(),
    current: bool = True,
) -> str:
    """A session as labelled lines; what is worth typing follows where it is the session as it is now.

    Args:
        document: The session's document.
        artifacts: Its accepted artifacts.
        beside: What else is known of it.
        current: Whether it is shown as it is now.
    """
    usage, failure = document["usage"], document["failure"]
    more = len(document["waiting"]) - _MAX_WAITS
    pairs = [
        ("session", document["id"]),
        ("title", document["title"]),
        *([("parent", document["parent_id"])] if document["parent_id"] is not None else ()),
        ("status", document["status"]),
        ("stage", document["stage"] or "-"),
        ("project", document["project"]),
        ("created", document["created_at"]),
        ("updated", document["updated_at"]),
        ("events", str(document["last_seq"])),
        ("tokens", tokens_text(usage)),
        *(("artifact", f"{one['stage']}: {one['type']} {ref_shown(one['ref'])}") for one in artifacts),
        *(("waits for", _waits(one)) for one in document["waiting"][:_MAX_WAITS]),
        *([("waits for", f"{more} more")] if more > 0 else ()),
    ]
    if failure is not None:
        pairs += [("failure", f"{failure['code']}: {failure['message']}")]
        pairs += [("hint", failure["hint"])] if failure["hint"] else []
    pairs += [("state hash", document["state_hash"])]
    return "\n".join([*labelled(pairs), *_below_lines(beside.below), *(_next(document, beside) if current else ())])


def _waits(waiting: Mapping[str, Any]) -> str:
    until = f", until {waiting['until']}" if waiting["until"] else ""
    return f"{waiting['kind']} {waiting.get('name') or waiting['id']}{until}"


def tokens_text(usage: Mapping[str, Any]) -> str:
    """Tokens in and out; what a provider did not report is said to be unknown, never 0."""
    text = f"{usage['input_tokens']} in, {usage['output_tokens']} out"
    if usage["known"]:
        return text
    nothing = not usage["input_tokens"] and not usage["output_tokens"]
    return "unknown, no call reported them" if nothing else f"at least {text}; some calls reported none"


def result_text(
    document: Mapping[str, Any],
    artifacts: Iterable[tuple[Mapping[str, Any], bytes]],
    beside: Beside = Beside(),
) -> str:
    """What a run gives people at its end: the artifacts in words, how it ended, and what to type next.

    Args:
        document: The session's document.
        artifacts: The artifacts to show, each with its content.
        beside: What else is known of the session.
    """
    lines: list[str] = []
    for item, content in artifacts:
        head = f"{item['stage']}: {item['type']}, status {item['status']}"
        lines += [fitted(escape_line(head)), *content_lines(content, indent=2), f"  {_ref(item)}", ""]
    tokens = tokens_text(document["usage"])
    lines.append(fitted(f"session {short(document['id'])} {_ending(document)}; tokens: {tokens}"))
    return "\n".join([*lines, *_below_lines(beside.below), *_hint(document), *_next(document, beside)])


def _ref(item: Mapping[str, Any]) -> str:
    """A reference on a line of its own; one that is cut to its end does not say by itself what it is."""
    return f"artifact {short(item['ref'])}" if columns() else str(item["ref"])


def _ending(document: Mapping[str, Any]) -> str:
    status, failure = document["status"], document["failure"]
    if failure is not None:
        return f"failed: {escape_line(failure['code'])}: {escape_line(failure['message'])}"
    waits = ", ".join(waits_text(document["waiting"]))
    said = status.replace("_", " ")
    return f"{said}, waits for {waits}" if waits and status not in ("completed", "cancelled") else said


def _hint(document: Mapping[str, Any]) -> list[str]:
    """What to do about a failure, on a line of its own as below any other error."""
    failure = document["failure"]
    return [fitted(f"  {escape_line(failure['hint'])}")] if failure is not None and failure["hint"] else []


def _next(document: Mapping[str, Any], beside: Beside) -> list[str]:
    return [
        f"{'next' if first else '    '}  {line}"
        for first, line in zip((True, *[False] * 9), next_commands(document, beside), strict=False)
    ]


def content_lines(content: bytes, *, indent: int = 0) -> list[str]:
    """An artifact's content as labelled lines; what is no JSON is shown as text."""
    try:
        value = json.loads(content)
    except ValueError:
        return labelled([("text", content.decode(errors="replace"))], indent=indent)
    if not isinstance(value, dict):
        return labelled([("", value_text(value))], indent=indent)
    return labelled([(key, value_text(one)) for key, one in value.items()], indent=indent)


def value_text(value: Any) -> str:
    """A JSON value in words: a text as it is, a list of texts a line each, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return "\n".join(f"- {one}" for one in value)
    if value in ([], {}, None):
        return "-"
    return json.dumps(value, ensure_ascii=False)
