"""Takes a page in Markdown, gives its examples in order: files to write, commands with their output, Python to run.

What is an example is said by the block itself, so a reader sees nothing odd::

    ```yaml
    # .harness/models.yaml              a first line that names a file: the block is written there
    ```
    ```console
    $ harness config check              run in the page's own empty project; what follows is the expected output,
    ok: ...                             where ``...`` stands for anything; no output given means any will do
    $ harness show nothing  # exit 4    another exit than 0 is said
    ```
    ```python
    print("run in the same folder")
    ```

Blocks of any other language, and indented ones, are not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Command", "Example", "File", "Program", "agrees", "examples"]

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_LINE = re.compile(r"# ([\w./-]+\.\w+)$")
EXIT = re.compile(r"\s+# exit (\d+)$")


@dataclass(frozen=True)
class File:
    """A block that is written to a file."""

    line: int
    path: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command line, the output that is expected (none: any) and the exit."""

    line: int
    text: str
    output: str
    exit: int


@dataclass(frozen=True)
class Program:
    """A block of Python that must run to its end."""

    line: int
    text: str


Example = File | Command | Program


def examples(page: str) -> Iterator[Example]:
    """Give the examples of a page, each with the line where it stands."""
    for block in BLOCK.finditer(page):
        language, text = block.groups()
        line = page.count("\n", 0, block.start(2)) + 1
        named = FILE_LINE.match(text.partition("\n")[0])
        if named:
            yield File(line, named[1], text)
        elif language == "console":
            yield from _commands(text.splitlines(), line)
        elif language == "python":
            yield Program(line, text)


def _commands(lines: list[str], first: int) -> Iterator[Command]:
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        stop = start
        while lines[stop].endswith("\\"):
            stop += 1
        text = "\n".join(lines[start : stop + 1]).removeprefix("$ ")
        said = EXIT.search(text)
        output = "\n".join(lines[stop + 1 : end]).strip()
        yield Command(first + start, EXIT.sub("", text), output, int(said[1]) if said else 0)


def agrees(expected: str, actual: str) -> bool:
    """Compare an output with what the page says, where ``...`` stands for anything, line ends included."""
    if not expected:
        return True
    pattern = ".*?".join(map(re.escape, expected.split("...")))
    stripped = "\n".join(line.rstrip() for line in actual.strip().splitlines())
    return re.fullmatch(pattern, stripped, re.DOTALL) is not None
