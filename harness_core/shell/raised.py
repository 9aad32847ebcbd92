"""What a plugin raised in, the line of the plugin where it did so out: for the person alone, since a log that named
files would be another one on each machine."""

from __future__ import annotations

import traceback
from types import FrameType

from harness_hookspecs.errors import HarnessError

__all__ = ["place_raised", "told_of"]

_HOSTS_OWN = ("harness_core", "harness_hookspecs")


def place_raised(error: BaseException) -> str | None:
    """The innermost line of the plugin in whose code an error, or what caused it, was raised: ``FILE:LINE, in NAME``.

    A plugin's code begins where the host's ends; what it calls of other packages is none of its own. ``None`` for an
    error that did not come out of one, or is one of ours that says all there is to say.
    """
    cause = error.__cause__ if isinstance(error, HarnessError) else error
    if cause is None:
        return None
    steps = [(frame, line) for frame, line in traceback.walk_tb(cause.__traceback__)]
    called = next((package for frame, _ in steps if (package := _package(frame)) not in _HOSTS_OWN), None)
    found = [(frame, line) for frame, line in steps if _package(frame) == called]
    if called is None or not found:
        return None
    frame, line = found[-1]
    return f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}"


def told_of(error: HarnessError, *, debug: bool) -> str:
    """What a person is told of an error that is not theirs to catch: its message, where it was raised, and with
    ``debug`` the traceback. It may hold a secret, as whatever a plugin says."""
    place = place_raised(error)
    said = f"harness: {error.message}\n" + (f"  raised at {place}\n" if place else "")
    if not debug or error.__cause__ is None:
        return said
    return said + "".join(traceback.format_exception(error.__cause__))  # survives a __str__ that raises


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
