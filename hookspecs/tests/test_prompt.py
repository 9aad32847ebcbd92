"""The promptHash: exactly the contract's, whichever way it is made, and different for a different question."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import rfc8785

from harness_hookspecs.kit.prompt import PromptHasher, message_digest, prompt_hash
from harness_hookspecs.messages import Message, TextPart

MESSAGES = [
    Message(role="system", content=(TextPart(text="Be brief."),)).to_wire(),
    Message(role="user", content=(TextPart(text="Grüße 🍸"),)).to_wire(),
]
QUESTION: dict[str, Any] = {
    "provider": "local",
    "model_id": "small",
    "params": {"temperature": 0.5, "seed": 7},
    "tools": {"b_read": "2" * 64, "a_edit": "1" * 64},
    "messages": MESSAGES,
}


def by_the_book(question: dict[str, Any]) -> str:
    tools = [{"name": name, "schemaHash": schema} for name, schema in sorted(question["tools"].items())]
    model = {"provider": question["provider"], "modelId": question["model_id"]}
    whole = [model, question["params"], tools, *question["messages"]]
    return hashlib.sha256(b"".join(hashlib.sha256(rfc8785.dumps(part)).digest() for part in whole)).hexdigest()


def test_it_is_the_hash_of_the_contract() -> None:
    assert prompt_hash(**QUESTION) == by_the_book(QUESTION)


def test_it_never_changes_between_releases() -> None:
    assert prompt_hash(**QUESTION) == "121849848d8d21ed25e6f3b4bd959661ea776de841ef65e39cfc71a023791316"


def test_it_grows_with_the_conversation_and_may_branch() -> None:
    hasher = PromptHasher(**{name: item for name, item in QUESTION.items() if name != "messages"})
    assert hasher.hexdigest() == by_the_book({**QUESTION, "messages": []})
    assert hasher.add(MESSAGES[0]) == message_digest(MESSAGES[0])
    twin = hasher.copy()
    twin.add_digests(message_digest(MESSAGES[1]))
    assert twin.hexdigest() == prompt_hash(**QUESTION)
    assert hasher.hexdigest() == by_the_book({**QUESTION, "messages": MESSAGES[:1]})


@pytest.mark.parametrize(
    "change",
    [
        {"provider": "remote"},
        {"model_id": "large"},
        {"params": {"temperature": 0.6, "seed": 7}},
        {"tools": {"b_read": "3" * 64, "a_edit": "1" * 64}},
        {"tools": {"b_read": "2" * 64}},
        {"messages": MESSAGES[::-1]},
        {"messages": MESSAGES[:1]},
        {"messages": [Message(role="system", content=(TextPart(text="Be brief"),)).to_wire(), MESSAGES[1]]},
    ],
)
def test_another_question_has_another_hash(change: dict[str, Any]) -> None:
    assert prompt_hash(**{**QUESTION, **change}) != prompt_hash(**QUESTION)


def test_the_order_of_tools_and_the_spelling_of_numbers_do_not_matter() -> None:
    tools = dict(reversed(QUESTION["tools"].items()))
    params = {"seed": 7.0, "temperature": 5e-1}
    assert prompt_hash(**{**QUESTION, "tools": tools, "params": params}) == prompt_hash(**QUESTION)
