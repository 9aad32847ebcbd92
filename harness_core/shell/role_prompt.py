"""A role under a configuration, or a recorded prompt, in; the prompt's labelled parts out; no role is called."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness_core.kernel.definition import StagePlan
from harness_core.settings.personas import persona_of
from harness_hookspecs.errors import HarnessError, NotFound, PluginError
from harness_hookspecs.role import EXECUTOR_ROLES, ExecutorRole, OrchestrateTask, PromptPart, ShowsPrompt

from .assembly import Assembly
from .child_tools import child_tools
from .parts import Need, Part, Parts
from .perform_attempt import attempt
from .plugins.binding import answer_for
from .plugins.catalogue import Catalogue
from .session_parts import SessionParts
from .toolbox import Tool

__all__ = ["labelled_parts", "role_prompt"]

_DEFAULT_ROLE: ExecutorRole = "worker.ai-generate"


class _Shown(NamedTuple):
    """A tool as a prompt shows it."""

    description: str
    input_schema: Mapping[str, Any]

    def execute(self, args: Mapping[str, Any], *, scope: str = "") -> Any:
        """Refuse: a prompt is only shown."""
        raise PluginError("a role that only shows its prompt may call no tool", code="role.calls_while_showing")


def role_prompt(assembly: Assembly, reference: str) -> dict[str, Any]:
    """What ``prompt show --role R`` prints: ``harness.role_prompt/1``.

    Args:
        assembly: Under which configuration; it need not be able to run anything.
        reference: An executor role, or a persona, which stands for its stages' calls of a model.

    Raises:
        NotFound: ``role.not_found``.
        PluginError: Who answers for the role is missing or broken, or cannot show its prompt.
    """
    role, persona, stage = _named(assembly, reference)
    session = assembly.session_parts()
    if role == "orchestrator":  # as the first stage has it that runs workflows
        running = next((one for one in session.definition.stages.values() if one.workflows), None)
        persona, stage = (persona, stage) if running is None else (running.persona, running.name)
    tools = _tools(session, session.definition.stages[stage], role) if persona else {}
    part = _part(assembly.catalogue, assembly.parts, role, persona)
    if not isinstance(part.thing, ShowsPrompt):
        raise PluginError(f"{part.plugin_id} cannot show its prompt without a call", code="role.shows_no_prompt")
    system = persona_of(persona, assembly.config.stages.roles).prompt if persona else None
    done = attempt(
        part.thing.show_prompt, role, [system] if system else [], _shown(tools), what=f"prompt of {part.plugin_id}"
    )
    if done.error is not None:
        raise done.error
    return {
        "schema": "harness.role_prompt/1",
        "role": role,
        "persona": persona,
        "stage": stage if persona else None,
        "plugin": part.plugin_id,
        "plugin_version": part.plugin_version,
        "parts": _documents(done.value or ()),
    }


def _tools(session: SessionParts, stage: StagePlan, role: ExecutorRole) -> Mapping[str, Tool]:
    """Those of the stage, and for an orchestration the host's own."""
    tools = session.toolbox.allowed(stage.allowed_tools, stage.model.capabilities)
    if role != "orchestrator":
        return tools
    task = OrchestrateTask.from_wire({"kind": "orchestrate", "available": list(stage.workflows), "input": {}})
    added = child_tools(task, tools)
    return {**tools, **(added.tools if added is not None else {})}


def _named(assembly: Assembly, reference: str) -> tuple[ExecutorRole, str | None, str]:
    """The executor role, the persona and a stage that are meant."""
    stages = assembly.config.stages
    if reference in EXECUTOR_ROLES:
        role: ExecutorRole = reference
        return role, stages.stages[stages.initial_name()].role if role == _DEFAULT_ROLE else None, stages.initial_name()
    for name, stage in stages.stages.items():
        if stage.role == reference:
            return _DEFAULT_ROLE, reference, name
    personas = ", ".join(sorted({stage.role for stage in stages.stages.values()}))
    raise NotFound(
        f'there is no role "{reference}"',
        code="role.not_found",
        hint=f"executor roles: {', '.join(EXECUTOR_ROLES)}; personas: {personas}",
    )


def labelled_parts(catalogue: Catalogue, parts: Parts, document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The labelled parts of a recorded system message (``harness.prompt/1``); ``None`` where whoever answers for the
    role now did not write it, or is not there any more.
    """
    message = document["messages"][0]["message"] if document["messages"] else None
    if message is None or message["role"] != "system":
        return None
    text = "".join(part["text"] for part in message["content"] if part["type"] == "text")
    try:
        part = _part(catalogue, parts, document["role"], document["persona"])
    except HarnessError:
        return None
    if not isinstance(part.thing, ShowsPrompt):
        return None
    done = attempt(part.thing.label_prompt, document["role"], text, what=f"labels of {part.plugin_id}")
    return None if not done.value else _documents(done.value)


def _part(catalogue: Catalogue, parts: Parts, role: str, persona: str | None) -> Part:
    answer = answer_for(catalogue, role, persona)
    return parts.part(Need("role", answer.name, where=answer.where))


def _shown(tools: Mapping[str, Tool]) -> dict[str, _Shown]:
    return {name: _Shown(tool.spec.description, tool.spec.input_schema) for name, tool in tools.items()}


def _documents(parts: Sequence[PromptPart]) -> list[dict[str, Any]]:
    return [
        {
            "label": part.label,
            "id": part.id,
            "digest": hashlib.sha256(part.text.encode()).hexdigest(),
            "text": part.text,
        }
        for part in parts
    ]
