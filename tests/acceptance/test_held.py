"""What a session held is free as soon as it has ended, without a look at all objects."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness_core.shell.loop import SessionLoop
from harness_core.shell.model_handle import BoundModel
from harness_core.shell.perform import Performer
from harness_core.shell.role_context import CallContextOfRole
from harness_core.shell.session import OwnedSession
from tests.reference import PATIENCE_SECONDS, calls, says

HOLD_MUCH = (OwnedSession, SessionLoop, Performer, CallContextOfRole, BoundModel)


@pytest.fixture
def nobody_looks() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _left() -> list[str]:
    return sorted(type(one).__name__ for one in gc.get_objects() if isinstance(one, HOLD_MUCH))


@pytest.mark.inv("I-39")
@pytest.mark.usefixtures("nobody_looks")
def test_a_session_leaves_nothing_to_the_search_for_garbage(play: Any) -> None:
    session = play(calls(("pure", {"note": "a"}), ("network", {"note": "b"})), says("done"))
    before = _left()
    assert session.run()["status"] == "awaiting_approval"
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    session.host.close()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _left() != before:  # its workers are about to leave
        assert time.monotonic() < deadline, _left()
        time.sleep(0.01)
