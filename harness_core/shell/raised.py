"""What a plugin raised in, the line of the plugin where it did so out: for the person alone, since a log that named
files would be another one on each machine."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Collection, Iterable
from types import FrameType

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit.render import escape_for_terminal, escape_line

from .perform_attempt import attempt

__all__ = ["place_raised", "tell"]

_HOSTS_OWN = ("harness_core", "harness_hookspecs")


def place_raised(error: BaseException, packages: Collection[str] = ()) -> str | None:
    """The innermost line of the plugin in whose code an error, or what caused it, was raised: ``FILE:LINE, in NAME``.

    A plugin's code begins where the host's ends; what it calls of other packages is none of its own. ``None`` for an
    error that did not come out of one, or is one of ours that says all there is to say.

    Args:
        error: What was raised.
        packages: The packages of the plugins there are, where they are known: a decorator stands before the function
            that it wraps, so that without them one of another package than Python's own is taken for the plugin.
    """
    cause = error.__cause__ if isinstance(error, HarnessError) else error
    if cause is None:
        return None
    steps = [(frame, line) for frame, line in traceback.walk_tb(cause.__traceback__)]
    called = _called([_package(frame) for frame, _ in steps], packages)
    found = [(frame, line) for frame, line in steps if _package(frame) == called]
    if called is None or not found:
        return None
    frame, line = found[-1]
    return f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}"


def _called(passed: Iterable[str], plugins: Collection[str]) -> str | None:
    foreign = [one for one in passed if one not in _HOSTS_OWN and one not in sys.stdlib_module_names]
    return next((one for one in foreign if one in plugins), foreign[0] if foreign else None)


def tell(error: HarnessError, *, debug: bool, redact: Callable[[str], str], packages: Collection[str]) -> None:
    """Tell a person on stderr of an error that is not theirs to catch: its message, where it was raised, and with
    ``debug`` the traceback.

    Called amid the work by whoever does it: nothing that goes wrong here reaches it, whatever stands at stderr.

    Args:
        error: It may say anything, as whatever a plugin says: no terminal obeys it, and no line of it looks like one of
            the host's.
        debug: Whether the traceback is wanted.
        redact: Takes the secrets out.
        packages: See ``place_raised``.
    """
    attempt(_write, error, debug, redact, packages, what="standard error")


def _write(error: HarnessError, debug: bool, redact: Callable[[str], str], packages: Collection[str]) -> None:
    said = "".join(_lines(error, debug, redact, packages))
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    if sys.stderr is not None:
        sys.stderr.write(said.encode(encoding, "backslashreplace").decode(encoding))


def _lines(error: HarnessError, debug: bool, redact: Callable[[str], str], packages: Collection[str]) -> Iterable[str]:
    yield f"harness: {_indented(redact(error.message))}\n"
    if place := place_raised(error, packages):
        yield f"  raised at {escape_line(redact(place))}\n"
    if debug and error.__cause__ is not None:
        told = "".join(traceback.format_exception(error.__cause__))  # survives a __str__ that raises
        yield f"  {_indented(redact(told.rstrip()))}\n"


def _indented(text: str) -> str:
    return escape_for_terminal(text).replace("\n", "\n  ")


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
