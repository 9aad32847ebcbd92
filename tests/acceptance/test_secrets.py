"""A secret that the host resolved is in nothing that is kept and nothing that is sent, whoever wrote it there."""

from __future__ import annotations

import os
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.main import main
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import PluginError
from harness_hookspecs.kit.codec import dumps
from tests.acceptance.test_workflows import plan_of, planned
from tests.reference import one_stage, says, write_site

SECRET = "correct-horse-battery"
MARK = b"[secret]"

CODE = """
import os

from pydantic import BaseModel

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import ChatInput, Message, OracleResponse, TextPart, ToolCallRequest, Usage
from harness_hookspecs.offer import Offer
from harness_hookspecs.role import ExecuteStepResult


class Settings(BaseModel):
    key: str


class Vault:
    def __init__(self, settings, host):
        host.secret(settings.key)

    def complete(self, request, call):
        with open(os.environ["VAULT_SEEN"], "a") as seen:
            seen.write(repr(request) + "\\n")
        return OracleResponse(content=(TextPart(text="yes"),), finish_reason="stop", usage=Usage.unknown())

    def close(self):
        pass


class Leaky:
    def run(self, task, ctx):
        words = "use " + os.environ["VAULT_KEY"]
        for turn in range(2):
            ctx.model.complete(ChatInput(messages=(Message(role="user", content=(TextPart(text=words),)),)))
        tool = os.environ.get("VAULT_TOOL", "effects_network")
        args = {"note": words, **({"seconds": 60} if tool == "effects_slow" else {})}
        ctx.call_tools([ToolCallRequest(call_id="c", tool_name=tool, args=args)])
        return ExecuteStepResult(output={"text": "done"}, artifact_refs=())


class Curious:
    def __init__(self, settings, host):
        host.secret("env:VAULT_KEY")

    def specs(self):
        return []


@implements(hooks.harness_provide_tools)
def harness_provide_tools():
    return [Offer(kind="tool", name="curious", build=Curious)]


@implements(hooks.harness_provide_providers)
def harness_provide_providers():
    return [Offer(kind="provider", name="vault", build=Vault, settings=lambda: Settings)]


@implements(hooks.harness_provide_roles)
def harness_provide_roles():
    return [Offer(kind="role", name="leaky", build=lambda settings, host: Leaky(), roles=("worker.ai-generate",))]
"""

PROVIDES: list[dict[str, Any]] = [
    {"kind": "provider", "name": "vault", "config": {"type": "object", "properties": {"key": {"type": "string"}}}},
    {"kind": "role", "name": "leaky", "roles": ["worker.ai-generate"]},
]
CURIOUS = {"kind": "tool", "name": "curious"}
MODELS = {"models": {"one": {"provider": "vault", "key": "env:VAULT_KEY", "capabilities": ["tool_calling"]}}}
UNPROBED = {"tools": {"effects": {"probes": False}}}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distributions of these tests, each in a folder of its own; made once, so the host tries each import once."""
    folder = tmp_path_factory.mktemp("written")
    for name, provides, code in (
        ("vault", [*PROVIDES, CURIOUS], CODE),
        ("leaks", OFFERS, LEAKS),
        ("ends", PROVIDES[:1], ENDS),
    ):
        make_distribution(folder / name, f"acme-{name}", provides=provides, code=code)
    return folder


@pytest.fixture
def vault(play: Any, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session whose provider has a secret and whose role knows it too."""
    monkeypatch.syspath_prepend(str(written / "vault"))
    monkeypatch.setenv("VAULT_KEY", SECRET)
    monkeypatch.setenv("VAULT_SEEN", str(tmp_path / "seen"))
    yield play(says("unused"), models=MODELS, tools=UNPROBED, harness={"bind": {"worker.ai-generate": "leaky"}})
    sys.modules.pop("acme_vault", None)


