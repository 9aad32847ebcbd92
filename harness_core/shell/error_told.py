"""A recorded error in, the exception that a role is told out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs import errors
from harness_hookspecs.errors import HarnessError, ProviderError
from harness_hookspecs.kit.frozen import thaw

__all__ = ["error_told"]

_ERRORS: Mapping[str, type[HarnessError]] = {
    name: kind for name in errors.__all__ if issubclass(kind := getattr(errors, name), HarnessError)
}


def error_told(envelope: Mapping[str, Any]) -> HarnessError:
    """The error that a role is told, made from what is recorded of it alone: live, resumed and replayed it is the same
    one, and holds no secret (I-18, D-18). A class that only the provider knows is told as a ``ProviderError``.
    """
    facts = thaw(envelope.get("details") or {})  # the role's own: the record stays as it was
    hint, where = facts.pop("hint", None), facts.pop("where", None)
    kind = _ERRORS.get(envelope["name"], ProviderError)
    error = kind(envelope["message"], code=envelope.get("code"), hint=hint, where=where)
    error.facts = facts
    return error
