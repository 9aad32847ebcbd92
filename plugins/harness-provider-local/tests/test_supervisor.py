"""One worker process that says what no worker should."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from harness_hookspecs import ProviderError
from harness_provider_local.supervisor import Child, Worker

READY = '{"event":"ready","context_tokens":8}'
NO_ANSWERS = {
    "no JSON": "hello",
    "a list": "[1]",
    "a number": "1",
    "no event": "{}",
    "an unknown event": '{"event":"died","id":1}',
    "an event that is no text": '{"event":["pong"],"id":1}',
    "no id": '{"event":"pong","memory_bytes":1}',
    "an id that is no number": '{"event":"pong","id":[],"memory_bytes":1}',
    "a failure without words": '{"event":"failed"}',
    "a context without a size": '{"event":"ready"}',
    "a count that is none": '{"event":"counted","id":1,"tokens":null}',
}
SAYS = "import sys, os, time\nos.write(1, sys.argv[1].encode())\ntime.sleep(60)\n"


class Children:
    """Starts processes that print lines and then stay."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def saying(self, *lines: str) -> Any:
        def start() -> Child:
            command = [sys.executable, "-c", SAYS, "".join(f"{line}\n" for line in lines)]
            self.started.append(subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1))
            return self.started[-1]

        return start


@pytest.fixture
def children() -> Any:
    """Starts processes and ends those that are left."""
    made = Children()
    yield made
    for child in made.started:
        child.kill()
        child.wait()


@pytest.mark.parametrize("said", NO_ANSWERS)
def test_a_worker_that_says_what_is_no_answer_is_ended(host: Any, children: Children, said: str) -> None:
    worker = Worker(host.ports, "tiny", children.saying(NO_ANSWERS[said]), {})
    with pytest.raises(ProviderError) as caught:
        worker.wait_ready(20.0, None)
    assert (caught.value.code, worker.state, worker.crashed) == ("provider.worker_died", "dead", True)
    assert [child.poll() for child in children.started] == [-9]
    worker.close()


def test_what_comes_after_no_answer_is_not_heard(host: Any, children: Children) -> None:
    worker = Worker(host.ports, "tiny", children.saying("[1]", READY), {})
    with pytest.raises(ProviderError, match="died while it loaded"):
        worker.wait_ready(20.0, None)
    assert worker.facts == {}


def test_a_process_does_not_outlive_the_thread_that_hears_it(
    host: Any, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the pipe broke")

    monkeypatch.setattr(Worker, "_hear", fail)
    worker = Worker(host.ports, "tiny", children.saying(READY), {})
    with pytest.raises(ProviderError):
        worker.wait_ready(20.0, None)
    assert [child.poll() for child in children.started] == [-9]


def test_a_worker_that_is_ended_before_its_process_starts_is_ended_when_it_does(host: Any, children: Children) -> None:
    ended = threading.Event()

    def start() -> Child:
        ended.wait(20.0)
        child: Child = children.saying()()
        return child

    worker = Worker(host.ports, "tiny", start, {})
    worker.kill()
    ended.set()
    with pytest.raises(ProviderError, match="died while it loaded"):
        worker.wait_ready(20.0, None)
    assert [child.poll() for child in children.started] == [-9]
