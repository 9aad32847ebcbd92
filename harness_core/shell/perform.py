"""An effect in, the command that says how it ended out: the only door from the loop to the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from harness_core.kernel.commands import (
    Command,
    ContextReady,
    EffectFailed,
    RoleFailed,
    RoleSuspended,
)
from harness_core.kernel.context import assemble
from harness_core.kernel.definition import StagePlan
from harness_core.kernel.effects import Ask, CompilePlan, Effect, GatherContext, RunChild, RunRole, Validate
from harness_core.kernel.state import OpenRequest, SessionState, Visit
from harness_hookspecs.artifact import ArtifactType, Narrows
from harness_hookspecs.errors import HarnessError, NotFound, PluginError, Refused
from harness_hookspecs.kit.canonical import canonical, digest
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Store

from .call_limits import CallLimit, first_limit
from .context_items import STEERING, counted_items
from .dispatcher import CallSite
from .earlier_calls import Earlier, earlier_results
from .gather import Gathered, GatherSite, gather
from .journal import recorded_events
from .model_handle import ModelEntry
from .perform_ask import AskSite, ask
from .perform_attempt import attempt
from .perform_compile import CompileSite, compile_plan, schema_of_plans
from .perform_role import run_role
from .perform_tool import execute
from .perform_validate import ValidateSite, validate
from .role_setup import RoleCallSetup, Slot
from .services import Services
from .session_parts import SessionParts
from .surroundings import given_by

__all__ = ["Performer"]


@attrs.define(eq=False)
class Performer:
    """Performs the effects of one session. Nothing it does is retried here; the kernel is the one retry owner."""

    session_id: str
    stream: str
    parts: SessionParts
    services: Services
    store: Store
    ask_site: AskSite
    log_dir_made: bool = False
    known_manifests: set[str] = attrs.field(factory=set)
    last_site: CallSite | None = None
    log_dir: Path = attrs.field(init=False)

    @log_dir.default
    def _find_log_dir(self) -> Path:
        return self.parts.logs_dir / self.session_id

    def __call__(self, effect: Effect) -> Command | None:
        """Perform; what a plugin raises is inside the command, what stops the whole session is raised."""
        return _PERFORM[type(effect)](self, effect)

    @property
    def _state(self) -> SessionState:
        return self.services.loop.state  # type: ignore[no-any-return]  # the loop is generic

    def _open(self, effect_id: str) -> OpenRequest | None:
        return self._state.open.get(effect_id)

    # -- context ---

    def gather_context(self, effect: GatherContext) -> Command | None:
        request = self._open(effect.effect_id)
        if request is None:
            return None
        try:
            return self._assembled(effect.effect_id)
        except HarnessError as error:
            return EffectFailed(effect.effect_id, self._envelope(error))

    def _assembled(self, effect_id: str) -> ContextReady:
        visit, stage = self._visit()
        found = [self._clean(fact) for fact in gather(self.parts.sources[visit.stage], self._gather_site())]
        facts: dict[str, Any] = {}
        for fact in found:
            facts.update(fact.facts)
        entry = self.parts.models[stage.model.name]
        items, counted_by = counted_items([*self._steering(), *found], entry)
        pack = assemble(items, stage.context_tokens)
        schema = self._schema(stage, facts)
        stage_input = {
            "stage": visit.stage,
            "visit_index": visit.index,
            "attempt": visit.attempt,
            "persona": visit.persona,
            "prompt": self._prompt(stage),
            "context": pack.text,
            "output_schema": self.services.redactor.value(schema),
            "tools": sorted(self.parts.toolbox.allowed(stage.allowed_tools, stage.model.capabilities)),
            "model": stage.model.name,
            "max_turns": stage.max_turns,
            "params": dict(stage.model.params),
        }
        stage_input |= given_by(stage, visit.prior, self.services.loop.read_blob)
        if visit.feedback is not None:
            stage_input["feedback"] = visit.feedback
        document = {
            "input": stage_input,
            "items": [item.facts() for item in pack.included],
            "left_out": [{**item.facts(), "reason": reason} for item, reason in pack.left_out],
        }
        gathered = {"facts": facts, "items": [attrs.asdict(item) for item in items], "counted_by": counted_by}
        blobs = {digest(value): canonical(value) for value in (document, gathered)}
        payload = {
            "effect_id": effect_id,
            "visit_id": visit.visit_id,
            "attempt": visit.attempt,
            "facts_ref": digest(gathered),
            "pack_ref": digest(document),
            "tokens": pack.tokens,
            "budget_tokens": stage.context_tokens,
            "counted_by": counted_by,
            "items": len(pack.included),
            "left_out": len(pack.left_out),
        }
        return ContextReady(effect_id, payload, blobs)

    def _gather_site(self) -> GatherSite:
        services, workspace = self.services, self.parts.workspace
        return GatherSite(services.ports, workspace, services.cancel, self._artifact_of, self._call_reading_tool)

    def _prompt(self, stage: StagePlan) -> str:
        """The stage's task and the person's words; they are the question and never dropped."""
        text = self.services.loop.read_blob(self._state.created["text_ref"]).decode()
        return f"{stage.prompt}\n\n{text}" if stage.prompt else text

    def _steering(self) -> list[Gathered]:
        return [
            Gathered(STEERING, "Instruction", text, 1, {"event": "steering.received"})
            for text in self._visit()[0].steering
        ]

    def _clean(self, fact: Gathered) -> Gathered:
        """A fact without the secrets: a file may have one in its name as well as in its text (D-18)."""
        hide = self.services.redactor
        title, text, source = hide.text(fact.title), hide.text(fact.text), hide.value(fact.source)
        return attrs.evolve(fact, title=title, text=text, source=source, facts=hide.value(fact.facts))

    def _schema(self, stage: StagePlan, facts: Mapping[str, Any]) -> Any:
        artifact = self.parts.artifacts[stage.artifact]
        known = {**facts, "reply_tokens": stage.model.params.get("max_output_tokens")}
        said = attempt(_schema_of, artifact, known, what=f"artifact type {stage.artifact}")
        if said.error is not None:
            raise said.error
        if not isinstance(said.value, Mapping):
            raise PluginError(f"artifact type {stage.artifact} gave no schema", code="context.no_schema")
        return said.value

    def _artifact_of(self, stage: str) -> tuple[str, str] | None:
        """The latest accepted artifact of a stage, as text for a model."""
        for artifact in reversed(self._state.artifacts):
            if artifact["stage"] == stage:
                content = self.services.loop.read_blob(artifact["ref"].removeprefix("artifact://sha256-"))
                return artifact["ref"], content.decode()
        return None

    def _call_reading_tool(self, name: str, args: Mapping[str, Any]) -> Any:
        """A T0 or T1 tool as a source of facts; anything stronger belongs into a role call."""
        tool = self.parts.toolbox.allowed([name], frozenset(("tool_calling",))).get(name)
        if tool is None:
            raise NotFound(f"there is no tool {name}", code="tool.unknown")
        if tool.tier not in ("T0", "T1"):
            raise Refused(f"{name} is {tool.tier}; a source may only read", code="context.tool_tier")
        services, key = self.services, f"context/{name}"
        done = execute(tool, args, key, cancel=services.cancel, ports=services.ports, deadlines=services.deadlines)
        if done.value is None:
            assert done.error is not None
            raise done.error
        dumps(done.value.value)
        return done.value.value

    # -- role ---

    def run_role(self, effect: RunRole) -> Command | None:
        request = self._open(effect.effect_id)
        if request is None:
            return None
        payload = request.payload
        role = self.parts.roles.get((payload["role"], payload["persona"]))
        if role is None:
            error = NotFound(f"nobody answers for role {payload['role']}", code="role.not_available")
            return RoleFailed(payload["role_call_id"], self._envelope(error))
        setup = self.role_setup(request, role)
        outcome = self._run_in_time(request, setup)
        if request.suspended is None and isinstance(outcome, RoleSuspended):
            self.services.ports.reach("role.suspended")
        return outcome

    def _run_in_time(self, request: OpenRequest, setup: RoleCallSetup) -> Command:
        """Run the role call; its stage, its step and timers may bound how long it takes."""
        limit = self._first_limit(request)
        if request.rounds:
            self.services.loop.flush()  # what suspended it may not be in the store yet, with results that came by then
        prior = recorded_events(request, self.store, self.stream)
        if limit is None:
            return run_role(request, setup, services=self.services, prior=prior)
        if limit.seconds <= 0:  # nothing of it begins
            return RoleFailed(request.payload["role_call_id"], self._envelope(limit.error()))
        deadlines, services, seconds = self.services.deadlines, self.services, limit.seconds
        # Two tokens, since a cancel stops a tool at once and a model call only after its grace (K-30).
        with deadlines.limit(services.cancel, seconds) as token, deadlines.limit(services.late_cancel, seconds) as late:
            services = attrs.evolve(services, cancel=token, late_cancel=late)
            outcome = run_role(request, setup, services=services, prior=prior)
        if isinstance(outcome, RoleFailed) and token.reason == "timeout":
            return attrs.evolve(outcome, error=self._envelope(limit.error()))
        return outcome

    def _first_limit(self, request: OpenRequest) -> CallLimit | None:
        return first_limit(request, self._visit()[1].timeout_seconds, self._state, self.services.ports.clock.now)

    def role_setup(self, request: OpenRequest, role: Any) -> RoleCallSetup:
        """Everything a role call is made of; a replay makes it again from the record."""
        visit, stage = self._visit()
        entry, own = self.parts.models[stage.model.name], request.payload.get("params") or {}
        if not self.log_dir_made:
            self.services.ports.files(self.parts.logs_dir).make_directory(self.session_id)
            self.log_dir_made = True
        return RoleCallSetup(
            session_id=self.session_id,
            parent_id=self._state.created.get("parent_id"),
            role=role,
            default_role=self.parts.default_role,
            model=entry,
            site=self._site(visit, stage),
            params={**self._seed(visit, entry), **stage.model.params, **own},
            attempt=visit.attempt,
            system=stage.system,
            log_dir=self.log_dir,
            parallel_tools=self.parts.parallel_tools,
            known_manifests=self.known_manifests,
            rules=self.parts.definition.rules,
            engines=self.parts.engines,
            slots=self._slots(visit, stage, own),
            plan_schema=partial(
                schema_of_plans, self.parts.definition.executors.get(visit.executor), stage, self.parts
            ),
            earlier=self._earlier(request, visit),
        )

    def _slots(self, visit: Visit, stage: StagePlan, own: Mapping[str, Any]) -> dict[str, Slot]:
        """The models that a step may name beside its stage's: all there are, and what a workflow calls them."""
        named = {**{name: name for name in self.parts.models}, **stage.slots}
        models = {name: self.parts.models.get(entry) for name, entry in sorted(named.items())}
        return {
            name: Slot(one, {**self._seed(visit, one), **one.params, **own})
            for name, one in models.items()
            if one is not None and (name, one.name) != (stage.model.name, stage.model.name)
        }

    def _earlier(self, request: OpenRequest, visit: Visit) -> Earlier:
        if request.place not in visit.repaired:
            return {}
        self.services.loop.flush()  # what ended before it was asked for may not be in the store yet
        return earlier_results(self.store, self.stream, request, visit)

    def _seed(self, visit: Visit, entry: ModelEntry) -> dict[str, int]:
        """The sampler's seed where the model's entry has none: the session's, and another one for each attempt, since
        the same question under the same seed would have the same answer.
        """
        if "seed" in entry.params:
            return {}
        return {"seed": (self._state.created["seed"] + visit.attempt - 1) % 2**32}

    def _site(self, visit: Visit, stage: StagePlan) -> CallSite:
        """Where the tool calls of a visit come from, the same for all its role calls."""
        if self.last_site is None or self.last_site.visit_id != visit.visit_id:
            self.last_site = CallSite(
                stage=visit.stage,
                visit_id=visit.visit_id,
                persona=visit.persona,
                policy=self.parts.policies[visit.stage],
                yolo=self._state.created.get("yolo", "off"),
                tools=self.parts.toolbox.named(stage.allowed_tools),
                output_bytes=self.parts.output_bytes,
                max_depth=self.parts.definition.limits.max_depth,
            )
        return self.last_site

    def run_child(self, effect: RunChild) -> Command | None:
        request = self._open(effect.effect_id)
        run = self.services.run_child
        limits, active = self.parts.definition.limits, self.services.active
        return None if request is None or run is None else run(request, limits, active)

    # -- validation and approval ---

    def validate(self, effect: Validate) -> Command | None:
        request = self._open(effect.effect_id)
        if request is None:
            return None
        visit, stage = self._visit()
        site = ValidateSite(self.session_id, self.stream, self.parts, self.services, self.store)
        return validate(request, visit, stage, site)

    def compile_plan(self, effect: CompilePlan) -> Command | None:
        request = self._open(effect.effect_id)
        if request is None:
            return None
        visit, stage = self._visit()
        return compile_plan(request, visit, stage, self.compile_site())

    def compile_site(self) -> CompileSite:
        """What plans of this session are checked with."""
        services = self.services
        return CompileSite(self.parts, services.ports, services.redactor, services.loop.read_blob)

    def ask(self, effect: Ask) -> Command | None:
        approval = self._state.approvals.get(effect.approval_id)
        if approval is None or approval.status != "pending":
            return None
        return ask(approval, self._state, self.ask_site, self.services)

    # -- shared ---

    def _visit(self) -> tuple[Visit, StagePlan]:
        visit = self._state.visit
        assert visit is not None, "an effect of a visit without a visit"
        return visit, self.parts.definition.stages[visit.stage]

    def _envelope(self, error: HarnessError) -> dict[str, Any]:
        return self.services.recorded(error)


def _schema_of(artifact: ArtifactType, known: Mapping[str, Any]) -> Any:
    """The type's own schema, as narrow as it can be made; raises for one that cannot be recorded."""
    schema = artifact.schema()
    if isinstance(artifact, Narrows):
        schema = artifact.narrow(schema, known) or schema
    dumps(schema)
    return schema


_PERFORM: dict[type, Callable[[Performer, Any], Command | None]] = {
    GatherContext: Performer.gather_context,
    RunRole: Performer.run_role,
    Validate: Performer.validate,
    CompilePlan: Performer.compile_plan,
    RunChild: Performer.run_child,
    Ask: Performer.ask,
}
