"""A process that dies while it takes what was delivered: no delivery is lost, and none is had twice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from tests.acceptance.test_workflows import MODELS, plan_of, planned
from tests.reference import HARNESS, payloads, write_site

WAITS = [
    {"id": "a", "uses": "wait", "with": {"event": "paid"}},
    {"id": "b", "uses": "wait", "with": {"event": "paid"}},
    {"id": "c", "uses": "wait", "needs": ["a", "b"], "with": {"event": "sent"}},
]
PLAN = plan_of(WAITS, {"text": "{{ steps.a.output }} {{ steps.b.output }} {{ steps.c.output }}"})
NAMES = {"1": "paid", "2": "paid", "3": "sent"}
MODES: Mapping[str, Any] = {"full": {}, "skip-inference": {}, "simulate": {}}


@pytest.mark.gate("G1")
@pytest.mark.inv("I-1", "I-5", "I-16")
@pytest.mark.parametrize("boundary", [
    "inbox.taken", "inbox.taken@3", "append.inside", "append.committed", "external.delivered", "external.delivered@2",
])  # fmt: skip
def test_killed_while_it_takes_a_delivery_it_goes_on_with_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boundary: str
) -> None:
    site = write_site(tmp_path, stages=planned(PLAN), models=MODELS, replies=[]).enter(monkeypatch)
    with Host.open(site.project) as host:
        found = host.run("Go.")["id"]
        for delivery_id, name in NAMES.items():
            host.deliver_event(found, name, f"no {delivery_id}", delivery_id=delivery_id)
    dies = {**os.environ, "HARNESS_FAILPOINT": f"{boundary}:kill"}
    done = subprocess.run([*HARNESS, "resume", found], env=dies, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Host.open(site.project) as host:
        for delivery_id, name in NAMES.items():  # who sends does not know what became of it, and sends again
            assert host.deliver_event(found, name, f"no {delivery_id}", delivery_id=delivery_id)["repeated"]
        assert host.resume(found)["failure"] is None
        [artifact] = host.artifacts(found)
        assert b"no 1 no 2 no 3" in host.artifact(artifact["ref"])
        assert len(payloads(list(host.events(found)), "external.delivered")) == 3
        assert host.verify(found)["broken"] == []
        for mode, options in MODES.items():
            assert host.replay(found, mode, **options)["diverged"] is None, mode
