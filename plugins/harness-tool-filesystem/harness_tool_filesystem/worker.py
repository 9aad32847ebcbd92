"""Main of a child process: an expression and files come in on stdin, one JSON line for each line that matches goes out.

An expression can take for ever and cannot be stopped inside the interpreter that runs it, so it runs here and the
parent ends the process. The first line of stdin is ``{"pattern", "limit", "sizes"}``, then follow the files' bytes. A
line of stdout is ``[file, line, text, clipped]`` with the file's index; an expression that is none gives ``{"error"}``.
"""

from __future__ import annotations

import json
import re
import sys

__all__ = ["LINE_CHARACTERS", "main", "window"]

LINE_CHARACTERS = 400
"""So much of a line is shown."""


def main() -> None:
    """Read one request and answer it."""
    head, _, data = sys.stdin.buffer.read().partition(b"\n")
    request = json.loads(head)
    try:
        expression = re.compile(request["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        _say({"error": str(error)})
        return
    left = request["limit"]
    at = 0
    for index, size in enumerate(request["sizes"]):
        text = data[at : at + size].decode(errors="backslashreplace")
        at += size
        for number, line in enumerate(text.split("\n"), start=1):
            found = expression.search(line.removesuffix("\r"))
            if found is None:
                continue
            _say([index, number, *window(line, found.start())])
            left -= 1
            if not left:
                return


def window(line: str, column: int) -> tuple[str, bool]:
    """The part of a line around a column that is shown, and whether it is only a part."""
    whole = line.removesuffix("\r")
    start = max(0, min(column - LINE_CHARACTERS // 4, len(whole) - LINE_CHARACTERS))
    text = whole[start : start + LINE_CHARACTERS]
    return text, len(text) < len(whole)


def _say(value: object) -> None:
    sys.stdout.buffer.write(json.dumps(value).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
