"""Arguments in, an exit code out; ``--version`` is answered before anything is imported."""

from __future__ import annotations

import gc
import sys

from harness_core import __version__

__all__ = ["main"]

_GARBAGE_OBJECTS = 200_000
"""Objects made before garbage is looked for: importing makes a hundred thousand, and all of them stay."""


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments without the program's name; those of the process when omitted.

    Returns:
        The exit code of the command line's table.
    """
    arguments = sys.argv[1:] if argv is None else argv
    if arguments == ["--version"] and _says_version():
        return 0
    if argv is not None:
        return _run(arguments, own_process=False)
    gc.set_threshold(_GARBAGE_OBJECTS)
    try:
        return _run(arguments, own_process=True)
    finally:
        gc.freeze()  # the process ends: its memory is given back as a whole, not object by object


def _says_version() -> bool:
    """Whether it could be printed; when not, the long way says why."""
    try:
        print(f"harness {__version__}", flush=True)
    except OSError:
        return False
    return True


def _run(arguments: list[str], *, own_process: bool) -> int:
    from harness_core.shell.ports_streams import writable_results

    from . import door, pydantic_plugins

    if own_process:
        writable_results()
        pydantic_plugins.look_for_none_where_none_is()
    try:
        return door.run(arguments, own_process=own_process)
    except SystemExit:  # so a command of a surface may end
        raise
    except BaseException as error:
        return door.internal(error, arguments)
    finally:
        door.let_go_of_broken_streams()


if __name__ == "__main__":
    sys.exit(main())
