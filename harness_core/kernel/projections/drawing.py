"""A graph document in, its Mermaid or DOT text out; whatever stands in a name or a rule stays inside its label."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness_hookspecs.kit.render import escape_line

__all__ = ["FORMATS", "dot", "mermaid"]

_PLAIN = frozenset(" .,:=()+-*/_!?'%@^~$")


def mermaid(graph: Mapping[str, Any]) -> str:
    """A flowchart. Nodes are numbered, because words such as ``end`` mean something to Mermaid."""
    ids = {node["id"]: f"n{number}" for number, node in enumerate(graph["nodes"])}
    lines = ["flowchart TD"]
    if graph["initial"] in ids:
        lines += ["  start((start))", f"  start --> {ids[graph['initial']]}"]
    for node in graph["nodes"]:
        shape = ('(["', '"])') if node["kind"] == "end" else ('["', '"]')
        text = "<br/>".join(_mermaid_text(line) for line in _label(node))
        lines.append(f"  {ids[node['id']]}{shape[0]}{text}{shape[1]}")
    for edge in graph["edges"]:
        arrow = "==>" if edge["taken"] else "-.->" if edge["kind"] == "retry" else "-->"
        text = _mermaid_text(_edge_label(edge))
        lines.append(f'  {ids[edge["from"]]} {arrow}|"{text}"| {ids[edge["to"]]}')
    return "\n".join(lines)


def dot(graph: Mapping[str, Any]) -> str:
    """A digraph for Graphviz."""
    lines = ["digraph stages {", "  node [shape=box];"]
    if graph["initial"] is not None:
        lines += ["  start [shape=point];", f"  start -> {_dot_text('s:' + graph['initial'])};"]
    for node in graph["nodes"]:
        name = _dot_text(f"s:{node['id']}")
        shape = ", shape=oval" if node["kind"] == "end" else ""
        lines.append(f"  {name} [label={_dot_lines(_label(node))}{shape}];")
    for edge in graph["edges"]:
        ends = f"{_dot_text('s:' + edge['from'])} -> {_dot_text('s:' + edge['to'])}"
        style = ", penwidth=2" if edge["taken"] else ", style=dashed" if edge["kind"] == "retry" else ""
        lines.append(f"  {ends} [label={_dot_text(_edge_label(edge))}{style}];")
    return "\n".join([*lines, "}"])


FORMATS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {"mermaid": mermaid, "dot": dot}
"""The text formats by name."""


def _label(node: Mapping[str, Any]) -> list[str]:
    lines = [node["id"]]
    who = ", ".join(str(value) for value in (node["role"], node["model"]) if value)
    if who:
        lines.append(who)
    if node["attempts"]:
        lines.append(f"{node['status']}, visits {node['visits']}, attempts {node['attempts']}")
    return lines


def _edge_label(edge: Mapping[str, Any]) -> str:
    count = f" ({edge['taken']}x)" if edge["taken"] else ""
    return f"{'retry: ' if edge['kind'] == 'retry' else ''}{edge['label']}{count}"


def _mermaid_text(text: str) -> str:
    """Everything that is not a letter, a digit or harmless becomes a numbered entity."""
    return "".join(c if c.isalnum() or c in _PLAIN else f"#{ord(c)};" for c in escape_line(text))


def _dot_text(text: str) -> str:
    return _dot_lines([text])


def _dot_lines(lines: list[str]) -> str:
    escaped = (escape_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
