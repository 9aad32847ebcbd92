from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_engine_monty import harness_provide_engines
from harness_engine_monty.settings import MontySettings
from harness_hookspecs.contracts.engine import EPOCH_MS, EngineContract
from harness_hookspecs.contracts.engine_world import children
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.role_context import FakeTool
from harness_hookspecs.contracts.waiting import FakeToken
from harness_hookspecs.engine import Engine, EngineError, EngineLimits
from harness_hookspecs.errors import Cancelled, PluginError
from harness_hookspecs.kit import codec

LIMITS = EngineLimits(timeout_seconds=10.0, memory_bytes=67_108_864, output_bytes=65_536)


def build(host: Any, **settings: Any) -> Engine:
    [offer] = harness_provide_engines()
    assert (offer.kind, offer.name) == ("engine", "monty")
    engine: Engine = offer.build(MontySettings(**settings), host)
    return engine


class TestMontyEngine(EngineContract):
    def subject(self) -> Engine:
        return build(self.host)


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    built = build(FakeHost(tmp_path), max_calls=50)
    yield built
    built.close()


def run(engine: Engine, *lines: str, given: Any = None, before: str = "", **more: Any) -> Any:
    source = before + "\n    ".join(["async def main(input, tools):", *lines]) + "\n"
    usual: dict[str, Any] = {"tools": {}, "limits": LIMITS, "seed": 1, "epoch_ms": EPOCH_MS, "cancel": FakeToken()}
    return engine.run(source, given, **{**usual, **more})


def kind_of(found: Any) -> str | None:
    return found.kind if isinstance(found, EngineError) else None


# ------------------------------------------------------------------------------- what is told of the code


def test_a_traceback_has_the_lines_of_the_code_and_no_other(engine: Engine) -> None:
    found = run(engine, "return broken(input)", before="def broken(x):\n    return x / 0\n\n\n", given=1)
    assert found == EngineError(
        "runtime",
        "ZeroDivisionError: division by zero",
        'Traceback (most recent call last):\n  File "main.py", line 6, in main\n    return broken(input)\n'
        '  File "main.py", line 2, in broken\n    return x / 0\nZeroDivisionError: division by zero',
    )


@pytest.mark.parametrize("source", ["if True:", "@x", 'x = """a', "x = 1 \\", "(", "x = [1,\n", "main = 3", "async"])
def test_a_source_that_ends_too_soon_is_a_syntax_error_without_a_line_that_is_not_its_own(
    engine: Engine, source: str
) -> None:
    found = engine.run(source, None, tools={}, limits=LIMITS, seed=1, epoch_ms=0, cancel=FakeToken())
    assert kind_of(found) == "syntax"
    assert "__harness" not in str(found)


@pytest.mark.parametrize("lines", [("class A(Exception):", "    pass"), ("def g():", "    yield 1")])
def test_what_the_interpreter_cannot_read_yet_is_a_syntax_error(engine: Engine, lines: tuple[str, ...]) -> None:
    found = run(engine, *lines, "return 1")
    assert kind_of(found) == "syntax"
    assert "does not yet support" in found.message


def test_equal_runs_have_equal_addresses_and_equal_errors(engine: Engine, tmp_path: Path) -> None:
    lines = ("return [id(input), repr(main), hash(main), repr(tools)]",)
    first = run(engine, *lines, given={})
    loop = [run(engine, "while True: pass", limits=LIMITS._replace(timeout_seconds=0.1)) for _ in range(2)]
    assert loop[0] == loop[1]
    other = build(FakeHost(tmp_path))
    assert run(engine, *lines, given={}) == first == run(other, *lines, given={})
    other.close()


# ------------------------------------------------------------------------------------------ hostile code

