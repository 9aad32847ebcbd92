"""What a document is not, in plain English: the contract's refusal goes in, places and sentences come out.

A model repairs by these sentences, and a person reads them; neither knows the library that looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from harness_hookspecs.errors import ValidationFailed

from .findings import MOST_FINDINGS, Place, place_of

__all__ = ["KINDS", "SENTENCES", "Flaw", "flaws_of"]

KINDS: Final[Mapping[str, str]] = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "json.object": "an object",
    "list_type": "a list",
    "mapping_type": "an object",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_sub_type": "text",
    "string_type": "text",
    "tuple_type": "a list",
}
"""What a value should be, by the library's name of the flaw; several at one place are alternatives."""

SENTENCES: Final[Mapping[str, str]] = {
    "extra_forbidden": "{what} does not belong here.",
    "greater_than": "{what} should be more than {gt}.",
    "greater_than_equal": "{what} should be at least {ge}.",
    "less_than": "{what} should be less than {lt}.",
    "less_than_equal": "{what} should be at most {le}.",
    "literal_error": "{what} should be {expected}.",
    "missing": "{what} is missing.",
    "string_pattern_mismatch": "{what} should be {pattern}.",
    "string_too_long": "{what} should have at most {max_length} characters.",
    "string_too_short": "{what} should have at least {min_length} characters.",
    "string_unicode": "{what} should be text that UTF-8 can carry.",
    "too_long": "{what} should have at most {max_length} items.",
    "too_short": "{what} should have at least {min_length} items.",
    "union_tag_invalid": "{discriminator} should be one of {expected_tags}.",
    "union_tag_not_found": "{discriminator} is missing; it says which kind of step this is.",
}
"""The same of all else; the contract's own flaws bring their sentence."""

_PATTERNS: Final[Mapping[str, str]] = {
    r"^[a-z][a-z0-9_]{0,63}$": "a lower-case letter, then lower-case letters, digits and underscores, at most 64",
    r"^[a-z][a-z0-9._-]{0,99}$": "a lower-case letter, then lower-case letters, digits, dots, underscores and hyphens",
}
_EMPTY: Final = "{what} should not be empty."
_OTHERWISE: Final = "{what} is not of the form that the schema asks for."


class Flaw(NamedTuple):
    """One thing that a document is not."""

    place: Place
    kind: str
    message: str


def flaws_of(error: ValidationFailed, document: str) -> list[Flaw]:
    """Each flaw once, in the order in which they were found, no more of them than are told.

    Args:
        error: What ``from_wire`` raised.
        document: What the whole should have been, for a flaw of the top, such as ``The plan``.
    """
    cause = error.__cause__
    known = cause.errors(include_url=False, include_input=False) if isinstance(cause, ValidationError) else []
    places = [place_of(one["path"]) for one in error.facts["findings"]]
    together: dict[Place, list[ErrorDetails]] = {}
    above = {place[:length] for place in places for length in range(len(place))}
    for place, one in zip(places, known, strict=True):
        if one["type"] == "too_short" and place in above:
            continue  # of a list the library counts only the entries that have no flaw
        together.setdefault(place, []).append(one)
    found = (flaw for place, flaws in together.items() for flaw in _at(place, flaws, document))
    return list(islice(found, MOST_FINDINGS))


def _at(place: Place, flaws: Sequence[ErrorDetails], document: str) -> Iterator[Flaw]:
    what = _named(place, document)
    kinds = dict.fromkeys(KINDS[one["type"]] for one in flaws if one["type"] in KINDS)
    if "a number" in kinds:
        kinds.pop("a whole number", None)
    if kinds:
        first = next(one["type"] for one in flaws if one["type"] in KINDS)
        yield Flaw(place, first, f"{what} should be {' or '.join(kinds)}.")
    others = [one for one in flaws if one["type"] not in KINDS]
    yield from dict.fromkeys(Flaw(place, one["type"], _sentence(one, what)) for one in others)


def _named(place: Place, document: str) -> str:
    if not place:
        return document
    return f"Item {place[-1]}" if isinstance(place[-1], int) else place[-1][:100]


def _sentence(one: ErrorDetails, what: str) -> str:
    if "." in one["type"]:  # the contract's own
        return f"{one['msg'].rstrip('.')}."
    said: dict[str, Any] = {name: str(value).replace("'", "") for name, value in (one.get("ctx") or {}).items()}
    if "pattern" in said:
        said["pattern"] = _PATTERNS.get(said["pattern"], f"text of the form {said['pattern']}")
    sentence = _EMPTY if said.get("min_length") == "1" else SENTENCES.get(one["type"], _OTHERWISE)
    return sentence.format(what=what, **said)
