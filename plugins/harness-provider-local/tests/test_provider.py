"""The local provider with a real engine and a model with random weights."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness_hookspecs import Cancelled, Message, ModelRequest, OracleResponse, ProviderError, ToolSchema
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.messages import TextPart
from harness_hookspecs.provider import CountsTokens, ListsWorkers, Probes
from harness_provider_local.constrain import violation
from harness_provider_local.provider import LocalProvider, build
from harness_provider_local.settings import LocalModelSettings

Start = Callable[..., LocalProvider]
LONG = {"type": "object", "properties": {"a": {"type": "string", "minLength": 30_000}}, "required": ["a"]}
SHORT = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 4}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.fixture
def start(host: Any, model_file: Path) -> Iterator[Start]:
    """Builds providers and closes them at the end."""
    started: list[LocalProvider] = []

    def make(**settings: Any) -> LocalProvider:
        started.append(build(LocalModelSettings(**{"path": str(model_file), "context_size": 1024, **settings}), host))
        return started[-1]

    yield make
    for provider in started:
        provider.close()


@pytest.fixture(scope="module")
def shared(model_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProvider]:
    """One provider for the tests that neither harm it nor ask for settings."""
    host: Any = FakeHost(tmp_path_factory.mktemp("shared"), entry_name="tiny")
    provider = build(LocalModelSettings(path=str(model_file)), host)
    yield provider
    provider.close()


def user(text: str) -> Message:
    return Message(role="user", content=(TextPart(text=text),))


def ask(text: str = "hi", *, tokens: int = 8, seed: int = 1, **fields: Any) -> ModelRequest:
    return ModelRequest("tiny", [user(text)], params={"max_output_tokens": tokens, "seed": seed}, **fields)


def pid_of(provider: LocalProvider) -> int:
    [worker] = provider.workers()
    return worker.pid


def gone(pid: int, within_seconds: float = 5.0) -> bool:
    """Wait for the end of a process; one that nobody has collected yet has ended too."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(process):
        return bool(select.select([process], [], [], within_seconds)[0])


def once(action: Callable[[], Any]) -> Callable[[Any], None]:
    """Something to do at the first piece only."""
    done: list[Any] = []
    return lambda chunk: done.append(action()) if not done else None


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run a call on a thread; its answer or its error is put into the list."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except (ProviderError, Cancelled) as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


# ------------------------------------------------------------------------------------------------ chat


def test_the_pieces_are_the_answer(shared: LocalProvider, caller: Any) -> None:
    answer = shared.complete(ask(tokens=20), caller.context())
    assert isinstance(answer, OracleResponse)
    assert "".join(chunk.text for chunk in caller.chunks) == answer.text != ""
    assert {chunk.kind for chunk in caller.chunks} == {"text"}


def test_an_answer_at_its_token_limit_says_so(shared: LocalProvider, caller: Any) -> None:
    answer = shared.complete(ask(tokens=5), caller.context())
    assert (answer.finish_reason, answer.usage.output_tokens) == ("length", 5)


def test_the_tokens_counted_before_are_the_tokens_used(shared: LocalProvider, caller: Any) -> None:
    messages = [Message(role="system", content=(TextPart(text="Be <|im_end|> brief."),)), user("héllo 😀 <s>")]
    counted = shared.count_tokens(messages)
    answer = shared.complete(ModelRequest("tiny", messages, params={"max_output_tokens": 1}), caller.context())
    assert answer.usage.input_tokens == counted > 20


def test_a_known_prefix_is_reported_as_cached(shared: LocalProvider, caller: Any) -> None:
    first, second = (shared.complete(ask("words never said before"), caller.context()).usage for _ in range(2))
    assert first.cached_input_tokens < second.cached_input_tokens <= second.input_tokens == first.input_tokens


def test_the_same_seed_gives_the_same_text(start: Start, caller: Any) -> None:
    texts = [start().complete(ask(tokens=20, seed=2**32 + 5), caller.context()).text for _ in range(2)]
    assert texts[0] == texts[1]


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_generated(start: Start, caller: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        start(context_size=256).complete(ask("word " * 200), caller.context())
    assert caught.value.code == "provider.context_overflow"
    assert caught.value.facts["prompt_tokens"] > caught.value.facts["limit_tokens"] == 256
    assert not caller.chunks


def test_a_context_beyond_the_training_is_cut_to_it(start: Start) -> None:
    assert start(context_size=100_000).probe().context_tokens == 32_768


def test_each_parallel_session_has_the_whole_context(start: Start, caller: Any) -> None:
    provider = start(context_size=512, limits={"max_parallel_sessions": 3})
    answer = provider.complete(ask("w" * 440, tokens=2), caller.context())
    assert 440 < answer.usage.input_tokens < 512


# ------------------------------------------------------------------------------------------ schemas, tools

WIDE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 9999},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 3},
        "kind": {"enum": ["a", "bb", None]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,3}$"},
    },
    "required": ["name", "age", "tags", "kind", "code"],
    "additionalProperties": False,
    "$defs": {"tag": {"type": "string", "maxLength": 6}},
}


