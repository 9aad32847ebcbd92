"""A configuration and the installed plugins in, the parts of one session out; nothing unused is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from harness_core.kernel.definition import Definition, ModelPlan, RetryPolicy, RulePlan, StagePlan
from harness_core.settings.personas import limits_of, persona_of
from harness_core.settings.stages import ContextSource, Stage
from harness_core.settings.transitions import rules_of
from harness_hookspecs.errors import ConfigError, HarnessError, PluginError
from harness_hookspecs.provider import Provider
from harness_hookspecs.role import EXECUTOR_ROLES
from harness_hookspecs.rules import Rules
from harness_hookspecs.validator import LEVELS

from .config.effective import EffectiveConfig
from .config.folders import has_project, no_project
from .definitions import slots_wanted, tools_of_workflows, with_workflows, workflow_needs
from .engines import Engines
from .model_handle import ModelEntry
from .parts import Need, Parts
from .plugins.binding import answer_for
from .plugins.catalogue import Catalogue
from .role_setup import BoundRole
from .rule_plan import rule_flaw, rule_plan
from .session_parts import LOGS, NamedApprover, NamedValidator, SessionParts
from .surroundings import limits_of_run, plan_site
from .tool_policy import tool_policy
from .toolbox import Tool, Toolbox

__all__ = ["Assembly"]

_MAX_ARTIFACT_BYTES = 1_048_576


@attrs.define
class Assembly:
    """Builds the parts of sessions under one configuration."""

    config: EffectiveConfig
    catalogue: Catalogue
    parts: Parts
    engines: Engines
    workspace: Path
    data_dir: Path
    live: bool = True  # a replay builds no provider and no approver

    def session_parts(self) -> SessionParts:
        """Everything the configured stages use.

        Raises:
            PluginError: Something bound is missing or broken.
            ConfigError: A rule does not compile, a name means nothing.
        """
        self.parts.try_new()
        rules = self.engines.rules()
        self.parts.build([*self._stage_needs(), *self._observing_needs()])
        models = {name: self._model(name) for name in self._model_names()}
        run = self.config.harness.run
        parts = SessionParts(
            definition=self._definition(rules, models),
            sources={name: self._sources(name, stage) for name, stage in self._stages()},
            policies={name: tool_policy(stage, self.config) for name, stage in self._stages()},
            models=models,
            toolbox=Toolbox(self._tools()),
            roles=self._roles(),
            default_role=self._default_role(),
            validators=self._validators(),
            validator_timeout_seconds=run.validator_timeout_sec,
            artifacts={name: self.parts.get(Need("artifact", name)) for name in self._artifact_names()},
            approvers=[
                NamedApprover(name, self.parts.get(Need("approver", name)))
                for name in self.config.policies.approver
                if ("approver", name) in self._built()
            ],
            approver_timeout_seconds=run.approver_timeout_sec,
            workspace=self.workspace,
            logs_dir=self.data_dir / LOGS,
            output_bytes=run.tool_output_bytes,
            parallel_tools=run.max_parallel_tools,
            engines=self.engines,
            failures=tuple(failed.payload() for failed in self.parts.failed),
            plans=plan_site(self.parts, self.catalogue, self.config, self.engines.usual()),
        )
        return with_workflows(parts, self.config, self.parts)

    def disagreements(self) -> list[HarnessError]:
        """All that somebody wrote and that would stop a session or be left out of one: names no plugin answers for,
        checks that are broken, rules that do not compile. Of the plugins the rules engine alone is imported.
        """
        checks: list[Callable[[], object]] = [partial(self._resolved, *written) for written in self._written_names()]
        checks.append(self._tool_sets)
        checks += [partial(self.catalogue.resolve, *need.key) for need in self._validator_needs()]
        if self.catalogue.offers_of("rules"):
            rules = self.engines.rules()
            for name, stage in self._stages():
                checks += [partial(self._rule, name, rule, rules) for rule in rules_of(stage)]
        elif self.catalogue.offers_out("rules"):
            checks.append(self.engines.rules)
        return [error for check in checks if (error := _error_of(check)) is not None]

    def rule_check(self) -> Callable[[str], str | None] | None:
        """What ``open_config`` checks rules by that do not count yet; ``None`` where nobody compiles rules."""
        return partial(rule_flaw, self.engines.rules()) if self.catalogue.offers_of("rules") else None

    def _written_names(self) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
        for name, stage in self._stages():
            yield "executor", stage.executor, ("stages", name, "executor")
            yield "artifact", stage.artifact, ("stages", name, "artifact")
        for index, approver in enumerate(self.config.policies.approver):
            yield "approver", approver, ("approver", index)

    def _resolved(self, kind: str, name: str, path: tuple[str | int, ...]) -> None:
        origin = self.config.origin(path)
        if origin.layer != "built-in":  # what nobody wrote is a matter of what is installed
            self.catalogue.resolve(kind, name, where=origin.text())

    # -- what is needed ---

    def _stages(self) -> Iterable[tuple[str, Stage]]:
        return self.config.stages.stages.items()

    def _stage_needs(self) -> list[Need]:
        needs = [self._model_need(name) for name in self._model_names()] if self.live else []
        needs += [
            Need("executor", stage.executor, where=self._where(name, "executor")) for name, stage in self._stages()
        ]
        needs += [
            Need("artifact", stage.artifact, where=self._where(name, "artifact")) for name, stage in self._stages()
        ]
        needs += [Need("tool", name, where="allowed_tools") for name in self._tool_sets()]
        return [*needs, *workflow_needs(self.config)]

    def _observing_needs(self) -> list[Need]:
        """Every installed validator and observer takes part; who is asked for approvals is configured.

        An approver that somebody wrote down must be there; of those that are asked by default, who is installed.
        """
        asked = self.config.policies.approver if self.live else ()
        approvers = [self._approver_need(index, name) for index, name in enumerate(asked)]
        listening = self.catalogue.offers_of("observer") if self.live else ()
        observers = [Need("observer", one.provided.name, optional=True) for one in listening]
        return [*self._validator_needs(), *approvers, *observers]

    def _validator_needs(self) -> list[Need]:
        """Also those that are broken or doubled, which is an error: no check is left out but by who disables it."""
        out = [one for one in self.catalogue.offers_out("validator") if one.row.status in {"broken", "doubled"}]
        return [Need("validator", one.provided.name) for one in (*self.catalogue.offers_of("validator"), *out)]

    def _approver_need(self, index: int, name: str) -> Need:
        origin = self.config.origin(("approver", index))
        return Need("approver", name, where=origin.text(), optional=origin.layer == "built-in")

    def _built(self) -> set[tuple[str, str]]:
        return {part.need.key for part in self.parts.built()}

    def _where(self, stage: str, *key: str | int) -> str:
        return self.config.origin(("stages", stage, *key)).text()

    def _sources(self, name: str, stage: Stage) -> list[tuple[str, ContextSource]]:
        return [(self._where(name, "context", "sources", n), one) for n, one in enumerate(stage.context.sources)]

    def _artifact_names(self) -> list[str]:
        return sorted({stage.artifact for _, stage in self._stages()})

    def _model_names(self) -> list[str]:
        return sorted(slots_wanted(self.config) | {self._model_of(name, stage) for name, stage in self._stages()})

    def _model_of(self, name: str, stage: Stage) -> str:
        """The stage's model, its persona's, or the default (models.yaml)."""
        persona = persona_of(stage.role, self.config.stages.roles)
        model = stage.model or persona.model or self.config.models.default_name()
        if model is None:
            raise self._no_model(name)
        if model not in self.config.models.models:
            known = ", ".join(self.config.models.models) or "none"
            raise ConfigError(
                f"there is no model {model}; models: {known}", code="config.no_model", where=self._where(name, "model")
            )
        return model

    def _no_model(self, name: str) -> ConfigError:
        """Where there is no project, the reason is that nobody stands in one."""
        if not has_project(self.workspace):
            said = no_project(self.workspace)
            return ConfigError(said, code="config.no_model", hint="harness init makes one here")
        known = ", ".join(self.config.models.models) or "none"
        return ConfigError(
            f"stage {name} has no model and models.yaml names no default; models: {known}",
            code="config.no_model",
            where=self._where(name, "model"),
            hint="name one in models.yaml, and with several there set its default",
        )

    def _model_need(self, name: str) -> Need:
        entry = self.config.models.models[name]
        where = self.config.origin(("models", name, "provider")).text()
        return Need("provider", entry.provider, entry=name, where=where)

    def _tool_sets(self) -> list[str]:
        """The offers behind ``allowed_tools``: a set by its name, or the set a single tool belongs to."""
        stages = [(self._where(name, "allowed_tools"), stage.allowed_tools) for name, stage in self._stages()]
        used = [*stages, *tools_of_workflows(self.config)]
        return sorted({self.catalogue.set_of(tool, where=where) for where, tools in used for tool in tools})

    # -- what is made ---

    def _model(self, name: str) -> ModelEntry:
        entry = self.config.models.models[name]
        return ModelEntry(
            name=name,
            provider_name=entry.provider.rpartition(":")[2],
            model_id=name,
            capabilities=tuple(entry.capabilities),
            context_tokens=entry.context_size,
            params=entry.inference.model_dump(exclude_none=True),
            provider=self._provider(name),
            timeout_seconds=entry.call_timeout_sec,
            path=entry.path,
            live=self.live,
        )

    def _provider(self, name: str) -> Provider:
        if self.live:
            provider: Provider = self.parts.get(self._model_need(name))
            return provider
        from .replay_role import RefusingProvider  # with all of a replay

        return RefusingProvider()

    def _tools(self) -> list[Tool]:
        run = self.config.harness.run
        tools: list[Tool] = []
        for name in self._tool_sets():
            part = self.parts.part(Need("tool", name))
            tools += Toolbox.of_set(name, part.thing, part.plugin_id, self.config.tools.tools, run.tool_timeout_sec)
        for tool in tools:
            self._check_tier(tool)
        if self.live:
            return tools
        from .replay_role import RefusingTools

        return [attrs.evolve(tool, toolset=RefusingTools()) for tool in tools]

    def _check_tier(self, tool: Tool) -> None:
        if tool.tier < tool.spec.tier and not self.config.policies.allow_tier_lowering:
            raise ConfigError(
                f"tool {tool.name} is {tool.spec.tier}, tools.yaml lowers it to {tool.tier}",
                code="config.tier_lowered",
                where=self.config.origin(("tools", tool.name, "tier")).text(),
                hint="set policies.allow_tier_lowering if that is meant",
            )

    def _roles(self) -> Mapping[tuple[str, str], BoundRole]:
        """Who answers for which role; which of them an executor will ask for it alone knows.

        The one that every agent stage asks for must be there, and what somebody has bound.
        """
        bound: dict[tuple[str, str], BoundRole] = {}
        for persona in sorted({stage.role for _, stage in self._stages()}):
            for role in EXECUTOR_ROLES:
                if role == "worker.ai-generate" or self._is_bound(role, persona) or self._has_default(role):
                    bound[role, persona] = self._role(role, persona)
        return bound

    def _is_bound(self, role: str, persona: str) -> bool:
        bind = self.config.harness.bind
        return role in bind or f"{role}@{persona}" in bind

    def _has_default(self, role: str) -> bool:
        offers = self.catalogue.offers_of("role")
        return any(one.provided.default and role in one.provided.roles for one in offers)

    def _role(self, role: str, persona: str) -> BoundRole:
        answer = answer_for(self.catalogue, role, persona)
        part = self.parts.part(Need("role", answer.name, where=answer.where))
        return BoundRole(
            part.plugin_id, part.plugin_version, answer.provider.provided.name, answer.where == "default", part.thing
        )

    def _default_role(self) -> BoundRole | None:
        defaults = [one for one in self.catalogue.offers_of("role") if one.provided.default]
        if len(defaults) != 1:
            return None
        part = self.parts.part(Need("role", defaults[0].provided.name))
        return BoundRole(part.plugin_id, part.plugin_version, defaults[0].provided.name, True, part.thing)

    def _validators(self) -> Mapping[str, list[NamedValidator]]:
        by_level: dict[str, list[NamedValidator]] = {level: [] for level in LEVELS}
        for one in self.catalogue.offers_of("validator"):
            name = one.provided.name
            validator = self.parts.get(Need("validator", name))
            level = getattr(validator, "level", None)
            if level not in by_level:
                said = f"validator {name} judges at {level!r}, which is no level; levels: {', '.join(LEVELS)}"
                raise PluginError(said, code="plugin.bound_broken")
            by_level[level].append(NamedValidator(name, validator))
        return by_level

    def _line(self, path: tuple[str | int, ...]) -> str:
        return self.config.origin(path).text()

    def _definition(self, rules: Rules, models: Mapping[str, ModelEntry]) -> Definition:
        run = self.config.harness.run
        return Definition(
            initial=self.config.stages.initial_name(),
            stages={name: self._stage_plan(name, stage, rules, models) for name, stage in self._stages()},
            limits=limits_of_run(run),
            executors={stage.executor: self.parts.get(Need("executor", stage.executor)) for _, stage in self._stages()},
            rules=rules,
            validators={level: tuple(one.name for one in found) for level, found in self._validators().items()},
        )

    def _stage_plan(self, name: str, stage: Stage, rules: Rules, models: Mapping[str, ModelEntry]) -> StagePlan:
        model = models[self._model_of(name, stage)]
        persona = persona_of(stage.role, self.config.stages.roles)
        run = self.config.harness.run
        may = stage.allowed_tools if persona.tools is None else persona.tools
        allowed = tuple(tool for tool in stage.allowed_tools if tool in may)
        limits = limits_of(stage, persona)
        params = {**model.params, **({"max_output_tokens": limits.max_tokens} if limits.max_tokens else {})}
        reply = int(params.get("max_output_tokens") or 0)
        room = max(64, model.context_tokens - reply - self.config.compression.reserve_tokens)
        return StagePlan(
            name=name,
            persona=stage.role,
            executor=stage.executor,
            model=ModelPlan(
                name=model.name,
                provider=model.provider_name,
                capabilities=frozenset(model.capabilities),
                context_tokens=model.context_tokens,
                params=params,
                denied_by=self._denied_by(model.provider_name),
            ),
            requirements=frozenset(stage.requirements),
            artifact=stage.artifact,
            allowed_tools=allowed,
            gate=stage.approvals.artifact == "required",
            retry=RetryPolicy(
                strategy=stage.retry.strategy,
                max_attempts=stage.retry.max_attempts,
                inject_failure_reason=stage.retry.tells_reason,
                temperature_backoff=stage.retry.temperature_backoff,
            ),
            transitions=tuple(self._rule(name, rule, rules) for rule in rules_of(stage)),
            system=persona.prompt,
            prompt=stage.task or "",
            max_turns=min(stage.max_turns or run.max_turns, run.max_turns),
            context_tokens=min(stage.context.max_tokens or room, room),
            timeout_seconds=stage.timeout_sec,
            max_artifact_bytes=limits.max_bytes or _MAX_ARTIFACT_BYTES,
            plan=stage.plan,
        )

    def _denied_by(self, provider: str) -> str | None:
        denied = provider in self.config.policies.providers.deny
        return self.config.origin(("providers", "deny")).text() if denied else None

    def _rule(self, stage: str, rule: Any, rules: Rules) -> RulePlan:
        return rule_plan(stage, rule, rules, self._line(("stages", stage, *rule.path)))


def _error_of(check: Callable[[], object]) -> HarnessError | None:
    try:
        check()
    except HarnessError as error:
        return error
    return None
