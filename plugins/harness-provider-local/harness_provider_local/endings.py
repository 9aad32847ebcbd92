"""A worker's return code and the end of its stderr go in; the error that tells a person what happened comes out."""

from __future__ import annotations

import signal
from typing import Final, NamedTuple

from harness_hookspecs.errors import ProviderError

__all__ = ["Death", "died", "grammar_fault"]

STDERR_TAIL_CHARACTERS: Final = 2000
FAILED_OPEN: Final = "llg error:"
"""The engine's log line about a schema it could not compile; it then generates without any constraint."""


class Death(NamedTuple):
    """How a worker ended: the return code as ``subprocess`` gives it, and the end of what it wrote to stderr."""

    returncode: int
    stderr: str


class _Cause(NamedTuple):
    reason: str
    sentence: str
    hint: str


_CAUSES: Final = {
    signal.SIGILL: _Cause(
        "illegal_instruction",
        "the engine uses an instruction this processor does not have",
        "Install an engine that was built for this machine's processor.",
    ),
    signal.SIGKILL: _Cause(
        "killed",
        "it was killed from outside, most often because memory ran out",
        "Look at the kernel's log; a smaller context_size or kv_cache.quantization: q8_0 takes less memory.",
    ),
    signal.SIGTERM: _Cause("terminated", "it was told to end from outside", "The next call starts it again."),
}
_CRASH: Final = _Cause("crashed", "the engine crashed", "The next call starts it again; the log's end may say more.")


def died(death: Death, *, model: str, loading: bool) -> ProviderError:
    """Say how a worker died.

    Args:
        death: What is known.
        model: The model entry's name.
        loading: Whether it died before it was ready.

    Returns:
        ``provider.worker_died`` with ``reason``, ``returncode`` and ``stderr``.
    """
    cause, code = _cause(death.returncode)
    during = "while it loaded" if loading else "while it worked"
    return ProviderError(
        f"The worker of model {model} died {during} ({code}): {cause.sentence}.",
        code="provider.worker_died",
        hint=cause.hint,
        reason=cause.reason,
        returncode=death.returncode,
        stderr=death.stderr[-STDERR_TAIL_CHARACTERS:],
        loading=loading,
    )


def _cause(returncode: int) -> tuple[_Cause, str]:
    if returncode >= 0:
        return _Cause("exited", "it ended by itself", _CRASH.hint), f"exit code {returncode}"
    try:
        number = signal.Signals(-returncode)
    except ValueError:
        return _CRASH, f"signal {-returncode}"
    return _CAUSES.get(number, _CRASH), number.name


def grammar_fault(stderr: str) -> str | None:
    """Find the engine's last complaint about a schema in the end of its stderr, ``None`` without one."""
    at = stderr.rfind(FAILED_OPEN)
    return None if at < 0 else stderr[at + len(FAILED_OPEN) :].strip().split("\n", 1)[0]
