"""The messages of a role's questions: each is looked at once, and what stands of it is what its question is made of."""

from __future__ import annotations

from harness_core.shell.conversation import NOTHING_SAID, went_on
from harness_hookspecs.kit.canonical import canonical
from harness_hookspecs.kit.prompt import message_digest
from harness_hookspecs.messages import Message, TextPart


def said(text: str) -> Message:
    return Message(role="user", content=(TextPart(text=text),))


class Clean:
    """Takes a secret away, and remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def __call__(self, message: Message) -> Message:
        self.shown.append(message.text)
        return said(message.text.replace("secret", "***"))


def test_a_message_is_looked_at_once_however_many_turns_follow() -> None:
    clean, messages, known = Clean(), [said("m0")], NOTHING_SAID
    for turn in range(1, 50):
        messages.append(said(f"m{turn}"))
        known, fresh = went_on(known, messages, clean)
        assert len(known.digests) == len(messages)
        assert list(fresh) == known.digests[-len(fresh) :]
    assert clean.shown == [f"m{turn}" for turn in range(50)]


def test_digests_sizes_and_content_are_those_of_the_messages_without_secrets() -> None:
    known, fresh = went_on(NOTHING_SAID, [said("a secret"), said("b")], Clean())
    wires = [said(text).to_wire() for text in ("a ***", "b")]
    assert [message.to_wire() for message in known.clean] == wires
    assert known.digests == [message_digest(wire).hex() for wire in wires]
    assert known.sizes_bytes == [len(canonical(wire)) for wire in wires]
    assert fresh == {message_digest(wire).hex(): canonical(wire) for wire in wires}


def test_a_conversation_that_begins_otherwise_is_looked_at_again_from_there_on() -> None:
    clean = Clean()
    first, second, third = said("1"), said("2"), said("3")
    known, _ = went_on(NOTHING_SAID, [first, second, third], clean)
    changed, fresh = went_on(known, [first, said("else"), third], clean)
    assert clean.shown == ["1", "2", "3", "else", "3"]
    assert [message.text for message in changed.clean] == ["1", "else", "3"]
    assert len(fresh) == 2
    shorter, none = went_on(changed, [first], clean)
    assert (shorter.given, none) == ((first,), {})
