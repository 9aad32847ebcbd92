"""No secret comes through in pieces: text that arrives in chunks is shown as if it had come in one."""

from __future__ import annotations

import pytest

from harness_core.shell.redaction import MARK, ChunkRedactor, Redactor

SECRET = "s3cr3t-value-12"
TEXT = f"key {SECRET}, s3cr3t-val and {SECRET}{SECRET} s3c"


def redactor() -> Redactor:
    made = Redactor()
    made.register(SECRET)
    return made


@pytest.mark.parametrize("length", range(1, len(TEXT)))
def test_a_secret_that_is_split_over_chunks_is_not_shown(length: int) -> None:
    stream = ChunkRedactor(redactor())
    pieces = [stream.feed(TEXT[at : at + length]) for at in range(0, len(TEXT), length)]
    shown = "".join([*pieces, stream.rest()])
    assert shown == TEXT.replace(SECRET, MARK)


def test_text_that_cannot_become_a_secret_is_not_held_back() -> None:
    assert ChunkRedactor(redactor()).feed("hello") == "hello"
    assert ChunkRedactor(Redactor()).feed("anything s3c") == "anything s3c"
