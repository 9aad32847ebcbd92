"""A folder in, the demonstration's project in it out: a git repository with a release to describe, and ``.harness``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Final

from harness_core.shell.config.folders import PROJECT_FOLDER, make_folder
from harness_hookspecs.errors import ConfigError, HarnessError, Locked, NotFound
from harness_hookspecs.host import Completed, Ports
from harness_hookspecs.kit.canonical import sha256
from harness_hookspecs.kit.paths import encode_path

__all__ = ["FILES", "made_alone", "make_example"]

FILES: Final = ("harness.yaml", "models.yaml", "policies.yaml", "stages.yaml", "replies.yaml")
_HISTORY: Final = "history.txt"
_GIT: Final = ("git", "--git-dir=.git", "--work-tree=.", "-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false")
_TIMEOUT_SECONDS: Final = 30.0
_LOOK_AGAIN_SECONDS: Final = 0.05


def make_example(folder: Path, ports: Ports, search_path: str) -> bool:
    """Make the project, or make an earlier one whole again; what a person changed in it stays.

    Args:
        folder: The folder; it and its parents are made.
        ports: The doors.
        search_path: Where programs are looked for (``PATH``).

    Returns:
        Whether its ``.harness`` holds what is made here and nothing else, so that it can be trusted.

    Raises:
        ConfigError: ``demo.folder_taken``: the folder holds something else; nothing was written.
            ``folder.unusable``: it cannot be made or read.
        NotFound: ``git.not_found``.
        HarnessError: ``git.failed``.
    """
    if not _is_ours(folder):
        hint, where = "name a new or an empty folder", encode_path(folder)
        raise ConfigError("the folder holds something else", code="demo.folder_taken", where=where, hint=hint)
    make_folder(folder)
    unchanged = _write_settings(folder, ports)
    repository = _Repository(folder, ports, search_path)
    if repository.git("rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
        repository.make()
    return unchanged


@contextmanager
def made_alone(folder: Path, ports: Ports, state: Path) -> Iterator[None]:
    """Wait while another process makes the same demonstration: half made, it would look like something else.

    Args:
        folder: The demonstration's folder.
        ports: The doors.
        state: The person's state folder, where locks lie; it is made.

    Raises:
        ConfigError: ``folder.unusable``: the state folder cannot be made.
        Locked: ``demo.locked``: the other one does not come to an end.
    """
    make_folder(state, mode=0o700)
    files, name = ports.files(state), f"demo/{sha256(encode_path(folder).encode()).hex()[:32]}.lock"
    until = ports.clock.monotonic() + _TIMEOUT_SECONDS
    while (lock := files.try_lock(name)) is None:
        if ports.clock.monotonic() > until:
            hint = "name another folder, or end the other harness demo"
            message = "another process is making this demonstration"
            raise Locked(message, code="demo.locked", where=encode_path(folder), hint=hint)
        ports.wait.event().wait(_LOOK_AGAIN_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _is_ours(folder: Path) -> bool:
    try:
        return not any(folder.iterdir()) or (folder / PROJECT_FOLDER / FILES[-1]).is_file()
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return not folder.exists()  # then it lies below a file, and making it says so
    except OSError as error:
        hint = "name a folder of your own"
        message = f"the folder cannot be read: {error.strerror or error}"
        raise ConfigError(message, code="folder.unusable", where=encode_path(folder), hint=hint) from error


def _write_settings(folder: Path, ports: Ports) -> bool:
    files = ports.files(folder)
    found = []
    for name in reversed(FILES):  # the one an earlier demonstration is known by comes first
        path = f"{PROJECT_FOLDER}/{name}"
        if files.facts(path) is None:
            files.write_bytes(path, _data(name))
        found.append(files.read_bytes(path) == _data(name))
    others = {"compression.yaml", "tools.yaml"} & {entry.name for entry in (folder / PROJECT_FOLDER).iterdir()}
    return all(found) and not others


def _data(name: str) -> bytes:
    return resources.files(__package__ or "").joinpath(name).read_bytes()


class _Repository:
    """The repository of a folder, whatever a person's git is configured to do."""

    def __init__(self, folder: Path, ports: Ports, search_path: str) -> None:
        self._folder, self._ports = str(folder), ports
        isolated = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": self._folder}
        self._env = {**isolated, "LC_ALL": "C.UTF-8", "PATH": search_path}

    def git(self, *arguments: str, stdin: bytes = b"") -> Completed:
        """Run git and give how it ended."""
        try:
            return self._ports.processes.run(
                [*_GIT, *arguments], cwd=self._folder, env=self._env, stdin=stdin, timeout_seconds=_TIMEOUT_SECONDS
            )
        except (NotFound, OSError) as error:
            hint = "install git; the demonstration describes a git repository"
            raise NotFound("git is not installed", code="git.not_found", hint=hint) from error

    def make(self) -> None:
        """Make the history and check its last commit out."""
        self._do("init", "--quiet", "--template=")
        self._do("fast-import", "--quiet", "--force", "--done", stdin=_data(_HISTORY))
        self._do("symbolic-ref", "HEAD", "refs/heads/main")
        self._do("reset", "--quiet", "--hard")

    def _do(self, *arguments: str, stdin: bytes = b"") -> None:
        done = self.git(*arguments, stdin=stdin)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            reason = said[-1] if said else f"exit {done.returncode}"
            raise HarnessError(f"git {arguments[0]}: {reason}", code="git.failed", where=encode_path(self._folder))
