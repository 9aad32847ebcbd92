"""Goal 5: sessions are killed at random points and gone on with; losses, repeats and the time it took come out.

``HARNESS_TEST_PROFILE=deep`` tries all the points that the goal names, else a handful is tried.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from ._kill import Killed, Shape, Site
from .measure import Figure, at_most

__all__ = ["NAME", "killed", "run"]

NAME = "resume"

ALL_POINTS, FEW_POINTS = 200, 5  # of each shape; 200 as goal 5 says
SEED = 5


def run() -> Iterator[Figure]:
    """One branch, and some side by side; of each a session for every point."""
    points = ALL_POINTS if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else FEW_POINTS
    for shape in get_args(Shape):
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
            site = Site(Path(folder), shape)
            site.make()
            found = list(killed(site, points))
        yield from _figures(f"resume.{shape}", found, site.branches)


def killed(site: Site, points: int) -> Iterator[Killed]:
    """Kill and go on at so many points, the same ones each time."""
    point = random.Random(SEED)
    for _ in range(points):
        site.kill(point)
        yield site.go_on()


def _figures(name: str, found: Sequence[Killed], branches: int) -> Iterator[Figure]:
    unit = f"of {len(found)} sessions"
    yield at_most(f"{name}.not_resumed", sum(not one.resumed for one in found), unit, must=0, aim=0)
    yield at_most(f"{name}.lost", sum(one.lost for one in found), "calls", must=0, aim=0)
    # A branch has one call in flight; that one may be made again, once.
    repeats = max(max(one.repeats / branches, one.most_of_one - 1) for one in found)
    yield at_most(f"{name}.repeats", repeats, "of a branch, at most", must=1, aim=1)
    yield at_most(f"{name}.unkeyed_repeats", sum(one.unkeyed_repeats for one in found), "calls", must=0, aim=0)
    first = [one.first_step_seconds for one in found if one.first_step_seconds is not None]
    yield at_most(f"{name}.first_step", statistics.median(first), "s after exec", must=0.6, aim=0.35)
