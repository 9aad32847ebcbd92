"""The text that is run: a step's source and the names of its tools go in, the source with a tail that calls ``main``
and what the tail means by its lines come out.

The source stands first, so that its lines keep their numbers. All values cross as JSON texts: what a stranger's code
makes is never walked by the host before it was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["CALL", "INPUT", "Program", "program_of"]

CALL: Final = "__harness_call"
"""What the tail calls for a tool: with its name in code and its arguments."""

INPUT: Final = "__harness_input"
"""The global that holds the input."""


class Program(NamedTuple):
    """What is fed.

    Attributes:
        text: The source and the tail.
        source_lines: How many lines of it are the source's.
        source_bytes: How many bytes of it.
        awaited_line: The line in which ``main`` is awaited.
        tools: The names in code, each with the tool's own.
    """

    text: str
    source_lines: int
    source_bytes: int
    awaited_line: int
    tools: Mapping[str, str]


def program_of(source: str, tools: Mapping[str, str]) -> Program:
    """Make the text.

    Raises:
        UnicodeEncodeError: The source holds a lone surrogate.
    """
    head = source.replace("\r\n", "\n").replace("\r", "\n")
    head = head if head.endswith("\n") else f"{head}\n"
    methods = [
        f"    async def {name}(__self, /, **given):\n"
        f"        return __harness_loads({CALL}({name!r}, __harness_dumps(given)))"
        for name in tools
    ] or ["    pass"]
    awaits = "__harness_output = await __harness_main"
    before = [
        "import json as __harness_json",
        "__harness_dumps = __harness_json.dumps",
        "__harness_loads = __harness_json.loads",
        "class HarnessTools:",
        *methods,
        f"__harness_main = main(__harness_loads({INPUT}), HarnessTools())",
    ]
    text = head + "\n".join([*before, awaits])
    return Program(
        f"{text}\n__harness_dumps(__harness_output)", head.count("\n"), len(head.encode()), text.count("\n") + 1, tools
    )
