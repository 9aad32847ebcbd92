"""A role's messages in, the same without secrets, with their digests and sizes, out: each is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import is_not
from typing import NamedTuple

from harness_hookspecs.kit.canonical import canonical, sha256
from harness_hookspecs.messages import Message

__all__ = ["NOTHING_SAID", "Conversation", "went_on"]


class Conversation(NamedTuple):
    """The messages of one scope so far; every turn brings all of them again, and few are new."""

    given: tuple[Message, ...]
    clean: list[Message]
    digests: list[str]
    joined_digests: bytes
    """The same as a promptHash takes them: 32 bytes each, one after the other."""
    sizes_bytes: list[int]
    """Of the canonical forms."""


_DIGEST_BYTES = 32

NOTHING_SAID = Conversation((), [], [], b"", [])


def went_on(
    known: Conversation, messages: Sequence[Message], clean: Callable[[Message], Message]
) -> tuple[Conversation, dict[str, bytes]]:
    """The conversation with these messages, and the content of those that are new in it, by digest.

    Args:
        known: What was said before; what begins otherwise now is looked at again from there on.
        messages: All messages of the turn.
        clean: Gives a message without the secrets, whoever wrote it (D-18).
    """
    given = tuple(messages)
    shared = min(len(known.given), len(given))
    same = next(compress(count(), map(is_not, known.given, given)), shared)
    told = [clean(message) for message in given[same:]]
    contents = [canonical(message.to_wire()) for message in told]
    hashes = [sha256(content) for content in contents]
    digests = [one.hex() for one in hashes]
    grown = Conversation(
        given,
        known.clean[:same] + told,
        known.digests[:same] + digests,
        known.joined_digests[: same * _DIGEST_BYTES] + b"".join(hashes),
        known.sizes_bytes[:same] + [len(content) for content in contents],
    )
    return grown, dict(zip(digests, contents, strict=True))
