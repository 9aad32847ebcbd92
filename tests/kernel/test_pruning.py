"""Which sessions may go together, and which stay for another's sake."""

from __future__ import annotations

from harness_core.kernel.pruning import RELATED, families, named_in, stay

ONE = "019b76da-a800-7000-8000-0000000000a1"
TWO = "019b76da-a800-7000-8000-0000000000b2"


def test_sessions_that_name_each_other_even_through_others_are_one_family() -> None:
    names = {"a": ["b"], "b": [], "c": ["b", "gone"], "d": [], "e": ["d"], "f": []}
    assert list(families(names)) == [("a", "b", "c"), ("d", "e"), ("f",)]
    assert list(families({})) == []


def test_a_family_goes_whole_or_stays_whole() -> None:
    assert stay(("a", "b"), {"c": "younger"}) == {}
    assert stay(("a", "b", "c"), {"b": "not_final"}) == {"a": RELATED, "b": "not_final", "c": RELATED}


def test_ids_are_found_wherever_they_stand() -> None:
    payload = f'{{"parent_id":"{ONE}","of":[{{"session":"session:{TWO}"}}],"digest":"{"a" * 64}"}}'.encode()
    assert named_in(payload) == {ONE, TWO}
