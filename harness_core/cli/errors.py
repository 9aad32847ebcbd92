"""An error or its code in, the exit code and the document ``harness.error/1`` out: the one table of exits."""

from __future__ import annotations

import errno
from typing import Any, Final

from harness_hookspecs import errors
from harness_hookspecs.errors import HarnessError

__all__ = ["EXITS", "INTERNAL", "INTERRUPTED", "USAGE", "error_document", "exit_of", "exit_of_code", "limit_of"]

USAGE: Final = 2
INTERNAL: Final = 70
INTERRUPTED: Final = 130

EXITS: Final[dict[str, int]] = {
    "usage": USAGE,
    "config": 3,
    "plugin": 3,
    "plugin.drift": 4,
    "plugin.not_found": 4,
    "lock.drift": 4,
    "lock": 4,
    "not_found": 4,
    "project.not_found": 4,
    "config.no_key": 4,
    "run.locked": 5,
    "lease": 5,
    "store": 6,
    "suspended": 10,
    "refused": 11,
    "policy": 11,
    "path": 11,
    "approval.denied": 11,
    "approval.denied_unattended": 11,
    "approval.expired": 11,
    "routing.policy": 11,
    "routing.provider_denied": 11,
    "budget": 12,
    "provider": 13,
    "provider.no_probe": 1,
    "artifact": 14,
    "artifact.not_found": 4,
    "validation": 14,
    "replay": 15,
    "internal": INTERNAL,
}
"""Exit codes by error code or by the first parts of one; the longest that fits decides, and nothing fits 1."""

_CLASSES: Final[tuple[tuple[type[HarnessError], int], ...]] = (
    (errors.ConfigError, 3),
    (errors.PluginError, 3),
    (errors.Drift, 3),
    (errors.NotFound, 4),
    (errors.Locked, 5),
    (errors.StoreError, 6),
    (errors.Refused, 11),
    (errors.BudgetExhausted, 12),
    (errors.ProviderError, 13),
    (errors.ValidationFailed, 14),
    (errors.Diverged, 15),
    (errors.InternalError, INTERNAL),
)


def exit_of_code(code: str) -> int | None:
    """Give the exit for a code, the one of a failed session for example; None when the table does not know it."""
    parts = code.split(".")
    for end in range(len(parts), 0, -1):
        found = EXITS.get(".".join(parts[:end]))
        if found is not None:
            return found
    return None


def exit_of(error: HarnessError) -> int:
    """Give the exit for an error: by its code, else by its class, else 1."""
    found = exit_of_code(error.code)
    if found is not None:
        return found
    return next((number for kind, number in _CLASSES if isinstance(error, kind)), 1)


_LIMITS: Final = {
    errno.EMFILE: ("no further file may be opened by this process", "ulimit -n shows how many may be; raise it"),
    errno.ENFILE: ("no further file may be opened on this machine", "end other programs, or raise fs.file-max"),
    errno.ENOMEM: ("there is not enough memory", "end other programs; ulimit -v shows how much this process may use"),
    errno.EAGAIN: ("no further thread or process can be started", "ulimit -u and ulimit -v show what is allowed"),
}
_NO_THREAD: Final = "can't start new thread"


def limit_of(error: BaseException) -> HarnessError | None:
    """Give the limit of the machine that an error, or what caused it, came from; ``None`` when it is none."""
    from harness_hookspecs.kit.failure import causes

    for one in causes(error, hidden=True):
        number = one.errno if isinstance(one, OSError) and one.errno != errno.EAGAIN else None
        if isinstance(one, MemoryError):
            number = errno.ENOMEM
        if isinstance(one, RuntimeError) and str(one) == _NO_THREAD:  # Python tells no number
            number = errno.EAGAIN
        if number in _LIMITS:
            said, hint = _LIMITS[number]
            return HarnessError(f"a limit of the machine is reached: {said}", code="machine.limit", hint=hint)
    return None


def error_document(error: HarnessError) -> dict[str, Any]:
    """Give the document that ``--json`` prints instead of a result."""
    return {
        "schema": "harness.error/1",
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "where": error.where,
        "facts": error.facts,
    }
