"""A surface's console script: finds the host by entry point and calls it, so that no plugin imports the core."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points

__all__ = ["main"]


def main() -> int:
    """Run the host's command line with this script's own name, without ``harness-``, as the first verb.

    Returns:
        The exit code; 3 with one line on stderr when no host is installed, or more than one.
    """
    found = list(entry_points(group="harness.host"))
    if len(found) != 1:
        sys.stderr.write(f"harness: expected one installed host, found {len(found)}; install harness-host\n")
        return 3
    verb = os.path.basename(sys.argv[0]).removeprefix("harness-")
    return int(found[0].load()([verb, *sys.argv[1:]]) or 0)
