from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from harness_hookspecs.contracts.rules import complaints
from harness_hookspecs.contracts.validator import ValidatorContract
from harness_hookspecs.validator import Finding, Level, Subject, Verdict


class Suite(ValidatorContract):
    def accepted(self) -> Subject:
        return self.about({"title": "short"})

    def rejected(self) -> Subject:
        return self.about({"title": "far too long"})


class PlainValidator:
    """Keeps every rule with as little as possible."""

    level: Level = "payload"

    def validate(self, subject: Subject, cancel: Any) -> Any:
        if not isinstance(subject.output, dict) or len(subject.output.get("title", "x" * 99)) > 9:
            return Verdict(passed=False, findings=(self.finding(),))
        return Verdict(passed=True, body=self.body(subject))

    def finding(self) -> Finding:
        return Finding(code="payload.too_long", severity="error", path="/title", message="too long")

    def body(self, subject: Subject) -> Any:
        return dict(subject.output)


def _with(**changed: Any) -> Callable[[Any], PlainValidator]:
    return lambda suite: type("Broken", (PlainValidator,), changed)()


def _open(self: PlainValidator, subject: Subject, cancel: Any) -> Any:
    if not isinstance(subject.output, dict):
        return Verdict(passed=True, body={})
    return PlainValidator.validate(self, subject, cancel)


_COUNTER = count()

BROKEN = {
    "validator.level": _with(level="sideways"),
    "validator.accepts": _with(
        validate=lambda self, subject, cancel: Verdict(passed=False, findings=(self.finding(),))
    ),
    "validator.rejects": _with(
        finding=lambda self: Finding(code="payload.too_long", severity="warning", path="/title", message="too long")
    ),
    "validator.findings_are_located": _with(
        finding=lambda self: Finding(code="wrong", severity="error", path="title", message="too long")
    ),
    "validator.only_payload_sets_the_body": _with(body=lambda self, subject: None),
    "validator.is_pure": _with(body=lambda self, subject: {"title": f"try {next(_COUNTER)}"}),
    "validator.nothing_does_not_pass": _with(validate=_open),
}


def test_each_rule_of_the_suite_bites() -> None:
    assert complaints(Suite, good=lambda _: PlainValidator(), broken=BROKEN, at_most=2) == []