NESTED = ("x = []", "for _ in range(300000): x = [x]")
HOSTILE: dict[str, tuple[str, ...]] = {
    "brackets": ("return " + "(" * 100_000 + "1" + ")" * 100_000,),
    "lists": ("return " + "[" * 5_000 + "]" * 5_000,),
    "a long sum": ("return 1" + " + 1" * 50_000,),
    "a longer sum": ("return 1" + "+1" * 500_000,),
    "not": ("return " + "not " * 50_000 + "1",),
    "attributes": ("return input" + ".a" * 100_000,),
    "comparisons": ("return 1" + "<1" * 100_000,),
    "a huge literal": ("return " + "9" * 1_000_000,),
    "a huge power": ("return 2 ** (2 ** 40)",),
    "a huge shift": ("return 1 << (1 << 40)",),
    "a long text": ("return 'a' * 10 ** 10",),
    "a wide format": ("return f'{1:>1000000000}'",),
    "replacing": ("x = 'a' * 40000000", "return x.replace('a', 'aaaa')"),
    "a range": ("return list(range(10 ** 12))",),
    "a sum": ("return sum(range(10 ** 12))",),
    "an endless print": ("while True: print('x' * 1000)",),
    "a long print": ("print(*['a'] * 1000000, sep='b' * 100000)",),
    "recursion": ("def f(**k): return f(**k)", "return f(a=1)"),
    "recursion by exec": ("s = 'exec(s)'", "exec(s, {'s': s})"),
    "nested output": (*NESTED, "return x"),
    "nested text": (*NESTED, "return str(x)"),
    "nested comparison": (*NESTED, "y = x", "return x == [y]"),
    "laughs": ("x = []", "for _ in range(60): x = [x, x]", "return x"),
    "itself": ("x = []", "x.append(x)", "return x"),
    "a forged call": ("return __harness_call(1, 2, 3)",),
    "a forged tool": ("return __harness_call('nothing', '{}')",),
    "forged arguments": ("return __harness_call('look', '[1]')",),
    "a nested call": (*NESTED, "return __harness_call('look', x)"),
    "a laughing call": ("x = []", "for _ in range(60): x = [x, x]", "return __harness_call('look', x)"),
    "another output": ("global __harness_dumps", "__harness_dumps = lambda x: 10 ** 5000", "return 1"),
    "a nested other": ("global __harness_dumps", *NESTED, "__harness_dumps = lambda _: x", "return 1"),
    "no JSON": ("global __harness_dumps", "__harness_dumps = lambda x: '{\"a\":1,\"a\":2}'", "return 1"),
    "imports": ("return __import__('os').system('id')",),
    "subclasses": ("return ().__class__.__base__.__subclasses__()",),
    "frames": ("try:", "    1 / 0", "except Exception as e:", "    return e.__traceback__.tb_frame"),
    "functions": ("return main.__globals__",),
    "code": ("return main.__code__",),
    "builtins": ("return __builtins__",),
    "names": ("for _ in range(10 ** 9):", "    try: nothing", "    except NameError: pass"),
    "calls": ("while True: await tools.look()",),
    "caught calls": ("while True:", "    try: await tools.look()", "    except BaseException: pass"),
    "gathering": ("import asyncio", "async def f(): return await asyncio.gather(f(), f())", "return await f()"),
    "tasks": ("import asyncio", "async def f(): pass", "return await asyncio.gather(*[f() for _ in range(10 ** 6)])"),
    "a pattern": ("import re", "return bool(re.match('(a|aa)+$', 'a' * 60 + 'b'))"),
    "json": ("import json", "return json.loads('[' * 1000000)"),
    "a caught end": ("while True:", "    try:", "        while True: pass", "    except BaseException: pass"),
    "caught memory": ("x = []", "while True:", "    try: x.append('a' * 1000000)", "    except BaseException: pass"),
    "a long message": ("raise ValueError('x' * 20000000)",),
    "a nul": ("return '\\x00' + \x00",),
    "many lines": ("\n    ".join(f"x{n} = {n}" for n in range(50_000)), "return 1"),
    "many blocks": ("\n".join("    " * n + "if 1:" for n in range(1, 400)), "return 1"),
}


@pytest.mark.inv("I-36")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_ends_soon_and_harms_nobody(engine: Engine, name: str) -> None:
    limits = LIMITS._replace(timeout_seconds=0.3)
    found = run(engine, *HOSTILE[name], limits=limits, tools={"look": FakeTool("seen")})
    assert isinstance(found, EngineError) or codec.loads(codec.dumps(found)) == found
    assert run(engine, "return input", given="well") == "well"


# --------------------------------------------------------------------------------------------- processes


def killing(number: int) -> FakeTool:
    class Kills(FakeTool):
        def answer(self, args: Mapping[str, Any]) -> Any:
            for pid in children():
                os.kill(pid, number)
            return super().answer(args)

    return Kills()


def test_a_worker_that_is_killed_is_a_crash_and_the_next_run_has_another(engine: Engine) -> None:
    run(engine, "return 1")
    found = run(engine, "await tools.die()", "while True: pass", tools={"die": killing(signal.SIGKILL)})
    assert kind_of(found) == "crash"
    assert run(engine, "return 1") == 1


