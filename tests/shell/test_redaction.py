"""No secret comes through in pieces: text that arrives in chunks is shown as if it had come in one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest

from harness_core.shell.redaction import MARK, ChunkRedactor, Redactor
from harness_hookspecs.kit.codec import dumps

SECRET = "s3cr3t-value-12"
TEXT = f"key {SECRET}, s3cr3t-val and {SECRET}{SECRET} s3c"


def redactor() -> Redactor:
    made = Redactor()
    made.register(SECRET)
    return made


AWKWARD = 'ключ "a/b" c+d\n&é\x01\x7f'
FORMS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "in JSON": lambda secret: json.dumps(secret)[1:-1],
    "in JSON of the codec": lambda secret: dumps(secret).decode()[1:-1],
    "in JSON with its own letters": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "in a path": quote,
    "in an address": lambda secret: quote(secret, safe=""),
    "in a form": quote_plus,
    "in a form of many fields": lambda secret: urlencode({"a": secret}).removeprefix("a="),
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in base64 for addresses": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_in_each_form_that_it_usually_takes(form: str) -> None:
    made = Redactor()
    made.register(AWKWARD)
    assert made.text(f"key={FORMS[form](AWKWARD)};").rstrip("=;") == f"key={MARK}"


@pytest.mark.parametrize("length", range(1, len(TEXT)))
def test_a_secret_that_is_split_over_chunks_is_not_shown(length: int) -> None:
    stream = ChunkRedactor(redactor())
    pieces = [stream.feed(TEXT[at : at + length]) for at in range(0, len(TEXT), length)]
    shown = "".join([*pieces, stream.rest()])
    assert shown == TEXT.replace(SECRET, MARK)


def test_text_that_cannot_become_a_secret_is_not_held_back() -> None:
    assert ChunkRedactor(redactor()).feed("hello") == "hello"
    assert ChunkRedactor(Redactor()).feed("anything s3c") == "anything s3c"


def test_what_has_nothing_to_hide_is_the_same_object() -> None:
    value = {"a": [1, {"b": "text"}], "c": None}
    assert redactor().value(value) is value


def test_two_keys_that_a_secret_alone_told_apart_keep_their_values() -> None:
    clean = redactor().value({SECRET: 1, MARK: 2, "list": [SECRET]})
    assert sorted(map(str, clean.values())) == ["1", "2", f"['{MARK}']"]
    assert SECRET not in json.dumps(clean)
