"""A validation request in, the merged verdict of every validator of its level out (B-73, I-24)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import attrs

from harness_core.kernel.commands import Validated
from harness_core.kernel.definition import StagePlan
from harness_core.kernel.projections.event import payload_of
from harness_core.kernel.state import OpenRequest, Visit
from harness_hookspecs.artifact import ArtifactStatus
from harness_hookspecs.errors import HarnessError, PluginError
from harness_hookspecs.host import CancelToken, Ports, Task
from harness_hookspecs.kit.canonical import canonical, digest, read_canonical
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Store
from harness_hookspecs.validator import Finding, Subject, Verdict

from .deadlines import HEED_SECONDS
from .perform_attempt import Attempt, attempt
from .services import Services
from .session_parts import NamedValidator, SessionParts

__all__ = ["ValidateSite", "validate"]

MAX_INLINE_BODY_BYTES = 16_384
"""A body up to this size stands in the event, so that transition rules can read it; a larger one by reference."""


@attrs.frozen
class ValidateSite:
    """What a judgement is made from."""

    session_id: str
    stream: str
    parts: SessionParts
    services: Services
    store: Store


def validate(request: OpenRequest, visit: Visit, stage: StagePlan, site: ValidateSite) -> Validated:
    """Let all validators of the level judge; without an explicit pass of each one it is no."""
    level = request.payload["level"]
    judges = site.parts.validators.get(level, ())
    subject = _subject(level, visit, stage, site)
    results = _judge_all(judges, subject, site)
    errors = [
        {"validator": site.services.redactor.text(judge.name), **site.services.recorded(result.error)}
        for judge, result in zip(judges, results, strict=True)
        if result.error is not None
    ]
    if not judges:
        errors = [{"validator": "", "name": "PluginError", "message": f"nobody judges at level {level}"}]
    base = {"effect_id": request.effect_id, "level": level}
    if errors:
        return Validated(request.effect_id, "errored", {**base, "errors": errors}, {})
    verdicts = [result.value for result in results if result.value is not None]
    return _merged(base, verdicts, stage, site)


def _judge_all(judges: Sequence[NamedValidator], subject: Subject, site: ValidateSite) -> list[Attempt[Verdict]]:
    """Side by side: a level is as slow as its slowest validator, and ends in time whatever one of them does."""
    ports, seconds = site.services.ports, site.parts.validator_timeout_seconds
    results: dict[int, Attempt[Verdict]] = {}
    with site.services.deadlines.limit(site.services.cancel, seconds) as token:

        def work(index: int) -> None:
            results[index] = _judge(judges[index], subject, token, seconds)

        if getattr(ports, "concurrent", True):
            tasks = [ports.spawn(work, index, name="validator") for index in range(len(judges))]
            _wait_for(tasks, ports, seconds + HEED_SECONDS)
        else:  # with one thread nobody could look at the time
            for index in range(len(judges)):
                work(index)
    return [results.get(index) or _too_late(judge, seconds) for index, judge in enumerate(judges)]


def _wait_for(tasks: Sequence[Task], ports: Ports, timeout_seconds: float) -> None:
    """Until all have ended, or the time is over: what does not heed its token goes on, and nobody listens."""
    end = ports.clock.monotonic() + timeout_seconds
    for task in tasks:
        task.join(max(0.0, end - ports.clock.monotonic()))


def _too_late(judge: NamedValidator, seconds: float) -> Attempt[Verdict]:
    message = f"validator {judge.name} gave no verdict within {seconds:g} s"
    hint = "run.validator_timeout_sec sets the time"
    return Attempt(None, PluginError(message, code="validation.timeout", hint=hint))


def _judge(judge: NamedValidator, subject: Subject, token: CancelToken, seconds: float) -> Attempt[Verdict]:
    done = attempt(judge.validator.validate, subject, token, what=f"validator {judge.name}")
    if token.reason == "timeout":  # a verdict that comes late is none (I-24)
        return _too_late(judge, seconds)
    if done.error is not None:
        return done
    if not isinstance(done.value, Verdict):
        return Attempt(None, PluginError(f"validator {judge.name} gave no verdict", code="validation.no_verdict"))
    broken = attempt(_check, done.value, what=f"the verdict of {judge.name}").error
    if broken is not None:
        message = f"validator {judge.name} gave a broken verdict: {broken.message}"
        return Attempt(None, PluginError(message, code="validation.no_verdict"))
    if done.value.passed and any(finding.severity == "error" for finding in done.value.findings):
        message = f"validator {judge.name} passes what it finds an error in"
        return Attempt(None, PluginError(message, code="validation.contradictory"))
    return done


def _check(verdict: Verdict) -> None:
    """Raise for a verdict that was made past the checks of its type, and for what cannot be recorded of it."""
    Verdict(passed=verdict.passed, findings=verdict.findings)
    wires = [finding.to_wire() for finding in verdict.findings]
    for wire in wires:
        Finding.from_wire(wire)
    dumps([wires, verdict.body])


def _subject(level: str, visit: Visit, stage: StagePlan, site: ValidateSite) -> Subject:
    read = site.services.loop.read_blob
    facts = read_canonical(read(visit.facts_ref))["facts"] if visit.facts_ref else None
    output_ref = visit.output_ref if level == "payload" else visit.body_ref
    return Subject(
        level=level,
        session_id=site.session_id,
        stage=visit.stage,
        persona=visit.persona,
        attempt=visit.attempt,
        model={"name": stage.model.name, "provider": stage.model.provider},
        requirements=tuple(sorted(stage.requirements)),
        artifact_type=stage.artifact,
        output=read_canonical(read(output_ref)) if output_ref else None,
        status=visit.status,
        facts=facts,
        tool_log=_tool_log(visit, site) if level in ("semantic", "approval") else (),
    )


def _tool_log(visit: Visit, site: ValidateSite) -> tuple[Any, ...]:
    """The visit's tool calls as recorded: the log, not the model's word (trap 35)."""
    site.services.loop.flush()
    marker = f'"stage_visit_id":"{visit.visit_id}"'.encode()
    log = []
    for event in site.store.read(site.stream, after=visit.entered_seq):
        if event.type in _TOOL_ENDINGS and marker in event.refs:
            payload = payload_of(event)
            log.append({"name": payload["toolName"], "args": payload["args"], "ok": _TOOL_ENDINGS[event.type]})
    return tuple(log)


_TOOL_ENDINGS = {"harness.tool_call.succeeded": True, "harness.tool_call.failed": False}


def _merged(base: dict[str, Any], verdicts: list[Verdict], stage: StagePlan, site: ValidateSite) -> Validated:
    findings = [finding.to_wire() for verdict in verdicts for finding in verdict.findings]
    effect_id, level = base["effect_id"], base["level"]
    payload: dict[str, Any] = {**base, "findings": site.services.redactor.value(findings)}
    if not all(verdict.passed for verdict in verdicts):
        return Validated(effect_id, "failed", payload, {})
    blobs: dict[str, bytes] = {}
    if level == "payload":
        try:
            payload |= _body(verdicts, stage, site, blobs)
        except HarnessError as error:
            errors = [{"validator": "payload", **site.services.recorded(error)}]
            return Validated(effect_id, "errored", {**base, "errors": errors}, {})
    return Validated(effect_id, "passed", payload, blobs)


def _body(verdicts: list[Verdict], stage: StagePlan, site: ValidateSite, blobs: dict[str, bytes]) -> dict[str, Any]:
    """The one normalised body and its status; two validators may not make two artifacts of one output."""
    said = [site.services.redactor.value(verdict.body) for verdict in verdicts if verdict.body is not None]
    bodies = {digest(body): body for body in said}
    if len(bodies) != 1:
        raise PluginError(f"{len(bodies)} normalised bodies of one output", code="validation.no_body")
    ((body_ref, body),) = bodies.items()
    content = canonical(body)
    if len(content) > stage.max_artifact_bytes:
        message = f"the artifact has {len(content)} bytes, the limit is {stage.max_artifact_bytes}"
        raise HarnessError(message, code="artifact.too_large")
    parsed = attempt(site.parts.artifacts[stage.artifact].parse, body, what=f"artifact type {stage.artifact}")
    if parsed.error is not None:
        raise parsed.error
    status = getattr(parsed.value, "status", None)
    if status not in get_args(ArtifactStatus):
        raise PluginError(f"artifact type {stage.artifact} gave no status", code="validation.no_status")
    blobs[body_ref] = content
    found = {"body_ref": body_ref, "status": status}
    return {**found, "body": body} if len(content) <= MAX_INLINE_BODY_BYTES else found
