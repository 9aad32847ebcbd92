"""An open role call in, the command that says how it ended out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness_core.kernel.commands import RoleFailed, RoleReturned, RoleSuspended
from harness_core.kernel.facts import Event, effect_id
from harness_core.kernel.state import MIGRATED, OpenRequest
from harness_hookspecs.errors import Diverged, Drift, HarnessError, RoleError, Suspend
from harness_hookspecs.kit.canonical import canonical, read_canonical
from harness_hookspecs.messages import Usage
from harness_hookspecs.role import (
    DelegateToDefault,
    DescribesPrompt,
    ExecuteStepResult,
    ExecuteStepTask,
    ExecutorRole,
    FixStepResult,
    FixStepTask,
    RoleTask,
    Scope,
    parse_result,
)

from .dispatcher import Dispatcher
from .journal import CallRecord, Journal
from .manifests import MadeManifest, made_manifest
from .model_handle import BoundModel
from .no_model import NoModel
from .perform_attempt import attempt
from .perform_fix import fix_error, recomputed
from .ports import NoThread
from .recorder import RoleCallRecorder
from .role_context import CallContextOfRole, Durability
from .role_setup import BoundRole, RoleCallSetup
from .role_task import asks_model, limits_of, manifest_fields, output_of, place_of, step_of, task_of
from .services import Services

__all__ = ["run_role"]


def run_role(
    request: OpenRequest, setup: RoleCallSetup, *, services: Services, prior: Sequence[Event]
) -> RoleReturned | RoleFailed | RoleSuspended:
    """Run a role call from its start; recorded calls answer at once.

    Args:
        request: The call, as the state has it.
        setup: What it is made of.
        services: What its own calls need.
        prior: What it has recorded so far.

    Raises:
        Drift: The call was started with another manifest; nothing was asked.
        Diverged: The role asked something else than what is recorded, or left recorded calls unused.
    """
    wire = read_canonical(services.loop.read_blob(request.payload["task_ref"]))
    try:
        task = task_of(wire, request.payload["role"])
        begun = any(event.type == "harness.session.started" for event in prior)
        setup = setup.for_task(task, begun=begun)
    except RoleError as error:  # nobody can run it, so nothing of it begins
        return RoleFailed(request.payload["role_call_id"], services.recorded(error))
    return _RoleCall(request, _Asked(wire, task), setup, services, prior).run()


class _Asked(NamedTuple):
    """The task as it is recorded, and as the role is given it."""

    wire: Mapping[str, Any]
    task: RoleTask


class _Written(NamedTuple):
    """A result in the form in which it is recorded."""

    content: bytes
    artifact_refs: tuple[Any, ...]
    usage: Usage


class _RoleCall:
    """One run of one role call."""

    def __init__(
        self,
        request: OpenRequest,
        asked: _Asked,
        setup: RoleCallSetup,
        services: Services,
        prior: Sequence[Event],
    ) -> None:
        self._request, self._services = request, services
        payload = request.payload
        self._role_call_id = payload["role_call_id"]
        self._task_wire, self._task = asked
        self._setup = setup
        self._place = place_of(self._task, request)
        refs: dict[str, Any] = {"stage_visit_id": payload["visit_id"], **self._place.refs()}
        self._recorder = RoleCallRecorder(
            services.loop,
            services.ports,
            role_call_id=self._role_call_id,
            refs=refs,
            journal=Journal(prior),
            read_blob=services.loop.read_blob,
            in_turn=services.in_turn,
        )
        self._context = self._make_context(prior)

    def _make_context(self, prior: Sequence[Event]) -> CallContextOfRole:
        setup, services = self._setup, self._services
        bound = partial(_bound_model, setup, services, self._recorder)  # and not this object, which holds the context
        return CallContextOfRole(
            scope=Scope(
                run_id=setup.session_id,
                log_dir=str(setup.log_dir),
                role=self._request.payload["role"],
                parent_run_id=setup.parent_id,
            ),
            model=bound() if asks_model(self._task) else NoModel(bound),
            durability=Durability(self._recorder, prior, services.redactor),
            ports=services.ports,
            abort_signal=services.cancel,
            log_dir=setup.log_dir,
            dispatcher=Dispatcher(setup.site, recorder=self._recorder, services=services),
            call_recorder=self._recorder,
            parallel_tools=setup.parallel_tools,
            system=setup.system,
            response_schema=setup.answer_schema(self._task, self._task_wire),
            trace=services.trace,
            earlier=setup.earlier,
        )

    # -- running ---

    def run(self) -> RoleReturned | RoleFailed | RoleSuspended:
        """Run it; one that an accepted change has made another call ends here, for an attempt of its own (A-59)."""
        try:
            return self._run()
        except Drift as drift:
            accept = self._acceptance()
            if accept is None:
                raise
            done = self._done_for_good()
            if done:  # nobody who accepts a change says with it that they may happen twice (I-16)
                raise Drift(
                    f"{drift.message}; the call cannot begin anew, since it would do again: {', '.join(done)}",
                    code=drift.code,
                    hint="undo the change and resume with --accept-drift, or cancel the session",
                    **drift.facts,
                ) from drift
            accept(drift)
            return self._failed(RoleError(drift.message, code=MIGRATED))

    def _acceptance(self) -> Callable[[Drift], None] | None:
        """What records that a change is accepted, once for all calls before it; ``None`` where nobody accepts it."""
        if self._services.loop.state.migrated_seq > self._request.seq:
            return lambda recorded: None
        return self._services.accept

    def _done_for_good(self) -> list[str]:
        """The tools of unkeyed calls that have happened, or of which nobody knows whether they have."""
        settled = self._services.loop.state.settled
        return [
            str(record.intent["toolName"])
            for record in self._recorder.journal.unkeyed()
            if record.ended is not None
            or settled.get(self._effect_of(record), {}).get("outcome") != "never_happened"
        ]

    def _effect_of(self, record: CallRecord) -> str:
        return effect_id(self._role_call_id, record.intent["callId"], record.starts)

    def _run(self) -> RoleReturned | RoleFailed | RoleSuspended:
        result, error = self._run_bound()
        recorder = self._recorder
        if recorder.fatal is not None:
            raise recorder.fatal
        if recorder.closed is not None:  # the flag decides, whatever the role made of the exception (D-5)
            return self._suspended(recorder.closed)
        error = recorder.ending(error) or self._too_late()
        if error is not None:
            return self._failed(fix_error(self._task, error))
        recorder.check_manifest()
        unused = recorder.journal.first_unused()
        if unused is not None:
            raise Diverged(f"the role no longer makes the call recorded at event {unused.seq}", seq=unused.seq)
        return self._returned(result)

    def _too_late(self) -> HarnessError | None:
        """What came when the time of the call was over is no result of it, whatever went on in spite of that."""
        if self._services.cancel.reason != "timeout":
            return None
        return RoleError("the call ended when its time was over", code="role.timeout")

    def _run_bound(self) -> tuple[Any, HarnessError | None]:
        role = self._setup.role
        broken = self._open(role, None)
        if broken is not None:
            return None, broken
        result, error = self._call(role)
        if error is None and isinstance(result, DelegateToDefault):
            return self._delegate(role)
        return self._checked(result, error)

    def _delegate(self, role: BoundRole) -> tuple[Any, HarnessError | None]:
        default = self._setup.default_role
        if role.default:
            return None, RoleError("the default role may not delegate", code="role.delegation_loop")
        if default is None:
            return None, RoleError("there is no default role harness to delegate to", code="role.no_default")
        try:
            broken = self._open(default, role)
        except RoleError as late:
            return None, late
        if broken is not None:
            return None, broken
        result, error = self._call(default)
        if isinstance(result, DelegateToDefault):
            return None, RoleError("the default role may not delegate", code="role.delegation_loop")
        return self._checked(result, error)

    def _call(self, role: BoundRole) -> tuple[Any, HarnessError | None]:
        try:
            what = f"role {role.offer} ({role.plugin})"
            done = attempt(role.harness.run, self._task, self._context, what=what, passing=(Suspend, NoThread))
        except Suspend:
            if self._recorder.closed is not None:
                return None, None
            return None, RoleError("the role suspended itself; only its context may", code="role.suspended_itself")
        if done.error is not None or isinstance(done.value, _RESULTS):
            return done.value, done.error
        parsed = attempt(parse_result, done.value, what=f"the result of role {role.offer}")
        return parsed.value, parsed.error

    def _checked(self, result: Any, error: HarnessError | None) -> tuple[Any, HarnessError | None]:
        if error is not None or self._recorder.closed is not None:
            return None, error
        kind = getattr(result, "kind", None)
        if kind != self._task.kind:
            message = f"a {self._task.kind} task was answered with a {kind} result"
            return None, RoleError(message, code="role.result_kind_mismatch")
        if isinstance(self._task, FixStepTask) and isinstance(result, FixStepResult):
            result, error = self._recomputed(result, self._task)
            if error is not None or self._recorder.closed is not None:
                return None, error
        written = attempt(self._written, result, what=f"the result of role {self._setup.role.offer}")
        return written.value, written.error

    def _recomputed(
        self, claim: FixStepResult, task: FixStepTask
    ) -> tuple[FixStepResult | None, HarnessError | None]:
        """What the repaired source gives; nobody believes the one who repaired it."""
        engines, context, place = self._setup.engines, self._context, self._place
        try:
            done = attempt(
                recomputed, claim, task, context, engines, place, what="the engine", passing=(Suspend, NoThread)
            )
        except Suspend:
            return None, None
        return done.value, done.error

    def _written(self, result: Any) -> _Written:
        """A result as it is recorded; raises for one that cannot be."""
        redactor = self._services.redactor
        content = canonical(redactor.value(output_of(result)))
        refs = tuple(redactor.value(ref.to_wire()) for ref in getattr(result, "artifact_refs", ()))
        return _Written(content, refs, self._context.model.usage())

    # -- what is written ---

    def _open(self, role: BoundRole, delegated_by: BoundRole | None) -> HarnessError | None:
        """The opening facts, unless a run before this one has written them; the error when the role says of its prompt
        what is nothing to record."""
        recorder, setup = self._recorder, self._setup
        manifest, broken = self._manifest(role, delegated_by)
        facts = []
        if not recorder.journal.resolved:
            facts.append(
                recorder.fact(
                    "role.resolved",
                    {
                        "role_call_id": self._role_call_id,
                        "plugin": setup.role.plugin,
                        "plugin_version": setup.role.version,
                        "offer": setup.role.offer,
                        "default": setup.role.default,
                    },
                )
            )
            if delegated_by is not None:
                delegated = {"role_call_id": self._role_call_id, "source": delegated_by.plugin, "target": role.plugin}
                facts.append(recorder.fact("role.delegated", delegated))
        if recorder.journal.manifest_hash is None:
            started = {
                "runId": setup.session_id,
                "role": self._request.payload["role"],
                "task": {"kind": self._task.kind},
                "manifestHash": manifest.manifest_hash,
            }
            if setup.parent_id:
                started["parentRunId"] = setup.parent_id
            facts.append(recorder.fact("harness.session.started", started))
        if isinstance(self._task, ExecuteStepTask) and not recorder.journal.step_started:
            facts.append(recorder.fact("harness.execute_step.started", step_of(self._task, setup.session_id)))
        recorder.open(facts, {manifest.manifest_hash: manifest.content}, manifest.wire)
        return broken

    def _manifest(
        self, role: BoundRole, delegated_by: BoundRole | None
    ) -> tuple[MadeManifest, HarnessError | None]:
        """What this call uses."""
        setup, payload, model = self._setup, self._request.payload, self._context.model
        wire: dict[str, Any] = {
            "role": payload["role"],
            "pluginId": role.plugin,
            "pluginVersion": role.version,
            "slot": model.slot_id,
            "provider": model.provider,
            "modelId": model.model_id,
            "params": dict(model.params),
            "tools": [tool.reference() for tool in setup.site.tools.values()],
            "skills": [],
            "mounts": [{"path": mount.path, "mode": mount.mode} for mount in self._context.mounts],
            "limits": limits_of(self._task),
            **manifest_fields(self._task, self._task_wire, self._place),
            **setup.run_by(self._task),
        }
        if delegated_by is not None:
            wire["delegatedFrom"] = delegated_by.plugin
        made = partial(made_manifest, system=setup.system, known=setup.known_manifests)
        if role.describes is None:
            return made(wire, {}), None
        what = f"the description of its prompt by role {role.offer} ({role.plugin})"
        said = attempt(_described, role.describes, payload["role"], partial(made, dict(wire)), what=what)
        return (said.value, None) if said.value is not None else (made(wire, {}), said.error)

    def _suspended(self, closed: Suspend) -> RoleSuspended:
        results, blobs = self._recorder.drain()
        return RoleSuspended(self._role_call_id, closed.kind, closed.wait_id, results, blobs)

    def _failed(self, error: HarnessError) -> RoleFailed:
        envelope = self._services.recorded(error)
        payload = {"runId": self._setup.session_id, "error": envelope}
        self._recorder.ended = True
        results, blobs = self._recorder.drain()
        ending = self._recorder.fact("harness.session.failed", payload)
        return RoleFailed(self._role_call_id, envelope, (*results, ending), blobs)

    def _returned(self, written: _Written) -> RoleReturned:
        output_ref = hashlib.sha256(written.content).hexdigest()
        recorder = self._recorder
        recorder.ended = True
        results, blobs = recorder.drain()
        closing = list(results)
        if isinstance(self._task, ExecuteStepTask):
            succeeded = {**step_of(self._task, self._setup.session_id), "outputRef": output_ref}
            closing.append(recorder.fact("harness.execute_step.succeeded", succeeded))
        completed = {
            "runId": self._setup.session_id,
            "outputRef": output_ref,
            "usage": written.usage.to_wire(),
        }
        closing.append(recorder.fact("harness.session.completed", completed))
        blobs[output_ref] = written.content
        return RoleReturned(self._role_call_id, output_ref, written.artifact_refs, blobs, tuple(closing))


_RESULTS = (DelegateToDefault, ExecuteStepResult)


def _bound_model(setup: RoleCallSetup, services: Services, recorder: RoleCallRecorder) -> BoundModel:
    return BoundModel(
        setup.model,
        recorder=recorder,
        services=services,
        tools=setup.site.tools,
        routing=(setup.site.persona, setup.site.stage, setup.attempt),
        params=setup.params,
        slot=setup.slot,
    )


def _described(
    describes: DescribesPrompt, role: ExecutorRole, made: Callable[[Mapping[str, str]], MadeManifest]
) -> MadeManifest:
    return made(describes.prompt_facts(role))
