"""Roles entered again on their record: the same one goes through, and another one stops where it first differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.cli.main import main
from harness_hookspecs.contracts.distribution import make_distribution
from tests.reference import Site, one_stage, write_site

CODE = '''
import os

from harness_hookspecs import hooks
from harness_hookspecs.errors import HarnessError, Suspend
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import ChatInput, Message, TextPart
from harness_hookspecs.offer import Offer
from harness_hookspecs.role import ExecuteStepResult


class Role:
    """Asks twice, calls a tool once and notes something, unless it is told to be another one."""

    def run(self, task, ctx):
        be = os.environ.get("ACME_ROLE", "")
        with open(os.environ["ACME_ENTERED"], "a") as file:
            file.write(be + "\\n")
        if be == "raises":
            raise RuntimeError("boom")
        if be == "suspends":
            raise Suspend("timer", "t")
        if be == "at once":
            return self.result("two")
        self.ask(ctx, "one")
        ctx.durability.note("noted" if be != "notes" else "noted something else")
        if be != "calls none":
            ctx.tools["effects_unkeyed"].execute({"note": "a" if be != "calls another" else "b"})
        if be == "fewer":
            return self.result("two")
        said = self.ask(ctx, "two" if be != "asks another" else "two and more")
        if be == "more":
            self.ask(ctx, "three")
        if be in ("swallows", "swallows a call"):
            try:
                self.ask(ctx, "three") if be == "swallows" else ctx.tools["effects_pure"].execute({})
            except HarnessError:
                pass
        return self.result(said if be != "another output" else "other")

    def ask(self, ctx, text):
        return ctx.model.complete(ChatInput(messages=(Message(role="user", content=(TextPart(text=text),)),))).text

    def result(self, text):
        return ExecuteStepResult(output={"text": text}, artifact_refs=())


@implements(hooks.harness_provide_roles)
def harness_provide_roles():
    return [Offer(kind="role", name="acme", build=lambda settings, host: Role(), roles=("worker.ai-generate",))]
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A session that the role has played as it is by itself."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("roles")
        packages = root / "packages"
        provides = [{"kind": "role", "name": "acme", "roles": ["worker.ai-generate"]}]
        make_distribution(packages, "acme-role", provides=provides, code=CODE)
        patch.syspath_prepend(str(packages))
        replies = [{"text": "one"}, {"text": "two"}, {"text": "three"}]
        files = {"harness": {"bind": {"worker.ai-generate": "acme"}}, "stages": one_stage(on_failure="failed")}
        found = write_site(root / "site", replies=replies, **files).enter(patch)
        patch.setenv("ACME_ENTERED", str(root / "entered"))
        with Host.open() as host:
            assert host.run("Go.")["status"] == "completed"
        yield found


def entered(site: Site) -> list[str]:
    return (site.project.parents[1] / "entered").read_text(encoding="utf-8").splitlines()


def seq_of(host: Host, kind: str, nth: int = 0) -> int:
    seqs: list[int] = [event.seq for event in host.events("@last", types=kind)]
    return seqs[nth]


@pytest.mark.req("B-96")
@pytest.mark.inv("I-18")
def test_a_role_is_entered_once_and_gets_every_answer_from_the_record(site: Site) -> None:
    before, effects = len(entered(site)), site.effects()
    with Host.open() as host:
        report = host.replay("@last", "skip-inference")
        assert (report["equal"], report["roles_entered"], report["diverged"]) == (True, 1, None)
        assert report["state_hash"] == host.session("@last")["state_hash"]
    assert (len(entered(site)) - before, site.effects()) == (1, effects)


OTHERS: dict[str, tuple[str, int]] = {
    "asks another": ("harness.model.called", 1),
    "calls another": ("harness.tool_call.started", 0),
    "calls none": ("harness.tool_call.started", 0),
    "fewer": ("harness.model.called", 1),
    "at once": ("harness.model.called", 0),
    "more": ("harness.execute_step.succeeded", 0),
    "swallows": ("harness.execute_step.succeeded", 0),
    "swallows a call": ("harness.execute_step.succeeded", 0),
    "notes": ("harness.execute_step.succeeded", 0),
    "another output": ("role.returned", 0),
    "raises": ("role.returned", 0),
    "suspends": ("role.returned", 0),
}


@pytest.mark.inv("I-18")
@pytest.mark.parametrize(("be", "where"), OTHERS.items(), ids=OTHERS)
def test_a_role_that_is_another_one_stops_where_it_first_differs(
    site: Site, monkeypatch: pytest.MonkeyPatch, be: str, where: tuple[str, int]
) -> None:
    monkeypatch.setenv("ACME_ROLE", be)
    effects = site.effects()
    with Host.open() as host:
        report = host.replay("@last", "skip-inference")
        event = next(one for one in host.events("@last", after=seq_of(host, *where) - 1))
    assert (report["equal"], report["diverged"]["seq"]) == (False, event.seq)
    assert report["diverged"]["recorded"] == {"type": event.type, "payload": json.loads(event.payload)}
    assert report["diverged"]["replayed"]["error"]
    assert site.effects() == effects


@pytest.mark.req("B-124")
def test_the_command_names_the_event_and_exits_with_15(
    site: Site, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ACME_ROLE", "asks another")
    with Host.open() as host:
        seq = seq_of(host, "harness.model.called", 1)
    capfd.readouterr()
    assert main(["replay", "@last", "--mode", "skip-inference"]) == 15
    out = capfd.readouterr().out
    assert f"diverged at event {seq}" in out
    assert "recorded" in out
    assert "replayed" in out
    monkeypatch.setenv("ACME_ROLE", "")
    assert main(["replay", "@last", "--mode", "skip-inference"]) == 0


@pytest.fixture
def another(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Site]:
    """Makes a project of its own for the same role, and goes there as the same person."""

    def make(name: str, temperature: float = 0.0) -> Site:
        files = {"harness": {"bind": {"worker.ai-generate": "acme"}}, "stages": one_stage(on_failure="failed")}
        made = write_site(site.project.parents[1] / tmp_path.name / name, replies=[], **files)
        own = Site(made.project, {**made.env, "XDG_CACHE_HOME": site.env["XDG_CACHE_HOME"]}, made.effects_file)
        models = json.loads((own.project / ".harness" / "models.yaml").read_text(encoding="utf-8"))
        models["models"]["scripted"]["inference"] = {"temperature": temperature}
        own.enter(monkeypatch).write("models", models)
        return own

    return make


def test_a_role_that_suspends_itself_fails_its_call_and_not_the_session_s_loop(
    another: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    another("own")
    monkeypatch.setenv("ACME_ROLE", "suspends")
    with Host.open() as host:
        session = host.run("Go.")
        assert (session["status"], session["failure"]["code"]) == ("failed", "role.suspended_itself")
        assert host.replay("@last", "skip-inference")["equal"]


def test_a_role_that_makes_no_call_is_held_to_its_manifest_too(
    another: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_ROLE", "at once")
    own = another("own")
    with Host.open() as host:
        assert host.run("Go.")["status"] == "completed"
        assert host.replay("@last", "skip-inference")["equal"]
    warmer = another("warmer", temperature=0.5)
    own.enter(monkeypatch)
    Site(warmer.project, own.env, own.effects_file).write("script", "")
    with Host.open() as host:
        diverged = host.replay("@last", "skip-inference", warmer.project)["diverged"]
        assert diverged["seq"] == seq_of(host, "harness.session.started")
        assert [change["field"] for change in diverged["replayed"]["changes"]] == ["params"]


FAILING = '''
from harness_hookspecs import hooks
from harness_hookspecs.errors import Cancelled, HarnessError, ProviderError, Refused
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import ChatInput, Message, TextPart
from harness_hookspecs.offer import Offer
from harness_hookspecs.role import ExecuteStepResult


class OwnError(ProviderError):
    """Known to this plugin alone."""


ERRORS = [
    ValueError("boom"),
    ProviderError("busy", code="acme.busy", hint="try later", where="queue:3", waits=[1.0, {"b": 2, "a": 1}]),
    Refused("no"),
    OwnError("mine"),
]


class Failing:
    def complete(self, request, call):
        raise ERRORS[request.routing.turn - 1]

    def close(self):
        pass


class Telling:
    def run(self, task, ctx):
        told = "; ".join(self.ask(ctx) for _ in ERRORS)
        ctx.durability.note(told)
        ctx.tools["effects_network"].execute({"note": "asked"})
        return ExecuteStepResult(output={"text": told}, artifact_refs=())

    def ask(self, ctx):
        try:
            ctx.model.complete(ChatInput(messages=(Message(role="user", content=(TextPart(text="go"),)),)))
        except HarnessError as e:
            told = repr((type(e).__name__, e.message, e.code, e.hint, e.where, e.facts, e.__cause__))
            e.facts["mine"] = "what a role writes on it is nobody else's"
            return told


@implements(hooks.harness_provide_providers)
def harness_provide_providers():
    return [Offer(kind="provider", name="failing", build=lambda settings, host: Failing())]


@implements(hooks.harness_provide_roles)
def harness_provide_roles():
    return [Offer(kind="role", name="telling", build=lambda settings, host: Telling(), roles=("worker.ai-generate",))]
'''


@pytest.mark.inv("I-18")
def test_a_failed_model_call_is_the_same_error_live_resumed_and_replayed(
    play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provides: list[dict[str, Any]] = [
        {"kind": "provider", "name": "failing"},
        {"kind": "role", "name": "telling", "roles": ["worker.ai-generate"]},
    ]
    make_distribution(tmp_path / "site", "acme-failing", provides=provides, code=FAILING)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    models = {"models": {"one": {"provider": "failing", "capabilities": ["tool_calling"], "context_size": 32768}}}
    session = play(models=models, harness={"bind": {"worker.ai-generate": "telling"}})
    assert session.run()["waiting"] is not None
    session.answer(session.pending()[0])
    assert session.resume()["status"] == "completed"
    [live] = session.payloads("role.note")  # another one would stand there if the resumed role was told otherwise
    assert live["text"].split("; ") == [
        "('PluginError', 'provider failing raised ValueError: boom', 'plugin.raised', None, None, {}, None)",
        "('ProviderError', 'busy', 'acme.busy', 'try later', 'queue:3', {'waits': [1.0, {'b': 2, 'a': 1}]}, None)",
        "('Refused', 'no', 'refused', None, None, {}, None)",
        "('ProviderError', 'mine', 'provider.unavailable', None, None, {}, None)",
    ]
    [artifact] = session.host.artifacts("@last")
    assert json.loads(session.host.artifact(artifact["ref"])) == {"text": live["text"]}
    report = session.host.replay("@last", "skip-inference")
    assert (report["equal"], report["roles_entered"]) == (True, 1), report["diverged"]
