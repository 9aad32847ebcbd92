"""A boundary's name in, the failure that ``HARNESS_FAILPOINT`` asks for at it out."""

from __future__ import annotations

import os
import signal
import sys

from harness_hookspecs.errors import ConfigError, InternalError

__all__ = ["FAILPOINTS", "Failpoints"]

FAILPOINTS = (
    "session.created",
    "inbox.taken",
    "decide.done",
    "append.before",
    "append.inside",
    "append.committed",
    "intent.committed",
    "effect.done",
    "result.buffered",
    "role.suspended",
    "approval.posted",
    "approval.consumed",
    "artifact.stored",
    "stage.left",
    "transition.taken",
    "budget.settled",
    "session.ending",
    "head.copied",
)
"""Every boundary a crash is tried at (contract.md, Ports)."""

ACTIONS = ("kill", "raise", "stop")


class Failpoints:
    """Counts how often each boundary was reached and acts at the one asked for.

    The form is ``NAME[@N]:kill|raise|stop``: at the N-th time (1 when omitted) the process is killed, an error is
    raised there, or the process is stopped until it is continued.
    """

    def __init__(self, setting: str | None = None) -> None:
        text = os.environ.get("HARNESS_FAILPOINT", "") if setting is None else setting
        self.reached: dict[str, int] = {}
        self._name, self._nth, self._action = _parse(text) if text else ("", 0, "")

    def reach(self, name: str) -> None:
        """Count, and act when this is the one."""
        count = self.reached[name] = self.reached.get(name, 0) + 1
        if name != self._name or count != self._nth:
            return
        if self._action == "raise":
            raise InternalError(f"failpoint {name} reached", code="failpoint.raised")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL if self._action == "kill" else signal.SIGSTOP)


def _parse(text: str) -> tuple[str, int, str]:
    place, _, action = text.rpartition(":")
    name, _, nth = place.partition("@")
    if name not in FAILPOINTS or action not in ACTIONS or not (nth or "1").isdecimal():
        raise ConfigError(
            f"HARNESS_FAILPOINT={text!r} is not NAME[@N]:{'|'.join(ACTIONS)}",
            hint=f"names: {', '.join(FAILPOINTS)}",
        )
    return name, int(nth or "1"), action
