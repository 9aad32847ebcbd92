"""A boundary's name in, the failure that ``HARNESS_FAILPOINT`` asks for at it out."""

from __future__ import annotations

import itertools
import os
import re
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
    "timer.elapsed",
    "external.delivered",
    "child.requested",
    "child.granted",
    "child.completed",
    "child.failed",
    "session.ending",
    "head.copied",
)
"""Every boundary a crash is tried at (contract.md, Ports)."""

ACTIONS = ("kill", "raise", "stop")
_FORM = re.compile(rf"(?P<name>[a-z.]+)(@(?P<nth>[1-9][0-9]{{0,8}}))?:(?P<action>{'|'.join(ACTIONS)})")


class Failpoints:
    """Counts how often each boundary was reached and acts at the one asked for.

    The form is ``NAME[@N]:kill|raise|stop``: at the N-th time (1 when omitted) the process is killed, an error is
    raised there, or the process is stopped until it is continued.

    Args:
        setting: Instead of ``HARNESS_FAILPOINT``.

    Raises:
        ConfigError: ``failpoint.form``: the setting has another form, or names no boundary.
    """

    def __init__(self, setting: str | None = None) -> None:
        text = os.environ.get("HARNESS_FAILPOINT", "") if setting is None else setting
        self.reached: dict[str, int] = {}
        self._counts: dict[str, itertools.count[int]] = {}
        self._name, self._nth, self._action = _parse(text) if text else ("", 0, "")

    def reach(self, name: str) -> None:
        """Count, and act when this is the one."""
        # a counter gives each of several threads a number of its own; a sum would lose some
        count = next(self._counts.get(name) or self._counts.setdefault(name, itertools.count(1)))
        self.reached[name] = count
        if count == self._nth and name == self._name:
            self._act(name)

    def _act(self, name: str) -> None:
        if self._action == "raise":
            raise InternalError(f"failpoint {name} reached", code="failpoint.raised")
        sys.stderr.flush()
        os.kill(os.getpid(), signal.SIGKILL if self._action == "kill" else signal.SIGSTOP)


def _parse(text: str) -> tuple[str, int, str]:
    found = _FORM.fullmatch(text)
    if found is None or found["name"] not in FAILPOINTS:
        raise ConfigError(
            f"HARNESS_FAILPOINT={text!r} is not NAME[@N]:{'|'.join(ACTIONS)}",
            code="failpoint.form",
            hint=f"names: {', '.join(FAILPOINTS)}",
        )
    return found["name"], int(found["nth"] or "1"), found["action"]