def test_a_model_that_says_anything_keeps_to_the_schema(shared: LocalProvider, caller: Any) -> None:
    for seed in range(25):
        request = ask(tokens=400, seed=seed, response_schema=WIDE)
        answer = shared.complete(request, caller.context())
        assert answer.finish_reason == "stop"
        assert violation(WIDE, answer.text) is None, f"seed {seed}: {answer.text}"


def test_a_keyword_the_engine_ignores_is_still_checked(shared: LocalProvider, caller: Any) -> None:
    schema = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 6, "maxItems": 6, "uniqueItems": True}
    with pytest.raises(ProviderError) as caught:
        shared.complete(ask(tokens=100, response_schema=schema), caller.context())
    assert caught.value.code == "provider.schema_violation"
    assert "non-unique" in caught.value.facts["violation"]
    assert len(json.loads(caught.value.facts["text"])) == 6
    assert caught.value.facts["usage"]["outputTokens"] > 6


def test_an_engine_that_drops_the_schema_is_found_out(shared: LocalProvider, caller: Any) -> None:
    impossible = {"type": "integer", "minimum": 5, "maximum": 1}
    with pytest.raises(ProviderError) as caught:
        shared.complete(ask(tokens=30, response_schema=impossible), caller.context())
    assert caught.value.code == "provider.schema_violation"
    assert "Unsatisfiable" in (caught.value.hint or "") or caught.value.facts["reason"] == "incomplete"


def test_json_that_was_cut_off_is_no_answer(shared: LocalProvider, caller: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        shared.complete(ask(tokens=30, response_schema=LONG), caller.context())
    assert (caught.value.code, caught.value.facts["reason"]) == ("provider.schema_violation", "incomplete")
    assert caught.value.facts["text"].startswith('{"a":"')


def test_a_schema_that_is_none_is_refused_without_a_worker(start: Start, caller: Any) -> None:
    provider = start()
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(response_schema={"type": "objekt"}), caller.context())
    assert caught.value.code == "provider.schema_invalid"
    assert provider.workers() == ()


def test_a_tool_call_always_parses(shared: LocalProvider, caller: Any) -> None:
    tools = [ToolSchema("files_read", "Reads.", SHORT), ToolSchema("files_find", "Finds.", WIDE)]
    request = ask(tools=tools, response_schema=SHORT)
    asked = [request._replace(params={"max_output_tokens": 400, "seed": s, "temperature": 4.0}) for s in range(12)]
    answers = [shared.complete(each, caller.context()) for each in asked]
    calls = [call for answer in answers for call in answer.tool_calls or ()]
    schemas = {tool.name: tool.input_schema for tool in tools}
    assert calls, "no seed chose a tool"
    assert all(violation(schemas[call.tool_name], json.dumps(call.args)) is None for call in calls)
    assert all((answer.finish_reason == "tool_calls") == bool(answer.tool_calls) for answer in answers)
    assert all(answer.tool_calls or violation(SHORT, answer.text) is None for answer in answers)
    assert not caller.chunks, "an envelope is not shown as text"


# ------------------------------------------------------------------------------------------------ ends


def test_a_cancelled_caller_leaves_at_once_and_the_worker_stays(start: Start, caller: Any, callers: Any) -> None:
    provider = start(context_size=32_768)
    pid: list[int] = []

    def stop(chunk: Any) -> None:
        pid.append(pid_of(provider))
        os.kill(pid[0], signal.SIGSTOP)  # so that nobody leaves by what the worker does
        caller.token.cancel("enough")

    caller.on_chunk = stop
    with pytest.raises(Cancelled):
        provider.complete(ask(tokens=32_000, response_schema=LONG), caller.context())
    os.kill(pid[0], signal.SIGCONT)
    assert len(caller.chunks) == 1
    assert provider.complete(ask(), callers().context()).text  # its place is free again
    assert pid_of(provider) == pid[0]


