"""Arguments in, the command run, and whatever it raises turned into one exit code, a text or a document."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import click

from harness_core.shell.ports_streams import drop_unwritable_results
from harness_hookspecs.errors import Cancelled, HarnessError

from .errors import INTERNAL, INTERRUPTED, USAGE, error_document, exit_of, limit_of
from .group import ReaderGone, harness
from .options import GlobalOptions, UsageError, is_json, split_globals
from .output import complain, write_document

__all__ = ["internal", "let_go_of_broken_streams", "run"]

_MAX_EXIT: Final = 255
_READER_GONE: Final = 128 + signal.SIGPIPE  # whoever read stdout has stopped: nothing more is said, as of a signal
_UNWRITABLE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EAGAIN}
"""What a stream that is full, lost or not for writing says to whoever prints; others who write name their file."""

_GROUP_ALONE: Final = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""Its message is the group's whole help; before click 8.2 that was no error."""
_REPORT: Final = "run it again with --debug and report what it prints"


def run(argv: Sequence[str], env: Mapping[str, str] = os.environ, *, own_process: bool = False) -> int:
    """Run one command; only what nobody foresaw gets past here.

    Args:
        argv: The arguments without the program's name.
        env: The environment.
        own_process: Whether the process is there for this command alone, and its streams with it.

    Returns:
        The exit code.
    """
    as_json = is_json(argv)
    options = GlobalOptions(debug="--debug" in argv)
    try:
        options, rest = split_globals(argv, env)
        options = options._replace(own_process=own_process)
        return _ended(rest or ["--help"], options)
    except (click.UsageError, UsageError) as error:
        return _usage(error, as_json)
    except click.ClickException as error:  # how a command of a plugin says that it failed
        failed = _failed(HarnessError(error.format_message(), code="command.failed"), as_json, options)
        return _exit(error.exit_code) or failed
    except HarnessError as error:
        return _failed(error, as_json, options)
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(as_json)
    except (BrokenPipeError, ReaderGone):
        return _READER_GONE
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        said = f"what was to be printed cannot be written: {error.strerror}"
        return _failed(HarnessError(said, code="output.failed"), False, options)


def _ended(words: Sequence[str], options: GlobalOptions) -> int:
    """Run the command; one of a plugin may end in any way that click knows."""
    try:
        code = _exit(harness.main(list(words), "harness", standalone_mode=False, obj=options, color=_colour(options)))
    except SystemExit as error:
        code = _left(error.code)
    try:
        if sys.stdout:
            sys.stdout.flush()  # what cannot be written is to be known here, not when Python ends
    except OSError:
        if code == 0:
            raise  # else the command's own end says more, that its terminal was closed for example
    return code


def _colour(options: GlobalOptions) -> bool | None:
    """What click does with colour that commands print through it: none with ``--plain``, else what it finds out."""
    return False if options.plain else None


def _exit(found: Any) -> int:
    """The exit of a process, 0 to 255; what is no number is a result and no exit, as click has it."""
    if not isinstance(found, int) or isinstance(found, bool):
        return 0
    if 0 <= found <= _MAX_EXIT:
        return int(found)
    complain(f"harness: the command ended with {found}, which is no exit code")
    return INTERNAL


def _left(said: object) -> int:
    """What ``sys.exit`` was given, as Python reads it."""
    if said is None or isinstance(said, int):
        return _exit(int(said or 0))
    complain(f"harness: {said}")
    return 1


def _document(code: str, message: str, hint: str | None = None) -> dict[str, Any]:
    return error_document(HarnessError(message, code=code, hint=hint))


def _write(document: Mapping[str, Any]) -> None:
    with suppress(OSError):  # the exit and the line for people say it where stdout cannot
        write_document(document)


def _usage(error: Exception, as_json: bool) -> int:
    message = error.format_message() if isinstance(error, click.UsageError) else str(error)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, _GROUP_ALONE) and not as_json:
        complain(message)
        return USAGE
    hint = f"see: {_path(context)} --help" if context else "see: harness --help"
    if as_json:
        _write(_document("usage", message, hint))
    complain(f"harness: {message}\n  {hint}")
    return USAGE


def _path(context: click.Context) -> str:
    """What a person types for a command: one that stands behind its group's own name is not in any list."""
    behind = context.parent if context.command.hidden else None
    return (behind or context).command_path


def _failed(error: HarnessError, as_json: bool, options: GlobalOptions) -> int:
    if options.debug:
        _trace(error)
    limit = None if error.hint else limit_of(error)
    if limit is not None:  # it was named already; what can be done about it was not
        error.hint = limit.hint
    if as_json:
        _write(error_document(error))
    complain(_people(error))
    if error.code.startswith("plugin."):
        from harness_core.shell.raised import place_raised

        if place := place_raised(error):
            complain(f"  raised at {place}")
    return exit_of(error)


def _trace(error: BaseException) -> None:
    import traceback

    complain("".join(traceback.format_exception(error)).rstrip())


def _people(error: HarnessError) -> str:
    """What, where, what next. An error that lists its problems names each place itself."""
    problems = error.facts.get("problems") or ()
    where = f"{error.where}: " if error.where and len(problems) < 2 else ""
    hint = f"\n  {error.hint}" if error.hint and len(problems) < 2 else ""
    return f"harness: {where}{error.message}{hint}"


def _interrupted(as_json: bool) -> int:
    error = Cancelled("interrupted", code="interrupted")
    if as_json:
        _write(error_document(error))
    complain("harness: interrupted")
    return INTERRUPTED


def internal(error: BaseException, argv: Sequence[str]) -> int:
    """Say what nobody foresaw: a limit of the machine, else something of ours that is broken.

    It is one line; the traceback comes only with ``--debug``.

    Args:
        error: What nobody foresaw.
        argv: The arguments as they were given.

    Returns:
        The exit code.
    """
    if "--debug" in argv:
        _trace(error)
    limit = limit_of(error)
    if limit is not None:
        return _failed(limit, is_json(argv), GlobalOptions())
    message = f"{type(error).__name__}: {error}"
    if is_json(argv):
        _write(_document("internal", message, _REPORT))
    complain(f"harness: internal error: {message}\n  {_REPORT}")
    return INTERNAL


def let_go_of_broken_streams() -> None:
    """Leave nothing to flush that cannot be: Python would complain of it as it ends, and spoil the exit code."""
    drop_unwritable_results()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            if stream and not stream.closed:
                stream.flush()
        except OSError:
            setattr(sys, name, None)  # Python then flushes nothing
