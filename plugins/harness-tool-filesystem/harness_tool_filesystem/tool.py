"""The set ``filesystem``: calls come in, files of the workspace are read and changed through ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness_hookspecs.errors import HarnessError, NotFound, StoreError, ToolError
from harness_hookspecs.host import Files, ToolHost
from harness_hookspecs.tool import Settled, ToolContext, ToolResult, ToolSpec

from .changing import current_bytes, describe, plan_change
from .journal import Journal, Record
from .paths import parse_path
from .reading import Limits, digest_of, list_folder, read_lines
from .searching import search
from .settings import FilesystemSettings
from .specs import SPECS

__all__ = ["FilesystemTools", "build"]

_CHANGES: Final = ("filesystem_edit", "filesystem_write")


def build(settings: FilesystemSettings, host: ToolHost) -> FilesystemTools:
    """Build the set for one workspace."""
    return FilesystemTools(settings, host)


class FilesystemTools:
    """A tool set confined to the workspace; it holds nothing but a lock that keeps its own changes apart."""

    def __init__(self, settings: FilesystemSettings, host: ToolHost) -> None:
        self._limits = Limits(settings.file_limit_bytes, settings.result_limit_bytes)
        self._host = host
        self._journal = Journal(host.ports.files(host.state_dir))
        self._lock = host.ports.wait.lock()

    def specs(self) -> tuple[ToolSpec, ...]:
        """The five tools."""
        return SPECS

    def execute(self, name: str, args: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Run one call; see the contract."""
        ctx.cancel.raise_if_cancelled()
        files = ctx.ports.files(self._host.project_dir)
        try:
            if name in _CHANGES:
                return self._change(name, args, files, ctx)
            return ToolResult(*self._look(name, args, files, ctx))
        except (NotFound, StoreError) as error:  # it vanished meanwhile, or the disk is full
            raise ToolError(error.message, code="file.system", where=args.get("path")) from error
        except OSError as error:
            raise _told(error, args) from error

    def _look(self, name: str, args: Mapping[str, Any], files: Files, ctx: ToolContext) -> tuple[dict[str, Any], bool]:
        path = parse_path(args.get("path", "."))
        match name:
            case "filesystem_read":
                return read_lines(files, path, args, self._limits)
            case "filesystem_list":
                return list_folder(files, path, args, self._limits, ctx.cancel)
            case "filesystem_search":
                return search(files, path, args, self._limits, ctx)
        raise ToolError(f"There is no tool {name}.", code="tool.unknown")

    def _change(self, name: str, args: Mapping[str, Any], files: Files, ctx: ToolContext) -> ToolResult:
        path = parse_path(args["path"])
        with self._lock:
            before = current_bytes(files, path, self._limits)
            record = self._journal.find(ctx.key, name, args)
            if record is not None and _digest(before) == record.after:
                return _result(record)
            if record is not None and _digest(before) != record.before:
                hint = "Read the file and decide anew."
                raise ToolError("The file was changed meanwhile.", code="file.changed", where=args["path"], hint=hint)
            change = plan_change(name, args, before, self._limits)
            if record is None:
                value = describe(path, change, self._limits)
                record = Record(value["digest_before"], value["digest_after"], value)
                self._journal.add(ctx.key, name, args, record)
            ctx.cancel.raise_if_cancelled()
            if change.after != before:
                files.write_bytes(path, change.after)
            return _result(record)

    def probe(self, name: str, args: Mapping[str, Any], key: str) -> Settled:
        """Compare the file with what the call's record says about before and after."""
        if name not in _CHANGES:
            return Settled("unknown")
        record = self._journal.find(key, name, args)
        if record is None:
            return Settled("never_happened" if self._journal.is_complete() else "unknown")
        try:
            files = self._host.ports.files(self._host.project_dir)
            now = _digest(current_bytes(files, parse_path(args["path"]), self._limits))
        except (HarnessError, OSError):
            return Settled("unknown")
        if now == record.after:
            return Settled("happened", dict(record.value))
        return Settled("never_happened" if now == record.before else "unknown")

    def preview(self, name: str, args: Mapping[str, Any]) -> str | None:
        """The diff of a change, that it changes nothing or why it cannot be made; nothing for calls that only look."""
        if name not in _CHANGES:
            return None
        try:
            files = self._host.ports.files(self._host.project_dir)
            path = parse_path(args["path"])
            change = plan_change(name, args, current_bytes(files, path, self._limits), self._limits)
            value = describe(path, change, self._limits)
        except HarnessError as error:
            return f"It will fail: {error.message}"
        except OSError as error:
            return f"It will fail: {_told(error, args).message}"
        if not value["changed"]:
            return f"No change: {value['path']} has this content already.\n"
        return f"{value['diff']}[cut here]\n" if value["truncated"] else str(value["diff"])


def _digest(data: bytes | None) -> str | None:
    return None if data is None else digest_of(data)


def _result(record: Record) -> ToolResult:
    return ToolResult(dict(record.value), bool(record.value["truncated"]))


def _told(error: OSError, args: Mapping[str, Any]) -> ToolError:
    return ToolError(
        f"The file system says: {error.strerror or type(error).__name__}.",
        code="file.system",
        where=args.get("path"),
        errno=error.errno,
    )
