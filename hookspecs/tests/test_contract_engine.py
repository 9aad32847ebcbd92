from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness_hookspecs.contracts.engine import EPOCH_MS, LIMITS, EngineContract
from harness_hookspecs.contracts.role_context import FakeTool
from harness_hookspecs.contracts.rules import Contract, complaints, failing_rules
from harness_hookspecs.contracts.waiting import FakeToken
from harness_hookspecs.engine import (
    MAX_MESSAGE_CHARS,
    MAX_TRACEBACK_CHARS,
    EngineError,
    EngineLimits,
    names_in_code,
)
from harness_hookspecs.errors import Cancelled, CodecError, ConfigError, HarnessError, PluginError, Refused, ToolError
from harness_hookspecs.host import CancelToken
from harness_hookspecs.kit import codec
from harness_hookspecs.role import BoundTool

CHILD = r"""
import builtins, json, random, resource, sys, types
order = json.loads(sys.stdin.readline())
out = sys.stdout
def say(**said):
    out.write(json.dumps(said) + "\n"); out.flush()
def call(name, args):
    try:
        text = json.dumps(args)
        if "NaN" in text or "Infinity" in text or len(text) > order["output"]: raise ValueError("no JSON")
    except (TypeError, ValueError) as error:
        raise RuntimeError(str(error))
    say(call=name, args=args)
    answer = json.loads(sys.stdin.readline())
    if "error" in answer: raise RuntimeError(answer["error"])
    return answer["value"]
def method(name):
    async def called(**args): return call(name, args)
    return called
async def gather(*waited): return [await one for one in waited]
async def sleep(seconds): return None
class datetime:
    @staticmethod
    def now(zone=None): return types.SimpleNamespace(isoformat=lambda: order["now"])
modules = {
    "json": types.SimpleNamespace(dumps=json.dumps, loads=json.loads),
    "time": types.SimpleNamespace(time=lambda: order["epoch"] / 1000),
    "datetime": types.SimpleNamespace(datetime=datetime, timezone=types.SimpleNamespace(utc=0)),
    "random": random,
    "asyncio": types.SimpleNamespace(gather=gather, sleep=sleep),
}
def load(name, *more, **others):
    if name not in modules: raise ModuleNotFoundError(name)
    return modules[name]
names = ("BaseException Exception RuntimeError ValueError NameError KeyError KeyboardInterrupt SystemExit bytes float "
         "hasattr hash len list range repr set str type").split()
safe = {name: getattr(builtins, name) for name in names}
safe.update(__import__=load, print=lambda *said: None)
random.seed(order["seed"])
OPENED
for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
    resource.setrlimit(kind, (order["memory"] + 100_000_000,) * 2)
space = {"__builtins__": safe}
try:
    program = compile(order["source"], "main.py", "exec")
except (SyntaxError, ValueError) as error:
    say(kind="syntax", name="SyntaxError", message=str(error), lines=[]); sys.exit()
try:
    exec(program, space)
    main = space.get("main")
    if getattr(getattr(main, "__code__", None), "co_flags", 0) & 128 == 0:
        say(kind="syntax", name="SyntaxError", message="no async def main(input, tools)", lines=[]); sys.exit()
    tools = types.SimpleNamespace(**{written: method(name) for written, name in order["tools"].items()})
    try: main(order["input"], tools).send(None)
    except StopIteration as end: output = json.dumps(end.value, allow_nan=False)
    say(output=output)
except BaseException as error:
    if isinstance(error, SystemExit) and error.__traceback__.tb_next is None: raise
    lines, trace = [], error.__traceback__
    while trace is not None and len(lines) < 40:
        if trace.tb_frame.f_code.co_filename == "main.py": lines.append(trace.tb_lineno)
        trace = trace.tb_next
    kind = "memory" if isinstance(error, (MemoryError, OverflowError)) else "runtime"
    say(kind=kind, name=type(error).__name__, message=str(error)[:5000], lines=lines)
"""


