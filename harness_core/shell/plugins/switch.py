"""A plugin switched off or on: ``harness.yaml`` as text goes in, the same text with another ``plugins.disable`` out.

Everything else in the file stays as it is, comments included. What comes out is read again and compared, so a file of a
shape that is not foreseen here is refused, never damaged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from harness_hookspecs.errors import ConfigError

__all__ = ["disabled_in", "with_disabled"]

_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
_NOT_PLAIN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def with_disabled(text: str, names: Sequence[str]) -> str:
    """Write a list into ``plugins.disable``.

    Args:
        text: The file; empty when there is none yet.
        names: The whole list.

    Raises:
        ConfigError: The file cannot be read, or cannot be changed without touching more (code ``config.edit``).
    """
    import yaml

    value = f"[{', '.join(map(_written, names))}]"
    try:
        _refuse_bombs(text)
        expected = _expected(yaml.safe_load(text), names)
        changed = _changed(yaml.compose(text, yaml.SafeLoader), text, value)
        fits = yaml.safe_load(changed) == expected
    except (ConfigError, yaml.YAMLError, AttributeError, TypeError, IndexError) as error:
        said = f"harness.yaml cannot be changed: {error}"
        raise ConfigError(said, code="config.edit", hint=_by_hand(value)) from error
    if not fits:
        raise ConfigError("harness.yaml cannot be changed in place", code="config.edit", hint=_by_hand(value))
    return changed


def _refuse_bombs(text: str) -> None:
    """Read it strictly first: a few aliases of aliases would keep what follows busy for ever."""
    from harness_core.shell.yaml_nodes import read_yaml

    read_yaml(text.encode(errors="surrogateescape"), "harness.yaml")


def _by_hand(value: str) -> str:
    return f"write by hand: plugins: {{disable: {value}}}"


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in _NOT_PLAIN else json.dumps(name)


def _expected(data: Any, names: Sequence[str]) -> dict[str, Any]:
    whole = dict(data or {})
    return {**whole, "plugins": {**(whole.get("plugins") or {}), "disable": list(names)}}


def _changed(root: Any, text: str, value: str) -> str:
    if root is None:  # nothing but comments
        return _appended(text, value)
    plugins = _entry(root, "plugins")
    if plugins is None:
        return _inserted(root, text, f"plugins: {{disable: {value}}}") if root.flow_style else _appended(text, value)
    key, inner = plugins
    if not hasattr(inner, "flow_style"):  # "plugins:" with nothing behind it
        return _replaced(text, key, inner, f" {{disable: {value}}}")
    disable = _entry(inner, "disable")
    if disable is None:
        return _inserted(inner, text, f"disable: {value}")
    return _replaced(text, *disable, f" {value}")


def _entry(mapping: Any, name: str) -> tuple[Any, Any] | None:
    return next(((key, value) for key, value in mapping.value if key.value == name), None)


def _appended(text: str, value: str) -> str:
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}plugins:\n  disable: {value}\n"


def _inserted(mapping: Any, text: str, line: str) -> str:
    """Put an entry before the first one of a mapping."""
    at = mapping.start_mark.index
    if mapping.flow_style:
        comma = ", " if mapping.value else ""
        return f"{text[: at + 1]}{line}{comma}{text[at + 1 :]}"
    return f"{text[:at]}{line}\n{' ' * mapping.start_mark.column}{text[at:]}"


def _replaced(text: str, key: Any, value: Any, new: str) -> str:
    """Replace all between a key's colon and the end of its value."""
    colon = text.index(":", key.end_mark.index)
    end = value.end_mark.index
    if isinstance(value.value, list) and not value.flow_style and value.value:
        end = value.value[-1].end_mark.index  # a block's own end mark lies behind the comments that follow it
    return f"{text[: colon + 1]}{new}{text[max(end, colon + 1) :]}"


def disabled_in(text: str) -> list[str]:
    """Give the list that stands in ``plugins.disable`` of a file; empty for none, or when the file cannot be read."""
    import yaml

    try:
        _refuse_bombs(text)
        found = yaml.safe_load(text)["plugins"]["disable"]
    except (ConfigError, yaml.YAMLError, TypeError, KeyError):
        return []
    return [str(name) for name in found] if isinstance(found, list) else []