def kept(session: Any) -> bytes:
    """Every byte of the folders where the log, its content and the inbox lie; what is compressed as it was, too."""
    session.host.close()
    folders = [Path(session.site.env[f"XDG_{name}_HOME"]) for name in ("DATA", "STATE")]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    data = [file.read_bytes() for file in files]
    databases = [file for file, content in zip(files, data, strict=True) if content.startswith(b"SQLite format 3")]
    assert databases
    return b"".join([*data, *(cell for file in databases for cell in unpacked(file))])


def unpacked(file: Path) -> Iterator[bytes]:
    """What lies compressed in the cells of a database."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for row in (row for table in tables for row in database.execute(f'SELECT * FROM "{table}"')):
            for cell in row:
                with suppress(zlib.error, TypeError):
                    yield zlib.decompress(cell)


@pytest.mark.inv("I-29")
def test_what_a_role_writes_itself_reaches_provider_and_log_without_the_secrets(vault: Any, tmp_path: Path) -> None:
    assert vault.run()["status"] == "awaiting_approval"
    seen = (tmp_path / "seen").read_text()
    assert seen.count("use [secret]") == 2
    assert vault.pending()[0]["args"] == {"note": "use [secret]"}  # the person is shown what would be done
    content = kept(vault)
    assert MARK in content
    assert SECRET not in seen and SECRET.encode() not in content


@pytest.mark.inv("I-29")
def test_a_replay_leaves_out_what_the_run_left_out(vault: Any) -> None:
    vault.run()
    vault.reopen()
    vault.answer(vault.pending()[0])
    assert vault.resume()["status"] == "completed"
    vault.reopen()
    assert vault.host.replay("@last", "skip-inference")["equal"]


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("built", [True, False])
def test_what_a_person_says_is_posted_without_the_secrets_also_by_a_host_that_runs_nothing(
    vault: Any, built: bool
) -> None:
    document = vault.run()
    if not built:
        vault.reopen()
    vault.answer(vault.pending()[0], "deny", say=f"not with {SECRET}", by=SECRET)
    vault.host.submit({"session": document["id"], "id": "s1", "kind": "steer", "body": {"text": SECRET, "by": "me"}})
    content = kept(vault)
    assert content.count(MARK) >= 3
    assert SECRET.encode() not in content


@pytest.mark.inv("I-29")
def test_a_value_that_settles_an_effect_is_posted_without_the_secrets(
    vault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_TOOL", "effects_slow")
    vault.host.start("Go.")
    vault.site.wait_for_effects()
    vault.reopen()
    [doubt] = vault.resume()["waiting"]
    stands = vault.host.settle(doubt["id"], "happened", value={"key": SECRET})
    assert stands["value"] == {"key": "[secret]"}
    assert SECRET.encode() not in kept(vault)


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("built", [True, False])
def test_what_is_delivered_from_outside_is_posted_without_the_secrets(vault: Any, play: Any, built: bool) -> None:
    wait = {"id": "w", "uses": "wait", "with": {"event": "paid"}}
    plan = plan_of([wait], {"text": "{{ steps.w.output }}"}, permissions={"models": ["one"], "tools": []})
    session = play(says("unused"), models=MODELS, tools=UNPROBED, stages=planned(plan))
    assert session.run()["failure"] is None
    if not built:
        session.reopen()
    session.host.deliver_event("@last", "paid", f"it is {SECRET}", by=SECRET)
    assert session.resume()["status"] == "completed"
    [artifact] = session.host.artifacts("@last")
    assert b"it is [secret]" in session.host.artifact(artifact["ref"])
    assert SECRET.encode() not in kept(session)


@pytest.mark.inv("I-29")
def test_what_is_posted_from_another_project_is_without_the_secrets_of_the_session(vault: Any, tmp_path: Path) -> None:
    found = vault.run()["id"]
    [item] = vault.pending()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Host.open(elsewhere) as host:
        steer = {"session": found, "id": "s1", "kind": "steer", "body": {"text": SECRET, "by": "me"}}
        host.submit(steer)
        host.answer(item["id"], "approve", digest=item["digest"], say=f"the key is {SECRET}")
    content = kept(vault)
    assert content.count(MARK) >= 3
    assert SECRET.encode() not in content


@pytest.mark.inv("I-29")
def test_a_secret_in_a_file_of_a_project_that_is_not_utf8_is_known_elsewhere_too(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(written / "vault"))
    monkeypatch.setenv("VAULT_SEEN", str(tmp_path / "seen"))
    monkeypatch.setenv("VAULT_KEY", "nothing secret")
    models = {"models": {"one": {**MODELS["models"]["one"], "key": "file:key.txt"}}}
    files: dict[str, Any] = {"models": models, "tools": UNPROBED, "harness": {"bind": {"worker.ai-generate": "leaky"}}}
    site = write_site(tmp_path / os.fsdecode(b"\xff"), stages=one_stage(), replies=[], **files).enter(monkeypatch)
    (site.project / "key.txt").write_text(SECRET, encoding="utf-8")
    with Host.open(site.project) as host:
        found = host.run("Go.", on_ask="suspend")["id"]
    (tmp_path / "elsewhere").mkdir()
    with Host.open(tmp_path / "elsewhere") as host:
        host.submit({"session": found, "id": "s1", "kind": "steer", "body": {"text": f"use {SECRET}", "by": "me"}})
    content = kept(SimpleNamespace(host=host, site=site))
    assert MARK in content
    assert SECRET.encode() not in content
    sys.modules.pop("acme_vault", None)


@pytest.mark.inv("I-29")
def test_what_another_program_posts_comes_into_the_log_without_the_secrets(vault: Any) -> None:
    found = vault.run()["id"]
    steer = {"kind": "steer", "body": {"text": f"use {SECRET}", "by": "me"}}  # whoever posts it knows no secrets
    vault.host.store.post(found, "s1", dumps(steer))
    vault.answer(vault.pending()[0])
    assert vault.resume()["status"] == "completed"
    [received] = vault.payloads("steering.received")
    assert received["text"] == f"use {MARK.decode()}"
    logged = b"".join(event.payload + event.refs for event in vault.events())
    assert MARK in logged
    assert SECRET.encode() not in logged


@pytest.mark.inv("I-29")
def test_only_a_provider_is_given_secrets_because_no_other_process_could_know_them(vault: Any) -> None:
    vault.site.write("stages", one_stage(allowed_tools=["curious"]))
    vault.reopen()
    with pytest.raises(PluginError, match="a plugin of kind tool is given no secrets, and curious asks for env:VAULT"):
        vault.run()


# ----------------------------------------------------------------------------------------------- every way out

LEAKS = """
import os