class ChildEngine:
    """Keeps every rule: each run is an interpreter of its own, with the few names that the suite needs."""

    opened = ""
    shown = ""

    def __init__(self) -> None:
        self.closed = False

    def run(
        self,
        source: str,
        input: Any,  # noqa: A002  # the name the code itself sees
        *,
        tools: Mapping[str, BoundTool],
        limits: EngineLimits,
        seed: int,
        epoch_ms: int,
        cancel: CancelToken,
    ) -> Any:
        if self.closed:
            raise PluginError("The engine is closed.")
        cancel.raise_if_cancelled()
        order = {
            "source": source,
            "input": input,
            "tools": self.names(tools),
            "memory": limits.memory_bytes,
            "output": limits.output_bytes,
            "seed": seed,
            "epoch": epoch_ms,
            "now": "2026-01-01T00:00:00+00:00",
        }
        run = self.child(order)
        undo = cancel.on_cancel(run.kill)
        try:
            found = self.driven(run, tools, limits)
        finally:
            undo()
            run.kill()
            run.communicate()
        if cancel.cancelled():
            raise Cancelled(cancel.reason)
        return found

    def close(self) -> None:
        self.closed = True

    def names(self, tools: Mapping[str, BoundTool]) -> dict[str, str]:
        return names_in_code(tools)

    def child(self, order: dict[str, Any]) -> subprocess.Popen[str]:
        if "__" in order["source"]:  # a wall for tests
            order["source"] = order["source"].replace("__", "no")
        pipe = subprocess.PIPE
        code = CHILD.replace("OPENED", self.opened)
        run = subprocess.Popen(
            [sys.executable, "-s", "-S", "-c", code], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True,
            env={"PYTHONHASHSEED": "0"}, cwd="/",
        )  # fmt: skip
        self.say(run, order)
        return run

    def say(self, run: subprocess.Popen[str], said: Any) -> None:
        assert run.stdin is not None
        run.stdin.write(json.dumps(said) + "\n")
        run.stdin.flush()

    def driven(self, run: subprocess.Popen[str], tools: Mapping[str, BoundTool], limits: EngineLimits) -> Any:
        assert run.stdout is not None
        problems: set[str] = set()
        seconds = limits.timeout_seconds + 0.3  # an interpreter takes its time to begin
        while True:
            started = time.monotonic()
            clock = threading.Timer(seconds, run.kill)
            clock.start()
            line = run.stdout.readline()
            in_time = clock.is_alive()
            clock.cancel()
            clock.join()
            seconds -= time.monotonic() - started
            if not line:
                return self.dead(in_time)
            said = json.loads(line)
            if "call" not in said:
                return self.outcome(said, problems, limits)
            try:
                self.say(run, {"value": self.called(tools[said["call"]], said["args"])})
            except (ToolError, Refused) as problem:
                problems.add(problem.message)
                self.say(run, {"error": problem.message})

    def dead(self, in_time: bool) -> Any:
        return EngineError("crash", "Gone.", "") if in_time else EngineError("timeout", "TimeoutError: too long", "")

    def called(self, tool: BoundTool, args: Any) -> Any:
        return tool.execute(args)

    def outcome(self, said: Mapping[str, Any], problems: set[str], limits: EngineLimits) -> Any:
        if "output" not in said:
            return self.failed(said, problems)
        if len(said["output"]) > limits.output_bytes:
            return EngineError("memory", "The output is too large.", "")
        try:
            return codec.loads(said["output"])
        except CodecError as error:
            return EngineError("runtime", error.message, "")

    def failed(self, said: Mapping[str, Any], problems: set[str]) -> EngineError:
        kind: Any = "tool" if said["message"] in problems and said["kind"] == "runtime" else said["kind"]
        message = f"{said['name']}: {said['message']}"[:MAX_MESSAGE_CHARS]
        return EngineError(kind, message, "\n".join(f"line {line}" for line in said["lines"])[:MAX_TRACEBACK_CHARS])


# --------------------------------------------------------------------------------------------- broken ones


def error_as(**changes: Any) -> type[ChildEngine]:
    class Telling(ChildEngine):
        def failed(self, said: Mapping[str, Any], problems: set[str]) -> EngineError:
            return super().failed({**said, **changes}, problems)

    return Telling


def opened(code: str) -> type[ChildEngine]:
    return type("Opened", (ChildEngine,), {"opened": code})


