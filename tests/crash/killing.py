"""A place and a failpoint in, a process that was killed, broken or stopped there out, and whether somebody could go on.

What happened is judged from outside: by the lines that the tools leave in a file of their own, by what the process had
said to be committed, and by how often the model was asked. The checker of logs is given all of it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.reference import Site

__all__ = ["Driver", "Reference"]

KEPT = ("data", "state", "effects.jsonl", "project/acks", "project/asked", "project/settled")


class Driver:
    """The process that plays phases, and the place it plays them in."""

    def __init__(self, site: Site) -> None:
        self.site, self.root = site, site.project.parent
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("driver.py"))],
            cwd=site.project, env=site.process_env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def keep(self, name: str) -> None:
        """Remember how everything is now."""
        _copy(self.root, self.root / "kept" / name)

    def restore(self, name: str) -> None:
        """Make everything as it was then."""
        for part in KEPT:
            shutil.rmtree(self.root / part, ignore_errors=True)
            (self.root / part).unlink(missing_ok=True)
        _copy(self.root / "kept" / name, self.root)

    def lines(self, name: str) -> list[Any]:
        """What children wrote outside, a line each."""
        file = self.site.project / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.communicate()


def _copy(source: Path, target: Path) -> None:
    for part in KEPT:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part)
        elif (source / part).exists():
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / part, target / part)


class Reference:
    """A session undisturbed: its end, and how often each phase reaches each boundary.

    Its phases are ``begin``, and for each time that it waits for a person ``answer N`` and ``resume N``; for each time
    that it waits for a timer ``resume N`` alone. Of its calls ``alike`` may be under way at once that ask a model the
    same.
    """

    def __init__(self, driver: Driver, *, alike: int = 1) -> None:
        self.driver, self.alike = driver, alike
        self.reached: dict[str, dict[str, int]] = {}
        status = self._undisturbed("begin")
        for number in range(1, 10):
            if status == "awaiting_approval":
                self._undisturbed(f"answer {number}")
            if status in ("awaiting_approval", "active"):
                status = self._undisturbed(f"resume {number}")
        looked = self.driver(phase="look")
        self.driver(**{"import": looked["modules"]})
        self.end = looked["document"]
        assert not self.end["broken"], self.end["broken"]
        assert self.end["status"] == "completed"
        assert all(report["equal"] for report in self.end["replayed"].values())
        self.notes = {line["args"]["note"] for line in self.driver.site.effects()}
        self.asked = self._asked()

    def _undisturbed(self, phase: str) -> str:
        self.driver.keep(phase)
        played = self.driver(phase=phase)
        assert "document" in played, played
        self.reached[phase] = played["reached"]
        self.driver(**{"import": played["modules"]})
        return str(played["document"]["status"])

    def disturbed(self, phase: str, failpoint: str = "", **more: Any) -> dict[str, Any]:
        """How the child ended that plays a phase with that failpoint, or under another disturbance."""
        self.driver.restore(phase)
        return self.driver(phase=phase, failpoint=failpoint, **more)

    def check(self, disturbances: int) -> None:
        """Somebody goes on, at once, to the same end; nothing was lost and nothing happened too often."""
        ended = self.driver(phase="finish", crashes=disturbances)
        assert "document" in ended, ended
        assert ended["seconds"] < 10.0  # hundredths on a quiet machine; a lease would have to run out first
        document = ended["document"]
        assert (document["status"], document["state_hash"]) == ("completed", self.end["state_hash"])
        assert not document["broken"], document["broken"]
        diverged = [report["diverged"] for report in document["replayed"].values()]
        assert not any(diverged), diverged
        assert {line["args"]["note"] for line in self.driver.site.effects()} == self.notes
        asked = self._asked()
        assert asked.keys() == self.asked.keys()
        most = disturbances * self.alike  # each that was under way is made once more
        assert all(count <= self.asked[one] + most for one, count in asked.items())

    def _asked(self) -> Counter[tuple[Any, ...]]:
        """How often each question was put to a model."""
        return Counter(map(tuple, self.driver.lines("asked")))