def test_a_worker_that_is_killed_while_nobody_uses_it_is_missed_by_nobody(engine: Engine) -> None:
    run(engine, "return 1")
    killing(signal.SIGKILL).answer({})
    assert run(engine, "return 1") == 1


def test_an_interrupt_that_reaches_the_worker_first_is_a_cancel_and_no_crash(engine: Engine, tmp_path: Path) -> None:
    host, token = FakeHost(tmp_path), FakeToken()

    def later() -> None:
        host.ports.wait.event().wait(0.1)
        token.cancel("SIGINT")

    class Interrupts(FakeTool):
        def answer(self, args: Mapping[str, Any]) -> Any:
            host.ports.spawn(later)
            return killing(signal.SIGINT).answer(args)

    with pytest.raises(Cancelled):
        run(engine, "await tools.look()", "while True: pass", tools={"look": Interrupts()}, cancel=token)


def test_closing_ends_what_runs(tmp_path: Path) -> None:
    engine = build(FakeHost(tmp_path))

    class Closes(FakeTool):
        def answer(self, args: Mapping[str, Any]) -> Any:
            engine.close()
            return None

    with pytest.raises(PluginError) as caught:
        run(engine, "await tools.close()", "while True: pass", tools={"close": Closes()})
    assert caught.value.code == "engine.closed"


def test_a_host_that_is_killed_leaves_no_worker(tmp_path: Path) -> None:
    program = (
        "import os, sys, pathlib\n"
        "sys.path[:0] = [sys.argv[1]]\n"
        "from test_engine import build, run, children, FakeHost\n"
        "engine = build(FakeHost(pathlib.Path(sys.argv[2])))\n"
        "run(engine, 'return 1')\n"
        "print(*children(), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent), str(tmp_path)], capture_output=True, check=False
    )
    [worker] = map(int, ended.stdout.split())
    wait = FakeHost(tmp_path).ports.wait.event()
    assert any(wait.wait(0.05) or not alive(worker) for _ in range(200))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_sees_no_variable_of_the_host(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_SECRET", "e3b0c442")
    others = set(children())
    run(engine, "return 1")
    [worker] = set(children()) - others
    assert b"e3b0c442" not in Path(f"/proc/{worker}/environ").read_bytes()


def test_when_every_worker_is_busy_a_run_waits_and_heeds_a_cancel(tmp_path: Path) -> None:
    engine, token = build(FakeHost(tmp_path), max_processes=1), FakeToken()

    class Nests(FakeTool):
        def answer(self, args: Mapping[str, Any]) -> Any:
            FakeHost(tmp_path).ports.spawn(lambda: token.cancel("enough"))
            return run(engine, "return 1", cancel=token)

    with pytest.raises(Cancelled):
        run(engine, "return await tools.look()", tools={"look": Nests()})
    engine.close()


def test_a_process_is_begun_anew_after_its_runs(tmp_path: Path) -> None:
    engine = build(FakeHost(tmp_path), runs_per_process=1)
    seen: list[set[int]] = []
    for _ in range(2):
        run(engine, "return await tools.look()", tools={"look": pids(seen.append)})
    assert seen[0] != seen[1]
    engine.close()


def pids(tell: Callable[[set[int]], object]) -> FakeTool:
    class Looks(FakeTool):
        def answer(self, args: Mapping[str, Any]) -> Any:
            tell(children())
            return None

    return Looks()


@pytest.mark.parametrize("binary", ["/nonexistent/monty", "/bin/true"])
def test_a_worker_that_cannot_be_begun_is_an_error_of_the_plugin(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, binary: str
) -> None:
    monkeypatch.setenv("MONTY_BIN", binary)
    with pytest.raises(PluginError) as caught:
        run(engine, "return 1")
    assert caught.value.code == "engine.not_available"
    assert "pydantic-monty" in str(caught.value.hint)


def test_the_library_is_imported_when_code_is_run() -> None:
    code = (
        "import sys, pathlib, tempfile; from harness_engine_monty import harness_provide_engines as offers;"
        "from harness_hookspecs.contracts.host import FakeHost;"
        "assert 'harness_engine_monty.engine' not in sys.modules;"
        "engine = offers()[0].build(offers()[0].settings()(), FakeHost(pathlib.Path(tempfile.mkdtemp())));"
        "engine.close(); assert 'pydantic_monty' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
