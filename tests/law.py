"""Takes the source of one module and its place in the project, gives each import and call that the law forbids there.

The law in short. Plugins import the contract and themselves; the core imports no plugin; the contract imports nobody;
inside the core the command line stands on the shell and the shell on the kernel, which is pure. Time, ids, chance,
threads, waiting, files, processes and the network are reached through ports; a plugin's ``<kind>.py`` may touch files,
processes, sockets and databases; the main of a child process (``worker.py``) is free. ``except Exception`` stands only
where a stranger's code is called.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

CONTRACT = "harness_hookspecs"
CORE = "harness_core"

#: Inside the core a part may use its own height and what is below.
LAYERS = {"cli": 3, "shell": 2, "settings": 1, "kernel": 0}

#: What only ports may use, everywhere else. The second set is open to a plugin's ``<kind>.py``.
WAITING = frozenset(
    "time random secrets threading _thread queue concurrent asyncio multiprocessing select selectors sched".split()
)
WORLD = frozenset("subprocess socket socketserver tempfile".split())
CALLS_OF_TIME = {
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "uuid": {"uuid1", "uuid4", "uuid6", "uuid7"},
}
CALLS_OF_CHANCE = {"os": {"urandom", "getrandom"}}
CALLS_OF_WORLD = {
    "os": {"fork", "forkpty", "fdopen", "open", "popen", "posix_spawn", "posix_spawnp", "startfile", "system"},
    "io": {"open", "open_code"},
    "codecs": {"open"},
}
OS_FAMILIES = re.compile(r"(exec|spawn)[lv]p?e?$")
PATH_METHODS = frozenset("read_bytes read_text write_bytes write_text".split())
#: ``ports.files(root).read_bytes(...)`` is the port itself; package data comes through ``importlib.resources``.
PORT_WORDS = re.compile(r"files|resource", re.IGNORECASE)

#: The pure part of the standard library, which is all that the kernel may use besides the contract and attrs.
PURE = frozenset(
    "__future__ abc base64 binascii bisect collections contextlib copy dataclasses datetime decimal difflib enum "
    "fnmatch fractions functools graphlib hashlib heapq hmac ipaddress itertools json keyword math numbers operator "
    "posixpath re shlex string struct textwrap types typing typing_extensions unicodedata uuid attr attrs".split()
)

#: Where the code of strangers is called, imported or told, so that whatever it raises must be caught.
MAY_CATCH_ALL = (
    "harness_core/kernel/guard.py",  # the pure calls of a plugin
    "harness_core/shell/loop.py",  # a turn that breaks: everyone who waits for it must hear of it
    "harness_core/shell/loop_parts.py",  # what a waiter's own condition raises, he meets himself when he looks
    "harness_core/shell/perform",  # the effects
    "harness_core/shell/plugins",  # imports
    "harness_core/shell/catalogue",
    "harness_core/shell/parts",  # builds
    "harness_core/shell/observers",  # tells
    "harness_core/shell/ports",  # a thread's end, whatever it is, goes to the one who joins it
    "harness_core/shell/trace",
    "harness_role_probe/behaviours.py",  # a plugin for tests that misbehaves on purpose
    "harness_core/cli/main.py",  # exit 70: says it in one line and keeps the traceback for --debug
)


@dataclass(frozen=True)
class Place:
    """Where a module stands: its distribution's folder name and its path inside that folder."""

    distribution: str
    path: str

    @property
    def package(self) -> str:
        """The import name of the distribution's package."""
        return PurePosixPath(self.path).parts[0]

    @property
    def kind(self) -> str | None:
        """The kind of a plugin, by its distribution's name ``harness-KIND-NAME``; ``None`` for contract and core."""
        named = re.fullmatch(r"harness-([a-z]+)-.+", self.distribution)
        return named[1] if named and self.package not in {CONTRACT, CORE} else None

    @property
    def inside(self) -> str:
        """The path below the package."""
        return "/".join(PurePosixPath(self.path).parts[1:])


@dataclass(frozen=True)
class Finding:
    """One break of the law."""

    place: Place
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.place.distribution}/{self.place.path}:{self.line}: {self.what}"


def findings(source: str, place: Place) -> list[Finding]:
    """List what the law forbids in this module, by line."""
    tree = ast.parse(source)
    found = [*_imports(tree, place), *_world(tree, place), *_catches(tree, place)]
    return sorted((Finding(place, line, what) for line, what in found), key=lambda one: (one.line, one.what))


def modules(folder: Path) -> Iterator[tuple[Path, Place]]:
    """Walk the package modules of one distribution folder; its tests are not among them."""
    for package in sorted(folder.glob("harness_*/")):
        for file in sorted(package.rglob("*.py")):
            yield file, Place(folder.name, file.relative_to(folder).as_posix())


# ------------------------------------------------------------------------------------------------- imports


def _imports(tree: ast.Module, place: Place) -> Iterator[tuple[int, str]]:
    for line, name in _imported(tree, place):
        if name.startswith("harness_") and not _may_import(name, place):
            yield line, f"imports {name}"
        if _is_kernel(place) and not _is_pure(name):
            yield line, f"the kernel is pure, but imports {name}"


