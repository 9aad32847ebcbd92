"""A call that changes a file and the file's bytes go in, the bytes afterwards and what to say about them come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness_hookspecs.errors import Refused, ToolError
from harness_hookspecs.host import Files
from harness_hookspecs.kit.paths import encode_path

from .diff import unified_diff
from .edit import replace_once
from .paths import protected_part
from .reading import Limits, digest_of, plain_facts, regular_file

__all__ = ["Change", "current_bytes", "describe", "plan_change"]


class Change(NamedTuple):
    """A file before and after; ``before`` is ``None`` when it is to be made."""

    before: bytes | None
    after: bytes


def current_bytes(files: Files, path: str, limits: Limits) -> bytes | None:
    """What the file that is to be changed holds now, ``None`` when there is none.

    Raises:
        ToolError: It is no regular file, or too large.
        Refused: ``path.protected``: it decides what later runs. ``path.symlink``: the name stands for another file.
    """
    part = protected_part(path)
    if part is not None:
        message, where = f"{encode_path(part)} is protected.", encode_path(path)
        raise Refused(message, code="path.protected", where=where, hint="Write elsewhere.")
    if plain_facts(files, path) is None:
        return None
    facts = regular_file(files, path)
    if facts.size_bytes > limits.file_bytes:
        raise ToolError("The file is too large.", code="file.too_large", where=encode_path(path))
    return files.read_bytes(path)


def plan_change(name: str, args: Mapping[str, Any], before: bytes | None, limits: Limits) -> Change:
    """Work out what the file is to hold.

    Raises:
        ToolError: ``edit.*``: the edit does not fit the file; ``file.too_large``: the result would be.
    """
    if name == "filesystem_write":
        after = args["content"].encode()
    elif before:
        after = _edited(before, args)
    elif args["old_text"]:
        what = "The file is empty." if before == b"" else "There is no such file."
        code = "edit.not_found" if before == b"" else "file.not_found"
        raise ToolError(what, code=code, where=args["path"], hint="An empty old_text makes the file.")
    else:
        after = args["new_text"].encode()
    if len(after) > limits.file_bytes:
        raise ToolError("The file would be too large.", code="file.too_large", where=args["path"])
    return Change(before, after)


def _edited(before: bytes, args: Mapping[str, Any]) -> bytes:
    if not args["old_text"]:
        hint = "Give the text to replace, or use filesystem_write."
        raise ToolError("The file exists and holds something.", code="edit.exists", where=args["path"], hint=hint)
    return replace_once(before, args["old_text"], args["new_text"])


def describe(path: str, change: Change, limits: Limits) -> dict[str, Any]:
    """The result of the call, its diff cut where it is too long and marked so."""
    diff = unified_diff(path, change.before, change.after)
    shown = diff.encode()[: limits.result_bytes].decode(errors="ignore")
    cut = len(shown) < len(diff)
    if cut:
        shown = shown[: shown.rfind("\n") + 1]
    return {
        "path": encode_path(path),
        "created": change.before is None,
        "changed": change.before != change.after,
        "size_bytes": len(change.after),
        "digest_before": None if change.before is None else digest_of(change.before),
        "digest_after": digest_of(change.after),
        "diff": shown,
        "truncated": cut,
    }
