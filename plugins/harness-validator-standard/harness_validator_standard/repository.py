"""A git repository that is only read: questions about commits and files go in, sets of paths come out.

Runs no hook, no filesystem monitor, no filter, no external diff or text conversion, looks into no submodule, fetches
nothing, and takes no lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from harness_hookspecs.errors import NotFound, ValidationFailed
from harness_hookspecs.host import CancelToken, Completed, ValidatorHost

__all__ = ["Repository"]

_TIMEOUT_SECONDS: Final = 30.0
_LIMIT_BYTES: Final = 16 * 1024 * 1024
_SAFE: Final = (
    "--no-optional-locks", "--literal-pathspecs", "--no-pager",
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false",
)  # fmt: skip
_ENVIRONMENT: Final[Mapping[str, str]] = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
}
_DIFF: Final = (
    "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty",
)  # fmt: skip
_NO_FILTER: Final = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))


class Repository:
    """The repository around the project; a path counts by its name from the project and from the repository's root."""

    def __init__(self, host: ValidatorHost, cancel: CancelToken) -> None:
        self._host, self._cancel = host, cancel
        self._prefix = ""
        self._overrides: tuple[str, ...] = ()

    @classmethod
    def of(cls, host: ValidatorHost, cancel: CancelToken) -> Self | None:
        """The repository the project lies in, None without one."""
        found = cls(host, cancel)
        done = found._ended("rev-parse", "--show-prefix")
        if done is None or done.returncode != 0:
            return None
        found._prefix = done.stdout.decode(errors="surrogateescape").removesuffix("\n")
        found._overrides = tuple(found._without_filters())
        return found

    def between(self, base: str, head: str) -> frozenset[str]:
        """Paths that differ between two commits; what was renamed stands there under both names."""
        return self._both(self._paths(*_DIFF, base, head, "--"))

    def uncommitted(self) -> frozenset[str]:
        """Paths of the working tree that differ from the last commit, new ones too."""
        done = self._ended("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        untracked = ("ls-files", "-z", "--full-name", "--others", "--exclude-standard")
        if done is None or done.returncode != 0:  # nothing was ever committed
            return self._both(self._paths(*untracked, "--cached"))
        return self._both(self._paths(*_DIFF, "HEAD", "--") | self._paths(*untracked))

    def in_commit(self, commit: str, paths: Sequence[str]) -> frozenset[str]:
        """Those of the paths, which are inside the project, that are files in a commit."""
        if not paths:
            return frozenset()
        asked = sorted({*paths, *(self._prefix + path for path in paths)})
        lines = self._paths("ls-tree", "-z", "--full-tree", commit, "--", *asked)
        entries = (line.partition("\t") for line in lines)
        return self._both(path for facts, _, path in entries if facts.split()[1:2] == ["blob"])

    def _without_filters(self) -> Iterator[str]:
        """Options that take away the filters which git would run on each changed file; only all by name can be."""
        done = self._ended("config", "--null", "--name-only", "--get-regexp", r"^filter\.")
        keys = done.stdout.decode(errors="surrogateescape").split("\0") if done is not None else []
        for driver in sorted({key.removeprefix("filter.").rpartition(".")[0] for key in keys if key}):
            if "=" in driver:  # cannot be named on the command line
                raise ValidationFailed(f"the filter {driver!r} cannot be switched off", code="semantic.repository")
            for key, value in _NO_FILTER:
                yield from ("-c", f"filter.{driver}.{key}={value}")

    def _both(self, paths: Iterable[str]) -> frozenset[str]:
        found = frozenset(paths)
        return found | {path.removeprefix(self._prefix) for path in found if path.startswith(self._prefix)}

    def _paths(self, *arguments: str) -> frozenset[str]:
        done = self._ended(*arguments)
        if done is None or done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[:300] if done is not None else "it cannot be started"
            raise _no_answer(arguments, said or "it does not say why")
        return frozenset(path for path in done.stdout.decode(errors="surrogateescape").split("\0") if path)

    def _ended(self, *arguments: str) -> Completed | None:
        """How git ended by itself, with all that it said: what was stopped or cut off is no answer, also not a no."""
        done = self._run(*arguments)
        if done is not None and (done.returncode < 0 or done.timed_out or done.truncated):
            signalled = f"it was ended by signal {-done.returncode}"
            reason = "it is too slow" if done.timed_out else "it says too much" if done.truncated else signalled
            raise _no_answer(arguments, reason)
        return done

    def _run(self, *arguments: Any) -> Completed | None:
        folder = self._host.project_dir
        try:
            return self._host.ports.processes.run(
                ["git", *_SAFE, *self._overrides, *arguments],
                cwd=str(folder),
                env={**_ENVIRONMENT, "HOME": str(folder)},
                timeout_seconds=_TIMEOUT_SECONDS,
                cancel=self._cancel,
                limit_bytes=_LIMIT_BYTES,
            )
        except (NotFound, OSError):  # git is not installed
            return None


def _no_answer(arguments: Sequence[str], reason: str) -> ValidationFailed:
    message = f"git {arguments[0]} gave no answer: {reason}"
    return ValidationFailed(message, code="semantic.repository", hint="is the repository whole?")
