"""An argument list in; a started child out, where the system allows it one whose descendants cannot outlive it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from harness_hookspecs.errors import HarnessError, NotFound

__all__ = ["Child"]

_GUARD = os.path.join(os.path.dirname(__file__), "guard.py")
_GUARDED = sys.platform == "linux"
_STATUS_BYTES = 64
_NOT_HERE = (FileNotFoundError, NotADirectoryError)


class Child:
    """A command with three pipes, in a session of its own.

    On Linux it runs under a guard (see ``guard.py``), and then ``process`` is the guard: it ends after the command and
    all that the command started. Elsewhere ``process`` is the command.

    Raises:
        NotFound: ``process.no_program`` or ``process.no_folder``.
        HarnessError: ``process.not_started``: not executable, too long, out of processes.
    """

    def __init__(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> None:
        self._program = argv[0]
        self._status_fd = -1
        self._told = b""
        self._killed = use_guard = _GUARDED and bool(sys.executable)  # unless the guard tells otherwise
        try:
            self.process = self._under_guard(argv, cwd, env) if use_guard else _popen(argv, cwd, env)
        except (*_NOT_HERE, PermissionError) as error:
            if cwd is not None and not os.path.isdir(cwd):
                raise NotFound(f"there is no folder {cwd}", code="process.no_folder", folder=cwd) from error
            raise self._not_started(error) from error
        except (OSError, ValueError) as error:
            raise self._not_started(error) from error

    @property
    def guarded(self) -> bool:
        """Whether its end is the end of everything it started."""
        return self._status_fd >= 0

    def stop(self) -> None:
        """Ask for an end: the guard kills what is left; without one there is nobody to ask."""
        if self.guarded and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGTERM)

    def close(self) -> None:
        """Take what the guard told and close what is open besides the three pipes; after the end of ``process``."""
        if self.guarded:
            os.set_blocking(self._status_fd, False)
            with contextlib.suppress(BlockingIOError):
                self._told = os.read(self._status_fd, _STATUS_BYTES)
            os.close(self._status_fd)
            self._status_fd = -1

    def returncode(self) -> int:
        """How the command ended, after ``close``; killed when nobody saw it.

        Raises:
            NotFound, HarnessError: It had never begun.
        """
        word, _, number = self._told.partition(b" ")
        if word == b"error":
            # the subclass that fits the number
            error = OSError(int(number), os.strerror(int(number)))
            raise self._not_started(error) from error
        if word == b"ended":
            return os.waitstatus_to_exitcode(int(number))
        return -signal.SIGKILL if self._killed or self.process.returncode is None else self.process.returncode

    def _not_started(self, error: OSError | ValueError) -> HarnessError:
        if isinstance(error, _NOT_HERE):
            return NotFound(f"there is no program {self._program}", code="process.no_program", program=self._program)
        return HarnessError(
            f"{self._program} cannot be started: {error}", code="process.not_started", program=self._program
        )

    def _under_guard(
        self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None
    ) -> subprocess.Popen[bytes]:
        spec = _spec(argv, env)
        spec_fd, tell_fd = os.pipe()
        self._status_fd, status_fd = os.pipe()
        try:
            call = [sys.executable, "-I", "-S", _GUARD, str(spec_fd), str(status_fd), str(os.getpid())]
            process = _popen(call, cwd, None, pass_fds=(spec_fd, status_fd))
        except BaseException:
            self.close()
            self._status_fd = -1
            os.close(tell_fd)
            raise
        finally:
            os.close(spec_fd)
            os.close(status_fd)
        with contextlib.suppress(BrokenPipeError), open(tell_fd, "wb") as pipe:
            pipe.write(spec)
        return process


def _spec(argv: Sequence[str], env: Mapping[str, str] | None) -> bytes:
    pairs = os.environb if env is None else {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    words = [*map(os.fsencode, argv), *(name + b"=" + value for name, value in pairs.items())]
    if any(b"\0" in word for word in words):
        raise ValueError("embedded null byte")
    return b"".join(word + b"\0" for word in (b"%d" % len(argv), *words))


def _popen(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(  # the caller names the program; no shell
        list(argv),
        bufsize=0,
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
        pass_fds=pass_fds,
    )
