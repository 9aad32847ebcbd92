"""Where a process must have died for what a record says of its calls."""

from __future__ import annotations

from harness_core.shell.simulate_deaths import deaths


def test_a_process_died_before_it_was_said_to_and_amid_no_call_that_was_made_once() -> None:
    assert deaths([(53, 55)], []) == {54}
    assert deaths([(53, 55)], [(54, 56)]) == {53}
    assert deaths([(50, 58)], [(55, 60), (53, 56), (40, 52)]) == {52}


def test_one_death_answers_for_all_calls_that_were_lost_in_it() -> None:
    assert deaths([(10, 20), (12, 22), (21, 30)], []) == {19, 29}
