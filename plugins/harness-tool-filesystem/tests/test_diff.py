from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from harness_tool_filesystem.diff import unified_diff

texts = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "d"]), max_size=25).map("".join)


def patched(before: str, diff: str) -> str:
    """Apply a diff as ``patch`` does: a reader of its own, so that the writer cannot agree with itself."""
    old = re.findall(r"[^\n]*\n|[^\n]+", before)
    new: list[str] = []
    at = 0
    last = ""
    for line in diff.split("\n")[2:-1]:
        head = re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", line)
        if head:
            start = int(head[1]) - (1 if int(head[2]) else 0)
            new += old[at:start]
            at = start
            assert len(new) == int(head[3]) - (1 if int(head[4]) else 0)
        elif line.startswith("\\"):
            if last in {"+", " "}:
                new[-1] = new[-1].removesuffix("\n")
        else:
            if line[0] in {" ", "-"}:
                assert old[at].removesuffix("\n") == line[1:]
                at += 1
            if line[0] in {" ", "+"}:
                new.append(f"{line[1:]}\n")
            last = line[0]
    return "".join(new + old[at:])


@given(before=texts, after=texts)
def test_a_diff_applied_to_the_old_file_gives_the_new_one(before: str, after: str) -> None:
    diff = unified_diff("f", before.encode(), after.encode())
    assert patched(before, diff) == after
    assert (diff == "") == (before == after)


@given(after=texts)
def test_a_diff_of_a_new_file_begins_with_nothing(after: str) -> None:
    diff = unified_diff("f", None, after.encode())
    assert diff.startswith("--- /dev/null\n+++ b/f\n")
    assert patched("", diff) == after


def test_a_large_change_is_shown_as_one_block_and_at_once() -> None:
    before = "".join(f"{number}\n" for number in range(30_000))
    diff = unified_diff("f", f"same\n{before}".encode(), f"same\n{before}".replace("1", "x").encode())
    assert diff.count("@@ -") == 1
    assert patched(f"same\n{before}", diff).startswith("same\n0\nx\n2\n")


def test_odd_names_and_bytes_are_quoted() -> None:
    diff = unified_diff('a"\n\udcff.txt', b"\xff\n", b"\xfe\n")
    assert diff.split("\n")[:2] == ['--- "a/a\\"\\n\\377.txt"', '+++ "b/a\\"\\n\\377.txt"']
    assert "-\\xff\n+\\xfe\n" in diff
