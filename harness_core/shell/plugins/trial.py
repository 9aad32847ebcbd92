"""First imports: records go in, what is wrong with each comes out, tried in a child process that may die of it.

One child tries many; what fails beside others is tried again alone, so that nobody bears another's fault. A child that
was killed from outside shows nothing of any plugin, and is started once more.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from harness_core.shell.ports_startup import new_mark
from harness_hookspecs.host import Completed, Processes
from harness_hookspecs.manifest import Flaw

from .records import Record

__all__ = ["LIMIT_SECONDS", "try_imports"]

LIMIT_SECONDS = 5.0
_START_SECONDS = 10.0  # for the child itself, on a busy machine
_FROM_OUTSIDE = {-number for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)}
_MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trial_main.py")


class _Order(NamedTuple):
    """What stays the same from child to child."""

    path: Sequence[str]
    processes: Processes
    limit_seconds: float
    settings: bool


def try_imports(
    records: Sequence[Record],
    path: Sequence[str],
    processes: Processes,
    *,
    limit_seconds: float = LIMIT_SECONDS,
    settings: bool = False,
) -> list[list[Flaw]]:
    """Import each plugin in a child process and check its hooks and offers there.

    Args:
        records: The plugins; each must have been found without a flaw.
        path: The child's ``sys.path``.
        processes: The port.
        limit_seconds: How long one import may take.
        settings: Whether settings classes are compared with the manifests too (imports what they need).

    Returns:
        For each plugin, in the order given, what is wrong with it; empty when nothing is.
    """
    order = _Order(path, processes, limit_seconds, settings)
    verdicts: list[list[Flaw]] = []
    while len(verdicts) < len(records):
        waiting = records[len(verdicts) :]
        for record, flaws in zip(waiting, _run(order, waiting)):
            alone = len(waiting) == 1 or not flaws
            verdicts.append(flaws if alone else _run(order, [record])[0])
    return verdicts


def _run(order: _Order, records: Sequence[Record]) -> list[list[Flaw]]:
    """The verdicts of one child: of all, or of those up to the one that ended it."""
    mark = new_mark()
    done = _child(order, records, mark)
    if done.returncode in _FROM_OUTSIDE and not done.timed_out:  # a second time it is likelier the plugin's own doing
        done = _child(order, records, mark)
    return _verdicts(done, mark, len(records), order.limit_seconds)


def _child(order: _Order, records: Sequence[Record], mark: str) -> Completed:
    plugins = [[record.module, record.provides] for record in records]
    told = {
        "mark": mark,
        "path": list(order.path),
        "limit_seconds": order.limit_seconds,
        "settings": order.settings,
        "plugins": plugins,
    }
    return order.processes.run(
        [sys.executable, "-P", *(["-B"] if sys.dont_write_bytecode else []), _MAIN],
        stdin=json.dumps(told).encode(),
        timeout_seconds=order.limit_seconds * len(records) + _START_SECONDS,
    )


def _verdicts(done: Completed, mark: str, count: int, limit_seconds: float) -> list[list[Flaw]]:
    verdicts: list[list[Flaw]] = []
    printed = b""
    for line in done.stdout.split(b"\n"):
        said = _said(line, mark.encode())
        if said is None:
            printed += line
            continue
        if said[0] == "end":
            found = [Flaw(*flaw) for flaw in said[2]]
            verdicts.append(sorted([*found, *_noise(printed)], key=lambda flaw: flaw.code))
        printed = b""
    if len(verdicts) < count:
        verdicts.append([_death(done, printed, limit_seconds)])
    return verdicts


def _said(line: bytes, mark: bytes) -> list[Any] | None:
    """What the child itself said in this line; nothing when it is a plugin's, cut off or mixed with one."""
    if not line.startswith(mark):
        return None
    try:
        said: list[Any] = json.loads(line[len(mark) :])
    except ValueError:
        return None
    return said


def _noise(printed: bytes) -> list[Flaw]:
    """Documents are written to standard output, so nothing else may be."""
    if not printed.strip():
        return []
    text = " ".join(printed.decode("utf-8", "replace").split())[:80]
    return [Flaw("HP033", f"its import prints to standard output: {text!r}", "imports are silent; log instead")]


def _death(done: Completed, printed: bytes, limit_seconds: float) -> Flaw:
    if done.truncated and printed:
        return _noise(printed)[0]
    if done.timed_out or b"Timeout (" in done.stderr:
        return Flaw("HP032", f"its import did not end within {limit_seconds:g} s")
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return Flaw("HP031", f"its import ended the process ({how})")
