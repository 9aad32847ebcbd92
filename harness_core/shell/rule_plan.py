"""A written rule and the rules engine in, the compiled rule out, or the error of who wrote it or of the engine."""

from __future__ import annotations

from typing import Any, Final

from harness_core.kernel.definition import RulePlan
from harness_hookspecs.errors import ConfigError, PluginError, RuleError
from harness_hookspecs.rules import Program, Rules

from .perform_attempt import attempt

__all__ = ["RULE_ROOTS", "rule_flaw", "rule_plan"]

RULE_ROOTS: Final = ("artifact", "retries", "stage", "visit")
"""What a transition rule may read (B-116)."""


def rule_plan(stage: str, rule: Any, rules: Rules, origin: str) -> RulePlan:
    """Compile a rule of a stage.

    Args:
        stage: The stage's name, for errors.
        rule: The rule of ``stages.yaml``: ``when`` and ``goto``.
        rules: The engine.
        origin: The place where the rule stands.

    Raises:
        ConfigError: ``config.rule``: the engine refuses the rule.
        PluginError: ``plugin.raised`` or ``plugin.bound_broken``: the engine broke.
    """
    done = attempt(_compiled, rules, rule.when, what="the rule engine")
    if isinstance(done.error, RuleError):
        message = f"rule of stage {stage}: {done.error.message}"
        raise ConfigError(message, code="config.rule", where=origin, hint=done.error.hint) from done.error
    if done.error is not None or done.value is None:
        raise done.error or PluginError("the rule engine compiled nothing", code="plugin.bound_broken")
    return RulePlan(rule.when, done.value, rule.goto, origin)


def rule_flaw(rules: Rules, text: str) -> str | None:
    """Why an expression does not compile; for rules that do not count yet, so that no plan is made of them."""
    done = attempt(_compiled, rules, text, what="the rule engine")
    return None if done.error is None else done.error.message


def _compiled(rules: Rules, text: str) -> Program:
    program = rules.compile(text, roots=RULE_ROOTS)
    if not isinstance(program.roots, frozenset):  # all that the kernel itself asks of a program
        message = f"the rule engine gave a program whose roots are {type(program.roots).__name__}"
        raise PluginError(message, code="plugin.bound_broken")
    return program
