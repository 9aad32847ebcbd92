"""The main of the child that tries what a model wrote: expressions and sources come on stdin, verdicts go out as lines.

A parser that breaks on hostile text takes this process with it, and not the host. Stdin is one JSON object: ``{"path",
"module", "name", "settings", "limit_seconds", "memory_bytes", "expressions": [[text, roots]], "sources": [[source,
tools]]}``. A line of stdout is ``["begin", n]`` before item ``n`` is tried, or ``["end", n, found]`` after, with the
findings as ``{code, message, hint}``. A watchdog that needs no cooperation of Python ends what takes too long.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Try each item in turn."""
    import faulthandler

    out = os.dup(1)
    os.dup2(2, 1)  # what an engine prints is no verdict
    order = json.loads(sys.stdin.buffer.read())
    sys.path[:] = order["path"] or sys.path
    sources, expressions = order["sources"], order["expressions"]
    rules = _rules(order) if expressions else None
    from harness_executor_workflow.compiling.sources import examine

    _limit(order["memory_bytes"])
    for number in range(len(expressions) + len(sources)):
        _say(out, "begin", number)
        faulthandler.dump_traceback_later(order["limit_seconds"], exit=True)
        if number < len(expressions):
            found = _tried(rules, *expressions[number])
        else:
            found = examine(*sources[number - len(expressions)])
        faulthandler.cancel_dump_traceback_later()
        _say(out, "end", number, found)
    os._exit(0)


def _rules(order: dict[str, Any]) -> Any:
    """The engine of that name, built from the offers of its plugin."""
    import importlib

    module = importlib.import_module(order["module"])
    offers = {offer.name: offer for offer in module.harness_provide_rules()}
    offer = offers[order["name"]]
    settings = offer.settings
    made = settings().model_validate(order["settings"] or {}) if settings is not None else order["settings"]
    return offer.build(made, None)


def _limit(memory_bytes: int) -> None:
    """Bound what is taken from here on; what is there already was taken by imports."""
    used = 0
    if sys.platform == "linux":
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # where the system has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))


def _tried(rules: Any, text: str, roots: list[str]) -> list[dict[str, Any]]:
    from harness_hookspecs.errors import RuleError

    try:
        rules.compile(text, roots=roots)
    except RuleError as error:
        return [{"code": error.code, "message": error.message, "hint": error.hint}]
    except BaseException as error:  # a panic is no Exception
        said = str(error).splitlines()[0][:200] if str(error) else ""
        message = f"The expression broke the engine that tried it: {type(error).__name__} {said}".strip()
        return [{"code": "expr.too_complex", "message": message, "hint": "write it more simply"}]
    return []


def _say(out: int, *words: Any) -> None:
    data = json.dumps(words).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]


if __name__ == "__main__":
    main()
