"""Validators of several distributions at one level: all of them judge, and all that they say is in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from tests.reference import one_stage, says

CODE = """
from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer
from harness_hookspecs.validator import Finding, Verdict

class Judge:
    level = "semantic"

    def validate(self, subject, cancel):
        finding = Finding(code="{name}.said", severity="{severity}", path="/text", message=subject.output["text"])
        return Verdict(passed={passed}, findings=(finding,))

@implements(hooks.harness_provide_validators)
def harness_provide_validators():
    return [Offer(kind="validator", name="{name}", build=lambda settings, host: Judge())]
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a distribution with one validator; gives code, severity and message of what it will say."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def install(name: str, *, passed: bool) -> tuple[str, str, str]:
        severity = "warning" if passed else "error"
        name = f"{name}_{'passes' if passed else 'refuses'}"  # a module stays imported, so other code has another name
        code = CODE.format(name=name, passed=passed, severity=severity)
        provides = [{"kind": "validator", "name": name}]
        make_distribution(tmp_path / "site", f"acme-{name}", provides=provides, code=code)
        return (f"{name}.said", severity, "the text")

    return install


@pytest.mark.req("B-73")
@pytest.mark.parametrize(
    ("first", "second"), [(True, True), (True, False), (False, True), (False, False)], ids=lambda passed: str(passed)
)
def test_two_validators_of_one_level_both_report_and_one_refusal_is_enough(
    play: Any, install: Any, first: bool, second: bool
) -> None:
    expected = {install("first", passed=first), install("second", passed=second)}
    session = play(says("the text"), stages=one_stage(allowed_tools=[]))
    document = session.run()
    passed = first and second
    assert document["status"] == ("completed" if passed else "failed")
    ended = session.payloads("validation.passed" if passed else "validation.failed")
    [judged] = [one for one in ended if one["level"] == "semantic"]
    said = {(finding["code"], finding["severity"], finding["message"]) for finding in judged["findings"]}
    assert said == expected
    assert ("artifact.accepted" in session.types()) == passed