from pydantic import BaseModel

from harness_hookspecs import hooks
from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.errors import ProviderError, RoleError, ToolError
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import (
    ArtifactRef, ChatInput, Message, OracleResponse, TextPart, ToolCallPart, ToolCallRequest, Usage
)
from harness_hookspecs.offer import Offer
from harness_hookspecs.provider import Chunk
from harness_hookspecs.role import ExecuteStepResult
from harness_hookspecs.tool import Settled, ToolResult, ToolSpec
from harness_hookspecs.validator import Finding, Verdict


def leak(*ways):
    return "the " + os.environ["VAULT_KEY"] if os.environ["LEAK"] in ways else "nothing"


def leaks(way):
    return os.environ["LEAK"] == way


class Settings(BaseModel):
    key: str


class Vault:
    def __init__(self, settings, host):
        host.secret(settings.key)

    def complete(self, request, call):
        for piece in (leak("chunks")[:9], leak("chunks")[9:]):
            call.on_chunk(Chunk("text", piece))
        if leaks("provider's error"):
            raise ProviderError(leak("provider's error"), code="provider.unavailable")
        content = (TextPart(text=leak("answer")),)
        return OracleResponse(content=content, finish_reason="stop", usage=Usage.unknown())

    def close(self):
        pass


class Leaky:
    def run(self, task, ctx):
        words = (Message(role="user", content=(TextPart(text="go"),)),)
        schema = {"type": "object", "description": leak("answer's schema")}
        try:
            ctx.model.complete(ChatInput(messages=words, response_schema=schema))
        except ProviderError:
            return ExecuteStepResult(output={"text": "no model"}, artifact_refs=())
        ctx.durability.note(leak("note"), why=leak("note's facts"))
        if leaks("role's error"):
            raise RoleError(leak("role's error"))
        called = {
            "preview": "ask", "probe": "slow", "tool's result": "give", "tool's error": "give",
        }.get(os.environ["LEAK"])
        if called:
            ctx.call_tools([ToolCallRequest(call_id="c", tool_name="drip_" + called, args={})])
        name = leak("name of an artifact")
        ref = ArtifactRef(ref="artifact://sha256-" + "0" * 64, media_type="text/plain", size_bytes=1, name=name)
        return ExecuteStepResult(output={"text": leak("output")}, artifact_refs=(ref,))


