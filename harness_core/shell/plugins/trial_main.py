"""The main of the child that tries first imports: a list of plugins comes on standard input, verdicts go out as lines.

Each line is a mark and JSON: ``["begin", n]`` before plugin ``n`` is imported, ``["end", n, flaws]`` after. The mark
comes with the list, another one each time, and only a plugin that goes and looks for it prints it: what else appears on
standard output was printed by the plugin, whatever it looks like. A plugin that never ends is ended by a watchdog that
needs no cooperation from Python code.
"""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["main"]


def _say(mark: str, *words: Any) -> None:
    import json

    sys.stdout.flush()
    os.write(1, f"\n{mark} {json.dumps(words)}\n".encode())


def main() -> None:
    """Try each plugin in turn; ends the process without waiting for threads that an import has started."""
    import faulthandler
    import json

    order = json.loads(sys.stdin.buffer.read())
    sys.path[:] = order["path"]
    from harness_core.shell.plugins.trial_import import try_import

    for number, (module, provides) in enumerate(order["plugins"]):
        faulthandler.dump_traceback_later(order["limit_seconds"], exit=True)
        _say(order["mark"], "begin", number)
        flaws = try_import(module, provides, settings=order["settings"])
        _say(order["mark"], "end", number, flaws)
    faulthandler.cancel_dump_traceback_later()
    os._exit(0)


if __name__ == "__main__":
    main()
