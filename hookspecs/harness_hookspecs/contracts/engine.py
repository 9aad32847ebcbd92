"""The promises of kind ``engine``: an engine goes in, the rules that it breaks come out.

The code of the suite is written in the Python that every engine has: functions, plain values, ``try``, ``json``,
``time``, ``datetime``, ``random``, ``asyncio.gather`` and ``asyncio.sleep``.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from harness_hookspecs.engine import MAX_MESSAGE_CHARS, MAX_TRACEBACK_CHARS, Engine, EngineError, EngineLimits
from harness_hookspecs.errors import Cancelled, ConfigError, HarnessError, Refused, Suspend, ToolError
from harness_hookspecs.role import BoundTool

from .engine_world import WORLD_PROBES, World, children
from .role_context import FakeTool
from .rules import Contract, raised_by, rule
from .waiting import FakeToken

__all__ = ["EPOCH_MS", "LIMITS", "EngineContract"]

LIMITS: Final = EngineLimits(timeout_seconds=20.0, memory_bytes=134_217_728, output_bytes=65_536)
EPOCH_MS: Final = 1_767_225_600_000  # 2026-01-01

_HASTY: Final = LIMITS._replace(timeout_seconds=0.3)
_SOON_SECONDS: Final = 10.0
_ECHO: Final = "async def main(input, tools):\n    return input\n"
_CALLS: Final = "async def main(input, tools):\n    return await tools.ats_candidates(job=input['job'])\n"
_DRAWS: Final = (
    "import random\nasync def main(input, tools):\n"
    "    return [random.random(), random.randint(1, 10**9), random.sample(list(range(99)), 5)]\n"
)


def _main(*lines: str) -> str:
    return "\n    ".join(["async def main(input, tools):", *lines]) + "\n"


_LOOPS: Final = (
    _main("while True: pass"),
    "while True: pass\n" + _main("return 1"),
    _main("while True:", "    try:", "        while True: pass", "    except BaseException: pass"),
    _main("x = 3", "while True: x = x * x % (1 << 4000000)"),
)
_HOARDERS: Final = (
    _main("kept = ['x']", "while True: kept = kept + kept"),
    _main("return len('x' * 10**12)"),
    _main("x = 10", "while True: x = x * x"),
)


class EngineContract(Contract):
    """What every engine keeps."""

    def subject(self) -> Engine:
        """The engine under test, over ``self.host``; the suite closes it."""
        raise NotImplementedError("override subject()")

    def setup_method(self) -> None:
        """Make the host and remember what must stay as it is."""
        super().setup_method()
        self._opened: list[Engine] = []

    def teardown_method(self) -> None:
        """Close what was opened."""
        for engine in self._opened:
            engine.close()
        super().teardown_method()

    # ------------------------------------------------------------------------------------ values, errors

    @rule("engine.runs_main")
    def test_what_main_returns_is_the_output(self) -> None:
        given = {"list": [1, 2.5, "three", None, True], "deep": {"\u00e4\u0000": [[]]}, "big": 2**53 - 1}
        assert self._run(_ECHO, given) == given
        assert self._run("import json\nx = 2\n" + _main("return {'n': x + input, 't': (1, 2)}"), 1) == {
            "n": 3,
            "t": [1, 2],
        }

    @rule("engine.input_is_left_alone")
    def test_the_input_is_a_copy(self) -> None:
        given = {"list": [1]}
        before = copy.deepcopy(given)
        assert self._run(_main("input['list'].append(2)", "return input"), given) == {"list": [1, 2]}
        assert given == before

    @rule("engine.syntax_is_named")
    def test_what_is_no_such_code_is_a_syntax_error(self) -> None:
        engine = self._engine()
        sources = ["def main(", "x = 1", "", "def main(input, tools):\n    return 1\n", "\ud800", _main("return (")]
        for source in sources:
            self._fails(source, "syntax", engine=engine)
        error = self._fails("x = 1\n" + _main("return 1 +"), "syntax", engine=engine)
        assert "3" in error.message + error.traceback_text, "the line is told"

    @rule("engine.what_it_raises_is_told")
    def test_what_the_code_raises_is_told_with_its_line(self) -> None:
        engine = self._engine()
        source = "def inner():\n    return {}['nothing']\n" + _main("return inner()")
        error = self._fails(source, "runtime", engine=engine)
        assert error.message.startswith("KeyError: ")
        assert "line 2" in error.traceback_text and "line 4" in error.traceback_text
        assert self._fails(_main("raise ValueError('no')"), "runtime", engine=engine).message == "ValueError: no"
        for raised in ("KeyboardInterrupt", "SystemExit"):
            self._fails(_main(f"raise {raised}"), "runtime", engine=engine)

    @rule("engine.errors_are_bounded")
    def test_an_error_says_no_more_than_it_may(self) -> None:
        engine = self._engine()
        for source in (_main("raise ValueError('x' * 1000000)"), "def f():\n    return f()\n" + _main("return f()")):
            error = self._fails(source, "runtime", engine=engine)
            assert 0 < len(error.message) <= MAX_MESSAGE_CHARS
            assert len(error.traceback_text) <= MAX_TRACEBACK_CHARS

    @rule("engine.output_is_json")
    def test_what_is_no_json_is_an_error_of_the_code(self) -> None:
        engine = self._engine()
        for value in ("{1, 2}", "float('nan')", "main", "tools", "10**400", "b'x'"):
            self._fails(_main(f"return {value}"), "runtime", engine=engine)
        source = _main("value = []", "for _ in range(2000):", "    value = [value]", "return value")
        self._fails(source, "runtime", engine=engine)

    @rule("engine.output_is_bounded")
    def test_an_output_over_its_limit_is_no_output(self) -> None:
        assert self._run(_main("return 'x' * 60000")) == "x" * 60_000
        self._fails(_main("return 'x' * 70000"), "memory")

    # --------------------------------------------------------------------------------------------- tools

    @rule("engine.tools_are_called")
    def test_a_tool_is_awaited_under_its_name_in_code(self) -> None:
        tool = FakeTool([{"score": 3}, {"score": 1}])
        found = self._run(_CALLS, {"job": 7}, tools={"ats.candidates": tool})
        assert found == [{"score": 3}, {"score": 1}]
        assert tool.runs == [{"job": 7}]
        assert type(tool.runs[0]) is dict

    @rule("engine.tools_are_called")
    def test_two_tools_of_one_name_in_code_are_refused(self) -> None:
        tools = {"ats.find": FakeTool(), "ats_find": FakeTool()}
        assert raised_by(lambda: self._run(_ECHO, tools=tools)) is ConfigError
        assert raised_by(lambda: self._run(_ECHO, tools={"a-b": FakeTool()})) is ConfigError

    @rule("engine.calls_keep_their_order")
    def test_calls_are_made_one_after_another_as_the_code_comes_to_them(self) -> None:
        tool = FakeTool(*range(10))
        source = "import asyncio\n" + _main(
            "async def ask(n):",
            "    return [n, await tools.look(n=n)]",
            "first = await tools.look(n='first')",
            "rest = await asyncio.gather(*[ask(n) for n in range(4)])",
            "return [first, rest]",
        )
        assert self._run(source, tools={"look": tool}) == [0, [[0, 1], [1, 2], [2, 3], [3, 4]]]
        assert [run["n"] for run in tool.runs] == ["first", 0, 1, 2, 3]

    @rule("engine.arguments_are_json")
    def test_arguments_that_are_no_json_or_too_large_are_an_error_in_the_code(self) -> None:
        tool = FakeTool("called")
        engine = self._engine()
        for value in ("{1}", "float('inf')", "'x' * 70000", "main"):
            source = _main("try:", f"    return await tools.look(n={value})", "except Exception:", "    return 'no'")
            assert self._run(source, tools={"look": tool}, engine=engine) == "no", value
        assert tool.runs == []

    @rule("engine.tool_errors_can_be_caught")
    def test_the_error_of_a_tool_can_be_caught(self) -> None:
        engine = self._engine()
        source = _main(
            "try:",
            "    await tools.look()",
            "except RuntimeError as error:",
            "    return [str(error), await tools.look()]",
        )
        for problem in (ToolError("The desk is closed."), Refused("The desk is closed.")):
            tools = {"look": FakeTool(problem, "open")}
            assert self._run(source, tools=tools, engine=engine) == ["The desk is closed.", "open"]

    @rule("engine.tool_errors_are_told")
    def test_an_error_of_a_tool_that_is_not_caught_is_the_tools(self) -> None:
        engine = self._engine()
        tools = {"ats.candidates": FakeTool(ToolError("The desk is closed."))}
        error = self._fails(_CALLS, "tool", {"job": 1}, tools=tools, engine=engine)
        assert "The desk is closed." in error.message and "line 2" in error.traceback_text
        instead = _main("try:", "    await tools.ats_candidates()", "except Exception:", "    raise ValueError('mine')")
        assert self._fails(instead, "runtime", tools=tools, engine=engine).message == "ValueError: mine"

    @rule("engine.other_ends_pass")
    def test_what_else_a_tool_raises_ends_the_run_and_passes(self) -> None:
        engine = self._engine()
        source = _main(
            "for _ in range(3):",
            "    try:",
            "        await tools.look()",
            "    except BaseException:",
            "        await tools.seen()",
        )
        for problem in (Suspend("approval", "appr_1"), Cancelled("stop"), HarnessError("broken"), OSError("gone")):
            tools = {"look": FakeTool(problem), "seen": FakeTool()}
            assert _raised(partial(self._run, source, tools=tools, engine=engine)) is problem
            assert tools["seen"].runs == []
        assert self._run(_ECHO, "well", engine=engine) == "well"

    # --------------------------------------------------------------------------------------------- world

    @rule("engine.world_is_closed")
    def test_code_reaches_nothing_of_the_host(self) -> None:
        engine = self._engine()
        with World(self.folder) as world:
            for probe in WORLD_PROBES:
                found = self._run(_main(*probe), world.places, engine=engine)
                assert not world.reached(found), probe

    @rule("engine.prints_nowhere")
    def test_what_code_prints_reaches_no_stream_of_the_host(self) -> None:
        engine = self._engine()
        with World(self.folder) as world:
            assert self._run(_main("print(input)", "return 1"), world.secret, engine=engine) == 1
            assert not world.reached("")

    @rule("engine.clock_stands")
    def test_the_clock_stands_where_it_was_set_and_sleep_takes_no_time(self) -> None:
        source = "import asyncio, time\nfrom datetime import datetime, timezone\n" + _main(
            "before = time.time()",
            "await asyncio.sleep(86400)",
            "return [before, time.time(), datetime.now(timezone.utc).isoformat()]",
        )
        started = time.monotonic()
        assert self._run(source) == [EPOCH_MS / 1000, EPOCH_MS / 1000, "2026-01-01T00:00:00+00:00"]
        assert time.monotonic() - started < _SOON_SECONDS

    @rule("engine.chance_is_given")
    def test_randomness_comes_from_the_seed_alone(self) -> None:
        engine = self._engine()
        drawn = [self._run(_DRAWS, seed=seed, engine=engine) for seed in (1, 1, 2, 2**63)]
        assert drawn[0] == drawn[1] == self._run(_DRAWS, seed=1)
        assert drawn[0] != drawn[2] != drawn[3]

    @rule("engine.equal_runs_are_equal")
    def test_equal_runs_have_equal_outputs(self) -> None:
        source = _main("words = {'one', 'two', 'three', 'four', 'five'}", "return [list(words), str(hash('word'))]")
        engine = self._engine()
        first = self._run(source, engine=engine)
        self._run(_DRAWS, engine=engine)
        assert first == self._run(source, engine=engine) == self._run(source)

    @rule("engine.runs_are_apart")
    def test_a_run_leaves_nothing_for_the_next(self) -> None:
        engine = self._engine()
        meddling = "import json, random\nleft = 1\n" + _main("json.left = 1", "random.seed(5)", "return 1")
        self._outcome(meddling, engine=engine)
        looks = _main("try:", "    return left", "except NameError:", "    return hasattr(json, 'left')")
        looks = "import json\n" + looks
        assert self._run(looks, engine=engine) is False
        assert self._run(_DRAWS, engine=engine) == self._run(_DRAWS)

    @rule("engine.runs_are_apart")
    def test_runs_go_on_side_by_side_and_within_each_other(self) -> None:
        engine = self._engine()
        together = threading.Barrier(3)

        class Meets(FakeTool):
            def answer(self, args: Mapping[str, Any]) -> Any:
                together.wait(_SOON_SECONDS)
                return suite._run(_ECHO, dict(args), engine=engine)

        suite, found = self, dict[int, Any]()

        def run(job: int) -> None:
            found[job] = self._run(_CALLS, {"job": job}, tools={"ats.candidates": Meets()}, engine=engine)

        tasks = [self.host.ports.spawn(run, job) for job in range(3)]
        assert all(task.join(_SOON_SECONDS) for task in tasks)
        assert found == {job: {"job": job} for job in range(3)}

    # -------------------------------------------------------------------------------------------- limits

    @rule("engine.time_is_bounded")
    def test_what_does_not_end_is_ended_and_the_next_run_is_unharmed(self) -> None:
        engine = self._engine()
        for source in _LOOPS:
            started = time.monotonic()
            self._fails(source, "timeout", limits=_HASTY, engine=engine)
            assert time.monotonic() - started < _SOON_SECONDS
            assert self._run(_ECHO, "well", engine=engine) == "well"

    @rule("engine.tools_have_their_own_time")
    def test_the_time_of_a_tool_is_not_the_codes(self) -> None:
        waits = self.host.ports.wait.event()

        class Slow(FakeTool):
            def answer(self, args: Mapping[str, Any]) -> Any:
                waits.wait(2 * _HASTY.timeout_seconds)
                return super().answer(args)

        engine = self._engine()
        self._run(_ECHO, engine=engine)  # what the first run alone must do
        tools = {"ats.candidates": Slow("late")}
        limits = LIMITS._replace(timeout_seconds=_HASTY.timeout_seconds)
        assert self._run(_CALLS, {"job": 1}, tools=tools, limits=limits, engine=engine) == "late"

    @rule("engine.memory_is_bounded")
    def test_what_hoards_is_ended_and_the_next_run_is_unharmed(self) -> None:
        engine = self._engine()
        for source in _HOARDERS:
            error = self._outcome(source, limits=LIMITS._replace(timeout_seconds=0.7), engine=engine)
            assert isinstance(error, EngineError) and error.kind in {"memory", "timeout"}, source
            assert source is not _HOARDERS[1] or error.kind == "memory"
            assert self._run(_ECHO, "well", engine=engine) == "well"

    @rule("engine.cancel_ends_it")
    def test_a_cancelled_run_makes_no_call(self) -> None:
        token, tool = FakeToken(), FakeTool()
        token.cancel("stop")
        tools = {"ats.candidates": tool}
        assert raised_by(lambda: self._run(_CALLS, {"job": 1}, tools=tools, cancel=token)) is Cancelled
        assert tool.runs == []

    @rule("engine.cancel_ends_it")
    def test_a_cancel_ends_what_runs(self) -> None:
        token, engine = FakeToken(), self._engine()

        def later() -> None:
            self.host.ports.wait.event().wait(0.1)
            token.cancel("stop")

        class Cancels(FakeTool):
            def answer(self, args: Mapping[str, Any]) -> Any:
                suite.host.ports.spawn(later)
                return None

        suite = self
        source = _main("await tools.soon()", "while True:", "    pass")
        limits = LIMITS._replace(timeout_seconds=3.0)
        started = time.monotonic()
        call = partial(self._run, source, tools={"soon": Cancels()}, limits=limits, cancel=token, engine=engine)
        assert raised_by(call) is Cancelled
        assert time.monotonic() - started < _SOON_SECONDS
        assert self._run(_ECHO, "well", engine=engine) == "well"

    @rule("engine.leaves_nothing")
    def test_a_closed_engine_leaves_no_process_and_no_thread(self) -> None:
        before = children(), {thread.name for thread in threading.enumerate()}
        engine = self._engine()
        self._run(_ECHO, engine=engine)
        self._fails(_LOOPS[0], "timeout", limits=_HASTY, engine=engine)
        suspending = {"ats.candidates": FakeTool(Suspend("approval", "appr_1"))}
        assert _raised(lambda: self._run(_CALLS, {"job": 1}, tools=suspending, engine=engine)) is not None
        engine.close()
        engine.close()
        assert children() <= before[0]
        assert {thread.name for thread in threading.enumerate()} <= before[1]
        assert raised_by(lambda: self._run(_ECHO, engine=engine)) is not None

    # ------------------------------------------------------------------------------------------- helpers

    def _engine(self) -> Engine:
        engine = self.subject()
        self._opened.append(engine)
        return engine

    def _outcome(
        self,
        source: str,
        given: Any = None,
        *,
        tools: Mapping[str, BoundTool] | None = None,
        limits: EngineLimits = LIMITS,
        seed: int = 7,
        cancel: FakeToken | None = None,
        engine: Engine | None = None,
    ) -> Any:
        chosen, token = engine or self._engine(), cancel or FakeToken()
        return chosen.run(source, given, tools=tools or {}, limits=limits, seed=seed, epoch_ms=EPOCH_MS, cancel=token)

    def _run(self, source: str, given: Any = None, **more: Any) -> Any:
        found = self._outcome(source, given, **more)
        assert not isinstance(found, EngineError), f"{source}\n{found}"
        return found

    def _fails(self, source: str, kind: str, given: Any = None, **more: Any) -> EngineError:
        error = self._outcome(source, given, **more)
        assert isinstance(error, EngineError), f"{source}\n{error!r}"
        assert error.kind == kind, f"{source}\n{error}"
        return error


def _raised(call: Callable[[], object]) -> BaseException | None:
    """What a call raises, ``Suspend`` too."""
    try:
        call()
    except BaseException as problem:
        return problem
    return None
