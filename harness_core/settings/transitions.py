"""The rules a stage leads on by: its transitions with the short forms written out, as frozen values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from .stages import Stage

__all__ = ["FAILURE", "SUCCESS", "Rule", "rules_of"]

SUCCESS: Final = 'artifact.status == "success"'
FAILURE: Final = 'artifact.status != "success"'


@attrs.frozen
class Rule:
    """One transition as it is evaluated.

    Attributes:
        when: The expression; ``true`` for a rule without one.
        goto: Targets in order of preference: the first whose routing is valid is taken.
        path: Where it stands below the stage, ``("transitions", 0)`` or ``("on_success",)``.
    """

    when: str
    goto: tuple[str, ...]
    path: tuple[str | int, ...]


def rules_of(stage: Stage) -> tuple[Rule, ...]:
    """Write the short forms of a stage out; ``on_success`` and ``on_failure`` come after its transitions.

    The first rule that holds wins, from top to bottom.
    """
    return tuple(_rules(stage))


def _rules(stage: Stage) -> Iterator[Rule]:
    for index, rule in enumerate(stage.transitions):
        yield Rule(rule.when or "true", _targets(rule.goto), ("transitions", index))
    if stage.on_success is not None:
        yield Rule(SUCCESS, _targets(stage.on_success), ("on_success",))
    if stage.on_failure is not None:
        yield Rule(FAILURE, _targets(stage.on_failure), ("on_failure",))


def _targets(goto: str | tuple[str, ...]) -> tuple[str, ...]:
    return (goto,) if isinstance(goto, str) else goto
