"""Plugins that raise what no plugin should or give what is no answer: each is named, and its session ends.

Each is a distribution of its own with one broken function; everything else of it works.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_core.shell.perform_attempt import attempt
from harness_core.shell.ports.strand import Abandoned
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import Suspend
from harness_hookspecs.hooks import HOOK_OF_KIND
from tests.reference import calls, one_stage, says

HEAD = """
from harness_hookspecs.errors import HarnessError, Suspend
from harness_hookspecs.messages import *
from harness_hookspecs.tool import Settled, ToolResult, ToolSpec
from harness_hookspecs.validator import Finding, Verdict


class Own(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("says nothing")


class Hollow(HarnessError):
    def __init__(self):
        pass


"""

OFFER = """
from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer


def build(settings, host):
    from .parts import Acme

    return Acme()


@implements(hooks.{hook})
def {hook}():
    return [Offer(kind="{kind}", name="acme", build=build{roles})]
"""

RAISED = {
    "SystemExit": "raise SystemExit(0)",
    "GeneratorExit": "raise GeneratorExit",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "Suspend": 'raise Suspend("timer", "t")',
    "Own": "raise Own('boom')",
    "Mute": "raise Mute",
    "Hollow": "raise Hollow",
}

SPECS = """
def specs(self):
    schema = {"type": "object", "additionalProperties": False}
    made = (("pure", "T1", "pure"), ("keyed", "T2", "keyed"), ("unkeyed", "T2", "unkeyed"), ("asked", "T3", "pure"))
    return [
        ToolSpec(name="acme_" + name, description="It.", input_schema=schema, tier=tier, effect=effect)
        for name, tier, effect in made
    ]
"""
WORKS = "def execute(self, name, args, ctx):\n    return ToolResult('done')\n"
TOOL = {"allowed_tools": ["acme"]}


class Kind:
    """A kind of plugin with one broken function: its class, and the project that comes to it."""

    def __init__(self, kind: str, body: str, *, first: Any = None, stage: Any = None, **files: Any) -> None:
        self.kind, self.body = kind, body
        self.files = {"stages": one_stage(**{"allowed_tools": [], **(stage or {})}), **files}
        self.replies = [says("done")] if first is None else [first, says("done")]

    def offer(self) -> str:
        """The distribution's module, which imports late what it offers, as the plugins of the project do."""
        roles = ", roles=('worker.ai-generate',)" if self.kind == "role" else ""
        return OFFER.format(hook=HOOK_OF_KIND[self.kind], kind=self.kind, roles=roles)

    def code(self, does: str) -> str:
        """The module with what is offered: its class, with the broken function's body."""
        return f"{HEAD}class Acme:\n{indent(self.body.replace('BREAK', indent(does, '    ')), '    ')}\n"


class Unimportable(Kind):
    """The same, of a distribution that breaks as it is imported."""

    def __init__(self, used: Kind) -> None:
        self.__dict__ = dict(vars(used))

    def offer(self) -> str:
        return "raise OSError('no')"


def asks(tool: str) -> dict[str, Any]:
    """A reply that asks for one tool of the broken distribution."""
    reply = calls((tool, {}))
    reply["tool_calls"][0]["name"] = f"acme_{tool}"
    return reply


MODEL = {"provider": "acme", "capabilities": ["tool_calling"], "context_size": 32768}
ARTIFACT = "name = 'acme'\nvalidators = ()\n"
PARSE = "def parse(self, output):\n    pass\n"
SCHEMA = "def schema(self):\n    return {'type': 'object'}\n"
STEPS = "def apply(self, state, outcome):\n    pass\ndef next(self, state):\n    pass\n"
COMPLETES = "def complete(self, request, call):\n    pass\ndef close(self):\n    pass"
LISTENER = "def on_event(self, event):\n"
KINDS = {
    "tool": Kind("tool", f"{SPECS}def execute(self, name, args, ctx):\nBREAK", stage=TOOL, first=asks("unkeyed")),
    "preview": Kind("tool", f"{SPECS}{WORKS}def preview(self, name, args):\nBREAK", stage=TOOL, first=asks("asked")),
    "approver": Kind(
        "approver",
        "interactive = False\ndef ask(self, request, cancel):\nBREAK",
        stage={"allowed_tools": ["effects"]},
        first=calls(("network", {})),
        policies={"tiers": {"T3": "prompt"}, "approver": ["acme"]},
    ),
    "validator": Kind("validator", "level = 'semantic'\ndef validate(self, subject, cancel):\nBREAK"),
    "provider": Kind(
        "provider",
        "def complete(self, request, call):\nBREAK\ndef close(self):\n    pass",
        models={"default": "acme", "models": {"acme": MODEL}},
    ),
    "role": Kind("role", "def run(self, task, ctx):\nBREAK", harness={"bind": {"worker.ai-generate": "acme"}}),
    "artifact": Kind("artifact", f"{ARTIFACT}{SCHEMA}def parse(self, output):\nBREAK", stage={"artifact": "acme"}),
    "artifact's schema": Kind("artifact", f"{ARTIFACT}{PARSE}def schema(self):\nBREAK", stage={"artifact": "acme"}),
    "executor": Kind("executor", f"def start(self, input):\nBREAK\n{STEPS}", stage={"executor": "acme"}),
    "observer": Kind("observer", f"{LISTENER}BREAK\ndef close(self):\n    pass"),
    "observer's end": Kind("observer", f"{LISTENER}    pass\ndef close(self):\nBREAK"),
}


class Broken:
    """A project whose plugin breaks, and what its command printed."""

    def __init__(self, session: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.session, self._capsys = session, capsys

    def command(self, *words: str) -> tuple[int, dict[str, Any]]:
        self._capsys.readouterr()
        code = main([*words, "--json"])
        document: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return code, document


def digest_of(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()[:12]


@pytest.fixture
def broken(play: Any, site_folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Installs a plugin whose function does something and opens a project that uses it."""

    def install(kind: Kind, does: str, label: str, *beside: Kind) -> Broken:
        for one in (kind, *beside):
            # A module stays imported, so other code has another name.
            name = f"acme-{one.kind}-{digest_of(label)}"
            roles = {"roles": ["worker.ai-generate"]} if one.kind == "role" else {}
            provides = [{"kind": one.kind, "name": "acme", **roles}]
            made = make_distribution(site_folder, name, provides=provides, code=one.offer())
            (made.package / "parts.py").write_text(one.code(does), encoding="utf-8")
        return Broken(play(*kind.replies, **kind.files), capsys)

    return install


ENDS = {
    "tool": 0, "observer": 0, "observer's end": 0, "preview": 11, "approver": 11, "validator": 14, "artifact": 14,
    "provider": 3, "role": 3, "artifact's schema": 3, "executor": 3,
}  # fmt: skip
"""The exit codes: who only listens stops nothing, who is to allow something allows nothing."""
SAID = {
    "Mute": "Mute: <exception str() failed>",
    "Hollow": "Hollow: <exception str() failed>",
    "SystemExit": "SystemExit: 0",
}
PAIRS = [
    *((kind, raised) for raised in ("SystemExit", "Hollow") for kind in KINDS),
    *((kind, raised) for raised in ("GeneratorExit", "KeyboardInterrupt", "Mute") for kind in ("tool", "role")),
    ("tool", "Suspend"),
    ("validator", "KeyboardInterrupt"),
    ("provider", "Own"),
    ("executor", "Own"),
]


FUNCTIONS = {
    "tool": "execute", "provider": "complete", "role": "run", "validator": "validate", "artifact's schema": "schema",
    "approver": "ask", "observer": "on_event", "provider's beginning": "__init__",
}  # fmt: skip


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("debug", [False, True])
def test_what_a_plugin_raised_is_shown_with_its_line_and_for_debugging_with_the_way_there(
    broken: Any, kind: str, debug: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    unmade = Kind("provider", f"def __init__(self):\nBREAK\n{COMPLETES}", models=KINDS["provider"].files["models"])
    site = broken(KINDS.get(kind, unmade), "import json\njson.loads('{')", f"{kind} raises in what it calls")
    main(["run", "Go.", *(["--debug"] if debug else [])])
    said = capsys.readouterr().err
    assert re.search(rf"raised at /.*/parts\.py:\d+, in {FUNCTIONS[kind]}\n", said), said
    assert ("Traceback (most recent call last)" in said, "decoder.py" in said) == (debug, debug)
    if kind == "provider's beginning":
        return  # no session was begun
    kept = b"".join(event.payload for event in site.session.events())
    assert b"parts.py" not in kept  # another machine, the same log


WRAPPERS = {
    "of Python": "import contextlib\n@contextlib.contextmanager(lambda: (yield))()",
    "of another package": "import acmewrap\n@acmewrap.wrapped",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_line_that_raised_is_the_plugins_own_also_where_its_function_is_wrapped(
    broken: Any, site_folder: Path, wrapper: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (site_folder / "acmewrap").mkdir()
    code = "def wrapped(call):\n    return lambda *args: call(*args)\n"
    (site_folder / "acmewrap" / "__init__.py").write_text(code, encoding="utf-8")
    body = f"{SPECS}{WRAPPERS[wrapper]}\ndef execute(self, name, args, ctx):\nBREAK"
    tool = Kind("tool", body, stage=TOOL, first=asks("unkeyed"))
    broken(tool, "raise ValueError", f"a wrapper {wrapper}").session.run()
    assert re.search(r"raised at /.*/parts\.py:\d+, in execute\n", capsys.readouterr().err)


@pytest.mark.parametrize("debug", [False, True])
def test_what_a_plugin_raised_is_obeyed_by_no_terminal_and_looks_like_no_line_of_the_hosts(
    broken: Any, debug: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    does = "raise ValueError('x\\x1b]0;owned\\x07y\\nharness: all is well')"
    broken(KINDS["tool"], does, "tool raises an escape")
    main(["run", "Go.", *(["--debug"] if debug else [])])
    said = capsys.readouterr().err
    assert ("x\\x1b]0;owned\\x07y" in said, "\x1b" in said, "\x07" in said) == (True, False, False)
    assert not re.search(r"^harness: all is well", said, re.MULTILINE)
    assert ("Traceback (most recent call last)" in said) == debug


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stderr", [closed, lambda: io.TextIOWrapper(io.BytesIO(), "ascii"), lambda: None, object])
def test_whom_nobody_can_be_told_of_nothing_stops_for(
    broken: Any, stderr: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = broken(KINDS["tool"], "raise ValueError('\u00fc')", "tool raises an umlaut").session
    stream = stderr()
    monkeypatch.setattr("sys.stderr", stream)
    assert session.run()["status"] == "completed"
    if isinstance(stream, io.TextIOWrapper):  # one that has not the letter is told nevertheless
        stream.flush()
        assert b"ValueError: \\xfc\n" in stream.buffer.getvalue()


@pytest.mark.parametrize(("kind", "raised"), PAIRS)
def test_whatever_a_plugin_raises_is_one_document_with_its_name_and_an_exit_code(
    broken: Any, kind: str, raised: str
) -> None:
    site = broken(KINDS[kind], RAISED[raised], f"{kind} {raised}")
    code, document = site.command("run", "Go.")
    assert (document["schema"], code) == ("harness.session/1", ENDS[kind])
    assert document["status"] == ("failed" if code else "completed")
    said = f" raised {SAID.get(raised, raised)}"
    if code not in (0, 11):
        assert said in document["failure"]["message"]
        assert ("acme" in document["failure"]["message"]) == (kind != "artifact")  # which a validator asks
    if kind == "tool":
        [failed] = site.session.payloads("harness.tool_call.failed")
        assert failed["error"]["message"].startswith(f"tool acme_unkeyed{said}")
    if raised != "KeyboardInterrupt":  # a replay enters roles in the main thread, where it could be a person's
        assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0


def test_a_ctrl_c_that_came_to_the_main_thread_is_nobodys_error() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(interrupted, what="it")


def test_a_simulation_s_end_and_a_role_s_suspension_pass() -> None:
    def stopped(stop: BaseException) -> None:
        raise stop

    for stop in (Abandoned(), Suspend("timer", "t")):
        with pytest.raises(type(stop)):
            attempt(stopped, stop, what="it", passing=(Suspend,))
    assert attempt(stopped, Suspend("timer", "t"), what="it").error is not None


def test_what_cannot_be_caught_in_the_pure_part_ends_the_loop_with_an_error_and_never_as_if_somebody_had_typed_it(
    broken: Any,
) -> None:
    site = broken(KINDS["executor"], RAISED["KeyboardInterrupt"], "executor ctrl-c")
    code, document = site.command("run", "Go.")
    assert (code, document["schema"], document["code"]) == (70, "harness.error/1", "loop.ended")
    assert document["message"] == "the loop was ended by KeyboardInterrupt"


@pytest.mark.parametrize("raised", ["SystemExit", "Own", "Mute"])
@pytest.mark.parametrize("kind", ["role", "tool"])
def test_a_part_that_cannot_be_built_is_named(broken: Any, kind: str, raised: str) -> None:
    whole = KINDS[kind]
    body = f"def __init__(self):\nBREAK\n{whole.body.replace('BREAK', '    pass')}"
    more = {"harness": whole.files["harness"]} if kind == "role" else {"stage": TOOL}
    built = Kind(kind, body, **more)
    code, document = broken(built, RAISED[raised], f"built {kind} {raised}").command("run", "Go.")
    assert (code, document["schema"], document["code"]) == (3, "harness.error/1", "plugin.bound_broken")
    assert f"{kind} acme of the plugin" in document["message"]


LACKS = {
    "tool": "execute", "provider": "complete", "role": "run", "validator": "validate", "artifact": "parse",
    "executor": "start", "approver": "ask",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "method"), [*LACKS.items(), ("provider", "close")])
def test_a_bound_part_without_a_method_of_its_kind_is_named_before_anything_runs(
    broken: Any, kind: str, method: str
) -> None:
    whole = KINDS[kind]
    hollow = Kind(kind, whole.body.replace(f"def {method}(", "def other("), **whole.files)
    site = broken(hollow, "pass", f"hollow {kind} {method}")
    code, document = site.command("run", "Go.")
    assert (code, document["schema"], document["code"]) == (3, "harness.error/1", "plugin.bound_broken")
    assert document["message"].startswith(f"{kind} acme of the plugin acme-{kind}-")
    assert document["message"].endswith(f" has no method {method}")
    assert not site.session.host.sessions()


@pytest.mark.parametrize("method", ["on_event", "close"])
def test_who_only_watches_and_lacks_a_method_is_left_out_and_named_in_the_log(broken: Any, method: str) -> None:
    hollow = Kind("observer", KINDS["observer"].body.replace(f"def {method}(", "def other("))
    site = broken(hollow, "pass", f"hollow observer {method}")
    code, document = site.command("run", "Go.")
    assert (code, document["status"]) == (0, "completed")
    [failed] = site.session.payloads("plugin.failed")
    assert (failed["offer"], failed["error"]["code"]) == ("acme", "plugin.bound_broken")
    assert failed["error"]["message"].endswith(f" has no method {method}")


# ------------------------------------------------------------------------------------------- what is given is no answer

SCRIPTED = {"provider": "scripted", "capabilities": ["tool_calling"], "context_size": 32768}
SECRET_BESIDE = {
    "default": "scripted",
    "models": {"scripted": {**SCRIPTED, "script": "script.yaml"}, "other": {**SCRIPTED, "script": "env:ACME_KEY"}},
}
NO_RESULTS = {
    "a text": ("'text'", "tool.no_result", "tool acme_{} gave str where a ToolResult belongs"),
    "nothing": ("None", "tool.no_result", "tool acme_{} gave NoneType where a ToolResult belongs"),
    "a pair": ("('text', False)", "tool.no_result", "tool acme_{} gave tuple where a ToolResult belongs"),
    "half a result": ("ToolResult(1, 'no')", "tool.no_result", "tool acme_{} gave ToolResult whose truncated is str"),
    "a surrogate": ("ToolResult('\\ud800')", "codec.surrogate", ""),
    "a number as a key": ("ToolResult({1: 2})", "codec.key", ""),
    "an object": ("ToolResult(object())", "codec.type", ""),
}


@pytest.mark.parametrize("given", NO_RESULTS)
@pytest.mark.parametrize(
    ("caller", "tool"), [("model", "pure"), ("model", "unkeyed"), ("code", "keyed"), ("code", "unkeyed")]
)
def test_a_tool_that_gives_no_result_fails_by_its_name_and_its_session_replays_equal(
    broken: Any, monkeypatch: pytest.MonkeyPatch, given: str, caller: str, tool: str
) -> None:
    monkeypatch.setenv("ACME_KEY", "a secret of many characters")  # so that results are looked through
    value, code, message = NO_RESULTS[given]
    tools = Kind("tool", f"{SPECS}def execute(self, name, args, ctx):\nBREAK", stage=TOOL, first=asks(tool))
    role = Kind("role", f"def run(self, task, ctx):\n    return ctx.tools['acme_{tool}'].execute({{}})")
    tools.files["models"] = SECRET_BESIDE
    beside = [role] if caller == "code" else []
    if beside:
        tools.files["harness"] = {"bind": {"worker.ai-generate": "acme"}}
    site = broken(tools, f"return {value}", f"{given} {tool} {caller}", *beside)
    _, document = site.command("run", "Go.")
    [failed] = site.session.payloads("harness.tool_call.failed")
    assert (failed["toolName"], failed["error"]["code"]) == (f"acme_{tool}", code)
    assert failed["error"]["message"].startswith(message.format(tool))
    assert document["status"] == ("completed" if caller == "model" else "failed")
    if caller == "code":
        assert document["failure"]["code"] == code
    assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0


UNIMPORTABLE = {
    "tool": "tool acme is needed",
    "provider": "provider acme is needed",
    "role": "role acme is needed",
    "executor": "executor acme is needed",
    "artifact": "artifact acme is needed",
    "approver": "approver acme is needed",
    "validator": "validator acme is needed",
    "rules": "rules acme is needed",
}


@pytest.mark.parametrize("kind", UNIMPORTABLE)
def test_what_is_needed_of_a_plugin_that_cannot_be_imported_is_told_with_the_reason(broken: Any, kind: str) -> None:
    used = KINDS.get(kind) or Kind("rules", "", harness={"plugins": {"disable": ["rules-cel"]}})
    site = broken(Unimportable(used), "pass", f"imported {kind}")
    for _ in range(2):  # the second time nothing is tried any more
        code, document = site.command("run", "Go.")
        assert (code, document["code"]) == (3, "plugin.bound_broken")
        assert document["message"].startswith(f"{UNIMPORTABLE[kind]}, but the plugin acme-{used.kind}")
        assert "is broken: its import raises OSError: no" in document["message"]
    if kind in {"tool", "executor", "artifact", "approver", "validator", "rules"}:
        code, document = site.command("config", "check")
        assert code == 3
        assert UNIMPORTABLE[kind] in document["message"]


def test_a_tool_set_that_is_switched_off_is_told_to_be(broken: Any) -> None:
    site = broken(KINDS["tool"], "pass", "switched off")
    code, document = site.command("--no-plugin", f"acme-tool-{digest_of('switched off')}", "run", "Go.")
    assert (code, document["code"]) == (3, "plugin.bound_broken")
    assert document["message"].startswith("tool acme is needed, but the plugin acme-tool-")
    assert document["message"].endswith("is disabled: disabled by --no-plugin")
    assert "stages.yaml" in document["where"]


NO_TOOLS = {
    "['text']": "str where a ToolSpec belongs",
    "[None]": "NoneType where a ToolSpec belongs",
    "[ToolSpec(**{**GOOD, 'name': 5})]": "a tool whose name is int",
    "[ToolSpec(**{**GOOD, 'input_schema': 5})]": "a tool whose input_schema is int",
    "[ToolSpec(**GOOD, requires=5)]": "a tool whose requires is int",
    "[ToolSpec(**GOOD, timeout_seconds='1')]": "a tool whose timeout_seconds is str",
    "[ToolSpec(**{**GOOD, 'name': 'acme-x'})]": "a tool called 'acme-x'; names are [a-z0-9_]{1,64}",
    "[ToolSpec(**{**GOOD, 'tier': 'T9'})]": "the tool acme_x with the tier 'T9'; tiers: T0, T1, T2, T3, T4",
    "[ToolSpec(**{**GOOD, 'tier': None})]": "the tool acme_x with the tier None; tiers: T0, T1, T2, T3, T4",
    "[ToolSpec(**{**GOOD, 'name': 'run_workflow'})]": "a tool called run_workflow, which only the host gives",
}


@pytest.mark.parametrize("given", NO_TOOLS)
def test_a_set_that_gives_what_is_no_tool_is_named(broken: Any, given: str) -> None:
    good = "GOOD = {'name': 'acme_x', 'description': 'It.', 'input_schema': {}, 'tier': 'T1'}"
    site = broken(Kind("tool", f"def specs(self):\nBREAK\n{WORKS}", stage=TOOL), f"{good}\nreturn {given}", given)
    code, document = site.command("run", "Go.")
    codes = {"tier": "tool.no_tier", "only the host": "tool.reserved"}
    told = next((code for said, code in codes.items() if said in NO_TOOLS[given]), "plugin.bound_broken")
    assert (code, document["code"]) == (3, told)
    assert document["message"].startswith(f"tool set acme gives {NO_TOOLS[given]}")
    assert document["hint"] == f"mend the plugin, or: harness plugins disable acme-tool-{digest_of(given)}"


BROKEN_SCHEMAS = {
    "{'properties': {'a': {'type': 'nope'}}}": "plugin.schema_invalid",
    "{'properties': {'a': {'$ref': 'https://example.org/s.json'}}}": "plugin.schema_unresolvable",
    "{'anyOf': [{'$ref': '#'}, {'type': 'object'}]}": "plugin.schema_too_complex",
}


@pytest.mark.parametrize("schema", BROKEN_SCHEMAS)
def test_a_call_of_a_tool_whose_schema_is_broken_fails_and_nothing_runs(broken: Any, schema: str) -> None:
    spec = f"ToolSpec(name='acme_x', description='It.', input_schema={schema}, tier='T1')"
    body = f"def specs(self):\n    return [{spec}]\ndef execute(self, name, args, ctx):\nBREAK\n"
    tool = Kind("tool", body, stage=TOOL, first={"tool_calls": [{"name": "acme_x", "args": {"a": 1}}]})
    site = broken(tool, "raise AssertionError", schema)
    code, document = site.command("run", "Go.")
    assert (code, document["status"]) == (0, "completed")
    [failed] = site.session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == BROKEN_SCHEMAS[schema]
    assert site.session.payloads("harness.tool_call.started") == []


def test_a_whole_number_beyond_what_integers_keep_comes_from_a_role_to_whatever_judges_it(broken: Any) -> None:
    """In canonical form it looks like an integer that would not be exact, which the host refuses everywhere."""
    gives = "return {'kind': 'execute_step', 'output': {'text': 'x', 'much': 1e16}, 'artifactRefs': []}"
    site = broken(KINDS["role"], gives, "much")
    code, _ = site.command("run", "Go.")
    assert code == 14
    [failed] = site.session.payloads("validation.failed")
    assert [one["path"] for one in failed["findings"]] == ["/much"]  # the artifact has no such field


NO_FACTS = {
    "raise OSError('x')": ("plugin.raised", "provider acme raised OSError: x"),
    "raise SystemExit(0)": ("plugin.raised", "provider acme raised SystemExit: 0"),
    "return None": ("provider.no_answer", "the provider acme gave NoneType where ModelFacts belong"),
}


@pytest.mark.parametrize("does", NO_FACTS)
def test_a_provider_that_breaks_when_it_is_probed_is_named_and_closed(
    broken: Any, tmp_path: Path, does: str
) -> None:
    closes = f"def close(self):\n    open({str(tmp_path / 'closed')!r}, 'w').close()"
    body = f"def complete(self, request, call):\n    pass\n{closes}\ndef probe(self):\nBREAK"
    site = broken(Kind("provider", body, models=KINDS["provider"].files["models"]), does, f"probe {does}")
    _, document = site.command("models", "probe", "acme")
    assert (document["schema"], document["code"], document["message"]) == ("harness.error/1", *NO_FACTS[does])
    assert (tmp_path / "closed").exists()


PROMPT_FACTS = ("raise OSError('x')", "return 5", "return None", "return {'addendum_hash': 5}")


@pytest.mark.parametrize("does", [*PROMPT_FACTS, "return {'prompt_template_version': '\\ud800'}"])
def test_a_role_that_describes_its_prompt_by_nothing_to_record_fails_and_its_session_replays_equal(
    broken: Any, does: str
) -> None:
    body = KINDS["role"].body.replace("BREAK", "    raise AssertionError('nobody should have called it')")
    files = {"harness": KINDS["role"].files["harness"]}
    site = broken(Kind("role", f"{body}\ndef prompt_facts(self, role):\nBREAK", **files), does, f"facts {does}")
    code, document = site.command("run", "Go.")
    assert (document["schema"], document["status"]) == ("harness.session/1", "failed")
    assert code in (1, 3)
    [failed] = site.session.payloads("role.failed")
    assert "nobody" not in failed["error"]["message"]
    assert "surrogate" in failed["error"]["message"] or "by role acme (acme-role-" in failed["error"]["message"]
    assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0


NO_PROGRAMS = {
    "raise OSError('x')": ("plugin.raised", "the rule engine raised OSError: x"),
    "return None": ("plugin.raised", "the rule engine raised AttributeError"),
    "return type('Program', (), {'roots': 5})": ("plugin.bound_broken", "gave a program whose roots are int"),
}


@pytest.mark.parametrize("does", NO_PROGRAMS)
def test_a_rule_engine_that_compiles_nothing_is_named(broken: Any, does: str) -> None:
    body = "def compile(self, text, *, roots):\nBREAK\ndef condition(self, program, values):\n    return True"
    engine = Kind("rules", body, harness={"plugins": {"disable": ["rules-cel"]}})
    code, document = broken(engine, does, f"compile {does}").command("run", "Go.")
    assert (code, document["code"]) == (3, NO_PROGRAMS[does][0])
    assert NO_PROGRAMS[does][1] in document["message"]


@pytest.mark.parametrize("shown", ["5", "b'text'", "'\\ud800'", "object()"])
def test_a_preview_that_is_no_text_is_none(broken: Any, shown: str) -> None:
    site = broken(KINDS["preview"], f"return {shown}", f"preview {shown}")
    code, document = site.command("run", "Go.", "--on-ask", "suspend")
    assert (code, document["status"]) == (10, "awaiting_approval")
    [asked] = site.session.payloads("approval.requested")
    assert "preview_ref" not in asked


@pytest.mark.inv("I-16")
@pytest.mark.parametrize(
    "found", ["'happened'", "Settled('perhaps')", "Settled(['happened'])", "Settled('happened', object())", "5"]
)
def test_a_probe_that_says_no_word_that_there_is_leaves_the_effect_in_doubt(
    broken: Any, monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    kind = Kind("tool", f"{SPECS}{WORKS}def probe(self, name, args, key):\nBREAK", stage=TOOL, first=asks("unkeyed"))
    site = broken(kind, f"return {found}", f"probe {found}")
    monkeypatch.setenv("HARNESS_FAILPOINT", "effect.done@2:raise")
    assert site.command("run", "Go.")[1]["code"] == "failpoint.raised"
    monkeypatch.delenv("HARNESS_FAILPOINT")
    code, document = site.command("resume", "@last")
    assert (code, [one["kind"] for one in document["waiting"]]) == (10, ["in_doubt"])
    site.session.host.settle(document["waiting"][0]["id"], "happened")
    assert site.command("resume", "@last")[1]["status"] == "completed"
    assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0


NO_ANSWERS = {
    "approver": ("5", "'approve'", "answer('perhaps')", "answer('approve', by=5)", "answer('approve', by='\\ud800')"),
    "provider": ("None", "'text'", "said('\\ud800')", "said(5)"),
    "role": ("ExecuteStepResult.model_construct(output=5)", "step('\\ud800')", "step(object())"),
    "artifact": ("None", "'text'", "ParsedArtifact({}, 'perhaps')"),
    "artifact's schema": ("5", "{1: 2}", "{'type': object()}"),
}
MAKES = """
    from harness_hookspecs.approver import ApprovalAnswer
    from harness_hookspecs.artifact import ParsedArtifact
    from harness_hookspecs.role import ExecuteStepResult
    answer = lambda decision, by='rule': ApprovalAnswer(decision, request.digest, by, 'policy')
    part = lambda text: TextPart.model_construct(type='text', text=text)
    said = lambda text: OracleResponse.model_construct(content=(part(text),), finish_reason='stop', usage=Usage())
    step = lambda text: ExecuteStepResult.model_construct(output={'text': text}, artifact_refs=())
"""


@pytest.mark.parametrize(("kind", "given"), [(kind, given) for kind, many in NO_ANSWERS.items() for given in many])
def test_what_is_no_answer_is_an_error_of_who_gave_it_and_its_session_replays_equal(
    broken: Any, kind: str, given: str
) -> None:
    makes = "\n".join(line.removeprefix("    ") for line in MAKES.splitlines())
    site = broken(KINDS[kind], f"{makes}\nreturn {given}", f"{kind} {given}")
    code, document = site.command("run", "Go.")
    assert (document["schema"], document["status"]) == ("harness.session/1", "failed")
    if kind == "provider":
        assert code == 13
        [failed] = site.session.payloads("harness.model.failed")
        assert failed["error"]["code"] == document["failure"]["code"] == "provider.no_answer"
    assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0


@pytest.mark.parametrize("counted", ["'many'", "-1", "None"])
def test_a_count_of_tokens_that_is_none_is_estimated_in_its_place(broken: Any, counted: str) -> None:
    provider = KINDS["provider"]
    text = "content=(TextPart(text='{\"text\": \"x\"}'),)"
    body = provider.body.replace(
        "BREAK", f"    return OracleResponse({text}, finish_reason='stop', usage=Usage.unknown())"
    )
    body = f"{body}\ndef count_tokens(self, messages, tools):\nBREAK"
    counting = Kind("provider", body, models=provider.files["models"])
    assert broken(counting, f"return {counted}", f"counted {counted}").command("run", "Go.")[0] == 0


# ------------------------------------------------------------------------------------- what is handed out is a copy

GIVEN = {"note": "a", "deep": {"list": [1]}}
OPEN_SPECS = SPECS.replace('"additionalProperties": False', '"additionalProperties": True')
SPOILS = "args['note'] = 'changed'\nargs['deep']['list'].append(object())\n"


def given(tool: str) -> dict[str, Any]:
    reply = asks(tool)
    reply["tool_calls"][0]["args"] = GIVEN
    return reply


@pytest.mark.inv("I-23")
@pytest.mark.parametrize("who", ["the tool", "its preview", "the approver"])
def test_what_a_plugin_does_to_the_arguments_it_is_shown_changes_no_call(broken: Any, tmp_path: Path, who: str) -> None:
    note = f"with open({str(tmp_path / 'ran')!r}, 'a') as file:\n    file.write(repr(args))\n"
    runs = f"def execute(self, name, args, ctx):\n{indent(note, '    ')}BREAK\n    return ToolResult('done')\n"
    shows = "def preview(self, name, args):\nBREAK\n    return 'shown'\n"
    body = f"{OPEN_SPECS}{runs.replace('BREAK', indent(SPOILS, '    ')) if who == 'the tool' else runs}"
    body += shows.replace("BREAK", indent(SPOILS, "    ")) if who == "its preview" else ""
    answer = "from harness_hookspecs.approver import ApprovalAnswer\nargs = request.args\n"
    answer += SPOILS if who == "the approver" else ""
    answer += "return ApprovalAnswer('approve', request.digest, 'robot', 'policy')"
    policies = {"tiers": {"T3": "prompt"}, "approver": ["acme"]}
    tool = Kind("tool", body.replace("BREAK", "    pass"), stage=TOOL, first=given("asked"), policies=policies)
    approver = Kind("approver", f"interactive = False\ndef ask(self, request, cancel):\n{indent(answer, '    ')}")
    site = broken(tool, "pass", f"spoils {who}", approver)
    code, document = site.command("run", "Go.")
    assert (code, document["status"]) == (0, "completed")
    assert (tmp_path / "ran").read_text() == repr(GIVEN)
    for kind in ("approval.requested", "harness.tool_call.started", "harness.tool_call.succeeded"):
        assert [one["args"] for one in site.session.payloads(kind)] == [GIVEN], kind
    assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0


def test_what_a_role_does_to_a_result_changes_nothing_that_is_recorded(broken: Any) -> None:
    gives = "def execute(self, name, args, ctx):\n    return ToolResult({'a': [1]})\n"
    uses = """\
from harness_hookspecs.role import ExecuteStepResult
got = ctx.tools['acme_pure'].execute({})
facts = {'seen': [dict(got)]}
ctx.durability.note('seen', **facts)
got['a'].append(2)
facts['seen'].append(3)
return ExecuteStepResult(output={'text': str(got)}, artifact_refs=())"""
    tool = Kind("tool", f"{SPECS}{gives}", stage=TOOL, harness={"bind": {"worker.ai-generate": "acme"}})
    role = f"def run(self, task, ctx):\n{indent(uses, '    ')}"
    site = broken(tool, "pass", "changes a result", Kind("role", role))
    code, document = site.command("run", "Go.")
    assert (code, document["status"]) == (0, "completed")
    assert [one["result"] for one in site.session.payloads("harness.tool_call.succeeded")] == [{"a": [1]}]
    assert [one["facts"] for one in site.session.payloads("role.note")] == [{"seen": [{"a": [1]}]}]
    assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0


def test_what_a_provider_does_to_a_schema_lets_no_argument_through(broken: Any) -> None:
    asked = "ToolCallRequest(call_id='a', tool_name='effects_unkeyed', args={'bogus': 1})"
    does = f"""\
for tool in request.tools:
    tool.input_schema.clear()
part = TextPart(text='{{"text": "done"}}')
if request.routing.turn == 1:
    part = ToolCallPart(call_id='a', tool_name='effects_unkeyed', args={{'bogus': 1}})
tools = ({asked},) if request.routing.turn == 1 else ()
reason = 'tool_calls' if tools else 'stop'
return OracleResponse(content=(part,), tool_calls=tools, finish_reason=reason, usage=Usage.unknown())"""
    provider = KINDS["provider"]
    kind = Kind("provider", provider.body, stage={"allowed_tools": ["effects"]}, models=provider.files["models"])
    site = broken(kind, does, "clears a schema")
    assert site.command("run", "Go.")[0] == 0
    [failed] = site.session.payloads("harness.tool_call.failed")
    assert failed["error"]["code"] == "tool.invalid_args"
    assert site.session.effects() == []


FORGES = "raise HarnessError('me', code='approval.denied_unattended')"
FINDS = "Finding(code='approval.denied_unattended', severity='error', message='me')"
FORGED = {
    "tool": (FORGES, 0),
    "role": (FORGES, 3),
    "executor": (FORGES, 3),
    "provider": (FORGES, 3),
    "artifact": (FORGES, 14),
    "validator": (f"return Verdict(passed=False, findings=({FINDS},))", 14),
}


@pytest.mark.parametrize("kind", FORGED)
def test_no_plugin_can_say_in_the_host_s_name_that_a_call_was_denied_because_nobody_could_be_asked(
    broken: Any, kind: str
) -> None:
    does, ends = FORGED[kind]
    site = broken(KINDS[kind], does, f"forges {kind}")
    code, document = site.command("run", "Go.")
    assert (code, (document["failure"] or {}).get("code") == "approval.denied_unattended") == (ends, False)
    assert "approval.denied" not in site.session.types()
    assert site.command("replay", "@last", "--mode", "skip-inference")[0] == 0
