"""What Python source is: a text and the names of tools go in; whether it can be run as a step, or why not, comes out.

Only the syntax is read, nothing is run. Python's own parser is written in C: it refuses deep brackets by itself, but a
long chain of operators makes a tree that is as deep as it is long. So the depth is bounded by counting before.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

__all__ = ["MAX_CHAIN", "MAX_CHARACTERS", "MAX_ELIFS", "MAX_INDENTS", "examine", "tool_names"]

MAX_CHARACTERS: Final = 65_536
MAX_CHAIN: Final = 400
"""Operators, dots, brackets and the like that may lie in each other in a statement; each may be a level of the tree."""

MAX_INDENTS: Final = 60
MAX_ELIFS: Final = 400
"""Of all the source; each is one level of the tree below the one before."""

_CHAINED: Final = frozenset({"await", "else", "if", "in", "is", "lambda", "not"})


def tool_names(tools: Iterable[str]) -> dict[str, list[str]]:
    """The names of tools as code has them, dots as underscores, and the tools that each stands for."""
    found: dict[str, list[str]] = {}
    for tool in dict.fromkeys(tools):
        found.setdefault(tool.replace(".", "_"), []).append(tool)
    return found


def examine(source: str, tools: Sequence[str]) -> list[dict[str, Any]]:
    """Say what is wrong with the source of a step.

    Args:
        source: The source.
        tools: The tools that the step declares, by their own names.

    Returns:
        ``{code, message, hint}`` each, as plain JSON; empty when nothing is.
    """
    deep = _too_deep(source)
    if deep is not None:
        return [_flaw("code.syntax", deep, "write it in several statements")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        line = (error.text or "").strip()[:80]
        return [_flaw("code.syntax", f"This is not Python{where}: {error.msg}.", f"see: {line}" if line else None)]
    except (ValueError, MemoryError, RecursionError) as error:
        return [_flaw("code.syntax", f"This cannot be read: {str(error) or type(error).__name__}.", None)]
    return [*_entry(tree), *_calls(tree, tool_names(tools))]


def _flaw(code: str, message: str, hint: str | None) -> dict[str, Any]:
    return {"code": code, "message": message, "hint": hint}


def _too_deep(source: str) -> str | None:
    """Why the tree could be too deep; None also for what is no Python, which the parser tells better."""
    if len(source) > MAX_CHARACTERS:
        return f"The source has more than {MAX_CHARACTERS} characters."
    chains, indents, elifs = [0], 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            indents += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
            elifs += token.string == "elif"
            _count(chains, token)
            if sum(chains) > MAX_CHAIN or indents > MAX_INDENTS or elifs > MAX_ELIFS:
                return f"Line {token.start[0]} is too long a chain of operators, or nested too deeply."
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None  # the parser stops there too, and tells why
    return None


def _count(chains: list[int], token: tokenize.TokenInfo) -> None:
    """Keep how long the chain is in each bracket that is open; a comma begins another one."""
    if token.type == tokenize.NEWLINE:
        chains[:] = [0]
    elif token.string in _CHAINED:
        chains[-1] += 1
    elif token.type == tokenize.OP:
        if token.string in ",;":
            chains[-1] = 0
        elif token.string in ("(", "[", "{"):
            chains[-1] += 1
            chains.append(0)
        elif token.string in (")", "]", "}"):
            del chains[max(1, len(chains) - 1) :]
        else:
            chains[-1] += token.string != ":"


def _entry(tree: ast.Module) -> list[dict[str, Any]]:
    hint = "begin with: async def main(input, tools):"
    found = [one for one in tree.body if isinstance(one, ast.AsyncFunctionDef | ast.FunctionDef) and one.name == "main"]
    if not found:
        return [_flaw("code.bad_entry", "There is no function main at the top level.", hint)]
    main = found[-1]
    if isinstance(main, ast.FunctionDef):
        return [_flaw("code.bad_entry", "main is not async.", hint)]
    names = [one.arg for one in (*main.args.posonlyargs, *main.args.args)]
    others = main.args.vararg or main.args.kwarg or main.args.kwonlyargs
    if names != ["input", "tools"] or others:
        return [_flaw("code.bad_entry", "main takes other parameters than input and tools.", hint)]
    return []


def _calls(tree: ast.Module, known: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """What is read from ``tools``, wherever it is handed on under that name."""
    found: dict[str, dict[str, Any]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id != "tools":
            continue
        if node.attr not in known and node.attr not in found:
            near = get_close_matches(node.attr, sorted(known), n=3, cutoff=0.4)
            hint = f"did you mean {', '.join(f'tools.{name}' for name in near)}?" if near else "add it to with.tools"
            message = f"tools.{node.attr} in line {node.lineno} is no tool that the step declares."
            found[node.attr] = _flaw("code.tool_not_declared", message, hint)
    return list(found.values())