def test_a_long_prompt_can_be_cancelled_while_it_is_read(start: Start, caller: Any, callers: Any) -> None:
    provider = start(context_size=32_768)
    provider.complete(ask(), callers().context())
    thread, found = in_thread(lambda: provider.complete(ask("w" * 30_000), caller.context()))
    while provider.workers()[0].state != "busy":
        pass
    caller.token.cancel("enough")
    thread.join(2.0)
    assert isinstance(found[0], Cancelled)
    assert not caller.chunks
    assert provider.complete(ask(), callers().context()).usage.input_tokens < 100


def test_a_call_that_was_cancelled_before_starts_nothing(start: Start, caller: Any) -> None:
    provider = start()
    caller.token.cancel("never mind")
    with pytest.raises(Cancelled):
        provider.complete(ask(), caller.context())
    assert provider.workers() == ()


DEATHS = {signal.SIGKILL: "killed", signal.SIGILL: "illegal_instruction", signal.SIGSEGV: "crashed"}


@pytest.mark.req("B-42")
@pytest.mark.parametrize("number", DEATHS, ids=lambda number: number.name)
def test_a_worker_that_dies_is_noticed_and_started_again(
    start: Start, caller: Any, callers: Any, number: signal.Signals
) -> None:
    provider = start(context_size=32_768)
    provider.complete(ask(), callers().context())
    pid = pid_of(provider)
    killed_at: list[float] = []

    def kill() -> None:
        killed_at.append(time.monotonic())
        os.kill(pid, number)

    caller.on_chunk = once(kill)
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(tokens=32_000, response_schema=LONG), caller.context())
    noticed_seconds = time.monotonic() - killed_at[0]
    assert (caught.value.code, caught.value.facts["reason"]) == ("provider.worker_died", DEATHS[number])
    assert caught.value.facts["returncode"] == -number
    assert noticed_seconds < 2.0  # 3 to 30 ms on an idle machine
    assert provider.complete(ask(), callers().context()).text
    assert pid_of(provider) != pid


def test_the_end_of_the_log_goes_with_a_crash(start: Start, caller: Any) -> None:
    provider = start(context_size=32_768)
    caller.on_chunk = once(lambda: os.kill(pid_of(provider), signal.SIGABRT))
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(tokens=32_000, response_schema=LONG), caller.context())
    assert "Aborted" in caught.value.facts["stderr"]


def test_after_three_deaths_in_a_row_the_worker_is_left_alone_for_a_while(
    start: Start, host: Any, callers: Any
) -> None:
    provider = start(context_size=32_768)
    for _ in range(3):
        doomed = callers()
        doomed.on_chunk = once(lambda: os.kill(pid_of(provider), signal.SIGKILL))
        with pytest.raises(ProviderError, match="died while"):
            provider.complete(ask(tokens=32_000, response_schema=LONG), doomed.context())
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(), callers().context())
    assert (caught.value.code, caught.value.facts["crashes"]) == ("provider.crash_loop", 3)
    host.ports.clock.advance(caught.value.facts["retry_after_seconds"] + 0.1)
    assert provider.complete(ask(), callers().context()).text


def test_a_worker_without_progress_is_ended(start: Start, caller: Any) -> None:
    provider = start(context_size=32_768, inter_token_timeout_sec=0.2)
    provider.probe()
    pid = pid_of(provider)
    caller.on_chunk = once(lambda: os.kill(pid, signal.SIGSTOP))
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(tokens=32_000, response_schema=LONG), caller.context())
    assert (caught.value.code, caught.value.facts["stage"]) == ("provider.timeout", "next_token")
    assert gone(pid)


def test_a_call_ends_when_its_time_is_over_and_the_worker_stays(start: Start, host: Any, caller: Any) -> None:
    provider = start(context_size=32_768)
    provider.probe()
    pid = pid_of(provider)
    caller.on_chunk = once(lambda: host.ports.clock.advance(10.0))
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(tokens=32_000, response_schema=LONG), caller.context(deadline_seconds=9.0))
    assert (caught.value.code, caught.value.facts["stage"]) == ("provider.timeout", "deadline")
    assert pid_of(provider) == pid


def test_a_call_whose_time_is_over_while_its_prompt_is_counted_ends_and_the_worker_stays(
    start: Start, caller: Any, callers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_provider_local.provider.COUNT_SECONDS", 5.0)
    provider = start()
    provider.probe()
    pid = pid_of(provider)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(), caller.context(deadline_seconds=0.1))
    assert (caught.value.code, caught.value.facts["stage"]) == ("provider.timeout", "deadline")
    os.kill(pid, signal.SIGCONT)
    assert provider.complete(ask(), callers().context()).text
    assert pid_of(provider) == pid


