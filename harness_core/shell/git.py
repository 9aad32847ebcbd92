"""Questions to the git repository a project lies in go in, whole answers or cut and marked ones come out.

Runs no hook, no filesystem monitor and no pager, fetches nothing and takes no lock.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import attrs

from harness_hookspecs.errors import HarnessError, NotFound
from harness_hookspecs.host import CancelToken, Completed, Processes

__all__ = ["Repository"]

_TIMEOUT_SECONDS: Final = 30.0
_TEXT_BYTES: Final = 1_048_576
"""Of a text for a model; no context is as large."""
_NAMES_BYTES: Final = 16_777_216
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}
_SAFE: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "--no-pager")
_NO_TAG: Final = (
    b"fatal: No names found",
    b"fatal: No tags can describe",
    b"fatal: Not a valid object name HEAD^",  # the only commit has none before it
)
_NOT_THERE: Final = (
    b"fatal: ambiguous argument",
    b"fatal: bad object",
    b"fatal: bad revision",
    b"fatal: Invalid revision range",
    b"fatal: Needed a single revision",
    b"fatal: Not a valid object name",
    b"fatal: invalid object name",
    b"fatal: path ",  # is not in that commit
    b"fatal: your current branch",  # has no commits yet
)
_NO_REPOSITORY: Final = b"fatal: not a git repository"


@attrs.frozen
class Repository:
    """The repository around a folder. What git does not answer, or not in whole, is an error with the reason.

    Every method raises ``NotFound`` when git itself says that there is no such thing, which it will say again;
    ``HarnessError`` when it failed otherwise, was stopped, took longer than 30 s or said too much; ``Cancelled`` at
    once.
    """

    processes: Processes
    folder: Path
    cancel: CancelToken

    def tag_before_head(self) -> str | None:
        """The last tag before the last commit, whose bytes that are not UTF-8 are surrogate escapes; ``None`` only when
        git says that there is none."""
        arguments = ("describe", "--tags", "--abbrev=0", "HEAD^")
        done = self._run(*arguments)
        if done.returncode > 0 and not done.timed_out and any(line.startswith(_NO_TAG) for line in _lines(done.stderr)):
            return None
        return _answered(done, arguments).stdout.decode(errors="surrogateescape").strip()

    def line(self, *arguments: str) -> str:
        """The one line of an answer."""
        return _whole(self._run(*arguments), arguments).stdout.decode(errors="replace").strip()

    def names(self, *arguments: str) -> list[str]:
        """All names of an answer with ``-z``, in its order; bytes that are not UTF-8 are surrogate escapes."""
        done = _whole(self._run(*arguments, limit_bytes=_NAMES_BYTES), arguments)
        return [name for name in done.stdout.decode(errors="surrogateescape").split("\0") if name]

    def text(self, *arguments: str) -> tuple[str, bool]:
        """The lines of an answer, and whether the rest of them was cut off."""
        done = _answered(self._run(*arguments), arguments)
        cut = done.truncated and len(done.stdout) >= _TEXT_BYTES
        whole = done.stdout[: done.stdout.rfind(b"\n") + 1] if cut else done.stdout
        return whole.decode(errors="replace"), cut

    def _run(self, *arguments: str, limit_bytes: int = _TEXT_BYTES) -> Completed:
        return self.processes.run(
            ["git", *_SAFE, *arguments],
            cwd=str(self.folder),
            env=_ENVIRONMENT,
            timeout_seconds=_TIMEOUT_SECONDS,
            cancel=self.cancel,
            limit_bytes=limit_bytes,
        )


def _whole(done: Completed, arguments: tuple[str, ...]) -> Completed:
    if _answered(done, arguments).truncated:
        raise _error(arguments, f"the answer is longer than {len(done.stdout)} bytes")
    return done


def _answered(done: Completed, arguments: tuple[str, ...]) -> Completed:
    if done.timed_out:
        raise _error(arguments, f"no answer in {_TIMEOUT_SECONDS:g} s")
    if done.returncode < 0:
        raise _error(arguments, f"it was ended by signal {-done.returncode}")
    if done.returncode > 0:
        said = _lines(done.stderr)
        if any(line.startswith(_NO_REPOSITORY) for line in said):
            hint = "make it one (git init, then a commit), or take the source out of the stage"
            raise NotFound("the project lies in no git repository", hint=hint)
        # Advice stands below what is wrong, and warnings above it.
        reason = next((line for line in said if line.startswith((b"fatal:", b"error:"))), b"".join(said[-1:]))
        message = reason.decode(errors="backslashreplace") or f"it failed with code {done.returncode}"
        raise _error(arguments, message, kind=NotFound if reason.startswith(_NOT_THERE) else HarnessError)
    return done


def _error(arguments: tuple[str, ...], reason: str, *, kind: type[HarnessError] = HarnessError) -> HarnessError:
    return kind(f"git {arguments[0]}: {reason}", hint=f"look yourself: git {shlex.join(arguments)}")


def _lines(said: bytes) -> list[bytes]:
    return [line for line in said.splitlines() if line.strip()]
