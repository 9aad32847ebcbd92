"""A tool's call in, what came of it out: what a tool set gives is looked at here, and nowhere else relied on.

A tool set is handed a copy of the arguments, to do with as it likes: what was approved and what is recorded is the
host's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.errors import ToolError
from harness_hookspecs.host import CancelToken, Ports
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.kit.frozen import thaw
from harness_hookspecs.tool import Previews, Probes, Settled, ToolContext, ToolResult

from .deadlines import Deadlines
from .perform_attempt import Attempt, attempt
from .toolbox import Tool

__all__ = ["execute", "preview", "probe"]


def execute(
    tool: Tool, args: Mapping[str, Any], key: str, *, cancel: CancelToken, ports: Ports, deadlines: Deadlines
) -> Attempt[ToolResult]:
    """Run a call that may run, within the tool's time.

    Args:
        key: The effect's identity.
        cancel: Set when the session stops.

    Returns:
        The result, whose value may still be something that cannot be recorded, or the error: what the tool raised,
        ``tool.timeout`` or ``tool.no_result``.
    """
    with deadlines.limit(cancel, tool.timeout_seconds, f"tool {tool.name}") as token:
        context = ToolContext(token, ports, key, tool.timeout_seconds)
        done = attempt(tool.toolset.execute, tool.name, thaw(args), context, what=f"tool {tool.name}")
    if _is_result(done.value):
        return done
    if token.reason == "timeout":
        late = f"tool {tool.name} took longer than {tool.timeout_seconds:g} s"
        return Attempt(None, ToolError(late, code="tool.timeout"))
    if done.error is not None:
        return done
    return Attempt(None, ToolError(f"tool {tool.name} gave {_what_else(done.value)}", code="tool.no_result"))


def _is_result(value: Any) -> bool:
    return isinstance(value, ToolResult) and isinstance(value.truncated, bool)


def _what_else(value: Any) -> str:
    if isinstance(value, ToolResult):
        return f"ToolResult whose truncated is {type(value.truncated).__name__}"
    return f"{type(value).__name__} where a ToolResult belongs"


def preview(tool: Tool, args: Mapping[str, Any]) -> str | None:
    """What the tool shows of a call to whoever is asked; ``None`` where it shows nothing, or nothing that is a text."""
    if tool.previews is None:
        return None
    return attempt(_preview, tool.previews, tool.name, thaw(args), what=f"the preview of {tool.name}").value


def _preview(previews: Previews, name: str, args: Mapping[str, Any]) -> str | None:
    shown: Any = previews.preview(name, args)
    if not isinstance(shown, str):
        return None
    shown.encode()  # raises for a lone surrogate
    return shown


def probe(tool: Tool, args: Mapping[str, Any], key: str) -> Settled | None:
    """What the tool finds out about a call whose result was lost; ``None`` where it does not know, or does not say it
    in a word that there is, or with a value that can be recorded: then the call stays in doubt (I-16).
    """
    if tool.probes is None:
        return None
    return attempt(_probe, tool.probes, tool.name, thaw(args), key, what=f"the probe of {tool.name}").value


def _probe(probes: Probes, name: str, args: Mapping[str, Any], key: str) -> Settled | None:
    found: Any = probes.probe(name, args, key)
    if not isinstance(found, Settled) or found.outcome not in ("happened", "never_happened"):
        return None
    dumps(found.value)
    return found
