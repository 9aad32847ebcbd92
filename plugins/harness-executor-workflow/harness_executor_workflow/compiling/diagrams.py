"""Conditions on what a run chooses: choices go in, conditions that are equal exactly if they mean the same come out.

Reduced ordered decision diagrams over choices of several outcomes. ``a or not a`` is simply ``ALWAYS``, so that many
if/else in a row cost as much as one. A plan that is made to blow them up meets ``TooManyConditions``.
"""

from __future__ import annotations

from typing import Final, TypeAlias

__all__ = ["ALWAYS", "MAX_NODES", "MAX_TURNS", "NEVER", "Condition", "Conditions", "TooManyConditions"]

Condition: TypeAlias = int

NEVER: Final = 0
ALWAYS: Final = 1

MAX_NODES: Final = 50_000
"""Nodes of all conditions of a plan together; a plan of 200 steps in good order needs some hundred."""

MAX_TURNS: Final = 500_000
"""How often two conditions are put together; half a second or so."""

_LEAF: Final = 1 << 30


class TooManyConditions(Exception):  # caught where conditions are asked, never an error of anybody
    """The choices depend on each other in too many ways to be followed."""


class Conditions:
    """The diagrams of one plan; choices are numbered in the order in which a run meets them.

    The depth of the recursion is the number of choices in one condition, at most that of the steps of a body (200).
    """

    def __init__(self) -> None:
        self._turns = 0
        self._count = 0
        self._choices: list[int] = [_LEAF, _LEAF]
        self._branches: list[tuple[Condition, ...]] = [(), ()]
        self._known: dict[tuple[int, tuple[Condition, ...]], Condition] = {}
        self._both: dict[tuple[Condition, Condition], Condition] = {}
        self._not: dict[Condition, Condition] = {NEVER: ALWAYS, ALWAYS: NEVER}

    def new_choice(self) -> int:
        """The number of a choice that is asked after those that there are."""
        self._count += 1
        return self._count

    def chosen(self, choice: int, outcomes: int, taken: frozenset[int]) -> Condition:
        """That the choice, of so many outcomes, has one of those that are given."""
        return self._node(choice, tuple(ALWAYS if one in taken else NEVER for one in range(outcomes)))

    def both(self, left: Condition, right: Condition) -> Condition:
        """That both hold."""
        if left > right:
            left, right = right, left
        if left in (NEVER, right):
            return left
        if left == ALWAYS:
            return right
        found = self._both.get((left, right))
        if found is None:
            self._turns += 1
            if self._turns > MAX_TURNS:
                raise TooManyConditions
            first = min(self._choices[left], self._choices[right])
            pairs = zip(self._at(left, first, right), self._at(right, first, left))
            found = self._node(first, tuple(self.both(one, other) for one, other in pairs))
            self._both[left, right] = found
        return found

    def neither(self, condition: Condition) -> Condition:
        """That it does not hold."""
        found = self._not.get(condition)
        if found is None:
            branches = tuple(map(self.neither, self._branches[condition]))
            found = self._node(self._choices[condition], branches)
            self._not[condition] = found
        return found

    def any_of(self, left: Condition, right: Condition) -> Condition:
        """That one of them holds, or both."""
        return self.neither(self.both(self.neither(left), self.neither(right)))

    def implies(self, given: Condition, then: Condition) -> bool:
        """Whether the second holds wherever the first does."""
        return self.both(given, self.neither(then)) == NEVER

    def _at(self, condition: Condition, choice: int, other: Condition) -> tuple[Condition, ...]:
        """The condition under each outcome of the choice, which the other one may be the only one to ask."""
        if self._choices[condition] == choice:
            return self._branches[condition]
        return (condition,) * len(self._branches[other])

    def _node(self, choice: int, branches: tuple[Condition, ...]) -> Condition:
        if len(set(branches)) == 1:
            return branches[0]
        key = (choice, branches)
        found = self._known.get(key)
        if found is None:
            if len(self._choices) >= MAX_NODES:
                raise TooManyConditions
            found = self._known[key] = len(self._choices)
            self._choices.append(choice)
            self._branches.append(branches)
        return found
