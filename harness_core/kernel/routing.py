"""The kernel's own routing check: a stage and what is known of its model in, findings out."""

from __future__ import annotations

from typing import Any

from .definition import RESERVED_TARGETS, Definition, StagePlan

__all__ = ["first_open_target", "routing_findings"]


def routing_findings(stage: StagePlan) -> list[dict[str, Any]]:
    """What forbids this stage with this model, before any inference (B-64 to B-66)."""
    findings = [
        _finding(
            "routing.missing_capability",
            f"stage {stage.name} needs {name}, model {stage.model.name} does not have it",
            f"choose a model with {name}, or add it to models.{stage.model.name}.capabilities",
        )
        for name in sorted(stage.requirements - stage.model.capabilities)
    ]
    if stage.model.denied_by is not None:
        findings.append(
            _finding(
                "routing.provider_denied",
                f"{stage.model.denied_by} forbids provider {stage.model.provider} here",
                "choose a model of another provider for this stage",
            )
        )
    return findings


def _finding(code: str, message: str, hint: str) -> dict[str, Any]:
    return {"code": code, "severity": "error", "path": "", "message": message, "hint": hint}


def first_open_target(definition: Definition, targets: tuple[str, ...]) -> str:
    """The first target whose routing check passes; the first one when none does, so that it says why (K-21)."""
    for target in targets:
        stage = definition.stages.get(target)
        if target in RESERVED_TARGETS or (stage is not None and not routing_findings(stage)):
            return target
    return targets[0]
