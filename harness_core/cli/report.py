"""``harness report``: what a session used, by stage, role, model and tool, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from .hosting import open_host
from .named import session_argument
from .output import emit, json_option, labelled, tabled

__all__ = ["report"]

_COLUMNS = ("calls", "failed", "tokens in", "tokens out", "cached", "reasoning", "model s")


@click.command()
@session_argument()
@json_option
@click.option("--tree", "of_tree", is_flag=True, help="What it and each session that it has begun used, and the sums.")
@click.pass_context
def report(ctx: click.Context, session: str, of_tree: bool) -> None:
    """Tokens, time and cost of a session.

    What is not known is never counted as 0. Sessions that it has begun are no part of it; --tree shows them too.
    """
    with open_host(ctx) as host:
        document = host.report_of_tree(session) if of_tree else host.report(session)
    emit(ctx, document, _tree_shown if of_tree else _shown)


def _tree_shown(document: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{'  ' * item['depth']}{item['id'][-8:]}",
            item["status"],
            str(item["own"]["calls"]),
            _total(item["own"]),
            str(item["tree"]["calls"]),
            _total(item["tree"]),
            item["title"],
        ]
        for item in document["items"]
    ]
    return tabled(("session", "status", "calls", "tokens", "calls of tree", "tokens of tree", "title"), rows)


def _total(item: Mapping[str, Any]) -> str:
    usage = item["usage"]
    if _nothing_known(usage):
        return "unknown"
    return f"{usage['total_tokens']}{'' if usage['known'] else '+?'}"


def _shown(document: Mapping[str, Any]) -> str:
    cost = "unknown" if document["cost_usd"] is None else f"{document['cost_usd']} USD"
    unknown = document["unknown_calls"]
    pairs = [
        ("session", document["session_id"]),
        ("status", document["status"]),
        ("seconds", f"{document['seconds']}"),
        ("model calls", f"{document['calls']}, {document['failed_calls']} of them failed"),
        ("tokens", _tokens(document)),
        ("unknown", f"{unknown} call{'s' if unknown != 1 else ''} did not report what they used"),
        ("cost", f"{cost}; unpriced calls: {document['unpriced_calls']}"),
    ]
    if document["timers"]["asked"]:
        pairs += [("timers", f"{document['timers']['asked']}; open for {document['timers']['seconds']} s")]
    if document["events"]["asked"]:
        pairs += [("events", f"{document['events']['asked']}; waited for {document['events']['seconds']} s")]
    sections = [
        "\n".join(labelled(pair for pair in pairs if pair[0] != "unknown" or unknown)),
        _section("stage", document["stages"], "stage", extra=_attempts),
        _section("persona", document["personas"], "persona"),
        _section("role", document["roles"], "role"),
        _section("model", document["models"], "provider", "model_id"),
        _fan_outs(document["fan_outs"]),
        _tools(document["tools"]),
    ]
    return "\n\n".join(section for section in sections if section)


def _tokens(item: Mapping[str, Any]) -> str:
    usage = item["usage"]
    if _nothing_known(usage):
        return "unknown"
    least = "" if usage["known"] else "at least "
    return (
        f"{least}{usage['total_tokens']} ({usage['input_tokens']} in, of these {usage['cached_input_tokens']} cached; "
        f"{usage['output_tokens']} out, of these {usage['reasoning_tokens']} reasoning)"
    )


def _nothing_known(usage: Mapping[str, Any]) -> bool:
    """Whether calls were made and none of them reported anything."""
    return not usage["known"] and not usage["total_tokens"]


def _section(title: str, items: Sequence[Mapping[str, Any]], *names: str, extra: Any = None) -> str:
    if not items:
        return ""
    head = (title, *_COLUMNS, *(("seconds", "attempts") if extra else ()))
    return tabled(head, [_row(item, names, extra) for item in items], optional=("cached", "reasoning"))


def _row(item: Mapping[str, Any], names: Iterable[str], extra: Any) -> list[str]:
    usage = item["usage"]
    mark = "" if usage["known"] else "+?"
    names_of = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
    tokens = [f"{usage[one]}{mark if number < 2 else ''}" for number, one in enumerate(names_of)]
    return [
        "/".join(str(item[name]) for name in names) or "-",
        str(item["calls"]),
        str(item["failed_calls"]),
        *(["unknown"] * len(tokens) if _nothing_known(usage) else tokens),
        f"{item['model_ms'] / 1000:.2f}",
        *(extra(item) if extra else ()),
    ]


def _attempts(item: Mapping[str, Any]) -> list[str]:
    attempts = [attempt for visit in item["visits"] for attempt in visit["attempts"]]
    failed = sum(attempt["failed"] for attempt in attempts)
    return [f"{item['seconds']}", f"{len(attempts)}" + (f", {failed} failed" if failed else "")]


def _fan_outs(items: Sequence[Mapping[str, Any]]) -> str:
    if not items:
        return ""
    names = ("step", "begun", "succeeded", "branches_completed", "branches_failed", "seconds")
    rows = [[str(item[name]) for name in names] for item in items]
    return tabled(("fan-out", "begun", "succeeded", "branches completed", "failed", "seconds"), rows)


def _tools(items: Sequence[Mapping[str, Any]]) -> str:
    if not items:
        return ""
    rows = [
        (
            item["tool"],
            str(item["calls"]),
            str(item["succeeded"]),
            str(item["failed"]),
            f"{item['duration_ms'] / 1000:.2f}",
        )
        for item in items
    ]
    return tabled(("tool", "calls", "succeeded", "failed", "seconds"), rows)
