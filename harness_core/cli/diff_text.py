"""What two sessions did differently in, what people read of it out: two columns, and only what differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harness_hookspecs.kit.render import clip_line

from .output import fitted, tabled
from .session_text import ref_shown, short

__all__ = ["diff_text"]

_CELL_COLUMNS: Final = 120
_NOTHING: Final = "-"


def diff_text(document: Mapping[str, Any]) -> str:
    """Both sessions, then a table for each kind of difference."""
    a, b = document["a"], document["b"]
    names = (short(a["id"]), short(b["id"]))
    rows = [(name, str(a[name]), str(b[name])) for name in ("title", "status", "stage", "seconds")]
    sections = [tabled(("", *names), rows)]
    sections += [_leaves(name, document[name], names) for name in ("asked", "settings")]
    sections += [_steps(name, document[name], names, shown) for name, shown in _SHOWN.items()]
    sections.append(_leaves("usage", document["usage"], names))
    if document["equal"]:
        sections.append(fitted("both did the same"))
    return "\n\n".join(section for section in sections if section)


def _leaves(title: str, changes: Sequence[Mapping[str, Any]], names: tuple[str, str]) -> str:
    rows = [(change["key"], _value(change["a"]), _value(change["b"])) for change in changes]
    return tabled((title, *names), rows) if rows else ""


def _value(value: Any) -> str:
    if value is None:
        return _NOTHING
    return clip_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _CELL_COLUMNS)


def _steps(
    title: str, aligned: Mapping[str, Any], names: tuple[str, str], shown: Callable[[Mapping[str, Any]], str]
) -> str:
    pairs = [(pair["a"], pair["b"]) for pair in aligned["differ"]]
    if not pairs:
        return ""
    rows = [tuple(_NOTHING if one is None else clip_line(shown(one), _CELL_COLUMNS) for one in pair) for pair in pairs]
    same = f"{aligned['same']} the same" if aligned["same"] else "none the same"
    return "\n".join([fitted(f"{title.replace('_', ' ')}: {same}"), tabled(names, rows)])


def _visit(item: Mapping[str, Any]) -> str:
    attempts = f", {item['attempts']} attempts" if item["attempts"] > 1 else ""
    return f"{item['stage']} ({item['persona']}, {item['model']}){attempts}: {item['status'] or 'not left'}"


def _move(item: Mapping[str, Any]) -> str:
    if item["kind"] == "transition":
        values = json.dumps(item["values"], ensure_ascii=False)
        return f"{item['from']} -> {item['to']} by {item['rule']} with {values}"
    return f"{item['from']} {item['kind']}: {item['reason']}"


def _artifact(item: Mapping[str, Any]) -> str:
    return f"{item['stage']}: {item['type']} {item['status']} {ref_shown(item['ref'])}"


def _call(item: Mapping[str, Any]) -> str:
    how = item["code"] or (item["result_hash"] or "")[:8]
    return f"{item['stage']}: {item['tool']} {json.dumps(item['args'], ensure_ascii=False)} {item['outcome']} {how}"


_SHOWN: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "stages": _visit,
    "transitions": _move,
    "artifacts": _artifact,
    "tool_calls": _call,
}
