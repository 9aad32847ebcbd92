"""The five tools as models and the host see them: nothing goes in, their specifications come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness_hookspecs.tool import ToolSpec

__all__ = ["SPECS"]

_TIMEOUT_SECONDS: Final = 30.0
_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_FLAG: Final = {"type": "boolean"}
_MAYBE_DIGEST: Final = {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"}


def _path(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": 4096, "description": description}


def _number(description: str, default: int, maximum: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": maximum, "default": default, "description": description}


def _object(required: tuple[str, ...], properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _whole(**properties: Any) -> dict[str, Any]:
    return _object(tuple(properties), properties)


_CHANGE: Final = _whole(
    path=_TEXT,
    created=_FLAG,
    changed=_FLAG,
    size_bytes=_COUNT,
    digest_before=_MAYBE_DIGEST,
    digest_after=_MAYBE_DIGEST,
    diff=_TEXT,
    truncated=_FLAG,
)

SPECS: Final = (
    ToolSpec(
        name="filesystem_read",
        description="Read a text file of the workspace, or some of its lines.",
        input_schema=_object(
            ("path",),
            {
                "path": _path("The file, relative to the workspace."),
                "start_line": _number("The first line wanted, counted from 1.", 1, 1_000_000_000),
                "line_count": _number("How many lines at most.", 2_000, 1_000_000_000),
            },
        ),
        output_schema=_object(
            (
                "path", "text", "encoding", "bom", "eol", "start_line", "line_count", "total_lines", "size_bytes",
                "digest", "truncated",
            ),
            {
                "path": _TEXT,
                "text": _TEXT,
                "encoding": {"enum": ["utf-8", "unknown", "binary"]},
                "bom": _FLAG,
                "eol": {"enum": ["lf", "crlf", "mixed", "none"]},
                "start_line": _COUNT,
                "line_count": _COUNT,
                "total_lines": {"type": ["integer", "null"]},
                "size_bytes": _COUNT,
                "digest": _MAYBE_DIGEST,
                "hex": _TEXT,
                "truncated": _FLAG,
            },
        ),
        tier="T1",
        effect="pure",
        timeout_seconds=_TIMEOUT_SECONDS,
    ),
    ToolSpec(
        name="filesystem_search",
        description="Find the lines of workspace files that hold a text or match a regular expression.",
        input_schema=_object(
            ("pattern",),
            {
                "pattern": {
                    "type": "string", "minLength": 1, "maxLength": 1_000,
                    "description": "The text, or the expression when regex is true.",
                },
                "regex": {"type": "boolean", "default": False, "description": "Take it as a regular expression."},
                "path": {**_path("The file or folder to search."), "default": "."},
                "glob": {
                    "type": "string", "minLength": 1, "maxLength": 1_000,
                    "description": "Only files whose path or name fits, for example *.py.",
                },
                "limit": _number("How many lines at most.", 100, 1_000),
            },
        ),
        output_schema=_whole(
            matches={
                "type": "array",
                "items": _whole(path=_TEXT, line=_COUNT, text=_TEXT, clipped=_FLAG),
            },
            searched_files=_COUNT,
            skipped_files=_COUNT,
            stopped={"enum": [None, "matches", "size", "time"]},
            truncated=_FLAG,
        ),
        tier="T1",
        effect="pure",
        timeout_seconds=_TIMEOUT_SECONDS,
    ),
    ToolSpec(
        name="filesystem_list",
        description="List the files and folders in a folder of the workspace.",
        input_schema=_object(
            (),
            {
                "path": {**_path("The folder, relative to the workspace."), "default": "."},
                "recursive": {"type": "boolean", "default": False, "description": "Also what is in its folders."},
                "limit": _number("How many entries at most.", 200, 5_000),
            },
        ),
        output_schema=_whole(
            path=_TEXT,
            entries={
                "type": "array",
                "items": _whole(path=_TEXT, kind=_TEXT, size_bytes=_COUNT),
            },
            truncated=_FLAG,
        ),
        tier="T1",
        effect="pure",
        timeout_seconds=_TIMEOUT_SECONDS,
    ),
    ToolSpec(
        name="filesystem_edit",
        description=(
            "Replace one piece of text in a file. old_text must be copied exactly and occur once; an empty old_text "
            "makes a new file."
        ),
        input_schema=_object(
            ("path", "old_text", "new_text"),
            {
                "path": _path("The file, relative to the workspace."),
                "old_text": {"type": "string", "description": "What stands there now."},
                "new_text": {"type": "string", "description": "What is to stand there."},
            },
        ),
        output_schema=_CHANGE,
        tier="T2",
        effect="keyed",
        timeout_seconds=_TIMEOUT_SECONDS,
    ),
    ToolSpec(
        name="filesystem_write",
        description="Write a whole file, new or in place of what it held. Prefer filesystem_edit for changes.",
        input_schema=_object(
            ("path", "content"),
            {
                "path": _path("The file, relative to the workspace; folders are made."),
                "content": {"type": "string", "description": "Everything the file is to hold."},
            },
        ),
        output_schema=_CHANGE,
        tier="T2",
        effect="keyed",
        timeout_seconds=_TIMEOUT_SECONDS,
    ),
)  # fmt: skip
