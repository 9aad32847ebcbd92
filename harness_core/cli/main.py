"""Arguments in, an exit code out; ``--version`` is answered before anything is imported."""

from __future__ import annotations

import gc
import sys

from harness_core import __version__

__all__ = ["main"]

_GARBAGE_OBJECTS = 50_000
"""Objects made before garbage is looked for: importing makes tens of thousands, and all of them stay."""


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments without the program's name; those of the process when omitted.

    Returns:
        The exit code of the command line's table.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments == ["--version"]:
        sys.stdout.write(f"harness {__version__}\n")
        return 0
    if argv is not None:
        return _run(arguments)
    gc.set_threshold(_GARBAGE_OBJECTS)
    try:
        return _run(arguments)
    finally:
        gc.freeze()  # the process ends: its memory is given back as a whole, not object by object


def _run(arguments: list[str]) -> int:
    from . import door

    try:
        return door.run(arguments)
    except Exception as error:
        return door.internal(error, arguments)


if __name__ == "__main__":
    sys.exit(main())