def tool(name, tier, effect):
    schema = {"type": "object", "additionalProperties": False}
    return ToolSpec(name="drip_" + name, description="Drips.", input_schema=schema, tier=tier, effect=effect)


class Drip:
    def specs(self):
        return (tool("ask", "T3", "keyed"), tool("slow", "T2", "unkeyed"), tool("give", "T1", "pure"))

    def preview(self, name, args):
        return leak("preview")

    def probe(self, name, args, key):
        return Settled("happened", {"seen": leak("probe")})

    def execute(self, name, args, ctx):
        if name == "drip_slow":
            ctx.ports.clock.sleep(60, ctx.cancel)
        if leaks("tool's error"):
            raise ToolError(leak("tool's error"), code="drip.dry")
        return ToolResult({leak("tool's result"): [leak("tool's result")]})


class Kind:
    name, validators = "leaky", ()

    def schema(self):
        return {"type": "object", "description": leak("artifact's schema")}

    def parse(self, output):
        if leaks("artifact's error") and "again" in output:  # it is asked a second time, for the status of the body
            raise RuntimeError(leak("artifact's error"))
        return ParsedArtifact(body={"again": leak("artifact's body")}, status="success")


class Judge:
    level = "semantic"

    def validate(self, subject, cancel):
        if leaks("validator's error"):
            raise RuntimeError(leak("validator's error"))
        said = leak("finding")
        return Verdict(passed=True, findings=(Finding(code="said", severity="warning", message=said, hint=said),))


def offers(kind, name, build, **more):
    return lambda: [Offer(kind=kind, name=name, build=lambda settings, host: build(settings, host), **more)]


