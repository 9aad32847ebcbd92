"""A project's parts and the workflow that a session is begun for in, the parts of that session out.

It has one stage, called like the workflow where a stage may be: what the stage has in whose place it stands (the one
that orchestrates, or that where sessions begin), with the workflow's own tools and the executor of plans. It is made of
what the log has of the session and of the recorded configuration alone, so that a replay and a resume run what was
begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import attrs

from harness_core.kernel.approvals import ToolPolicy
from harness_core.kernel.definition import RESERVED_TARGETS, RetryPolicy, RulePlan
from harness_hookspecs.errors import ConfigError
from harness_hookspecs.rules import Rules

from .definitions import RUNS_PLANS, with_plans
from .parts import Parts
from .rule_plan import RULE_ROOTS
from .session_parts import SessionParts

__all__ = ["workflow_parts"]

_RULES: Final = (('artifact.status == "success"', "completed"), ('artifact.status != "success"', "failed"))


def workflow_parts(parts: SessionParts, spec: Mapping[str, Any], built: Parts | None = None) -> SessionParts:
    """The parts of the session.

    Args:
        parts: Those of the configuration.
        spec: What it is begun with: ``stage`` (in whose place it stands), ``goal``, ``workflow``, ``plan``.
        built: Builds what runs plans, for a project that defines no workflow and so has not built it.

    Raises:
        ConfigError: ``config.no_stage``: the stage is not configured any more.
    """
    parts = parts if built is None else with_plans(parts, built)
    workflow, rules = spec["workflow"], parts.definition.rules
    name, lead = workflow["workflowId"], parts.definition.stages.get(spec["stage"])
    if lead is None:  # the configuration was migrated
        message = f"there is no stage {spec['stage']} any more, in which workflow {name} was asked for"
        raise ConfigError(message, code="config.no_stage", hint="put the stage back, or cancel the session")
    executor, artifact = RUNS_PLANS
    place = name if name not in RESERVED_TARGETS else f"workflow.{name}"  # such a stage would be an end
    stage = attrs.evolve(
        lead,
        name=place,
        executor=executor,
        requirements=frozenset(),
        artifact=artifact,
        allowed_tools=tuple(tool.replace(".", "_") for tool in workflow["permissions"]["tools"]),  # a plan's own words
        gate=False,
        retry=RetryPolicy("retry", 1, inject_failure_reason=False, temperature_backoff=False),
        transitions=tuple(_rule(rules, when, target) for when, target in _RULES),
        system=workflow["workers"].get("system"),
        prompt="",
        timeout_seconds=None,
        plan=spec.get("plan"),
        definition=workflow,
        goal="plan" if spec["goal"] == "plan" else "run",
        slots=parts.slots.get((spec["stage"], name), {}),
        plan_form="sketch" if name in parts.sketched else "plan",
        workflows=(),
    )
    return attrs.evolve(
        parts,
        definition=attrs.evolve(parts.definition, initial=place, stages={place: stage}),
        sources={place: ()},
        policies={place: _policy(parts.policies[spec["stage"]], spec["stage"])},
    )


def _policy(policy: ToolPolicy, stage: str) -> ToolPolicy:
    """What holds in the stage: a rule about it is one about what is done in its place."""
    rules = (attrs.evolve(rule, stage="*") if fnmatchcase(stage, rule.stage) else rule for rule in policy.rules)
    return attrs.evolve(policy, rules=tuple(rules))


def _rule(rules: Rules, when: str, target: str) -> RulePlan:
    return RulePlan(when, rules.compile(when, roots=RULE_ROOTS), (target,), "the session of a workflow")
