from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.kit.render import clip_line, clip_lines, escape_for_terminal, escape_line, labels, table, width

SHOWN = {
    "ansi colour": ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    "an eight-bit control": ("\x9b31m", "\\x9b31m"),
    "a carriage return that overwrites": ("rm -rf /\rls", "rm -rf /\\rls"),
    "backspaces": ("rm\x08\x08ls", "rm\\x08\\x08ls"),
    "the right-to-left override": ("a\u202egnp.exe", "a\\u202egnp.exe"),
    "an isolate": ("\u2066x\u2069", "\\u2066x\\u2069"),
    "a zero-width space": ("ad\u200bmin", "ad\\u200bmin"),
    "a byte order mark inside": ("a\ufeffb", "a\\ufeffb"),
    "line and paragraph separators": ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
    "tag characters": ("a\U000e0041b", "a\\U000e0041b"),
    "a filler": ("a\u115f\u3164\u2800b", "a\\u115f\\u3164\\u2800b"),
    "variation selectors": ("a\ufe0fb\U000e0100", "a\\ufe0fb\\U000e0100"),
    "a space that is none": ("a\u202fb\u00a0c", "a\\u202fb\\xa0c"),
    "private use": ("\ue000", "\\ue000"),
    "NUL": ("a\0b", "a\\0b"),
    "a lone surrogate": ("a\udc80b", "a\\udc80b"),
    "letters and signs of all scripts": ("Zürich 東京 🙂 e\u0301", "Zürich 東京 🙂 e\u0301"),
    "line ends and tabs": ("a\tb\nc", "a\tb\nc"),
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.values(), ids=SHOWN)
def test_nothing_foreign_reaches_a_terminal_unseen(text: str, shown: str) -> None:
    assert escape_for_terminal(text) == shown


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_holds_no_character_that_acts_or_hides(text: str) -> None:
    shown = escape_for_terminal(text)
    categories = {unicodedata.category(c) for c in shown if c not in "\n\t"}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert escape_for_terminal(shown) == shown
    shown.encode()


@given(st.text())
def test_one_line_stays_one_line(text: str) -> None:
    assert "\n" not in escape_line(text)
    assert len(escape_line(text).splitlines()) <= 1


@given(st.text())
def test_a_terminal_without_unicode_gets_ascii(text: str) -> None:
    assert escape_for_terminal(text, ascii_only=True).isascii()
    assert escape_line(text, ascii_only=True).isascii()


def test_a_cut_is_marked_and_never_too_wide() -> None:
    assert clip_line("abcdef", 6) == "abcdef"
    assert clip_line("abcdefg", 6) == "abc..."
    assert width(clip_line("東京東京東京", 8)) <= 8
    assert clip_lines("a\nb\nc", 2) == ("a\nb", 1)
    assert clip_lines("a\nb", 2) == ("a\nb", 0)


def test_labels_stand_in_two_columns_and_hide_nothing() -> None:
    assert labels([("tool", "shell\x1b"), ("why", "a\nb"), ("東", "x")]) == [
        "tool  shell\\x1b",
        "why   a",
        "      b",
        "東    x",
    ]


def test_a_table_keeps_each_row_on_one_line() -> None:
    assert table(["name", "size"], [["a\nb", "1"], ["東京", "22"]]) == ["name  size", "a\\nb  1", "東京  22"]
    assert table(["name"], [["abcdefgh"]], columns=6) == ["name", "abc..."]
    assert table(["name"], []) == ["name"]
