"""The promises of kind ``validator``: a validator goes in, the rules that it breaks come out."""

from __future__ import annotations

from typing import Any

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.validator import LEVELS, Subject, Validator, Verdict

from .rules import Contract, rule
from .waiting import FakeToken

__all__ = ["ValidatorContract"]


class ValidatorContract(Contract):
    """What every validator keeps. Its tests need one subject that it accepts and one that it rejects."""

    def subject(self) -> Validator:
        """The validator under test."""
        raise NotImplementedError("override subject()")

    def accepted(self) -> Subject:
        """A subject that passes; overridden."""
        raise NotImplementedError("override accepted()")

    def rejected(self) -> Subject:
        """A subject that does not pass; overridden."""
        raise NotImplementedError("override rejected()")

    def about(self, output: Any, **more: Any) -> Subject:
        """A subject of the validator's level."""
        level = self.subject().level
        usual: dict[str, Any] = {
            "level": level if level in LEVELS else "payload",
            "session_id": "019b76da-a800-7000-8000-000000000001",
            "stage": "notes",
            "persona": "writer",
            "attempt": 1,
            "output": output,
            "status": "success",
        }
        return Subject(**{**usual, **more})

    def _judge(self, subject: Subject) -> Verdict:
        verdict = self.subject().validate(subject, FakeToken())
        assert isinstance(verdict, Verdict), "a missing verdict is no"
        return verdict

    @rule("validator.level")
    def test_it_judges_at_one_level(self) -> None:
        validator = self.subject()
        assert validator.level in LEVELS
        validator.validate(self.accepted(), FakeToken())
        assert validator.level == self.subject().level

    @rule("validator.accepts")
    def test_what_is_right_passes_without_an_error(self) -> None:
        verdict = self._judge(self.accepted())
        assert verdict.passed is True
        assert all(finding.severity == "warning" for finding in verdict.findings)

    @rule("validator.rejects")
    def test_what_is_wrong_does_not_pass_and_says_why(self) -> None:
        verdict = self._judge(self.rejected())
        assert verdict.passed is False
        assert any(finding.severity == "error" for finding in verdict.findings)

    @rule("validator.findings_are_located")
    def test_findings_have_a_code_a_place_and_words(self) -> None:
        for finding in (*self._judge(self.rejected()).findings, *self._judge(self.accepted()).findings):
            assert "." in finding.code
            assert finding.message.strip()
            assert finding.path == "" or finding.path.startswith("/")

    @rule("validator.only_payload_sets_the_body")
    def test_only_a_payload_validator_gives_a_body(self) -> None:
        is_payload = self.subject().level == "payload"
        assert (self._judge(self.accepted()).body is not None) == is_payload
        assert self._judge(self.rejected()).body is None

    @rule("validator.is_pure")
    def test_the_same_subject_has_the_same_verdict_and_stays_as_it_was(self) -> None:
        for subject in (self.accepted(), self.rejected()):
            before = subject.to_json_bytes()
            verdicts = [self._judge(subject) for _ in range(2)]
            assert verdicts[0] == verdicts[1]
            assert subject.to_json_bytes() == before

    @rule("validator.nothing_does_not_pass")
    def test_an_output_that_is_nothing_never_passes_as_a_payload(self) -> None:
        if self.subject().level != "payload":
            return
        outputs: tuple[Any, ...] = (None, "", "It is fine.", [], {}, True)
        for output in outputs:
            subject = self.accepted().model_copy(update={"output": output})
            try:
                verdict = self._judge(subject)
            except HarnessError:
                continue
            assert verdict.passed is False
