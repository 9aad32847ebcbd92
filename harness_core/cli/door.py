"""Arguments in, the command run, and whatever it raises turned into one exit code, a text or a document."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from harness_hookspecs.errors import Cancelled, HarnessError

from .errors import INTERNAL, INTERRUPTED, USAGE, error_document, exit_of
from .group import harness
from .options import GlobalOptions, UsageError, is_json, split_globals
from .output import complain, write_document

__all__ = ["internal", "run"]

_REPORT: Final = "run it again with --debug and report what it prints"


def run(argv: Sequence[str], env: Mapping[str, str] = os.environ) -> int:
    """Run one command; only what nobody foresaw gets past here.

    Args:
        argv: The arguments without the program's name.
        env: The environment.

    Returns:
        The exit code.
    """
    as_json = is_json(argv)
    options = GlobalOptions(debug="--debug" in argv)
    try:
        options, rest = split_globals(argv, env)
        return _code(harness.main(args=rest or ["--help"], prog_name="harness", obj=options, standalone_mode=False))
    except (click.UsageError, UsageError) as error:
        return _usage(error, as_json)
    except click.exceptions.Exit as error:
        return error.exit_code
    except HarnessError as error:
        return _failed(error, as_json, options)
    except (KeyboardInterrupt, click.Abort):
        return _interrupted(as_json)
    except BrokenPipeError:
        return _reader_gone()


def _code(result: Any) -> int:
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _document(code: str, message: str, hint: str | None = None) -> dict[str, Any]:
    return error_document(HarnessError(message, code=code, hint=hint))


def _usage(error: Exception, as_json: bool) -> int:
    message = error.format_message() if isinstance(error, click.UsageError) else str(error)
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"see: {context.command_path} --help" if context else "see: harness --help"
    if as_json:
        write_document(_document("usage", message, hint))
    complain(f"harness: {message}\n  {hint}")
    return USAGE


def _failed(error: HarnessError, as_json: bool, options: GlobalOptions) -> int:
    if options.debug:
        import traceback

        traceback.print_exception(error)
    if as_json:
        write_document(error_document(error))
    complain(_people(error))
    return exit_of(error)


def _people(error: HarnessError) -> str:
    """What, where, what next. An error that lists its problems names each place itself."""
    problems = error.facts.get("problems") or ()
    where = f"{error.where}: " if error.where and len(problems) < 2 else ""
    hint = f"\n  {error.hint}" if error.hint and len(problems) < 2 else ""
    return f"harness: {where}{error.message}{hint}"


def _interrupted(as_json: bool) -> int:
    error = Cancelled("interrupted", code="interrupted")
    if as_json:
        write_document(error_document(error))
    complain("harness: interrupted")
    return INTERRUPTED


def _reader_gone() -> int:
    """Whoever read stdout has stopped: nothing more is said, also not by Python while it ends."""
    sys.stdout = None  # Python then flushes nothing
    return 1


def internal(error: Exception, argv: Sequence[str]) -> int:
    """Say that something of ours is broken: one line, the traceback only with ``--debug``.

    Args:
        error: What nobody foresaw.
        argv: The arguments as they were given.

    Returns:
        The exit code.
    """
    if "--debug" in argv:
        import traceback

        traceback.print_exception(error)
    message = f"{type(error).__name__}: {error}"
    if is_json(argv):
        write_document(_document("internal", message, _REPORT))
    complain(f"harness: internal error: {message}\n  {_REPORT}")
    return INTERNAL
