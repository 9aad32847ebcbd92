"""The words of the project: each stands in the glossary and is a name that can be imported."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import harness_hookspecs
from harness_core import Host

PAGE = Path(__file__).parent.parent / "docs" / "glossary.md"
ROW = re.compile(r"^\| ([a-z -]+) \| `([\w.]+)\.(\w+)` \| .+ \|$", re.MULTILINE)
WORDS = {word: (module, name) for word, module, name in ROW.findall(PAGE.read_text(encoding="utf-8"))}
SEED = [*"harness stage agent role artifact transition event projection".split(), "context pack", "approval gate"]


def test_each_word_of_the_glossary_is_an_importable_name() -> None:
    found = {word: getattr(import_module(module), name) for word, (module, name) in WORDS.items()}
    assert found["harness"] is Host
    assert found["event"] is harness_hookspecs.StoredEvent
    assert all(thing is not None for thing in found.values())


def test_the_glossary_leaves_no_row_out_and_has_the_words_of_the_design() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(WORDS) == len(lines) - 1  # the head
    assert not [word for word in SEED if word not in WORDS]