def test_a_call_can_be_cancelled_while_its_prompt_is_counted(start: Start, caller: Any) -> None:
    provider = start()
    provider.probe()
    [worker] = provider.workers()
    os.kill(worker.pid, signal.SIGSTOP)
    thread, found = in_thread(lambda: provider.complete(ask(), caller.context()))
    while not caller.begun:
        pass
    caller.token.cancel("enough")
    thread.join(5.0)
    os.kill(worker.pid, signal.SIGCONT)
    assert [type(one) for one in found] == [Cancelled]
    assert [(one.pid, one.state) for one in provider.workers()] == [(worker.pid, "ready")]


def test_a_call_that_cannot_wait_for_the_model_leaves_it_loading(start: Start, caller: Any, callers: Any) -> None:
    provider = start()
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(), caller.context(deadline_seconds=0.001))
    assert (caught.value.code, caught.value.facts["stage"]) == ("provider.timeout", "load")
    assert provider.complete(ask(), callers().context()).text


@pytest.mark.req("B-34")
def test_a_model_that_is_not_loaded_in_time_is_given_up(start: Start, caller: Any, host: Any) -> None:
    provider = start(gpu={"swap_timeout_sec": 0.001})
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(), caller.context())
    assert caught.value.code == "provider.swap_timeout"
    worker = provider._worker
    assert worker is not None
    with pytest.raises(ProviderError, match="died while it loaded"):  # now, and not when the provider is closed
        worker.wait_ready(20.0, None)
    assert worker.pid is not None
    assert gone(worker.pid)
    provider.close()
    assert not list((host.state_dir / "workers").glob("*.json"))


# ---------------------------------------------------------------------------------------------- entries


@pytest.mark.req("B-30")
def test_every_field_of_the_entry_reaches_the_provider(start: Start, model_file: Path) -> None:
    threads = (os.cpu_count() or 1) + 1  # by itself it takes fewer
    fields: dict[str, Any] = {
        "path": str(model_file),
        "context_size": 768,
        "kv_cache": {"quantization": "q8_0"},
        "gpu": {"layers": 1, "residency": "pinned", "swap_timeout_sec": 45.0},
        "inference": {"temperature": 0.2, "top_p": 0.9, "repeat_penalty": 1.1, "seed": 3, "max_output_tokens": 9},
        "limits": {"max_parallel_sessions": 2},
        "threads": threads,
    }
    facts = start(**fields).probe()
    assert facts.context_tokens == 768
    assert (facts.detail["slots"], facts.detail["threads"], facts.detail["gpu_layers"]) == (2, threads, 1)
    assert facts.detail["type_k"] == facts.detail["type_v"] == "q8_0"
    assert {key: facts.detail["settings"][key] for key in fields} == fields


@pytest.mark.req("B-30")
def test_sampling_of_the_entry_holds_where_the_request_is_silent(start: Start, caller: Any) -> None:
    provider = start(inference={"max_output_tokens": 3, "seed": 5})
    silent = ModelRequest("tiny", [user("hi")])
    said = silent._replace(params={"max_output_tokens": 6})
    assert provider.complete(silent, caller.context()).usage.output_tokens == 3
    assert provider.complete(said, caller.context()).usage.output_tokens == 6


@pytest.mark.req("B-32")
@pytest.mark.parametrize("kind", ["q8_0", "q4_0"])
def test_the_worker_reports_the_cache_types_that_were_asked_for(start: Start, caller: Any, kind: str) -> None:
    provider = start(kv_cache={"quantization": kind})
    detail = provider.probe().detail
    assert (detail["type_k"], detail["type_v"]) == (kind, kind)
    assert provider.complete(ask(), caller.context()).text


@pytest.mark.req("B-35")
def test_a_third_call_waits_while_two_run(start: Start, callers: Any) -> None:
    provider = start(limits={"max_parallel_sessions": 2})
    provider.complete(ask(), callers().context())
    release, running = threading.Event(), [callers(), callers()]
    for each in running:
        each.on_chunk = lambda chunk: release.wait(10)
    threads = [in_thread(partial(provider.complete, ask(), each.context())) for each in running]
    while not all(each.chunks for each in running):
        pass
    hurried, patient = callers(), callers()
    with pytest.raises(ProviderError) as caught:
        provider.complete(ask(), hurried.context(deadline_seconds=0.05))
    assert (caught.value.code, caught.value.facts["stage"]) == ("provider.timeout", "queue")
    third, found = in_thread(lambda: provider.complete(ask(), patient.context()))
    assert ([each.begun for each in running], hurried.begun, patient.begun) == ([1, 1], 0, 0)
    release.set()
    for thread, answers in [*threads, (third, found)]:
        thread.join(10)
        assert answers[0].text
    assert patient.begun == 1


