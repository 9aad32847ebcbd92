"""The set ``effects``: calls come in, lines in one append-only file come out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_hookspecs.errors import ConfigError, Refused, ToolError
from harness_hookspecs.host import ToolHost
from harness_hookspecs.tool import Settled, ToolContext, ToolResult, ToolSpec

from .settings import EffectsSettings
from .specs import SPECS

__all__ = ["EffectsTools", "build"]


def build(settings: EffectsSettings, host: ToolHost) -> EffectsTools:
    """Build the set for one file.

    Raises:
        ConfigError: Neither the settings nor the environment name a file.
    """
    file = settings.file or os.environ.get("HARNESS_EFFECTS_FILE", "")
    if not file:
        raise ConfigError("There is no file for the effects.", hint="Set tools.effects.file or HARNESS_EFFECTS_FILE.")
    return EffectsTools(host.project_dir / file, probes=settings.probes)


class EffectsTools:
    """Appends ``{"tool", "key", "args", "pid"}`` for each call, in one write that is on the disk when it returns."""

    def __init__(self, file: Path, *, probes: bool = True) -> None:
        self._file, self._probes = file, probes

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools."""
        return SPECS

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Run one call; see the contract."""
        ctx.cancel.raise_if_cancelled()
        match name:
            case "effects_keyed":
                if not self._happened(ctx.key):
                    self._append(name, args, ctx.key)
            case "effects_slow":
                self._slowly(name, args, ctx)
            case "effects_fail":
                self._append(name, args, ctx.key)
                _fail(args.get("how", "error"))
            case "effects_big":
                self._append(name, args, ctx.key)
                return ToolResult("x" * args.get("size_bytes", 1_048_576))
            case "effects_pure" | "effects_unkeyed" | "effects_network" | "effects_destroy":
                self._append(name, args, ctx.key)
            case _:
                raise ToolError(f"There is no tool {name}.", code="tool.unknown")
        return ToolResult({"done": name, "note": args.get("note", "")})

    def _slowly(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> None:
        line = args.get("line", "before")
        if line != "after":
            self._append(name, args, ctx.key)
        ctx.ports.clock.sleep(args.get("seconds", 1), None if args.get("deaf") else ctx.cancel)
        if line != "before":
            self._append(name, args, ctx.key)

    def probe(self, name: str, args: Mapping[str, Any], key: str) -> Settled:
        """Look for the key in the file; lines are never lost, so what is not there never happened."""
        if not self._probes:
            return Settled("unknown")
        return Settled("happened" if self._happened(key) else "never_happened", {"done": name})

    def _append(self, name: str, args: Mapping[str, Any], key: str) -> None:
        line = json.dumps({"tool": name, "key": key, "args": dict(args), "pid": os.getpid()})
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(handle, f"{line}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def _happened(self, key: str) -> bool:
        try:
            lines = self._file.read_text(encoding="utf-8").split("\n")[:-1]
        except FileNotFoundError:
            return False
        return any(json.loads(line)["key"] == key for line in lines)


def _fail(how: str) -> None:
    if how == "error":
        raise ToolError("It failed, as it was told to.", code="effects.failed")
    if how == "refused":
        raise Refused("It refused, as it was told to.", code="effects.refused")
    if how == "crash":
        raise RuntimeError("It crashed, as it was told to.")
