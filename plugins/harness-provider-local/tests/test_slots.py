"""The places at a model."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness_hookspecs import Cancelled
from harness_provider_local.slots import Slots


def test_places_go_to_who_came_first(host: Any) -> None:
    slots, order, threads = Slots(host.ports, 1), [], []
    assert slots.take(None, host.ports.wait.token())

    def wait(name: int) -> None:
        slots.take(None, host.ports.wait.token())
        order.append(name)
        slots.give()

    for name in range(5):
        threads.append(threading.Thread(target=wait, args=(name,), daemon=True))
        threads[-1].start()
        while len(slots._waiting) < name + 1:
            pass
    slots.give()
    for thread in threads:
        thread.join(5)
    assert order == [0, 1, 2, 3, 4]


def test_a_cancelled_waiter_neither_takes_nor_loses_a_place(host: Any) -> None:
    slots, token, raised = Slots(host.ports, 1), host.ports.wait.token(), []
    assert slots.take(None, token)

    def wait() -> None:
        with pytest.raises(Cancelled) as caught:
            slots.take(None, token)
        raised.append(caught.value)

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    while not slots._waiting:
        pass
    assert slots.take(0.01, host.ports.wait.token()) is False
    token.cancel("enough")
    waiter.join(5)
    slots.give()
    assert raised
    assert slots.take(0.01, host.ports.wait.token()) is True
