"""The suite for kind ``store``: a subclass that opens a store goes in, the protocol's rules are checked one by one.

Rules that need more than the protocol has ways in that a suite may offer: ``reopen`` for a log that lasts,
``restored`` for one that can be copied, ``cut_tail`` to tamper with it.
"""

from __future__ import annotations

from .rules import rule
from .store_content import ContentRules
from .store_events import EventRules
from .store_machine import walk
from .store_upkeep import UpkeepRules

__all__ = ["StoreContract"]


class StoreContract(EventRules, ContentRules, UpkeepRules):
    """Every promise of :class:`~harness_hookspecs.store.Store` that a store can keep by itself.

    Attributes:
        shrinks: Whether a random walk that fails is made as short as can be, which takes seconds.
    """

    shrinks = True

    @rule("store.model")
    def test_random_walks_agree_with_a_list(self) -> None:
        walk(self.fresh, self.reopen, shrink=self.shrinks)
