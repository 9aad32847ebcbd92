"""The pages tell the truth: their examples run as written, and their links lead somewhere. Run by ``tox -e docs``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.examples import Command, Example, File, Program, agrees, examples

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("plugins/*/README.md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)(?:#[^)]*)?\)")

Play = Callable[[Example], None]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Plays one example after the other in an empty project, away from the person's own configuration."""
    homes = "XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME HOME".split()
    project = tmp_path / "project"
    project.mkdir()
    environment = {
        **os.environ,
        **{name: str(tmp_path / name.lower()) for name in homes},
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }

    def run(call: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            call, cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
        )  # fmt: skip

    def play_one(example: Example) -> None:
        match example:
            case File(path=path, text=text):
                (project / path).parent.mkdir(parents=True, exist_ok=True)
                (project / path).write_text(text, encoding="utf-8")
            case Command(text=text, output=output, exit=code):
                done = run(["bash", "-c", text])
                assert done.returncode == code, done.stdout
                assert agrees(output, done.stdout), done.stdout
            case Program(text=text):
                done = run([sys.executable, "-c", text])
                assert done.returncode == 0, done.stdout

    return play_one


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_the_examples_of_a_page_run_as_written(page: Path, play: Play) -> None:
    for example in examples(page.read_text(encoding="utf-8")):
        print(f"{_name(page)}:{example.line}")  # the last one printed is the one that failed
        play(example)


@pytest.mark.parametrize("page", sorted(set(LINKED)), ids=_name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]


PAGE = """
```yaml
# .harness/a.yaml
b: 1
```
Text.
```console
$ cat .harness/a.yaml
# ...
b: 1
$ printf '%s\\n' one \\
    two
one
two
$ exit 3  # exit 3
```
```python
assert open(".harness/a.yaml").read().endswith("b: 1\\n")
```
```sh
not run
```
"""


def test_a_page_is_read_in_order(play: Play) -> None:
    found = list(examples(PAGE))
    assert [(type(one).__name__, one.line) for one in found] == [
        ("File", 3), ("Command", 8), ("Command", 11), ("Command", 15), ("Program", 18),
    ]  # fmt: skip
    for one in found:
        play(one)


OUTPUTS = [("echo one", "two", 0), ("echo one", "one\n...x", 0), ("true", "", 3)]
LIES = [*(Command(1, *output) for output in OUTPUTS), Program(1, "x")]


@pytest.mark.parametrize("wrong", LIES)
def test_an_example_that_lies_is_found(play: Play, wrong: Example) -> None:
    with pytest.raises(AssertionError):
        play(wrong)