harness_provide_providers = implements(hooks.harness_provide_providers)(
    offers("provider", "vault", Vault, settings=lambda: Settings)
)
harness_provide_roles = implements(hooks.harness_provide_roles)(
    offers("role", "leaky", lambda *given: Leaky(), roles=("worker.ai-generate",))
)
harness_provide_tools = implements(hooks.harness_provide_tools)(offers("tool", "drip", lambda *given: Drip()))
harness_provide_artifacts = implements(hooks.harness_provide_artifacts)(
    offers("artifact", "leaky", lambda *given: Kind())
)
harness_provide_validators = implements(hooks.harness_provide_validators)(
    offers("validator", "judge", lambda *given: Judge())
)
"""

OFFERS: list[dict[str, Any]] = [*PROVIDES, *({"kind": kind, "name": name} for kind, name in (
    ("tool", "drip"), ("artifact", "leaky"), ("validator", "judge")
))]  # fmt: skip

WAYS = (
    "request",
    "name of who asks",
    "text of a file",
    "name of a file",
    "artifact's schema",
    "answer's schema",
    "chunks",
    "answer",
    "provider's error",
    "note",
    "note's facts",
    "preview",
    "probe",
    "tool's result",
    "tool's error",
    "name of an artifact",
    "output",
    "role's error",
    "finding",
    "validator's error",
    "artifact's body",
    "artifact's error",
)

LOOKS = (
    "sessions show @last",
    "sessions show @last --json",
    "events @last",
    "events @last --json",
    "approvals history --json",
    "artifacts @last --json",
    "transitions @last --json",
)


@pytest.fixture
def leaking(play: Any, written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session in which a secret comes out of one way, and nowhere else."""
    monkeypatch.syspath_prepend(str(written / "leaks"))
    monkeypatch.setenv("VAULT_KEY", SECRET)
    stage = {"allowed_tools": ["drip"], "artifact": "leaky", "on_failure": "failed"}
    stages = one_stage(**stage, context={"sources": [{"kind": "files", "glob": "*.md"}]})

    def begin(way: str) -> Any:
        monkeypatch.setenv("LEAK", way)
        session = play(says("unused"), models=MODELS, stages=stages, harness={"bind": {"worker.ai-generate": "leaky"}})
        name, text = (SECRET if way == what else "nothing" for what in ("name of a file", "text of a file"))
        (session.site.project / f"{name}.md").write_text(text, encoding="utf-8")
        return session

    yield begin
    sys.modules.pop("acme_leaks", None)


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_comes_out_of_no_way_into_the_log_onto_the_screen_or_to_who_listens(
    leaking: Any, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = leaking(way)
    told: list[str] = []
    session.reopen(on_chunk=lambda _, chunk: told.append(chunk.text))
    words, by = (f"Use {SECRET}." if way == what else "nothing" for what in ("request", "name of who asks"))
    found = session.host.start(words, on_ask="suspend", by=by)
    if way == "probe":
        session.until("harness.tool_call.started")
        session.reopen()
        session.resume()
    else:
        session.host.wait(found)
    for look in LOOKS:
        assert main(look.split()) == 0
    screen = capsys.readouterr()
    content = kept(session)
    assert SECRET not in screen.out + screen.err + "".join(told)
    assert SECRET.encode() not in content
    assert MARK in content + "".join(told).encode()  # it did come this way


# ------------------------------------------------------------------------------------------ built, asked and ended

ENDS = """
import os

from pydantic import BaseModel, field_validator

from harness_hookspecs import hooks
from harness_hookspecs.errors import ConfigError, ProviderError
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import OracleResponse, TextPart, Usage
from harness_hookspecs.offer import Offer


def fails(way, kind=RuntimeError):
    if os.environ["LEAK"] == way:
        raise kind("refused: " + os.environ["VAULT_KEY"])


class Settings(BaseModel):
    key: str

    @field_validator("key")
    @classmethod
    def checked(cls, key):
        fails("settings", ValueError)
        return key


class Ends:
    def __init__(self, settings, host):
        host.secret(settings.key)
        fails("build")
        fails("build, with an error of ours", ConfigError)
        if os.environ["LEAK"] == "build, in a cause":
            try:
                fails("build, in a cause")
            except RuntimeError as error:
                raise ConfigError("refused: [secret]") from error

    def complete(self, request, call):
        return OracleResponse(content=(TextPart(text="yes"),), finish_reason="stop", usage=Usage.unknown())

    def probe(self):
        fails("probe")
        raise ProviderError("refused: [secret]")

    def close(self):
        fails("close")


@implements(hooks.harness_provide_providers)
def harness_provide_providers():
    return [Offer(kind="provider", name="vault", build=Ends, settings=lambda: Settings)]
"""


@pytest.fixture
def ending(play: Any, written: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A project whose provider fails with its secret in its mouth, in the one way that LEAK names."""
    monkeypatch.syspath_prepend(str(written / "ends"))
    monkeypatch.setenv("VAULT_KEY", SECRET)
    play(says("unused"), models=MODELS)
    yield
    sys.modules.pop("acme_ends", None)


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("command", ["run Go.", "run Go. --json", "run Go. --debug", "models probe one --json"])
@pytest.mark.parametrize(
    "way", ["settings", "build", "build, with an error of ours", "build, in a cause", "probe", "close"]
)
def test_a_provider_that_fails_with_its_secret_when_it_is_built_asked_or_ended_is_told_of_without_it(
    ending: None, way: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEAK", way)
    main(command.split())
    screen = capsys.readouterr()
    assert SECRET not in screen.out + screen.err
    assert ("[secret]" in screen.err) is (way != "probe" or command.startswith("models"))
