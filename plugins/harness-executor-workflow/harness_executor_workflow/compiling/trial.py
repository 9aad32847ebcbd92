"""The one door to a child process: expressions and sources go in, what is wrong with each comes out, whatever they do.

One child tries all. The item at which it ended is tried again as the first of another one, so that none bears another's
fault, and blamed if that ends too. A plan that ends child after child is not tried to its end: the rest is refused too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple, TypeAlias

from harness_hookspecs.compiler import Trial
from harness_hookspecs.errors import PluginError
from harness_hookspecs.host import Completed

__all__ = ["Expression", "Source", "Tried", "try_all"]

Tried: TypeAlias = list[dict[str, Any]]
"""What is wrong with one item: ``{code, message, hint}`` each; empty when nothing is."""

_WORKER: Final = str(PurePath(__file__).parent.parent / "worker.py")
_LIMIT_SECONDS: Final = 2.0  # for one item; each takes well under a millisecond
_START_SECONDS: Final = 20.0  # for the child itself, on a busy machine
_MEMORY_BYTES: Final = 256 * 1024 * 1024  # beside what the imports take
_GIVEN: Final = ("LD_", "DYLD_", "LANG", "LC_", "PYTHON")  # what a Python may need to start and to read a text
_MAX_DEATHS: Final = 8  # each item that ends a child ends two, unless it is the first
_UNTRIED: Final = "could not be tried: others of this plan ended the process that tries them"


class Expression(NamedTuple):
    """An expression, and the roots that it may read."""

    text: str
    roots: tuple[str, ...]


class Source(NamedTuple):
    """The source of a step, and the tools that it declares."""

    text: str
    tools: tuple[str, ...]


def try_all(trial: Trial, expressions: Sequence[Expression], sources: Sequence[Source]) -> list[Tried]:
    """Try everything in child processes.

    Returns:
        What is wrong with each expression, then with each source.

    Raises:
        PluginError: ``plugin.no_trial``: twice in a row, no child came as far as the first item.
    """
    found: list[Tried] = []
    count, deaths, idle = len(expressions) + len(sources), 0, 0
    while len(found) < count:
        is_source = len(found) >= len(expressions)
        if deaths == _MAX_DEATHS:
            found += [[_refusal(number >= len(expressions), _UNTRIED)] for number in range(len(found), count)]
            break
        done = _child(trial, expressions[len(found) :], sources[max(0, len(found) - len(expressions)) :])
        began, verdicts = _verdicts(done)
        found += verdicts
        idle = 0 if began or verdicts else idle + 1
        if idle == 2:
            raise _no_trial(done)
        if began:
            deaths += 1
            if not verdicts:  # else the item is tried again, as the first of the next child
                found.append([_refusal(is_source, _death(done))])
    return found


def _child(trial: Trial, expressions: Sequence[Expression], sources: Sequence[Source]) -> Completed:
    order = {
        "path": list(trial.path), "module": trial.module, "name": trial.name, "settings": trial.settings,
        "limit_seconds": _LIMIT_SECONDS, "memory_bytes": _MEMORY_BYTES, "expressions": expressions, "sources": sources,
    }  # fmt: skip
    argv = [sys.executable, "-P", *(["-B"] if sys.dont_write_bytecode else []), _WORKER]
    return trial.processes.run(
        argv,
        env={name: value for name, value in os.environ.items() if name.startswith(_GIVEN)},  # and no key of anybody's
        stdin=json.dumps(order).encode(),
        timeout_seconds=_START_SECONDS + _LIMIT_SECONDS * 2,
        limit_bytes=16 * 1024 * 1024,
    )


def _verdicts(done: Completed) -> tuple[bool, list[Tried]]:
    """Whether the child came to an item that it did not end, and the verdicts of those that it did."""
    began, found = False, []
    for line in done.stdout.split(b"\n")[:-1]:
        try:
            said = json.loads(line)
        except ValueError:
            break  # cut off by the end of the process
        if said[0] == "end":
            found.append(said[2])
        began = said[0] == "begin"
    return began, found


def _no_trial(done: Completed) -> PluginError:
    said = done.stderr.decode(errors="replace").strip().splitlines()
    message = f"The process that tries what a model wrote does not start ({_death(done)}): {said[-1] if said else ''}"
    hint = "see whether the plugin of the rules engine can be imported"
    return PluginError(message.strip(": "), code="plugin.no_trial", hint=hint)


def _death(done: Completed) -> str:
    if done.timed_out or b"Timeout (" in done.stderr:
        return f"took more than {_LIMIT_SECONDS:g} s to be read"
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"ended the process that tried it ({how})"


def _refusal(is_source: bool, what: str) -> dict[str, Any]:
    name, code = ("source", "code.syntax") if is_source else ("expression", "expr.too_complex")
    return {"code": code, "message": f"The {name} {what}.", "hint": "write it more simply"}
