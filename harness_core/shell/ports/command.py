"""What whoever talks with a command knows of it, however it was started; and the errors of one that was not."""

from __future__ import annotations

from io import RawIOBase
from typing import IO, Protocol

from harness_hookspecs.errors import HarnessError, NotFound

__all__ = ["Command", "Orders", "Pipes", "not_started"]

Pipes = tuple[IO[bytes] | RawIOBase, IO[bytes] | RawIOBase, IO[bytes] | RawIOBase]
"""Unbuffered: its input, output and errors."""

Orders = tuple[RawIOBase, bytes]
"""A pipe and what is to be written into it as it takes it, before the command can begin."""


class Command(Protocol):
    """A command in a session of its own, with three pipes."""

    pipes: Pipes
    orders: Orders | None
    end_fd: int | None  # to be polled; without one ``look`` is asked now and then

    def look(self, ready: bool) -> bool:
        """Whether it has ended; ``ready`` says whether ``end_fd`` was."""

    def stop(self) -> None:
        """Begin to end it and everything it started, also what it left behind."""

    def kill(self) -> None:
        """The same by force, of one that ``stop`` did not end."""

    def force(self) -> None:
        """The same of one that ``kill`` did not end either, whatever else ends with it."""

    def close(self) -> None:
        """Let go of everything but the pipes."""

    def returncode(self) -> int:
        """How it ended, after ``close``; the negative number of SIGKILL when nobody saw it.

        Raises:
            NotFound, HarnessError: It had never begun.
        """


def not_started(program: str, error: OSError | ValueError) -> HarnessError:
    """``process.no_program`` or ``process.not_started``, to be raised."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound(f"there is no program {program}", code="process.no_program", program=program)
    return HarnessError(f"{program} cannot be started: {error}", code="process.not_started", program=program)
