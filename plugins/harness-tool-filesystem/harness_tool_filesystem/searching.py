"""A pattern and files of the workspace go in, the lines that match come out, within limits of size and time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import NotFound, Refused, ToolError
from harness_hookspecs.host import Files
from harness_hookspecs.kit.paths import encode_path
from harness_hookspecs.tool import ToolContext

from .paths import PROTECTED
from .reading import Limits, plain_facts, regular_file
from .worker import window

__all__ = ["search"]

_MATCHES: Final = 100
_TOTAL_BYTES: Final = 64 * 1024 * 1024
_WORKER: Final = Path(__file__).with_name("worker.py")


class _Hit(NamedTuple):
    file: int
    line: int
    text: str
    clipped: bool


class _Reading:
    """The files that are to be searched, read one by one until a limit is met."""

    def __init__(self, files: Files, args: Mapping[str, Any], limits: Limits, ctx: ToolContext) -> None:
        self._files, self._args, self._limits, self._ctx = files, args, limits, ctx
        self._end_seconds = ctx.ports.clock.monotonic() + ctx.timeout_seconds / 2
        self.names: list[str] = []
        self.skipped = 0
        self.stopped: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        room = _TOTAL_BYTES
        for name in self._wanted():
            self._ctx.cancel.raise_if_cancelled()
            if self._ctx.ports.clock.monotonic() > self._end_seconds:
                self.stopped = "time"
                return
            data = self._text(name)
            if data is None:
                self.skipped += 1
                continue
            room -= len(data)
            if room < 0:
                self.stopped = "size"
                return
            self.names.append(name)
            yield data

    def _wanted(self) -> Iterator[str]:
        path, glob = self._args["path"], self._args.get("glob")
        facts = plain_facts(self._files, path)
        if facts is None or facts.kind != "directory":
            regular_file(self._files, path)
            yield path
            return
        for name, found in self._files.walk(path):
            self._ctx.cancel.raise_if_cancelled()
            parts = name.split("/") if path == "." else name.removeprefix(f"{path}/").split("/")
            fits = glob is None or fnmatchcase(name, glob) or fnmatchcase(parts[-1], glob)
            if found.kind == "file" and fits and not set(parts[:-1]) & set(PROTECTED):
                yield name

    def _text(self, name: str) -> bytes | None:
        """The file's bytes; ``None`` when it is binary, too large or gone."""
        limit = self._limits.file_bytes
        try:
            data = self._files.read_bytes(name, limit_bytes=limit + 1)
        except (NotFound, Refused, OSError):
            return None
        return None if len(data) > limit or b"\0" in data else data


def search(
    files: Files, path: str, args: Mapping[str, Any], limits: Limits, ctx: ToolContext
) -> tuple[dict[str, Any], bool]:
    """Search a file or everything below a folder; what is in ``.git`` and ``.harness`` only when it is asked for.

    Returns:
        The result, and whether matches may be missing from it.

    Raises:
        ToolError: ``search.pattern`` for an expression that is none, ``search.failed`` when its process broke off.
        Cancelled: The token was set.
    """
    reading = _Reading(files, {**args, "path": path}, limits, ctx)
    limit = args.get("limit", _MATCHES)
    pattern = args["pattern"]
    hits = _expression(reading, pattern, limit + 1, ctx) if args.get("regex", False) else _literal(reading, pattern)
    matches: list[dict[str, Any]] = []
    room = limits.result_bytes
    for hit in hits:
        name = encode_path(reading.names[hit.file])
        room -= len(hit.text.encode()) + len(name.encode()) + 40
        if room < 0 or len(matches) == limit:
            reading.stopped = "matches"
            break
        matches.append({"path": name, "line": hit.line, "text": hit.text, "clipped": hit.clipped})
    value = {
        "matches": matches,
        "searched_files": len(reading.names),
        "skipped_files": reading.skipped,
        "stopped": reading.stopped,
        "truncated": reading.stopped is not None,
    }
    return value, reading.stopped is not None


def _literal(reading: _Reading, pattern: str) -> Iterator[_Hit]:
    wanted = pattern.encode()
    for index, data in enumerate(reading):
        at, line = data.find(wanted), 1
        seen = 0
        while at >= 0:
            line += data.count(b"\n", seen, at)
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            before = len(data[start:at].decode(errors="backslashreplace"))
            yield _Hit(index, line, *window(data[start:end].decode(errors="backslashreplace"), before))
            seen = end
            at = data.find(wanted, end)


def _expression(reading: _Reading, pattern: str, limit: int, ctx: ToolContext) -> Iterator[_Hit]:
    started = ctx.ports.clock.monotonic()
    contents = list(reading)
    head = json.dumps({"pattern": pattern, "limit": limit, "sizes": [len(data) for data in contents]}).encode()
    spent_seconds = ctx.ports.clock.monotonic() - started
    done = ctx.ports.processes.run(
        [sys.executable, "-I", "-S", str(_WORKER)],
        env={},
        stdin=b"\n".join([head, b"".join(contents)]),
        timeout_seconds=max(0.1, ctx.timeout_seconds * 0.9 - spent_seconds),
        cancel=ctx.cancel,
    )
    if done.timed_out:
        reading.stopped = "time"
    elif done.truncated:
        reading.stopped = "size"
    elif done.returncode < 0:
        what = f"The process of the search was killed from outside (signal {-done.returncode})."
        raise ToolError(what, code="search.failed", hint="Search again, and in fewer files when it is killed again.")
    elif done.returncode != 0:
        raise ToolError("The search broke off.", code="search.failed", hint="Search for a plain text instead.")
    for line in done.stdout.split(b"\n")[:-1]:  # what has no newline was cut
        answer = json.loads(line)
        if isinstance(answer, dict):
            raise ToolError(f"This is no regular expression: {answer['error']}.", code="search.pattern")
        yield _Hit(*answer)
