"""What an expression knows before it reads: a condition and its truth in, the ``has(...)`` that follow out.

Taken for a guard is ``has(path)``, a path of names and constant keys from a root or a step, where it decides whether
the read happens at all:

- ``has(p) ? p : other``, and what follows for ``other``: there, p is absent;
- ``has(p) && reads p``, and ``!has(p) || reads p``;
- these negated by ``!``, and put together by ``&&`` where it holds and by ``||`` where it does not;
- of the cases of a decision, that those before did not hold.

Nothing else is: not a comparison with ``true``, not a ``has`` inside a choice or a macro, not ``size(...) > 0``. So a
guard is always one that the rules engine evaluates first, from left to right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from .tree import Binary, Call, Field, Index, Literal, Name, Node, Unary

__all__ = ["Fact", "Path", "known_if", "path_of"]

Path: TypeAlias = tuple[str, ...]


class Fact(NamedTuple):
    """That something is there, or not."""

    path: Path
    is_set: bool


def known_if(node: Node, holds: bool) -> Iterator[Fact]:
    """What is known once the condition has turned out true, or false."""
    if isinstance(node, Unary) and node.sign == "!":
        yield from known_if(node.of, not holds)
    elif isinstance(node, Binary) and node.sign == ("&&" if holds else "||"):
        yield from known_if(node.left, holds)
        yield from known_if(node.right, holds)
    elif isinstance(node, Call) and node.of is None and node.name == "has" and len(node.args) == 1:
        path = path_of(node.args[0])
        if path is not None:
            yield Fact(path, holds)


def path_of(node: Node) -> Path | None:
    """The root and the constant names after it, or None for anything else."""
    found: list[str] = []
    while not isinstance(node, Name):
        if isinstance(node, Field):
            found.append(node.name)
        elif isinstance(node, Index) and isinstance(node.key, Literal) and node.key.known:
            found.append(str(node.key.value))
        else:
            return None
        node = node.of
    return (node.text, *reversed(found))
