"""``harness workflows check`` as a process, given plans that are written to harm: findings, exit 14, little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.hostile import GOOD, REFUSED
from tests.reference import HARNESS, PATIENCE_SECONDS, one_stage, write_site

MOST_KIB = 400 * 1024
CHECKED = (
    "a sum of 100 kB", "100,000 brackets", "map in map", "choices in choices", "a pattern", "a bomb of the parser",
    "10,000 brackets", "a nul", "100,000 expressions", "over 1 MiB", "100,000 objects", "a key twice",
    "a lone surrogate", "10 to the power of 400", "60,000 keys", "100,000 cases",
)  # fmt: skip
MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True)
sys.stdout.buffer.write(done.stdout)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, "Traceback" in done.stderr.decode(),
      file=sys.stderr)
"""


class Checked(NamedTuple):
    """What a check said, its exit code, the most memory that it or a child of it had, and whether it broke."""

    document: Any
    code: int
    peak_kib: int
    broke: bool


@pytest.fixture
def check(tmp_path: Path) -> Callable[[bytes], Checked]:
    """Checks what stands in a file, in a process of its own."""
    site = write_site(tmp_path, stages=one_stage(), replies=[])

    def run(source: bytes) -> Checked:
        file = site.project / "plan.json"
        file.write_bytes(source)
        words = [sys.executable, "-c", MEASURED, *HARNESS, "workflows", "check", str(file), "--json"]
        done = subprocess.run(
            words, cwd=site.project, env=site.process_env(), capture_output=True, timeout=PATIENCE_SECONDS, check=True
        )
        code, peak_kib, broke = done.stderr.decode().split()
        return Checked(json.loads(done.stdout), int(code), int(peak_kib), broke == "True")

    return run


@pytest.mark.req("A-10")
@pytest.mark.parametrize("name", CHECKED)
def test_a_plan_that_is_written_to_harm_is_a_finding_of_a_process_that_ends_well(
    check: Callable[[bytes], Checked], name: str
) -> None:
    wanted = REFUSED[name]
    found = check(wanted.source)
    assert (found.code, found.broke) == (14, False)
    first = found.document["findings"][0]
    assert (first["code"], first["path"], first["severity"]) == (wanted.code, wanted.path, "error")
    assert first["message"] and (found.document["workflow_version_id"], found.document["lock"]) == (None, None)
    assert found.peak_kib < MOST_KIB


def test_a_plan_that_harms_nobody_is_found_sound_by_the_same_process(check: Callable[[bytes], Checked]) -> None:
    found = check(json.dumps(GOOD).encode())
    assert (found.code, found.document["ok"]) == (0, True)
