"""The table of requirements: it reads marks as they are, refuses those that show nothing, and proves the others."""

from __future__ import annotations

import ast
import csv
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import proving, requirements
from tests.bearing import reaches_product

ROOT = Path(__file__).resolve().parent.parent


def test_the_table_has_every_row_once() -> None:
    with (ROOT / "tests" / "requirements.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    expected = [f"{source}-{n}" for source, last in (("A", 103), ("B", 159), ("C", 80)) for n in range(1, last + 1)]
    assert sorted(ids) == sorted([*(_two_digits(row) for row in expected), *(f"I-{n}" for n in range(1, 41))])


def _two_digits(row: str) -> str:
    source, number = row.split("-")
    return f"{source}-{int(number):02}"


def _case(outcome: str, *rows: str) -> requirements.Case:
    return requirements.Case("tests/test_a.py::test_b", outcome, rows)


@pytest.mark.parametrize(
    ("cases", "word"),
    [
        ([], "none"),
        ([_case("skipped", "A-01")], "none"),
        ([_case("passed", "A-01")], "pass"),
        ([_case("passed", "A-01"), _case("failed", "A-01")], "fail"),
        ([_case("passed", "A-01", "A-02", "A-03", "A-04")], "shared"),
        ([_case("passed", "A-01", "A-02", "A-03", "A-04"), _case("passed", "A-01")], "pass"),
    ],
)
def test_a_row_is_worth_what_its_tests_are(cases: list[requirements.Case], word: str) -> None:
    assert requirements.status(cases) == word


def _project(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")


def test_marks_reach_the_report_and_unknown_rows_are_refused(tmp_path: Path) -> None:
    conftest = (ROOT / "conftest.py").read_text(encoding="utf-8")
    _project(tmp_path, {
        "conftest.py": conftest,
        "pytest.ini": "[pytest]\nmarkers =\n    req\n    inv\n",
        "tests/requirements.csv": "id,title\nA-01,a\nA-02,b\nI-7,c\n",
        "test_x.py": "import pytest\n@pytest.mark.req('A-01', 'A-02')\n@pytest.mark.inv('I-7')\ndef test_a(): pass\n",
    })  # fmt: skip
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", "report.xml", "test_x.py"]
    assert subprocess.run(call, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    [case] = requirements.read_report(tmp_path / "report.xml")
    assert (case.test, case.outcome, sorted(case.rows)) == ("test_x.py::test_a", "passed", ["A-01", "A-02", "I-7"])

    (tmp_path / "tests" / "requirements.csv").write_text("id,title\nA-01,a\n", encoding="utf-8")
    refused = subprocess.run(call, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert refused.returncode == 4
    assert "rows that do not exist: A-02, I-7" in refused.stderr


SAMPLES = {
    "the contract": (True, "from harness_hookspecs.kit import codec\ndef test_a(): codec.dumps({})"),
    "the contract through a helper": (True, "from harness_hookspecs import Role\ndef b(): Role()\ndef test_a(): b()"),
    "a store through a fixture": (
        True, "from harness_store_memory import s\n@fixture\ndef kept(): return s()\ndef test_a(kept): kept.read()",
    ),
    "a fixture by another name": (
        True, "from harness_core import Host\n@fixture(name='it')\ndef make(): return Host\ndef test_a(it): it.open()",
    ),
    "a fixture of the folder": (True, "def test_a(host): host.run()"),
    "a fixture that is only asked for": (True, "@mark.usefixtures('host')\ndef test_a(): pass"),
    "the command line as a process": (True, "def test_a(): run(['harness', 'run', 'x'])"),
    "the command line as a module": (True, "def test_a(): run([sys.executable, '-m', 'harness_core.cli.main'])"),
    "the command line as a function": (True, "from harness_core.cli.main import main\ndef test_a(): main(['x'])"),
    "the suite of the contract": (
        True, "from harness_hookspecs.contracts import StoreContract\nclass Test(StoreContract):\n    kept = 1",
    ),
    "nothing": (False, "def test_a(): assert 1 + 1 == 2"),
    "an unused import": (False, "from harness_hookspecs.kit import codec\ndef test_a(): assert 1"),
    "another test of the module": (False, "from harness_hookspecs import x\ndef test_b(): x()\ndef test_a(): assert 1"),
    "the inside of the core": (False, "from harness_core.kernel.decide import decide\ndef test_a(): decide()"),
    "a private name": (False, "from harness_hookspecs.kit._secret import x\ndef test_a(): x()"),
    "an error alone": (False, "from harness_hookspecs.errors import Refused\ndef test_a(): Refused()"),
    "words that are no command": (False, "def test_a(): assert ['a', 'harness']"),
}  # fmt: skip


@pytest.mark.parametrize(("reaches", "source"), SAMPLES.values(), ids=SAMPLES)
def test_a_mark_stands_only_on_a_test_that_reaches_the_product(tmp_path: Path, reaches: bool, source: str) -> None:
    _project(tmp_path, {
        "conftest.py": "from harness_core import Host\n@fixture\ndef host(): return Host()",
        "tests/test_it.py": source,
    })  # fmt: skip
    test = "tests/test_it.py::Test::test_inherited" if "class Test" in source else "tests/test_it.py::test_a[one::two]"
    assert reaches_product(tmp_path, test) is reaches


def test_the_function_that_matters_is_named(tmp_path: Path) -> None:
    _project(tmp_path, {
        "harness_sample/__init__.py": "",
        "harness_sample/late.py": """\
            class Aside:
                pass

            def a_default():
                return 1

            DEFAULT = 1 + a_default()
            """,
        "harness_sample/noun.py": """\
            def a_note(a):
                pass

            def add(a, b):
                a_note(a)
                return both(a, b)

            def both(a, b):
                return a + b
            """,
        "harness_sample/__main__.py": "import harness_sample.late, harness_sample.noun as n\nprint(n.add(2, 2))",
        "tests/test_noun.py": """\
            import subprocess, sys
            from harness_sample.noun import both

            def test_both(): assert both(1, 2) == 3

            def test_process(): assert subprocess.check_output([sys.executable, "-m", "harness_sample"]) == b"4\\n"
            """,
        "pytest.ini": "[pytest]\npythonpath = .\n",
    })  # fmt: skip
    process, other = "tests/test_noun.py::test_process", "tests/test_noun.py::test_both"
    found = proving.prove([process], beside=[other], root=tmp_path)
    # a_note() and what an import runs come first in the alphabet, but do not matter; both() matters too, but another
    # test calls it as well
    assert found is not None
    assert str(found[0]) == "harness_sample/noun.py:4 add"


@pytest.mark.parametrize(
    ("source", "name", "line"),
    [
        ("def a():\n    return 1\n", "a", 1),
        ("class A:\n    @property\n    def a(self):\n        return 1\n", "A.a", 2),
        ("def b():\n    def a():\n        yield 1\n    return a\n", "b.<locals>.a", 2),
    ],
)
def test_a_function_is_emptied_in_place(source: str, name: str, line: int) -> None:
    emptied = ast.unparse(proving.emptied(source, proving.Function("x.py", name, line)))
    assert "1" not in emptied
    assert ("yield" in emptied) == ("yield" in source)


def test_emptying_what_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"x\.py:9 gone"):
        proving.emptied("def a(): pass", proving.Function("x.py", "gone", 9))
