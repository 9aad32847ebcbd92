"""Takes the tests of a requirement, gives the function of ours that, emptied, makes one of them fail.

Two halves. The parent runs the tests once with a profile that notes which functions of ours each of them calls, then
again with one of these functions emptied at a time, the most particular first, until a test fails. The child half is
what every Python process of such a run loads at its start (``sitecustomize``), so that a command line that a test
starts counts.
"""

from __future__ import annotations

import ast
import atexit
import importlib.machinery
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

__all__ = ["Function", "emptied", "prove"]

ROOT = Path(__file__).resolve().parent.parent
RECORD, EMPTY = "HARNESS_PROVE_RECORD", "HARNESS_PROVE_EMPTY"  # the two orders a child may find in its environment,
WHERE = "HARNESS_PROVE_ROOT"  # and the folder that they speak of
tries_limit, run_timeout_seconds = 40, 120.0

#: What every process of such a run does first; the folder with it stands at the head of PYTHONPATH.
SITE = """import importlib.util, sys
spec = importlib.util.spec_from_file_location("harness_proving", {file!r})
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
module.obey()
"""


@dataclass(frozen=True, order=True)
class Function:
    """A function of ours, by its file below the root, its qualified name and its first line."""

    file: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.name}"


# -------------------------------------------------------------------------------------------------- parent


def prove(tests: Sequence[str], *, beside: Sequence[str] = (), root: Path = ROOT) -> tuple[Function, str] | None:
    """Find the function whose emptying makes one of ``tests`` fail.

    Args:
        tests: Node ids of the tests of one requirement; they pass as things are.
        beside: Node ids of other tests; a function that they call too is tried later.
        root: The folder that the node ids are relative to.

    Returns:
        The function and how the run ended, or ``None`` when none of the tried ones mattered.
    """
    with tempfile.TemporaryDirectory() as folder:
        calls = _calls(root, [*tests, *beside], Path(folder))
        for function in _candidates(calls, tests)[:tries_limit]:
            order = json.dumps([function.file, function.name, function.line])
            ended = _run(root, tests, folder=Path(folder), orders={EMPTY: order})
            if ended:
                return function, ended
    return None


def _calls(root: Path, tests: Sequence[str], folder: Path) -> dict[str, set[Function]]:
    """Run the tests once, give the functions of ours that each of them called."""
    notes = folder / "notes"
    notes.mkdir()
    _run(root, tests, folder=folder, orders={RECORD: str(notes)})
    calls: dict[str, set[Function]] = {}
    for note in notes.iterdir():
        for test, functions in json.loads(note.read_text(encoding="utf-8")).items():
            calls.setdefault(test, set()).update(Function(*one) for one in functions)
    return calls


def _candidates(calls: dict[str, set[Function]], tests: Sequence[str]) -> list[Function]:
    """The functions that the tests call: those first that others call least and these tests most."""
    inside = Counter(function for test in set(tests) for function in calls.get(test, ()))
    outside = Counter(function for test in set(calls) - set(tests) for function in calls[test])
    return sorted(inside, key=lambda function: (outside[function], -inside[function], function))


def _run(root: Path, tests: Sequence[str], *, folder: Path, orders: dict[str, str]) -> str:
    """Run the tests in processes that obey the orders; give how they failed, or nothing when all passed."""
    (folder / "sitecustomize.py").write_text(SITE.format(file=str(Path(__file__).resolve())), encoding="utf-8")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **orders, WHERE: str(root), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *dict.fromkeys(tests)]
    if EMPTY in orders:
        call.append("-x")
    child = subprocess.Popen(
        call, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        output = child.communicate(timeout=run_timeout_seconds)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return "it never ends"
    return "" if child.returncode == 0 else _last_line(output)


def _last_line(output: str) -> str:
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
    return (failed or output.splitlines() or ["it fails"])[-1].strip()


# --------------------------------------------------------------------------------------------------- child


def obey() -> None:
    """Do in this process what the environment orders: note the calls, or empty one function."""
    root = Path(os.environ[WHERE])
    if notes := os.environ.get(RECORD):
        _Notes(root, Path(notes)).start()
    if order := os.environ.get(EMPTY):
        _empty_on_import(root, Function(*json.loads(order)))


class _Notes:
    """The functions of ours that were called, by test; written when the process ends, also by ``os._exit``."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.calls: dict[str, set[tuple[str, str, int]]] = {}
        self.known: dict[CodeType, tuple[str, str, int] | None] = {}

    def start(self) -> None:
        leave = os._exit

        def leave_with_notes(status: int) -> Any:
            self.write()
            leave(status)

        atexit.register(self.write)
        os._exit = leave_with_notes
        sys.setprofile(self.note)
        threading.setprofile(self.note)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self.known:
            self.known[code] = _ours(self.root, code)
        function = self.known[code]
        if function is None:
            return
        called = self.calls.setdefault(_current_test(), set())
        if function not in called and not _is_import(frame):
            called.add(function)

    def write(self) -> None:
        sys.setprofile(None)
        # copies, because other threads may still be calling
        written = {test: sorted(functions.copy()) for test, functions in self.calls.copy().items()}
        (self.folder / f"{os.getpid()}.json").write_text(json.dumps(written), encoding="utf-8")


def _is_import(frame: FrameType | None) -> bool:
    """Whether a call is part of an import: without it there is no module, which would fail any test whatever."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _current_test() -> str:
    """The test that runs now, which pytest writes into the environment: a process that it starts inherits it."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]


def _ours(root: Path, code: CodeType) -> tuple[str, str, int] | None:
    """The function of a code object, when it is one of ours that may be emptied with meaning."""
    name = code.co_qualname.rpartition(".")[2]
    if not code.co_flags & inspect.CO_OPTIMIZED:  # a module or the body of a class, which runs when it is imported
        return None
    if name.startswith(("<", "__")) or not code.co_filename.startswith(f"{root}{os.sep}"):
        return None
    file = Path(code.co_filename).relative_to(root)
    package = next((part for part in file.parts[:-1] if part.startswith("harness_")), None)
    if package is None or "contracts" in file.parts or file.parts[0] == ".tox":
        return None
    return file.as_posix(), code.co_qualname, code.co_firstlineno


def _empty_on_import(root: Path, function: Function) -> None:
    """From now on the module of the function is imported with the function's body gone."""
    usual = importlib.machinery.SourceFileLoader.get_code
    target = str(root / function.file)

    def get_code(loader: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
        path = loader.get_filename(fullname)
        if os.path.realpath(path) != target:
            return usual(loader, fullname)
        tree = emptied(Path(target).read_text(encoding="utf-8"), function)
        return compile(tree, path, "exec", dont_inherit=True)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]


def emptied(source: str, function: Function) -> ast.Module:
    """Give the module's syntax tree with the function's body replaced by ``return None``.

    Raises:
        LookupError: There is no such function.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _is_at(node, function):
            generator = any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in _own(node))
            node.body = ast.parse("return\nyield" if generator else "return None").body
            return ast.fix_missing_locations(tree)
    raise LookupError(str(function))


def _is_at(node: ast.FunctionDef, function: Function) -> bool:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.name == function.name.rpartition(".")[2] and first == function.line


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of the functions inside it."""
    for inner in ast.iter_child_nodes(node):
        yield inner
        if not isinstance(inner, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from _own(inner)
