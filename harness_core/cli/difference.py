"""The first event that a replay takes otherwise in, the few words in which both sides differ out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness_hookspecs.kit.render import clip_line, escape_line

__all__ = ["difference_lines"]

_VALUE_COLUMNS: Final = 100
_SIDE_COLUMNS: Final = 400
_WHERE_TO: Final = ("source", "target", "rule_index")


def difference_lines(difference: Mapping[str, Any]) -> list[str]:
    """Show the difference of a ``harness.replay/1``: what happened on each side, or the fields that are not the same.

    The whole of both sides stands in the document only.
    """
    recorded, replayed = difference["recorded"], difference["replayed"]
    head = f"diverged at event {difference['seq']}"
    if isinstance(replayed, Mapping) and "error" in replayed:
        return [f"{head}: {escape_line(str(replayed['error']))}", *_facts(replayed)]
    if recorded is None or replayed is None or recorded["type"] != replayed["type"]:
        return [head, *_sides(_event(recorded), _event(replayed))]
    head = f"{head}: {escape_line(recorded['type'])}"
    if recorded["type"] == "transition.taken":
        ways = [_way(difference[side], difference[f"{side}_where"]) for side in ("recorded", "replayed")]
        fields = _differing(_without_way(recorded["payload"]), _without_way(replayed["payload"]))
        return [head, *_sides(*(_joined([way, *named]) for way, named in zip(ways, fields, strict=True)))]
    return [head, *_sides(*map(_joined, _differing(recorded["payload"], replayed["payload"])))]


def _sides(recorded: str, replayed: str) -> list[str]:
    return [f"  recorded  {recorded}", f"  replayed  {replayed}"]


def _way(side: Mapping[str, Any], where: str | None) -> str:
    """``draft -> review (rule 1, .harness/stages.yaml:20:9)``."""
    payload = side["payload"]
    index = payload["rule_index"]
    rule = f"rule {index + 1 if isinstance(index, int) else index}{f', {where}' if where else ''}"
    return escape_line(f"{payload['source']} -> {payload['target']} ({rule})")


def _without_way(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in _WHERE_TO}


def _event(side: Any) -> str:
    """An event whose other side is another one, or none: its type, and the fields that are words or numbers."""
    if side is None:
        return "nothing"
    named = {name: value for name, value in side["payload"].items() if isinstance(value, str | int | float)}
    return _joined([escape_line(side["type"]), *(_field(name, value) for name, value in named.items())])


def _facts(replayed: Mapping[str, Any]) -> list[str]:
    """What is known of a role that does something else: two sides, or a few facts."""
    facts = {name: value for name, value in replayed.items() if name != "error"}
    if facts.keys() == {"recorded", "replayed"}:
        return _sides(*map(_joined, _differing(facts["recorded"], facts["replayed"])))
    return [f"  {_field(name, value)}" for name, value in facts.items()]


def _differing(one: Any, other: Any) -> tuple[list[str], list[str]]:
    """The fields in which two sides differ, in the same order on both; ``-`` is one that a side has not."""
    left, right = dict(_leaves(one, "")), dict(_leaves(other, ""))
    paths = [path for path in {**left, **right} if left.get(path) != right.get(path)]
    return [_at(left, path) for path in paths], [_at(right, path) for path in paths]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every value that has none below it, by its path; null says as little as a field that is not there."""
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _leaves(below, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple) and value:
        for number, below in enumerate(value):
            yield from _leaves(below, f"{path}[{number}]")
    elif value is not None:
        yield path, value


def _at(leaves: Mapping[str, Any], path: str) -> str:
    return _field(path, leaves[path]) if path in leaves else f"{escape_line(path)}: -"


def _field(path: str, value: Any) -> str:
    shown = clip_line(escape_line(json.dumps(value, ensure_ascii=False)), _VALUE_COLUMNS)
    return f"{escape_line(path)}: {shown}" if path else shown


def _joined(fields: list[str]) -> str:
    return clip_line("  ".join(fields), _SIDE_COLUMNS)
