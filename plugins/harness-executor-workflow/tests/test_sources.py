"""The source of a step: what is no Python, has no entry or calls what it may not is told; nothing of it is run."""

from __future__ import annotations

import pytest

from harness_executor_workflow.compiling.sources import MAX_CHAIN, MAX_CHARACTERS, examine, tool_names

HEAD = "async def main(input, tools):\n"
TOOLS = ["ats.candidates", "search"]


def codes(source: str) -> list[str]:
    return [one["code"] for one in examine(source, TOOLS)]


FINE = {
    "the least": f"{HEAD}    pass\n",
    "tools by their names": f"{HEAD}    a = await tools.ats_candidates(id=1)\n    return await tools.search(q=a)\n",
    "a helper with the tools": f"async def f(tools):\n    return await tools.search()\n{HEAD}    return f(tools)\n",
    "a long table": f"{HEAD}    return [{', '.join(f'({n}, -{n})' for n in range(3000))}]\n",
    "many statements": HEAD + "".join(f"    x = {n} + 1\n" for n in range(2000)),
    "types": "from typing import Any\nasync def main(input: dict, tools: Any) -> list:\n    return []\n",
}  # fmt: skip


@pytest.mark.parametrize("source", FINE.values(), ids=FINE)
def test_a_source_that_is_fine(source: str) -> None:
    assert examine(source, TOOLS) == []


DEEP = {
    "brackets": f"{HEAD}    return {'(' * 5000}{')' * 5000}\n",
    "a sum": f"{HEAD}    return {'+'.join(['1'] * 20_000)}\n",
    "signs": f"{HEAD}    return {'-' * 60_000}1\n",
    "dots": f"{HEAD}    return a{'.b' * 20_000}\n",
    "calls": f"{HEAD}    return a{'()' * 20_000}\n",
    "nots": f"{HEAD}    return {'not ' * 10_000}a\n",
    "choices": f"{HEAD}    return {'a if b else ' * 4000}c\n",
    "lambdas": f"{HEAD}    return {'lambda: ' * 8000}c\n",
    "blocks": HEAD + "".join(f"{' ' * depth}if a:\n" for depth in range(1, 90)) + " " * 90 + "pass\n",
    "branches": f"{HEAD}    if a:\n        pass\n" + "    elif a:\n        pass\n" * 2500,
    "mixed": f"{HEAD}    return {'[-(not ' * (MAX_CHAIN // 3)}1{')]' * (MAX_CHAIN // 3)}\n",
    "too much": f"{HEAD}    return '{'x' * MAX_CHARACTERS}'\n",
    "no text of Python": "async def main(input, tools):\n    return '\0'\n",
    "an open bracket": f"{HEAD}    return (1,\n",
    "an open text": f"{HEAD}    return '''\n",
    "a wrong indent": f"{HEAD}    a\n  b\n",
}  # fmt: skip


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP)
def test_a_source_that_cannot_be_read_safely_is_refused(source: str) -> None:
    assert codes(source) == ["code.syntax"]


@pytest.mark.parametrize(
    "head",
    ["def main(input, tools):", "async def mian(input, tools):", "async def main(input):", "async def main():",
     "async def main(input, tools, more):", "async def main(tools, input):", "async def main(*input, tools):",
     "class A:\n  async def main(input, tools):"],
)  # fmt: skip
def test_a_source_without_its_entry_is_refused(head: str) -> None:
    assert codes(f"{head}\n    return 1\n") == ["code.bad_entry"]


def test_a_tool_that_is_not_declared_is_told_once_with_the_nearest() -> None:
    [one] = examine(f"{HEAD}    await tools.serch()\n    await tools.serch()\n", TOOLS)
    assert one["code"] == "code.tool_not_declared"
    assert one["hint"] == "did you mean tools.search?"


def test_dots_are_underscores() -> None:
    assert tool_names(["a.b", "c", "a_b", "a.b"]) == {"a_b": ["a.b", "a_b"], "c": ["c"]}
