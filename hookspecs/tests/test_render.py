from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs.kit.render import (
    clip_line,
    clip_lines,
    escape_for_terminal,
    escape_line,
    labels,
    table,
    width,
    wrap,
)

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


def test_labels_fit_a_terminal_and_an_item_of_a_list_stays_under_its_words() -> None:
    assert labels([("risks", "- one two three four five six\n- seven"), ("why", "a")], columns=27) == [
        "risks  - one two three four",
        "         five six",
        "       - seven",
        "why    a",
    ]


@given(st.text(st.characters(categories=["L", "N", "Zs"])), st.integers(2, 30))
def test_a_broken_line_fits_and_loses_nothing_but_spaces(text: str, columns: int) -> None:
    line = escape_line(text)
    broken = wrap(line, columns)
    assert all(width(part) <= columns for part in broken)
    assert "".join(broken).replace(" ", "") == line.replace(" ", "")


def test_a_line_breaks_at_a_space_and_within_a_word_only_where_it_must() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("a 0123456789 b", 6) == ["a", "012345", "6789 b"]
    assert wrap("", 6) == [""]


def test_a_table_keeps_each_row_on_one_line() -> None:
    assert table(["name", "size"], [["a\nb", "1"], ["東京", "22"]]) == ["name  size", "a\\nb  1", "東京  22"]
    assert table(["name", "waits for"], [["a", ""]], optional=["waits for"]) == ["name  waits for", "a"]
    assert table(["name"], []) == ["name"]


def test_a_table_that_is_too_wide_breaks_its_last_column_under_itself() -> None:
    rows = [["a", "what there is to say of it"], ["bb", "less"]]
    assert table(["id", "what"], rows, columns=30) == ["id  what", *("a   what there is to say of it", "bb  less")]
    assert table(["id", "what"], rows, columns=25) == ["id  what", "a   what there is to say", "    of it", "bb  less"]


def test_columns_without_room_stand_below_their_row_after_their_title() -> None:
    rows = [["a", "some twenty columns of", "and as many of these"], ["bb", "x", ""]]
    assert table(["id", "title", "waits for"], rows, columns=30) == [
        "id  title",
        "a   some twenty columns of",
        "    waits for: and as many of",
        "    these",
        "bb  x",
    ]
    assert table(["id", "status", "by"], [["a" * 19, "bbb", "ccc"]], columns=20) == [
        "id",
        "aaaaaaaaaaaaaaaaaaa",
        "    status: bbb  by:",
        "    ccc",
    ]


def test_a_table_that_is_fitted_leaves_out_columns_that_say_nothing() -> None:
    rows = [["a", "0", "0"], ["b", "-", "1"]]
    assert table(["id", "cached", "calls"], rows, columns=80, optional=["cached", "calls"]) == [
        "id  calls",
        "a   0",
        "b   1",
    ]
    assert table(["id", "cached"], [["a", "0"]], columns=80)[0] == "id  cached"
