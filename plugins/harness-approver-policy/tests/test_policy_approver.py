from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from harness_approver_policy import harness_provide_approvers
from harness_approver_policy.approver import PolicyApprover, build
from harness_approver_policy.settings import PolicySettings
from harness_hookspecs.approver import ApprovalAnswer, ApprovalRequest, Approver, Decision
from harness_hookspecs.contracts.approver import ApproverContract, sample_request
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.waiting import FakeToken
from harness_hookspecs.host import CancelToken


class TestPolicy(ApproverContract):
    def subject(self) -> PolicyApprover:
        rules = [{"tool": "approved_*", "decision": "approve"}, {"tool": "denied_*", "decision": "deny"}]
        return build(PolicySettings.model_validate({"rules": rules}), self.host)

    def ask(
        self, subject: Approver, request: ApprovalRequest, decision: Decision | None, cancel: CancelToken
    ) -> ApprovalAnswer | None:
        name = {"approve": "approved_tool", "deny": "denied_tool", None: "other_tool"}[decision]
        return subject.ask(request._replace(name=name), cancel)


def asked(*rules: dict[str, Any], **request: Any) -> ApprovalAnswer | None:
    """What these rules answer to a request."""
    settings = PolicySettings.model_validate({"rules": rules})
    return PolicyApprover(settings).ask(sample_request(**request), FakeToken())


def decision(*rules: dict[str, Any], **request: Any) -> str | None:
    answer = asked(*rules, **request)
    return None if answer is None else answer.decision


APPROVE, DENY = {"decision": "approve"}, {"decision": "deny"}


def test_the_offer_builds_the_approver_and_the_manifest_has_its_settings(tmp_path: Path) -> None:
    [offer] = harness_provide_approvers()
    assert (offer.kind, offer.name) == ("approver", "policy")
    assert offer.settings is not None
    assert isinstance(offer.build(offer.settings()(), FakeHost(tmp_path)), PolicyApprover)
    written = resources.files("harness_approver_policy").joinpath("settings.json").read_text()
    assert json.loads(written) == offer.settings().model_json_schema()


def test_the_first_rule_that_fits_decides_and_is_named() -> None:
    rules = (
        {"tool": "shell_*", **DENY},
        {"tool": "filesystem_*", "say": "but keep it short", "where": "policies.yaml:12", **APPROVE},
        {"tool": "*", **DENY},
    )
    assert asked(*rules) == ApprovalAnswer("approve", "9c1e" * 16, "policies.yaml:12", "policy", "but keep it short")
    answer = asked(*rules, name="git_commit")
    assert answer is not None
    assert (answer.decision, answer.by) == ("deny", "plugins.settings.policy.rules[2]")
    assert asked() is None


CONDITIONS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "tool": ({"tool": "filesystem_*"}, {}, {"name": "shell_run"}),
    "tool, exact case": ({"tool": "shell_run"}, {"name": "shell_run"}, {"name": "Shell_run"}),
    "tier": ({"tier": "T2"}, {}, {"tier": "T3"}),
    "stage": ({"stage": "b?ild"}, {}, {"stage": "plan"}),
    "persona": ({"persona": "coder"}, {}, {"persona": "coder2"}),
    "argument": ({"args": {"/path": "*.md"}}, {}, {"args": {"path": "a.py"}}),
    "argument inside": (
        {"args": {"/files/1/name~1~0": "b"}},
        {"args": {"files": [{}, {"name/~": "b"}]}},
        {"args": {"files": [{}]}},
    ),
    "argument that is no text": ({"args": {"/force": "false"}}, {"args": {"force": False}}, {"args": {"force": True}}),
    "argument that is a list": ({"args": {"/argv": '["git","*'}}, {"args": {"argv": ["git", "log"]}},
                                {"args": {"argv": ["rm"]}}),
    "several": ({"tool": "f*", "tier": "T2", "args": {"/path": "n*", "/to": "h*"}},
                {"args": {"path": "notes.md", "to": "here"}}, {"args": {"path": "notes.md", "to": "there"}}),
    "tool, called like its stage": (
        {"tool": "b*", "stage": "b*", "persona": "b*"},
        {"name": "bake", "stage": "build", "persona": "baker"},
        {"name": "shell_run", "stage": "build", "persona": "baker"},
    ),
    "any value": ({"args": {"/content": "*"}}, {}, {"args": {"path": "notes.md"}}),
    "subject": ({"subject": "artifact", "tool": "plan"}, {"subject": "artifact", "name": "plan"}, {"name": "plan"}),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "fitting", "other"), CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("verdict", [APPROVE, DENY], ids=["approve", "deny"])
def test_a_rule_decides_only_what_it_names(
    rule: dict[str, Any], fitting: dict[str, Any], other: dict[str, Any], verdict: dict[str, str]
) -> None:
    assert decision({**rule, **verdict}, **fitting) == verdict["decision"]
    assert decision({**rule, **verdict}, **other) is None


@pytest.mark.parametrize(
    "path",
    [
        "src/../../etc/passwd", "src/./x", "src//x", "src/..", "src/a\nb", "src/a\x1bb", "src/a\u202eb", "src/a\u200bb",
        "src/a\u00a0b", "src/",
    ],
)  # fmt: skip
def test_a_pattern_approves_no_value_that_is_not_as_plain_as_it_looks(path: str) -> None:
    rule = {"args": {"/path": "src/*"}, **APPROVE}
    assert decision(rule, args={"path": "src/a b.py"}) == "approve"
    assert decision(rule, args={"path": path}) is None
    if not set(path) & set("*?["):
        assert decision({"args": {"/path": path}, **APPROVE}, args={"path": path}) == "approve"


@pytest.mark.parametrize("path", ["secrets/key", "./secrets/key", "src/../secrets/key", "secrets//key"])
def test_a_denied_path_is_denied_in_every_spelling(path: str) -> None:
    assert decision({"args": {"/path": "secrets/*"}, **DENY}, args={"path": path}) == "deny"


def test_what_destroys_is_approved_only_by_its_tier() -> None:
    assert decision({"tool": "*", **APPROVE}, tier="T4") is None
    assert decision({"tool": "*", "tier": "T4", **APPROVE}, tier="T4") == "approve"
    assert decision({"tool": "*", **DENY}, tier="T4") == "deny"


@pytest.mark.parametrize(
    "rule",
    [
        APPROVE,
        {"subject": "tool", **APPROVE},
        {"tool": "x"},
        {"tool": "x", "decision": "auto_session"},
        {"tool": "", **DENY},
        {"tier": "T5", **DENY},
        {"args": {"path": "x"}, **DENY},
        {"args": {"/a~2": "x"}, **DENY},
        {"tol": "x", **DENY},
    ],
)
def test_a_rule_that_says_too_little_or_something_unknown_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PolicySettings.model_validate({"rules": [rule]})
    assert PolicySettings.model_validate({"rules": [DENY]}).rules
