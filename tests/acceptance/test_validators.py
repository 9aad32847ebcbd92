"""Validators of several distributions at one level: all of them judge, and all that they say is in the log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness_core.shell.perform_validate import ValidateSite
from harness_hookspecs.contracts.distribution import make_distribution
from harness_hookspecs.errors import PluginError
from harness_hookspecs.validator import LEVELS
from tests.reference import calls, one_stage, says

CODE = """
import threading

from harness_hookspecs.validator import Finding, Verdict

class Judge:
    released, returned = threading.Event(), False
    level = "{level}"

    def __init__(self, settings, host):
        self.host = host

    def validate(self, subject, cancel):
        said = subject.level + " " + str([call["name"] for call in subject.tool_log])
        finding = Finding(code="{name}.said", severity="{severity}", path="/text", message=said)
        {verdict}
"""
OFFER = """
from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

def build(settings, host):
    from .judge import Judge
    return Judge(settings, host)

@implements(hooks.harness_provide_validators)
def harness_provide_validators():
    return [Offer(kind="validator", name="{name}", build=build)]
"""


VERDICTS = {
    "passes": "return Verdict(passed=True, findings=(finding,))",
    "refuses": "return Verdict(passed=False, findings=(finding,))",
    "passes an error": "return Verdict(passed=True, findings=(finding,))",
    "raises": "raise RuntimeError('boom')",
    "says nothing": "return None",
    "says yes": "return True",
    "finds a text": 'return Verdict.model_construct(passed=False, findings=("x",))',
    "says no word": "return Verdict.model_construct(findings=())",
    "says perhaps": 'return Verdict.model_construct(passed="perhaps", findings=())',
    "finds what cannot be written": (
        "return Verdict.model_construct(passed=False, findings=(finding.model_copy(update={'message': '\\ud800'}),))"
    ),
    "finds half": "return Verdict.model_construct(passed=False, findings=(Finding.model_construct(code='x'),))",
    "makes an object": "return Verdict.model_construct(passed=True, findings=(), body=object())",
    "stops when told": "self.host.ports.wait.event().wait(cancel=cancel)",
    "passes when its time is over": (
        "cancel.on_cancel(self.released.set); self.released.wait(20); return Verdict(passed=True)"
    ),
    "never returns": "type(self).returned = self.released.wait(20) or True; return Verdict(passed=True)",
}


BROKEN = (
    "finds a text",
    "says no word",
    "says perhaps",
    "finds what cannot be written",
    "finds half",
    "makes an object",
)
"""Verdicts made past the checks of their type."""

TOOLS_SEEN = {"semantic": ["effects_pure"], "approval": ["effects_pure"]}
"""Before these levels the role has run."""


@pytest.fixture
def install(site_folder: Path) -> Iterator[Any]:
    """Makes a distribution with one validator; gives code, severity and message of what it will say."""
    made: list[str] = []

    def install(name: str, *, level: str, does: str) -> tuple[str, str, str]:
        severity = "warning" if does == "passes" else "error"
        name = f"{name}_{level}_{does.replace(' ', '_')}"  # a module stays imported, so other code has another name
        provides = [{"kind": "validator", "name": name}]
        written = make_distribution(site_folder, f"acme-{name}", provides=provides, code=OFFER.format(name=name))
        code = CODE.format(name=name, level=level, verdict=VERDICTS[does], severity=severity)
        (written.package / "judge.py").write_text(code, encoding="utf-8")
        made.append(f"{written.module}.judge")
        return (f"{name}.said", severity, f"{level} {TOOLS_SEEN.get(level, [])}")

    yield install
    for module in [sys.modules[name] for name in made if name in sys.modules]:
        module.Judge.released.set()


@pytest.mark.req("B-19", "B-73")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("first", "second"), list(product(("passes", "refuses"), repeat=2)))
def test_two_validators_of_one_level_both_report_and_one_refusal_is_enough(
    play: Any, install: Any, level: str, first: str, second: str
) -> None:
    expected = {install("first", level=level, does=first), install("second", level=level, does=second)}
    session = play(calls(("pure", {})), says("the text"))
    document = session.run()
    passed = first == second == "passes"
    assert document["status"] == ("completed" if passed else "failed")
    ended = session.payloads("validation.passed" if passed else "validation.failed")
    [judged] = [one for one in ended if one["level"] == level]
    said = {(finding["code"], finding["severity"], finding["message"]) for finding in judged["findings"]}
    assert said == expected
    assert ("artifact.accepted" in session.types()) == passed
    assert session.host.replay("@last", "skip-inference")["equal"]


def test_a_validator_is_given_the_tools_of_its_visit_and_no_earlier_visit_is_read_for_it(
    play: Any, install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = install("seen", level="semantic", does="passes")
    stages = {name: one_stage(on_success=goto)["stages"]["work"] for name, goto in (("a", "b"), ("b", "completed"))}
    replies = [{"when": {"turn": 1}, **calls(("pure", {}))}, {"when": {"turn": 2}, **says("the text")}]
    session = play(*replies, stages={"initial": "a", "stages": stages})
    begun = []

    def site(session_id: str, stream: str, parts: Any, services: Any, store: Any) -> ValidateSite:
        class Watched:
            def read(self, stream: str, *, after: int = 0) -> Any:
                begun.append(after)
                return store.read(stream, after=after)

        watched: Any = Watched()
        return ValidateSite(session_id, stream, parts, services, watched)

    monkeypatch.setattr("harness_core.shell.perform.ValidateSite", site)
    assert session.run()["status"] == "completed"
    said = [one["message"] for ended in session.payloads("validation.passed") for one in ended["findings"]]
    assert said == [expected[2]] * 2
    assert begun == [event.seq for event in session.events() if event.type == "stage.entered"]


@pytest.mark.inv("I-24")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("does", ["raises", "says nothing", "says yes", "passes an error", *BROKEN])
def test_a_validator_of_any_level_that_gives_no_verdict_lets_nothing_pass(
    play: Any, install: Any, level: str, does: str
) -> None:
    install("only", level=level, does=does)
    session = play(says("the text"), stages=one_stage(allowed_tools=[]))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "artifact.invalid_after_retries")
    [errored] = session.payloads("validation.errored")
    assert [error["validator"].partition("_")[0] for error in errored["errors"]] == ["only"]
    assert errored["level"] == level
    if does in BROKEN:
        [error] = errored["errors"]
        assert error["code"] == "validation.no_verdict"
        assert error["message"].startswith(f"validator {error['validator']} gave a broken verdict: ")
    assert session.host.replay("@last", "skip-inference")["equal"]
    assert "artifact.accepted" not in session.types()


@pytest.mark.inv("I-24")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("does", ["stops when told", "passes when its time is over", "never returns"])
def test_a_validator_that_says_nothing_in_time_lets_nothing_pass_and_holds_nobody_up(
    play: Any, install: Any, monkeypatch: pytest.MonkeyPatch, level: str, does: str
) -> None:
    monkeypatch.setattr("harness_core.shell.perform_validate.HEED_SECONDS", 0.05)
    install("quick", level=level, does="passes")
    said, _, _ = install("slow", level=level, does=does)
    session = play(says("the text"), harness={"run": {"validator_timeout_sec": 0.5}})
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "artifact.invalid_after_retries")
    [errored] = session.payloads("validation.errored")
    assert (errored["level"], [error["validator"] for error in errored["errors"]]) == (level, [said[: -len(".said")]])
    [error] = errored["errors"]
    assert (error["code"], error["message"]) == (
        "validation.timeout",
        f"validator {error['validator']} gave no verdict within 0.5 s",
    )
    assert "artifact.accepted" not in session.types()
    assert not sys.modules[f"acme_{error['validator']}.judge"].Judge.returned


@pytest.mark.inv("I-24")
def test_a_validator_of_no_level_is_named_before_anything_runs(play: Any, install: Any) -> None:
    install("only", level="taste", does="passes")
    session = play(says("the text"), stages=one_stage(allowed_tools=[]))
    with pytest.raises(PluginError, match=r"only_taste_passes judges at 'taste'.*routing, payload") as caught:
        session.run()
    assert caught.value.code == "plugin.bound_broken"
    assert list(session.host.sessions()) == []
