"""The identity of a question to a model: model, parameters, tools and messages go in, the promptHash comes out.

promptHash is the SHA-256 over, in this order, each as the 32-byte SHA-256 of its canonical form: {provider, modelId};
the parameters; the tools [{name, schemaHash}] sorted by name; then each message, the system message first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from harness_hookspecs.kit.canonical import canonical, sha256

__all__ = ["PromptHasher", "message_digest", "prompt_hash"]


def message_digest(message: Mapping[str, Any]) -> bytes:
    """The 32-byte SHA-256 of one message's canonical form; worth keeping, since a message never changes.

    Args:
        message: The wire form of a message (``Message.to_wire()``).

    Raises:
        CodecError: The message is not strict JSON.
    """
    return sha256(canonical(message))


class PromptHasher:
    """A promptHash that grows with its conversation: each message is hashed once, however many turns follow.

    Args:
        provider: The provider's name in the configuration.
        model_id: The model's id at the provider.
        params: Everything else that shapes the answer: sampling, seed, digest of the output schema.
        tools: The tools the model is shown: name -> hash of the schema; any order.

    Raises:
        CodecError: One of them is not strict JSON.
    """

    def __init__(self, *, provider: str, model_id: str, params: Mapping[str, Any], tools: Mapping[str, str]) -> None:
        model = {"provider": provider, "modelId": model_id}
        shown = [{"name": name, "schemaHash": tools[name]} for name in sorted(tools)]
        self._hash = hashlib.sha256(b"".join([sha256(canonical(part)) for part in (model, params, shown)]))

    def add(self, message: Mapping[str, Any]) -> bytes:
        """Append one message in its wire form; returns its 32-byte digest."""
        digest = message_digest(message)
        self._hash.update(digest)
        return digest

    def add_digests(self, digests: bytes) -> None:
        """Append messages whose 32-byte digests are known already, one after the other."""
        self._hash.update(digests)

    def copy(self) -> Self:
        """A hasher of its own with the same beginning; both may grow apart."""
        twin = object.__new__(type(self))
        twin._hash = self._hash.copy()
        return twin

    def hexdigest(self) -> str:
        """The promptHash so far, 64 lower-case hexadecimal digits; the hasher may grow on."""
        return self._hash.hexdigest()


def prompt_hash(
    *,
    provider: str,
    model_id: str,
    params: Mapping[str, Any],
    tools: Mapping[str, str],
    messages: Iterable[Mapping[str, Any]],
) -> str:
    """The promptHash of a whole question; the arguments are those of :class:`PromptHasher` and ``add``."""
    hasher = PromptHasher(provider=provider, model_id=model_id, params=params, tools=tools)
    for message in messages:
        hasher.add(message)
    return hasher.hexdigest()
