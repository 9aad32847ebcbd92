"""The approver ``policy``: requests come in, answers by rule go out; it waits for nobody."""

from __future__ import annotations

from harness_hookspecs.approver import ApprovalAnswer, ApprovalRequest
from harness_hookspecs.host import ApproverHost, CancelToken

from .policy import deciding_rule
from .settings import PolicySettings

__all__ = ["PolicyApprover", "build"]


def build(settings: PolicySettings, host: ApproverHost) -> PolicyApprover:
    """Build the approver of these rules; it asks nothing of the host."""
    return PolicyApprover(settings)


class PolicyApprover:
    """Decides what a rule decides and leaves the rest to others."""

    def __init__(self, settings: PolicySettings) -> None:
        self._rules = settings.rules

    @property
    def interactive(self) -> bool:
        """Never."""
        return False

    def ask(self, request: ApprovalRequest, cancel: CancelToken) -> ApprovalAnswer | None:
        """Answer by the first rule that fits; ``by`` names the rule."""
        found = None if cancel.cancelled() else deciding_rule(self._rules, request)
        if found is None:
            return None
        place, rule = found
        by = rule.where or f"plugins.settings.policy.rules[{place}]"
        return ApprovalAnswer(rule.decision, request.digest, by, "policy", rule.say)
