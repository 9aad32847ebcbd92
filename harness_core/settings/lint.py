"""Settings of the stages in, warnings out: rules that never apply, stages that lead nowhere or are not reached."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .paths import ConfigPath
from .problems import Problem
from .stages import RESERVED, Stage, StagesSettings
from .transitions import FAILURE, SUCCESS, Rule, rules_of

__all__ = ["Finding", "lint"]

Finding = tuple[ConfigPath, Problem]
"""Where the key is, and what is to be said of it; the caller knows the file and line of the key."""

_COMPARISON: Final = re.compile(r"retries\s*(>=|>|==)\s*(\d{1,9})|(\d{1,9})\s*(<=|<|==)\s*retries")
_USUAL_EXECUTORS: Final = ("agent", "workflow", "orchestrate")
_HEEDED_BY: Final = {"plan": "workflow", "workflow": "workflow", "workflows": "orchestrate"}
_MIRRORED: Final = {"<=": ">=", "<": ">", "==": "=="}


def lint(settings: StagesSettings) -> list[Finding]:
    """List what is allowed and yet can hardly be meant; nothing here stops a run."""
    found: list[Finding] = []
    for name, stage in settings.stages.items():
        rules = rules_of(stage)
        if not rules:
            hint = "add transitions, or on_success and on_failure"
            found.append(
                _finding(
                    ("stages", name), "no_transitions", "the stage leads nowhere, so it ends as transition.none", hint
                )
            )
        found += _unreachable_rules(name, rules)
        found += _never_firing(name, stage, rules)
        found += _unheeded(name, stage)
    return [*found, *_unreached_stages(settings)]


def _finding(path: ConfigPath, code: str, message: str, hint: str | None = None) -> Finding:
    return path, Problem(f"config.{code}", message, hint=hint)


def _unreachable_rules(name: str, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    seen: set[str] = set()
    for rule in rules:
        condition = " ".join(rule.when.split())
        if "true" in seen or {SUCCESS, FAILURE} <= seen:
            yield _finding(
                ("stages", name, *rule.path),
                "unreachable_rule",
                "an earlier rule always applies, so this one never does",
            )
        elif condition in seen:
            yield _finding(
                ("stages", name, *rule.path),
                "unreachable_rule",
                f"an earlier rule says the same ({condition}), so this one never applies",
            )
        seen.add(condition)


def _never_firing(name: str, stage: Stage, rules: tuple[Rule, ...]) -> Iterator[Finding]:
    most = stage.retry.max_attempts
    for rule in rules:
        needed = _retries_needed(rule.when)
        if needed is not None and needed > most:
            message = f"{rule.when} never holds: retries counts the failed attempts and max_attempts is {most}"
            yield _finding(
                ("stages", name, *rule.path),
                "never_fires",
                message,
                f"write retries >= {most}, or raise retry.max_attempts",
            )


def _unheeded(name: str, stage: Stage) -> Iterator[Finding]:
    """What only another of the usual executors looks at; what further ones look at nobody knows here."""
    executor = stage.executor.rpartition(":")[2]
    for key, heeded_by in _HEEDED_BY.items():
        if getattr(stage, key) is not None and executor != heeded_by and executor in _USUAL_EXECUTORS:
            message = f"the executor {executor} does not look at it"
            yield _finding(("stages", name, key), "not_heeded", message, f"executor: {heeded_by} does")


def _retries_needed(expression: str) -> int | None:
    """The fewest failed attempts that an ``and`` of conditions asks for; None where it is not that simple."""
    if re.search(r"\|\||\?|!(?!=)|[()]", expression):
        return None
    needed = [_least(found) for part in expression.split("&&") if (found := _COMPARISON.fullmatch(part.strip()))]
    return max(needed, default=None)


def _least(found: re.Match[str]) -> int:
    operator = found[1] or _MIRRORED[found[4]]
    number = int(found[2] or found[3])
    return number + 1 if operator == ">" else number


def _unreached_stages(settings: StagesSettings) -> Iterator[Finding]:
    start = settings.initial_name()
    waiting, reached = [start], {start}
    while waiting:
        stage = settings.stages.get(waiting.pop())
        targets = {target for rule in rules_of(stage) for target in rule.goto} if stage else set()
        fresh = targets - reached - set(RESERVED)
        reached |= fresh
        waiting += fresh
    for name in settings.stages:
        if name not in reached:
            yield _finding(("stages", name), "unreached_stage", f"no rule leads here from {start}")
