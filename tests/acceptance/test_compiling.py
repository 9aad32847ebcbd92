"""A plan that an executor has compiled in: what is registered, why one is not, and what stops a resume, out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_core.kernel.projections.event import decoded
from harness_core.shell.ports.failpoints import Failpoints
from harness_core.shell.ports.simulated import SimulatedPorts
from harness_hookspecs.errors import Drift, HarnessError
from harness_hookspecs.kit.canonical import read_canonical
from tests.reference import Site, calls, one_stage, payloads, says, scripted_models, types_of, write_site
from tests.simulation.storm import unlimited

PLAN = (Path(__file__).parent.parent / "cases/lwir/1-summarise-ticket.json").read_text(encoding="utf-8")
DOCUMENT = json.dumps(json.loads(PLAN))
ASKS = [calls(("network", {"note": "a"})), says("done")]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    stages = one_stage(executor="compiling", task=None, on_failure="failed")
    return write_site(tmp_path, stages=stages, replies=ASKS).enter(monkeypatch)


@pytest.fixture
def host(site: Site) -> Iterator[Host]:
    with Host.open(site.project) as found:
        yield found


@pytest.mark.req("A-10")
@pytest.mark.parametrize("text", [DOCUMENT, f"[{DOCUMENT}]"], ids=["plan", "sketch"])
def test_a_plan_is_registered_with_its_content_and_what_it_was_checked_against(host: Host, text: str) -> None:
    document = host.run(text, yolo="on")
    assert document["status"] == "completed", document["failure"]
    events = list(host.events(document["id"]))
    [version] = payloads(events, "workflow.version_registered")
    assert read_canonical(host.store.blob(version["plan_ref"])) == json.loads(PLAN)
    lock = read_canonical(host.store.blob(version["lock_ref"]))
    assert {tool["name"] for tool in lock["tools"]} >= {"effects_network"}
    assert {tool["plugin"] for tool in lock["tools"]} == {"tool-effects@0.1.0"}
    assert [(one["slot"], one["provider"]) for one in lock["models"]] == [("scripted", "scripted")]
    artifact = json.loads(host.artifact(document["artifacts"][0]))
    assert artifact == {"text": version["workflow_version_id"]}
    assert host.verify(document["id"])["broken"] == []
    for mode in ("full", "skip-inference", "simulate"):
        assert host.replay(document["id"], mode)["equal"], mode


@pytest.mark.req("A-10")
@pytest.mark.parametrize(("text", "code"), [
    ('{"no": "plan"}', "schema.invalid"), ('"raise"', "plugin.raised"), ('"nothing"', "plugin.bound_broken"),
    ('"bare"', "plugin.broken"), ('{"definition": 7}', "schema.invalid"),
])  # fmt: skip
def test_what_is_no_plan_gives_findings_and_nothing_is_registered(host: Host, text: str, code: str) -> None:
    document = host.run(text)
    assert (document["status"], document["failure"]["code"]) == ("failed", "workflow.rejected")
    events = list(host.events(document["id"]))
    [failed] = payloads(events, "compile.failed")
    assert [one["code"] for one in failed["findings"]] == [code]
    assert "workflow.version_registered" not in types_of(events)
    [ended] = payloads(events, "session.failed")
    assert [one["code"] for one in ended["findings"]] == [code]
    for mode in ("skip-inference", "simulate"):
        assert host.replay(document["id"], mode)["equal"], mode


def test_a_compiler_that_does_not_come_back_holds_nobody_up(site: Site) -> None:
    site.write("harness", {"run": {"validator_timeout_sec": 0.2}})
    with Host.open(site.project) as host:
        document = host.run('"block"')
        assert document["failure"]["code"] == "workflow.rejected"
        [failed] = payloads(host.events(document["id"]), "compile.failed")
        assert [one["code"] for one in failed["findings"]] == ["compile.timeout"]


def test_an_executor_that_has_no_compiler_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_executor_probe.compiling import Asking

    monkeypatch.setattr("harness_executor_probe.compiling.Compiling", Asking)
    stages = one_stage(executor="compiling", task=DOCUMENT)
    write_site(tmp_path, stages=stages, replies=ASKS).enter(monkeypatch)
    with Host.open(tmp_path / "project") as host:
        document = host.run("Go.")
        [failed] = payloads(host.events(document["id"]), "compile.failed")
        assert [one["code"] for one in failed["findings"]] == ["executor.no_compiler"]


# ------------------------------------------------------------------------------------------------------- resumed


@pytest.mark.inv("I-16", "I-17")
def test_a_compile_that_a_crash_cut_off_is_made_again(site: Site) -> None:
    for nth in range(1, 9):
        with unlimited(), SimulatedPorts(nth) as ports:
            ports.failpoints = Failpoints(f"append.committed@{nth}:raise")
            with pytest.raises(HarnessError, match="failpoint"), Host.open(site.project, ports=ports) as host:
                host.run(DOCUMENT, yolo="on")
        with Host.open(site.project) as host:
            found = host.session("@last")
            document = found if found["status"] == "completed" else host.resume("@last")
            types = types_of(host.events(document["id"]))
            assert (document["status"], types.count("workflow.version_registered")) == ("completed", 1), nth
            assert types.count("compile.requested") == 1
            assert host.verify(document["id"])["broken"] == []


def parked(site: Site) -> str:
    """A session that has registered a plan and waits for a person."""
    with Host.open(site.project) as host:
        document = host.run(DOCUMENT, on_ask="suspend")
        assert document["status"] == "awaiting_approval"
        return str(document["id"])


@pytest.mark.inv("I-19")
def test_a_plan_goes_on_only_where_it_was_checked_and_says_what_is_another_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = parked(site)
    from harness_executor_probe.compiling import ProbeCompiler

    from harness_hookspecs.compiler import Difference

    def drift(self: Any, before: Any, now: Any) -> Any:
        return [Difference("tool effects_network", "T3", "T4"), Difference("model gone", "scripted", "")]

    with monkeypatch.context() as patch:
        patch.setattr(ProbeCompiler, "drift", drift)
        with Host.open(site.project) as host:
            last = host.session(found)["last_seq"]
            with pytest.raises(Drift) as stopped:
                host.resume(found)
            assert stopped.value.code == "workflow.drift"
            assert "tool effects_network: T3 -> T4; model gone: scripted -> gone" in stopped.value.message
            assert host.session(found)["last_seq"] == last  # nothing was recorded
            document = host.resume(found, on_ask="suspend", accept_drift=True)
            [migrated] = payloads(host.events(found), "config.migrated")
            assert [one["key"] for one in migrated["changes"]] == ["plan: tool effects_network", "plan: model gone"]
            assert document["status"] == "awaiting_approval"
            assert host.resume(found, on_ask="suspend")["status"] == "awaiting_approval"  # it was accepted once


def test_what_was_accepted_is_what_a_plan_is_held_to_from_then_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    found = parked(site)
    from harness_executor_probe.compiling import ProbeCompiler

    from harness_hookspecs.compiler import Difference

    def stops(host: Host, *now: Difference) -> str:
        monkeypatch.setattr(ProbeCompiler, "drift", lambda self, before, after: [*now])
        with pytest.raises(Drift) as stopped:
            host.resume(found)
        accepted = host.resume(found, on_ask="suspend", accept_drift=True)
        assert accepted["status"] == "awaiting_approval"
        assert host.resume(found, on_ask="suspend")["status"] == "awaiting_approval"
        said: str = stopped.value.message.rpartition("something else: ")[2]
        return said

    engine, tool = Difference("engine", "1", "2"), Difference("tool", "T1", "")
    with Host.open(site.project) as host:
        assert stops(host, engine) == "engine: 1 -> 2"
        assert stops(host, Difference("engine", "1", "3"), tool) == "engine: 2 -> 3; tool: T1 -> gone"
        assert stops(host, tool) == "engine: 3 -> 1"
        assert stops(host, engine) == "engine: 1 -> 2; tool: new -> T1"
        changes = [one for event in payloads(host.events(found), "config.migrated") for one in event["changes"]]
        [version] = payloads(host.events(found), "workflow.version_registered")
        assert {one["workflow_version_id"] for one in changes} == {version["workflow_version_id"]}
        assert host.verify(found)["broken"] == []


def test_a_plan_is_held_to_what_is_behind_the_name_of_a_model(site: Site) -> None:
    found = parked(site)
    models = scripted_models()
    models["models"]["scripted"] |= {"path": "models/qwen.gguf"}
    site.write("models", models)
    with Host.open(site.project) as host:
        host.resume(found, on_ask="suspend", accept_drift=True)
        [_, migrated] = payloads(host.events(found), "config.migrated")
        [change] = migrated["changes"]
        assert change["key"] == "plan: model scripted"
        assert (change["old"], change["new"]) == ("scripted scripted", "scripted models/qwen.gguf")


def test_one_that_is_still_the_same_goes_on(site: Site) -> None:
    found = parked(site)
    with Host.open(site.project) as host:
        [item] = host.approvals()
        host.answer(item["id"], "approve", digest=item["digest"])
        assert host.resume(found)["status"] == "completed"
        kinds = [decoded(event).type for event in host.events(found)]
        assert "config.migrated" not in kinds
