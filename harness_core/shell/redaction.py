"""Registered secret values and anything about to be recorded in, the same without the secrets out (D-18)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from harness_hookspecs.errors import ConfigError

__all__ = ["Redactor"]

MIN_SECRET_LENGTH = 8
MARK = "[secret]"


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
            quote(secret, safe=""),
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

    def value(self, value: Any) -> Any:
        """A JSON value without the secrets, keys included; the same object when there is nothing to hide."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value
