"""Errors as Python shows them where nobody catches them: the hint stands in the traceback, once and as it is now."""

from __future__ import annotations

import copy
import pickle
import traceback

from harness_hookspecs.errors import ConfigError, HarnessError


def shown(error: BaseException) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


def test_a_traceback_shows_the_hint_once_also_of_a_copy() -> None:
    error = ConfigError("there is no model", hint="harness init")
    for one in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert shown(one) == ["harness_hookspecs.errors.ConfigError: there is no model", "hint: harness init"]
    assert str(error) == "there is no model"


def test_a_hint_that_is_changed_leaves_nothing_of_the_old_one_in_a_traceback() -> None:
    error = HarnessError("no", hint="the key is hunter2")
    error.hint = "the key is ***"
    assert shown(error)[1:] == ["hint: the key is ***"]


def test_notes_that_others_add_stay() -> None:
    error = HarnessError("no")
    error.add_note("seed 7")
    assert shown(error)[1:] == ["seed 7"]
    error.hint = "try again"
    error.add_note("twice")
    assert shown(error)[1:] == ["hint: try again", "seed 7", "twice"]
