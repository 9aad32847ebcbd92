"""Config paths: the text ``bind."worker.code-run"`` to its segments, and segments to that text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness_hookspecs.errors import ConfigError

__all__ = ["ConfigPath", "format_path", "parse_path"]

ConfigPath = tuple[str | int, ...]
"""The keys from the top of the namespace that the six files share, and list indexes as integers."""

_PLAIN = re.compile(r"[^\s.\"\[\]]+")
_NAME = r'"(?:[^"\\]|\\.)*"|[^\s."\[\]]+'
_WHOLE = re.compile(rf"(?:{_NAME})(?:\.(?:{_NAME})|\[[0-9]{{1,6}}\])*")
_SEGMENT = re.compile(rf"(?P<name>{_NAME})|\[(?P<index>[0-9]+)\]")


def format_path(path: Sequence[str | int]) -> str:
    """Write a path as text; a key with a dot, a space, a quote or a bracket is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            quoted = part.replace("\\", "\\\\").replace('"', '\\"')
            text += f'."{quoted}"' if text else f'"{quoted}"'
    return text


def parse_path(text: str) -> ConfigPath:
    """Read a path that a person wrote.

    Raises:
        ConfigError: The text is not a path (code ``config.path``).
    """
    if not _WHOLE.fullmatch(text):
        hint = 'write keys joined by dots, for example run.max_depth or bind."worker.code-run"'
        raise ConfigError(f'"{text}" is not a config key', code="config.path", hint=hint)
    return tuple(_segment(found) for found in _SEGMENT.finditer(text))


def _segment(found: re.Match[str]) -> str | int:
    if found["index"]:
        return int(found["index"])
    name = found["name"]
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name
