"""A number as typed in, the number out, or an error that says what is wanted in words people know."""

from __future__ import annotations

import click

__all__ = ["Whole"]


class Whole(click.IntRange):
    """A whole number within bounds; click's own name for it, ``integer range``, stands in its messages."""

    name = "whole number"
