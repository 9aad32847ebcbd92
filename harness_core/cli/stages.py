"""``harness stages``: the configured stages as the kernel reads them, everything inherited filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from harness_hookspecs.kit.render import escape_line

from .noun import NounGroup
from .output import emit, fitted, json_option, labelled

if TYPE_CHECKING:
    from harness_core.settings.stages import Stage
    from harness_core.shell.config.effective import EffectiveConfig

__all__ = ["stages"]


@click.group(cls=NounGroup, default="explain")
def stages() -> None:
    """Explain the stages and their rules."""


@stages.command()
@json_option
@click.pass_context
def explain(ctx: click.Context) -> None:
    """Explain each stage: who does it, with what and where it leads.

    Also how often it is tried, and its rules one by one.
    """
    from .config import load

    config = load(ctx)
    items = [_stage(config, name, stage) for name, stage in config.stages.stages.items()]
    document = {
        "schema": "harness.stages/1",
        "initial": config.stages.initial_name(),
        "items": items,
        "warnings": [warning.document() for warning in config.warnings],
    }
    emit(ctx, document, _explained)


def _stage(config: EffectiveConfig, name: str, stage: Stage) -> dict[str, Any]:
    from harness_core.settings.personas import persona_of
    from harness_core.settings.transitions import rules_of

    persona = persona_of(stage.role, config.stages.roles)
    approvals = stage.approvals.model_dump()
    return {
        "name": name,
        "where": config.origin(("stages", name)).text(),
        "role": stage.role,
        "executor": stage.executor,
        "model": stage.model or persona.model or config.models.default_name(),
        "artifact": stage.artifact,
        "task": stage.task,
        "requirements": list(stage.requirements),
        "allowed_tools": list(stage.allowed_tools),
        "approvals": {key: value for key, value in approvals.items() if value != "policy"},
        "retry": {
            "strategy": stage.retry.strategy,
            "max_attempts": stage.retry.max_attempts,
            "tells_reason": stage.retry.tells_reason,
            "temperature_backoff": stage.retry.temperature_backoff,
        },
        "context": [source.model_dump(exclude_none=True) for source in stage.context.sources],
        "transitions": [
            {
                "when": rule.when,
                "goto": list(rule.goto),
                "where": config.origin(("stages", name, *rule.path)).text(),
            }
            for rule in rules_of(stage)
        ],
    }


def _explained(document: Mapping[str, Any]) -> str:
    sections = ["\n".join(_lines(item, document["initial"])) for item in document["items"]]
    return "\n\n".join(sections)


def _lines(item: Mapping[str, Any], initial: str) -> Iterator[str]:
    begins = "  (a session begins here)" if item["name"] == initial else ""
    yield fitted(f"{escape_line(item['name'])}{begins}  {escape_line(item['where'])}")
    retry = item["retry"]
    told = ", told why the last one failed" if retry["tells_reason"] else ""
    cooler = ", each at a lower temperature" if retry["temperature_backoff"] else ""
    pairs = [
        ("  who", f"{item['role']}, executor {item['executor']}, model {item['model'] or 'none configured'}"),
        ("  makes", item["artifact"]),
        ("  task", item["task"] or "-"),
        ("  needs", ", ".join(item["requirements"]) or "-"),
        ("  tools", ", ".join(item["allowed_tools"]) or "none"),
        ("  asks", ", ".join(f"{key}: {value}" for key, value in item["approvals"].items()) or "as the policies say"),
        ("  attempts", f"{retry['max_attempts']}, strategy {retry['strategy']}{told}{cooler}"),
        ("  reads", ", ".join(source["kind"] for source in item["context"]) or "the person's words only"),
    ]
    yield from labelled(pairs)
    for number, rule in enumerate(item["transitions"], start=1):
        goto = ", else ".join(rule["goto"])
        yield fitted(escape_line(f"  rule {number}    when {rule['when']}  goto {goto}   ({rule['where']})"))
    if not item["transitions"]:
        yield "  no rule: the session fails here with transition.none"
