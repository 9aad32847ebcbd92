"""Registered secret values and anything about to be recorded in, the same without the secrets out (D-18)."""

from __future__ import annotations

import base64
import json
import operator
from collections.abc import Mapping
from traceback import format_exception
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus

from harness_hookspecs.errors import ConfigError, HarnessError
from harness_hookspecs.kit.codec import dumps

if TYPE_CHECKING:
    from harness_hookspecs.messages import Message

__all__ = ["ChunkRedactor", "Redactor"]

MIN_SECRET_LENGTH = 8
MARK = "[secret]"

E = TypeVar("E", bound=HarnessError)


class Redactor:
    """Replaces exact values and their usual encodings, on values and never on serialised text (I-29)."""

    def __init__(self) -> None:
        self._forms: tuple[str, ...] = ()

    def register(self, secret: str) -> None:
        """Keep a secret out of everything from now on.

        Raises:
            ConfigError: ``secret.too_short``: a value under eight characters would blank out ordinary text.
        """
        if len(secret) < MIN_SECRET_LENGTH:
            raise ConfigError(f"a secret needs at least {MIN_SECRET_LENGTH} characters", code="secret.too_short")
        raw = secret.encode()
        forms = {
            secret,
            json.dumps(secret)[1:-1],
            dumps(secret).decode()[1:-1],  # as the codec writes it: in UTF-8, where the line above has escapes
            quote(secret),
            quote(secret, safe=""),
            quote_plus(secret),
            base64.b64encode(raw).decode().rstrip("="),
            base64.urlsafe_b64encode(raw).decode().rstrip("="),
        }
        self._forms = tuple(sorted({*self._forms, *forms}, key=len, reverse=True))

    def text(self, text: str) -> str:
        """A text without the secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return text

    def undecided(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret."""
        longest = len(self._forms[0]) - 1 if self._forms else 0
        ends = (len(text) - start for start in range(max(0, len(text) - longest), len(text))
                if any(form.startswith(text[start:]) for form in self._forms))  # fmt: skip
        return next(ends, 0)

    def value(self, value: Any) -> Any:
        """A JSON value without the secrets, keys included; the same object when there is nothing to hide."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple):
            clean = [self.value(item) for item in value]
            return value if isinstance(value, list) and all(map(operator.is_, clean, value)) else clean
        return value

    def _mapping(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        clean: dict[str, Any] = {}
        same = True
        for key, item in value.items():
            shown, told = self.text(key), self.value(item)
            same = same and shown == key and told is item
            while shown in clean:  # two keys that were told apart by a secret alone
                shown += "'"
            clean[shown] = told
        return value if same else clean

    def message(self, message: Message) -> Message:
        """A message without the secrets; the same object when there is nothing to hide."""
        if not self._forms:
            return message
        wire = message.to_wire()
        clean = self.value(wire)
        return message if clean == wire else type(message).from_wire(clean)

    def error(self, error: E) -> E:
        """That error itself without the secrets; causes that tell one, as a traceback shows them, are cut off."""
        clean = self.value([error.message, error.hint, error.where, error.facts])
        error.message, error.hint, error.where, error.facts = clean
        error.args = (error.message,)
        shown = "".join(format_exception(error)) if self._forms else ""
        if self.text(shown) != shown:
            error.__cause__ = error.__context__ = None
            error.__notes__ = []
        return error


class ChunkRedactor:
    """Text that comes in pieces, without the secrets: what may be the beginning of one is held back until it is known.

    Args:
        redactor: Knows the secrets.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece; gives what may be shown now."""
        text = self._redactor.text(self._held + text)
        keep = self._redactor.undecided(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def rest(self) -> str:
        """What is still held, at the end of the text."""
        held, self._held = self._held, ""
        return held