class Wrapping(ChildEngine):
    def outcome(self, said: Mapping[str, Any], problems: set[str], limits: EngineLimits) -> Any:
        found = super().outcome(said, problems, limits)
        return {**found, "took": 1} if isinstance(found, dict) and "big" in found else found


class Meddling(ChildEngine):
    def child(self, order: dict[str, Any]) -> subprocess.Popen[str]:
        if isinstance(order["input"], dict) and "list" in order["input"]:
            order["input"]["list"] = list(order["input"]["list"])
            order["input"]["seen"] = True
            return super().child({**order, "input": {"list": order["input"]["list"]}})
        return super().child(order)


class Talkative(ChildEngine):
    def failed(self, said: Mapping[str, Any], problems: set[str]) -> EngineError:
        kind, message, trace = super().failed(said, problems)
        return EngineError(kind, message + said["message"][MAX_MESSAGE_CHARS:], trace)


class Generous(ChildEngine):
    def outcome(self, said: Mapping[str, Any], problems: set[str], limits: EngineLimits) -> Any:
        return super().outcome(said, problems, limits._replace(output_bytes=2 * limits.output_bytes))


class Lax(ChildEngine):
    def outcome(self, said: Mapping[str, Any], problems: set[str], limits: EngineLimits) -> Any:
        return json.loads(said["output"]) if "output" in said else super().outcome(said, problems, limits)


class Misnaming(ChildEngine):
    def names(self, tools: Mapping[str, BoundTool]) -> dict[str, str]:
        return {name.replace(".", "_"): name for name in tools}


class Shuffling(ChildEngine):
    opened = """
async def gather(*waited):
    found = [await one for one in reversed(waited)]
    return found[::-1]
modules["asyncio"].gather = gather
"""


class Careless(ChildEngine):
    opened = "order['output'] *= 2"

    def outcome(self, said: Mapping[str, Any], problems: set[str], limits: EngineLimits) -> Any:
        return super().outcome(said, problems, limits)


class Hiding(ChildEngine):
    def called(self, tool: BoundTool, args: Any) -> Any:
        try:
            return super().called(tool, args)
        except (ToolError, Refused):
            return None


class Blaming(ChildEngine):
    def failed(self, said: Mapping[str, Any], problems: set[str]) -> EngineError:
        return super().failed(said, set())


class Swallowing(ChildEngine):
    def called(self, tool: BoundTool, args: Any) -> Any:
        try:
            return super().called(tool, args)
        except (HarnessError, OSError) as problem:
            if isinstance(problem, ToolError | Refused):
                raise
            raise ToolError(str(problem)) from problem


class Printing(ChildEngine):
    def child(self, order: dict[str, Any]) -> subprocess.Popen[str]:
        if "print" in order["source"]:
            sys.stdout.write(f"{order['input']}\n")
        return super().child(order)


class Lucky(ChildEngine):
    opened = "random.seed()"


class Hashing(ChildEngine):
    count = 0

    def child(self, order: dict[str, Any]) -> subprocess.Popen[str]:
        Hashing.count += 1
        order["source"] = order["source"].replace("hash('word')", str(Hashing.count))
        return super().child(order)


class Remembering(ChildEngine):
    left = ""

    def child(self, order: dict[str, Any]) -> subprocess.Popen[str]:
        if "left = 1" in order["source"]:
            self.left = "left = True\n"
        order["source"] = self.left + order["source"]
        return super().child(order)


class Patient(ChildEngine):
    def driven(self, run: subprocess.Popen[str], tools: Mapping[str, BoundTool], limits: EngineLimits) -> Any:
        slow = limits.timeout_seconds < 1 and not tools
        found = super().driven(run, tools, limits)
        return found._replace(kind="crash") if slow and isinstance(found, EngineError) else found


class Counting(ChildEngine):
    def driven(self, run: subprocess.Popen[str], tools: Mapping[str, BoundTool], limits: EngineLimits) -> Any:
        clock = threading.Timer(limits.timeout_seconds + 0.1, run.kill)
        clock.start()
        try:
            return super().driven(run, tools, limits)
        except BrokenPipeError:
            return EngineError("timeout", "TimeoutError: too long", "")
        finally:
            clock.cancel()
            clock.join()


