"""Questions to a git repository go in, whole answers or cut and marked ones come out.

Runs no hook, no filesystem monitor and no pager, fetches nothing and knows no settings of the person; who asks takes no
lock.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import attrs

from harness_hookspecs.errors import HarnessError, NotFound
from harness_hookspecs.host import CancelToken, Completed, Processes

__all__ = ["Repository"]

_TEXT_BYTES: Final = 1_048_576
"""Of a text for a model; no context is as large."""
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
_WHO: Final = ("-c", "user.name=harness", "-c", "user.email=harness@localhost")
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
    ``HarnessError`` when it failed otherwise, was stopped, took too long or said too much; ``Cancelled`` at once.

    Attributes:
        processes: The door to children.
        folder: Where git runs.
        cancel: Ends it at once; ``None`` where nobody can.
        name: What people call the folder.
        timeout_seconds: How long an answer may take.
        limit_bytes: How long the answer of :meth:`names` may be.
    """

    processes: Processes
    folder: Path
    cancel: CancelToken | None
    name: str = "the project"
    timeout_seconds: float = 30.0
    limit_bytes: int = 16_777_216

    def tag_before_head(self) -> str | None:
        """The last tag before the last commit, whose bytes that are not UTF-8 are surrogate escapes; ``None`` only when
        git says that there is none."""
        arguments = ("describe", "--tags", "--abbrev=0", "HEAD^")
        done = self._run(*arguments)
        if done.returncode > 0 and not done.timed_out and any(line.startswith(_NO_TAG) for line in _lines(done.stderr)):
            return None
        return self._answered(done, arguments).stdout.decode(errors="surrogateescape").strip()

    def tip(self, ref: str) -> str | None:
        """The commit that a ref leads to; ``None`` only when git says, by saying nothing, that there is no such ref."""
        arguments = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        done = self._run(*arguments)
        if done.returncode == 1 and not done.timed_out and not _lines(done.stderr):
            return None
        return self._whole(done, arguments).stdout.decode().strip()

    def commit(self, subject: str, *, onto: str | None) -> str:
        """Make a commit without any file, which no ref leads to yet; gives its name."""
        tree = self.line("hash-object", "-w", "-t", "tree", "/dev/null")
        return self.line("commit-tree", tree, *(("-p", onto) if onto else ()), "-m", subject)

    def line(self, *arguments: str) -> str:
        """The one line of an answer."""
        return self._whole(self._run(*arguments), arguments).stdout.decode(errors="replace").strip()

    def names(self, *arguments: str) -> list[str]:
        """All names of an answer with ``-z``, in its order; bytes that are not UTF-8 are surrogate escapes."""
        done = self._whole(self._run(*arguments, limit_bytes=self.limit_bytes), arguments)
        return [name for name in done.stdout.decode(errors="surrogateescape").split("\0") if name]

    def text(self, *arguments: str) -> tuple[str, bool]:
        """The lines of an answer, and whether the rest of them was cut off."""
        done = self._answered(self._run(*arguments), arguments)
        cut = done.truncated and len(done.stdout) >= _TEXT_BYTES
        whole = done.stdout[: done.stdout.rfind(b"\n") + 1] if cut else done.stdout
        return whole.decode(errors="replace"), cut

    def _run(self, *arguments: str, limit_bytes: int = _TEXT_BYTES) -> Completed:
        return self.processes.run(
            ["git", *_SAFE, *_WHO, *arguments],
            cwd=str(self.folder),
            env=_ENVIRONMENT,
            timeout_seconds=self.timeout_seconds,
            cancel=self.cancel,
            limit_bytes=limit_bytes,
        )

    def _whole(self, done: Completed, arguments: tuple[str, ...]) -> Completed:
        if self._answered(done, arguments).truncated:
            raise _error(arguments, f"the answer is longer than {len(done.stdout)} bytes")
        return done

    def _answered(self, done: Completed, arguments: tuple[str, ...]) -> Completed:
        if done.timed_out:
            raise _error(arguments, f"no answer in {self.timeout_seconds:g} s")
        if done.returncode < 0:
            raise _error(arguments, f"it was ended by signal {-done.returncode}")
        if done.returncode > 0:
            said = _lines(done.stderr)
            if any(line.startswith(_NO_REPOSITORY) for line in said):
                hint = "make it one (git init, then a commit), or take the source out of the stage"
                raise NotFound(f"{self.name} lies in no git repository", hint=hint)
            # Advice stands below what is wrong, and warnings above it.
            reason = next((line for line in said if line.startswith((b"fatal:", b"error:"))), b"".join(said[-1:]))
            message = reason.decode(errors="backslashreplace") or f"it failed with code {done.returncode}"
            raise _error(arguments, message, kind=NotFound if reason.startswith(_NOT_THERE) else HarnessError)
        return done


def _error(arguments: tuple[str, ...], reason: str, *, kind: type[HarnessError] = HarnessError) -> HarnessError:
    return kind(f"git {arguments[0]}: {reason}", hint=f"look yourself: git {shlex.join(arguments)}")


def _lines(said: bytes) -> list[bytes]:
    return [line for line in said.splitlines() if line.strip()]
