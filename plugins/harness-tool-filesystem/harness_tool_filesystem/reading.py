"""Files of the workspace go in, what a model is shown of them comes out: lines of one file, or a listing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import Refused, ToolError
from harness_hookspecs.host import CancelToken, FileFacts, Files
from harness_hookspecs.kit.paths import encode_path

from .edit import BOM, style_of
from .paths import parents

__all__ = ["Limits", "digest_of", "list_folder", "plain_facts", "read_lines", "regular_file"]

_HEX_BYTES: Final = 256
_LINES: Final = 2_000
_ENTRIES: Final = 200
_VISITED_ENTRIES: Final = 200_000


class Limits(NamedTuple):
    """How much of the world is read and shown."""

    file_bytes: int
    result_bytes: int


def digest_of(data: bytes) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def plain_facts(files: Files, path: str) -> FileFacts | None:
    """The facts of a path that leads over folders only, ``None`` when there is nothing.

    Raises:
        Refused: ``path.symlink``: it leads over a link, so it is another name for something else.
        ToolError: ``file.no_folder``: a part of it is a file.
    """
    facts = None
    for place in parents(path):
        facts = files.facts(place)
        if facts is None:
            return None
        if facts.kind == "symlink":
            hint = "Name the file that it leads to."
            raise Refused("The path leads over a link.", code="path.symlink", where=encode_path(place), hint=hint)
        if place != path and facts.kind != "directory":
            raise ToolError("A part of the path is no folder.", code="file.no_folder", where=encode_path(place))
    return facts


def regular_file(files: Files, path: str) -> FileFacts:
    """The facts of a file that can be read.

    Raises:
        ToolError: ``file.not_found``, ``file.is_folder`` or ``file.special``.
        Refused: ``path.symlink``.
    """
    facts = plain_facts(files, path)
    where = encode_path(path)
    if facts is None:
        raise ToolError("There is no such file.", code="file.not_found", where=where, hint="List the folder first.")
    if facts.kind == "directory":
        raise ToolError("This is a folder.", code="file.is_folder", where=where, hint="Use filesystem_list.")
    if facts.kind == "other":
        raise ToolError("This is a device, a pipe or a socket.", code="file.special", where=where)
    return facts


def read_lines(files: Files, path: str, args: Mapping[str, Any], limits: Limits) -> tuple[dict[str, Any], bool]:
    """Read some lines of one file.

    Returns:
        The result, and whether something that was asked for is missing from it.

    Raises:
        ToolError: It cannot be read.
    """
    facts = regular_file(files, path)
    data = files.read_bytes(path, limit_bytes=limits.file_bytes + 1)
    cut = len(data) > limits.file_bytes
    if cut:
        data = _whole_lines(data[: limits.file_bytes])
    style = style_of(data)
    head = {
        "path": encode_path(path),
        "size_bytes": facts.size_bytes if cut else len(data),
        "digest": None if cut else digest_of(data),
        **style._asdict(),
    }
    if style.encoding == "binary":
        shown = {**_BINARY, "hex": data[:_HEX_BYTES].hex(), "truncated": len(data) > _HEX_BYTES or cut}
    else:
        text = data.removeprefix(BOM if style.bom else b"").decode(errors="backslashreplace")
        shown = _lines_of(text, args, limits.result_bytes)
    if cut:
        shown |= {"total_lines": None, "truncated": True}
    return head | shown, shown["truncated"]


_BINARY: Final[dict[str, Any]] = {"text": "", "start_line": 1, "line_count": 0, "total_lines": None}


def _whole_lines(data: bytes) -> bytes:
    """Drop what a cut has left of the last line, or of the last character where there is only one line."""
    end = data.rfind(b"\n") + 1
    if end:
        return data[:end]
    for dropped in range(4):
        try:
            data[: len(data) - dropped].decode()
        except UnicodeDecodeError:
            continue
        return data[: len(data) - dropped]
    return data


def _lines_of(text: str, args: Mapping[str, Any], limit_bytes: int) -> dict[str, Any]:
    *lines, rest = text.split("\n")
    lines = [*(f"{line}\n" for line in lines), *([rest] if rest else [])]
    first = args.get("start_line", 1)
    rest_of_file = lines[first - 1 :]
    asked = rest_of_file[: args.get("line_count", _LINES)]
    kept = _fitting(asked, limit_bytes)
    shown = "".join(asked[:kept])
    if asked and not kept:  # one line that does not fit is cut rather than hidden
        shown, kept = asked[0].encode()[:limit_bytes].decode(errors="ignore"), 1
    wanted = asked if "line_count" in args else rest_of_file
    return {
        "text": shown,
        "start_line": first,
        "line_count": kept,
        "total_lines": len(lines),
        "truncated": len(shown) < sum(map(len, wanted)),
    }


def _fitting(lines: Iterable[str], limit_bytes: int) -> int:
    used = 0
    count = 0
    for line in lines:
        used += len(line.encode())
        if used > limit_bytes:
            break
        count += 1
    return count


def list_folder(
    files: Files, path: str, args: Mapping[str, Any], limits: Limits, cancel: CancelToken
) -> tuple[dict[str, Any], bool]:
    """List a folder; links are named, not followed.

    Returns:
        The result, and whether entries are missing from it.

    Raises:
        ToolError: ``file.not_found`` or ``file.no_folder``.
        Cancelled: The token was set.
    """
    facts = plain_facts(files, path)
    where = encode_path(path)
    if facts is None:
        raise ToolError("There is no such folder.", code="file.not_found", where=where)
    if facts.kind != "directory":
        raise ToolError("This is no folder.", code="file.no_folder", where=where, hint="Use filesystem_read.")
    entries: list[dict[str, Any]] = []
    room = limits.result_bytes
    depth = 0 if path == "." else path.count("/") + 1
    for visited, (name, found) in enumerate(files.walk(path)):
        cancel.raise_if_cancelled()
        if name.count("/") > depth and not args.get("recursive", False):
            continue
        shown = encode_path(name)
        room -= len(shown.encode()) + 40
        if room < 0 or len(entries) >= args.get("limit", _ENTRIES) or visited >= _VISITED_ENTRIES:
            return {"path": where, "entries": entries, "truncated": True}, True
        entries.append({"path": shown, "kind": found.kind, "size_bytes": found.size_bytes})
    return {"path": where, "entries": entries, "truncated": False}, False
