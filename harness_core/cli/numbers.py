"""A number or an age as typed in, the number out, or an error in words people know; a number in, its words out."""

from __future__ import annotations

import re
from typing import Final

import click

__all__ = ["Whole", "age", "counted", "minute", "moment", "sized"]

_AGE: Final = re.compile(r"([0-9]{1,9})([smhdw])")
_UNITS: Final = ((1_073_741_824, "GiB"), (1_048_576, "MiB"), (1024, "KiB"))
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Whole(click.IntRange):
    """A whole number within bounds; click's own name for it, ``integer range``, stands in its messages."""

    name = "whole number"


def age(text: str) -> int:
    """The seconds of a time as people write it, 30d for example; the type of an option.

    Raises:
        click.BadParameter: It is none.
    """
    found = _AGE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f'"{text}" is no time: a number and s, m, h, d or w, 30d for example')
    return int(found[1]) * _SECONDS[found[2]]


def counted(count: int, thing: str) -> str:
    """A number of things."""
    return f"{count} {thing}{'s' if count != 1 else ''}"


def minute(timestamp: str) -> str:
    """A time of an event as a table shows it, in UTC."""
    return timestamp[:16].replace("T", " ")


def moment(timestamp: str) -> str:
    """A time that somebody waits for, to the second, in UTC."""
    return f"{timestamp[:19].replace('T', ' ')} UTC"


def sized(size_bytes: int) -> str:
    """Bytes in the largest unit that gives a whole one."""
    for unit, name in _UNITS:
        if size_bytes >= unit:
            return f"{size_bytes / unit:.1f} {name}"
    return f"{size_bytes} bytes"
