"""The bytes of one YAML file in, a tree out in which every scalar is still text and every node knows its place.

What YAML guesses is not guessed here: a scalar is its text and whether it was plain, and a schema types it later.
Refused, with file:line:col: anything but UTF-8, a second document, tags, a key given twice (both places are named),
keys that are not text, aliases that are unknown, cyclic or a bomb, what is nested too deeply or simply too much.
A merge key (``<<``) brings in the entries of another mapping: a key of one's own wins, of several mappings the
earlier one wins, and what is brought in is never merged more deeply: a list or a mapping is taken whole or not.
"""

from __future__ import annotations

from typing import Any, Final

import yaml
from yaml.reader import ReaderError

from harness_core.settings.problems import Problem, config_error

from .yaml_tree import MAX_DEPTH, MAX_NODES, Builder, Items, Map, Mark, Node, Scalar, StopReading, one_line

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "Items", "Map", "Mark", "Node", "Scalar", "read_yaml"]

MAX_BYTES: Final = 262_144
"""Largest file that is read, in bytes."""

# Line breaks to YAML 1.1 and to nobody else; inside a text they would silently become spaces.
_ODD_BREAKS: Final = {"\x85": "U+0085", "\u2028": "U+2028", "\u2029": "U+2029"}


def read_yaml(data: bytes, file: str) -> Node | None:
    """Read one file.

    Args:
        data: Its bytes.
        file: What it is called in messages.

    Returns:
        The root node; None when there is nothing in the file but comments.

    Raises:
        ConfigError: Anything is wrong with it; the fact ``problems`` names each place.
    """
    text = _text(data, file)
    builder = Builder(file)
    loader: yaml.SafeLoader | None = None
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_event():
            builder.take(loader.get_event())  # type: ignore[no-untyped-call]
    except yaml.MarkedYAMLError as error:
        builder.problems.append(_syntax(error, file))
    except ReaderError as error:
        where = str(_mark_at(text[: error.position], file))
        builder.problems.append(
            Problem("config.yaml", f"a character is not allowed here: {one_line(error.reason)}", where=where)
        )
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, IndexError, AttributeError) as error:
        # PyYAML lets some of these through: chr() of an escape beyond Unicode is a ValueError.
        where = _place(loader.get_mark(), file) if loader else file
        builder.problems.append(Problem("config.yaml", f"it is not YAML: {one_line(str(error))}", where=where))
    except StopReading:
        pass
    if builder.problems:
        raise config_error(builder.problems)
    return builder.root


def _text(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        raise config_error(
            [Problem("config.too_large", f"the file has {len(data)} bytes, over the limit of {MAX_BYTES}", where=file)]
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        where = str(_mark_at(before, file))
        raise config_error(
            [Problem("config.encoding", "the file is not UTF-8", where=where, hint="save it as UTF-8")]
        ) from error
    for character, name in _ODD_BREAKS.items():
        if character in text:
            where = str(_mark_at(text[: text.index(character)], file))
            hint = "remove it, or write it as an escape in double quotes"
            raise config_error(
                [
                    Problem(
                        "config.yaml",
                        f"the file holds {name}, which YAML takes for a line break",
                        where=where,
                        hint=hint,
                    )
                ]
            )
    return text


def _mark_at(before: str, file: str) -> Mark:
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Mark(file, len(lines), len(lines[-1]) + 1)


def _syntax(error: yaml.MarkedYAMLError, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    where = _place(mark, file) if mark else file
    hint = (
        "put a text with a colon, a # or a leading special character in quotes"
        if error.problem and "not allowed here" in error.problem
        else None
    )
    return Problem("config.yaml", f"it is not YAML: {one_line(error.problem or str(error))}", where=where, hint=hint)


def _place(mark: Any, file: str) -> str:
    return str(Mark(file, mark.line + 1, mark.column + 1))