def _imported(tree: ast.Module, place: Place) -> Iterator[tuple[int, str]]:
    """Every module that is imported, wherever the import stands, also by ``import_module`` with a literal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, place)
            # "from package import module" names a module too; a plain name does no harm here
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _last(node.func) in {"import_module", "__import__"}:
            literal = node.args[0] if node.args else None
            if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
                yield node.lineno, literal.value


def _absolute(node: ast.ImportFrom, place: Place) -> str:
    if not node.level:
        return node.module or ""
    parents = PurePosixPath(place.path).parts[: -node.level]
    return ".".join([*parents, *([node.module] if node.module else [])])


def _may_import(name: str, place: Place) -> bool:
    package, _, rest = name.partition(".")
    if package != place.package:
        return package == CONTRACT and place.package != CONTRACT
    if package != CORE:
        return True
    own, other = place.inside.split("/")[0], _first(rest)
    return LAYERS.get(other, 0) <= LAYERS.get(own, len(LAYERS))


def _is_kernel(place: Place) -> bool:
    return place.path.startswith(f"{CORE}/kernel/")


def _is_pure(name: str) -> bool:
    package = _first(name)
    return package in PURE or package == CONTRACT or name.startswith(("pathlib.Pure", f"{CORE}.kernel"))


# --------------------------------------------------------------------------------------------------- world


def _world(tree: ast.Module, place: Place) -> Iterator[tuple[int, str]]:
    """What reaches past the ports; an import for type checkers alone reaches nothing."""
    if _is_exempt(place):
        return
    touches_world = place.kind is not None and place.inside == f"{place.kind}.py"
    banned = WAITING if touches_world else WAITING | WORLD
    skipped = {id(inner) for node in ast.walk(tree) if _is_type_checking(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        yield from _banned_imports(node, banned)
        if isinstance(node, ast.Call):
            what = _banned_call(node, touches_world)
            if what:
                yield node.lineno, f"calls {what}"


def _is_exempt(place: Place) -> bool:
    if place.package == CONTRACT:
        return place.inside.startswith("contracts/")
    if place.package == CORE:
        return place.inside.startswith(("shell/ports.py", "shell/ports_", "shell/ports/"))
    return place.inside == "worker.py"


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _last(node.test) == "TYPE_CHECKING"


def _banned_imports(node: ast.AST, banned: frozenset[str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((node.lineno, f"imports {alias.name}") for alias in node.names if _first(alias.name) in banned)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        module = node.module or ""
        if _first(module) in banned:
            yield node.lineno, f"imports {module}"
        for alias in node.names:  # from os import urandom
            if _in_tables(module, alias.name, world=banned >= WORLD):
                yield node.lineno, f"imports {module}.{alias.name}"


def _banned_call(node: ast.Call, touches_world: bool) -> str | None:
    function = node.func
    if isinstance(function, ast.Name):
        return function.id if function.id == "input" or (function.id == "open" and not touches_world) else None
    if not isinstance(function, ast.Attribute):
        return None
    owner = _last(function.value)
    if _in_tables(owner, function.attr, world=not touches_world):
        return f"{owner}.{function.attr}"
    if not touches_world and _is_path_call(function):
        return f"{ast.unparse(function)} on a path"
    return None


def _in_tables(owner: str, name: str, *, world: bool) -> bool:
    tables = [CALLS_OF_TIME, CALLS_OF_CHANCE, *([CALLS_OF_WORLD] if world else [])]
    if any(name in table.get(owner, ()) for table in tables):
        return True
    return world and owner == "os" and bool(OS_FAMILIES.match(name))


def _is_path_call(function: ast.Attribute) -> bool:
    receiver = ast.unparse(function.value)
    if function.attr == "open":
        return bool(re.search(r"\bPath\(|\.parent$", receiver))
    return function.attr in PATH_METHODS and not PORT_WORDS.search(receiver)


def _first(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def _last(node: ast.AST) -> str:
    """The last identifier of a dotted name: ``datetime`` of ``datetime.datetime``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


# ------------------------------------------------------------------------------------------------- catches


def _catches(tree: ast.Module, place: Place) -> Iterator[tuple[int, str]]:
    if place.path.startswith(MAY_CATCH_ALL) or (_is_exempt(place) and place.package != CORE):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _catches_all(node.type) and not _raises_again(node):
            yield node.lineno, "catches every exception"
        if isinstance(node, ast.Call) and _last(node.func) == "suppress" and any(map(_catches_all, node.args)):
            yield node.lineno, "suppresses every exception"


def _catches_all(kind: ast.expr | None) -> bool:
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(_last(one) in {"Exception", "BaseException"} for one in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Cleaning up and letting it go on is no catch: the handler ends with a bare ``raise``."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


if __name__ == "__main__":  # python tests/law.py FOLDER...: what the law says about other folders
    for argument in sys.argv[1:]:
        for file, place in modules(Path(argument).resolve()):
            for finding in findings(file.read_text(encoding="utf-8"), place):
                print(finding)
