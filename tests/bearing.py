"""Takes the name of a test, gives whether it reaches the product from outside, as one that bears a requirement must.

Read from the syntax tree alone: the test function, the helpers and fixtures of its module, of the ``conftest.py``
files above it, of the modules beside the tests that it imports from and of the scripts it starts, as far as they are
named. It reaches the product when one of them uses the command line, the ``Host``, a
store, or a public name of the contract. An error class alone is no call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["reaches_product"]

COMMAND = frozenset({"harness", "harness-host"})  # as the first word of a process


def reaches_product(root: Path, test: str) -> bool:
    """Decide it for one test, named as pytest names it: ``tests/test_a.py::TestB::test_c[x]``."""
    file, *names = test.split("[", maxsplit=1)[0].split("::")
    modules = [_Module(root / file), *(_Module(conftest) for conftest in _conftests(root, root / file))]
    return _reach(modules, modules[0].functions(names))


def _conftests(root: Path, file: Path) -> Iterator[Path]:
    for folder in file.parents:
        if (folder / "conftest.py").is_file():
            yield folder / "conftest.py"
        if folder == root:
            return


def _reach(modules: list[_Module], starts: list[ast.AST]) -> bool:
    """Follow names from the test through its helpers, nearest definition first, until something of ours is used."""
    waiting, seen = [(node, modules[0]) for node in starts], set[int]()
    while waiting:
        node, module = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if _names_command(node) or _used(node) & module.outside:
            return True
        for script in _scripts(node, module.file):
            waiting += [(one, script) for one in script.defined.values()]
        for name in _used(node):
            waiting += _definitions(name, [module, *modules])
    return False


def _definitions(name: str, modules: list[_Module]) -> list[tuple[ast.AST, _Module]]:
    """What a name stands for: in the nearest module that defines it, or in the module it was imported from."""
    for one in modules:
        if name in one.defined:
            return [(one.defined[name], one)]
        if name in one.imported:
            file, original = one.imported[name]
            return _definitions(original, [_Module(file)])
    return []


def _scripts(node: ast.AST, file: Path) -> Iterator[_Module]:
    """The programs beside a test that it names, as ``with_name("driver.py")`` does."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.endswith(".py"):
            script = file.parent / inner.value
            if script.is_file():
                yield _Module(script)


def _used(node: ast.AST) -> set[str]:
    """Names a piece of code uses: variables, and the arguments by which a test asks for its fixtures."""
    used = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            used.add(inner.id)
        elif isinstance(inner, ast.arg):
            used.add(inner.arg)
        elif isinstance(inner, ast.Call) and _is_usefixtures(inner):
            used.update(str(text.value) for text in inner.args if isinstance(text, ast.Constant))
    return used


def _is_usefixtures(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "usefixtures"


def _names_command(node: ast.AST) -> bool:
    """Whether a process is started from it: ``["harness", ...]`` or ``[python, "-m", "harness_core..."]``."""
    for inner in ast.walk(node):
        if not isinstance(inner, ast.List | ast.Tuple):
            continue
        words = [one.value for one in inner.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        starts = words[:1] if inner.elts and isinstance(inner.elts[0], ast.Constant) else []
        if COMMAND & {*starts} or any(word.startswith("harness_core") for word in words):
            return True
    return False


class _Module:
    """The names that a test module defines, and those by which it reaches the product."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.defined, self.outside, self.imported = _read(file)

    def functions(self, names: list[str]) -> list[ast.AST]:
        """The test's own function; for one that its class inherits, the class with its bases."""
        node: ast.AST | None = self.defined.get(names[0])
        for name in names[1:]:
            body = node.body if isinstance(node, ast.ClassDef) else []
            inner = [one for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == name]
            if not inner:
                return [node] if node is not None else []
            node = inner[0]
        return [node] if node is not None else []


@cache
def _read(file: Path) -> tuple[dict[str, ast.AST], frozenset[str], dict[str, tuple[Path, str]]]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    defined: dict[str, ast.AST] = {}
    outside: set[str] = set()
    imported: dict[str, tuple[Path, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            outside.update(_reaching(node))
        if isinstance(node, ast.ImportFrom):
            imported.update(_from_beside(node, file))
    for node in tree.body:
        defined.update(dict.fromkeys(_binds(node), node))
    return defined, frozenset(outside), imported


def _from_beside(node: ast.ImportFrom, file: Path) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Names imported from another module of the same tree of tests, with where they come from."""
    parts = (node.module or "").split(".")
    if parts[0].startswith("harness_"):  # the product itself is what is to be reached, not a way to it
        return
    for folder in file.parents:
        source = folder.joinpath(*parts).with_suffix(".py")
        if parts != [""] and source.is_file():
            for alias in node.names:
                yield alias.asname or alias.name, (source, alias.name)
            return


def _binds(node: ast.stmt) -> list[str]:
    """Names defined at the top level of a module; a fixture is known by its own name or by ``name=``."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name, *_fixture_names(node)]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _fixture_names(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    words = [word for call in node.decorator_list if isinstance(call, ast.Call) for word in call.keywords]
    return [str(word.value.value) for word in words if word.arg == "name" and isinstance(word.value, ast.Constant)]


def _reaching(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The local names under which an import brings in the command line, the Host, a store or the contract."""
    for alias in node.names:
        local = (alias.asname or alias.name).split(".")[0]
        module = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        if _is_product(module.split(".")):
            yield local


def _is_product(parts: list[str]) -> bool:
    package, *inner = parts
    if any(part.startswith("_") for part in inner):
        return False
    if package == "harness_hookspecs":
        return inner[:1] != ["errors"]
    if package == "harness_core":
        return not inner or inner[0] == "cli" or inner[-1] == "Host"
    return package.startswith("harness_store_")