class Hoarding(ChildEngine):
    def outcome(self, said: Mapping[str, Any], problems: set[str], limits: EngineLimits) -> Any:
        return super().outcome({**said, "kind": "runtime"} if said.get("kind") == "memory" else said, problems, limits)


class Deaf(ChildEngine):
    def run(self, source: str, given: Any, **more: Any) -> Any:  # type: ignore[override]
        return super().run(source, given, **{**more, "cancel": FakeToken()})


class Littering(ChildEngine):
    """Leaves a process behind; the test ends it."""

    left: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        self.left.append(subprocess.Popen(["sleep", "60"]))
        super().close()


BROKEN: dict[str, type[ChildEngine]] = {
    "engine.runs_main": Wrapping,
    "engine.input_is_left_alone": Meddling,
    "engine.syntax_is_named": error_as(kind="runtime"),
    "engine.what_it_raises_is_told": error_as(lines=[]),
    "engine.errors_are_bounded": Talkative,
    "engine.output_is_json": Lax,
    "engine.output_is_bounded": Generous,
    "engine.tools_are_called": Misnaming,
    "engine.calls_keep_their_order": Shuffling,
    "engine.arguments_are_json": Careless,
    "engine.tool_errors_can_be_caught": Hiding,
    "engine.tool_errors_are_told": Blaming,
    "engine.other_ends_pass": Swallowing,
    "engine.world_is_closed": opened("safe['open'] = open"),
    "engine.prints_nowhere": Printing,
    "engine.clock_stands": opened("import time\nmodules['time'].time = time.time"),
    "engine.chance_is_given": Lucky,
    "engine.equal_runs_are_equal": Hashing,
    "engine.runs_are_apart": Remembering,
    "engine.time_is_bounded": Patient,
    "engine.tools_have_their_own_time": Counting,
    "engine.memory_is_bounded": Hoarding,
    "engine.cancel_ends_it": Deaf,
    "engine.leaves_nothing": Littering,
}


# What else a broken engine breaks is looked at in these: each run here begins an interpreter.
QUICK = {"engine.runs_main", "engine.clock_stands"}


def made(kind: type[ChildEngine]) -> Callable[[Contract], ChildEngine]:
    return lambda _: kind()


def test_each_rule_of_an_engine_bites() -> None:
    try:
        broken = {label: made(kind) for label, kind in BROKEN.items()}
        slow = set(BROKEN) - QUICK
        assert complaints(EngineContract, good=made(ChildEngine), broken=broken, at_most=2, overall=slow) == []
    finally:
        for process in Littering.left:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        (opened("import os\nmodules['os'] = os"), "engine.world_is_closed"),
        (opened("import socket\nmodules['socket'] = socket"), "engine.world_is_closed"),
        (opened("import subprocess\nmodules['subprocess'] = subprocess"), "engine.world_is_closed"),
        (opened("random.seed(3)"), "engine.chance_is_given"),
    ],
)
def test_other_ways_to_break_a_rule_are_noticed(kind: type[ChildEngine], label: str) -> None:
    assert failing_rules(EngineContract, made(kind), only=[label]) == {label}


def test_names_in_code_are_written_with_underscores_and_are_told_apart() -> None:
    assert names_in_code(["ats.candidates", "git_log"]) == {"ats_candidates": "ats.candidates", "git_log": "git_log"}
    for names in (["a.b", "a_b"], ["a-b"], ["class"], ["__x"], ["\u00e9"], [""], ["9lives"]):
        with pytest.raises(ConfigError) as caught:
            names_in_code(names)
        assert caught.value.code == "engine.tool_names"


def test_what_dies_is_a_crash() -> None:
    class Dying(ChildEngine):
        opened = "import os\nos._exit(9)"

    found = Dying().run(
        "async def main(input, tools):\n    return 1\n",
        None,
        tools={"look": FakeTool()},
        limits=LIMITS,
        seed=1,
        epoch_ms=EPOCH_MS,
        cancel=FakeToken(),
    )
    assert isinstance(found, EngineError) and found.kind == "crash"