# -------------------------------------------------------------------------------------------- processes


@pytest.mark.req("B-37")
def test_the_worker_is_listed_and_ends_with_the_provider(start: Start, caller: Any, host: Any) -> None:
    provider = start()
    assert provider.workers() == ()
    provider.complete(ask(), caller.context())
    [worker] = provider.workers()
    assert (worker.backend, worker.model, worker.state) == ("xllamacpp", "tiny", "ready")
    assert worker.memory_bytes is not None
    assert worker.memory_bytes > 1_000_000
    record = json.loads((host.state_dir / "workers" / f"{worker.pid}.json").read_text())
    told = {"schema": "harness.worker/1", "pid": worker.pid, "model": "tiny", "state": "ready"}
    assert told.items() <= record.items()
    provider.close()
    assert gone(worker.pid)
    assert not list((host.state_dir / "workers").iterdir())


def test_a_worker_that_answers_too_late_once_is_busy_with_nothing(start: Start) -> None:
    provider = start()
    provider.probe()
    pid = pid_of(provider)
    os.kill(pid, signal.SIGSTOP)
    states = [worker.state for worker in (*provider.workers(), *provider.workers())]
    os.kill(pid, signal.SIGCONT)
    assert states == ["ready", "ready"]
    assert [(worker.pid, worker.state) for worker in provider.workers()] == [(pid, "ready")]


PARENT = """
import sys, time
from pathlib import Path
from harness_hookspecs.contracts.host import FakeHost
from harness_provider_local.provider import build
from harness_provider_local.settings import LocalModelSettings
provider = build(LocalModelSettings(path=sys.argv[1]), FakeHost(Path(sys.argv[2]), entry_name="tiny"))
provider.probe()
print(provider.workers()[0].pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("is_deaf", [False, True], ids=["listening", "deaf"])
def test_a_killed_host_leaves_no_worker_behind(model_file: Path, tmp_path: Path, is_deaf: bool) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PARENT, str(model_file), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if is_deaf:  # as while it loads a model: it cannot hear that its stdin ends
            os.kill(pid, signal.SIGSTOP)
        parent.kill()
    assert gone(pid)


def test_what_a_killed_worker_leaves_is_cleared_away(start: Start, host: Any, caller: Any) -> None:
    provider = start()
    provider.probe()
    pid, records = pid_of(provider), host.state_dir / "workers"
    os.kill(pid, signal.SIGKILL)
    assert gone(pid)
    assert {path.name for path in records.iterdir()} == {str(pid), f"{pid}.json"}
    while provider.workers():  # until its end has been heard
        pass
    provider.complete(ask(), caller.context())
    assert not {path.name for path in records.iterdir()} & {str(pid), f"{pid}.json"}


def test_closing_ends_a_worker_that_hangs(start: Start, caller: Any) -> None:
    provider = start()
    provider.probe()
    pid = pid_of(provider)
    os.kill(pid, signal.SIGSTOP)
    writer, failed = in_thread(lambda: provider.complete(ask("w" * 200_000), caller.context()))
    provider.close()
    writer.join(10)
    assert isinstance(failed[0], ProviderError)
    assert gone(pid)


def test_keys_of_the_person_do_not_reach_the_worker(start: Start, caller: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    provider = start()
    provider.complete(ask(), caller.context())
    assert "OPENAI_API_KEY" not in psutil.Process(pid_of(provider)).environ()


def test_the_worker_opens_no_port(shared: LocalProvider, caller: Any) -> None:
    shared.complete(ask(), caller.context())
    assert psutil.Process(pid_of(shared)).net_connections("inet") == []


def test_a_closed_provider_starts_no_worker(start: Start, caller: Any) -> None:
    provider = start()
    provider.close()
    with pytest.raises(ProviderError, match="closed"):
        provider.complete(ask(), caller.context())


def test_it_keeps_the_optional_promises_too(start: Start) -> None:
    provider = start()
    assert isinstance(provider, CountsTokens)
    assert isinstance(provider, Probes)
    assert isinstance(provider, ListsWorkers)
