"""The documents about what models are told and stages ask, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .documents import Document, Problem
from .session_documents import schemas_of

__all__ = ["DOCUMENTS", "Context", "Prompt", "RolePrompt", "Stages", "schemas"]


class Sourced(Document):
    """A text with the events it comes from."""

    text: str = Field(description="The text.")
    source_events: list[str] = Field(description="Ids of those events.")


class ContextItem(Sourced):
    """One item of a context."""

    item_id: str = Field(description="Its id in this context.")
    kind: str = Field(description="file, artifact, text, tree, tool, steering and the like.")
    title: str = Field(description="Its heading.")
    tokens: int = Field(description="What it takes.")
    layer: int = Field(description="0 (live) to 4 (archive).")
    pinned: bool = Field(description="Whether it may not be dropped.")
    source: Any = Field(description="Where it comes from.")
    reason: str | None = Field(None, description="Why it was left out.")


class ContextAttempt(Document):
    """What the model was given in one attempt."""

    attempt: int = Field(description="Which, from 1.")
    seq: int = Field(description="The event.")
    event_id: str = Field(description="Its id.")
    error: Any = Field(description="Why there is no context.")
    pack_ref: str | None = Field(None, description="Digest of the context.")
    facts_ref: str | None = Field(None, description="Digest of everything that was gathered.")
    tokens: int | None = Field(None, description="What the items take.")
    budget_tokens: int | None = Field(None, description="What they may take.")
    counted_by: str | None = Field(None, description="Who counted.")
    task: Sourced | None = Field(None, description="The stage's task and the person's words.")
    feedback: Sourced | None = Field(None, description="Why the last attempt failed.")
    tools: list[str] = Field([], description="The tools it could call.")
    items: list[ContextItem] = Field([], description="What it was given.")
    left_out: list[ContextItem] = Field([], description="What it was not, and why.")


class Context(Document):
    """What a stage visit's model was given."""

    schema_: Literal["harness.context/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    visit_id: str = Field(description="The visit.")
    stage: str | None = Field(description="Its stage.")
    visit: int | None = Field(description="Which visit of the stage, from 0.")
    attempts: list[ContextAttempt] = Field(description="One entry an attempt.")


class PromptModel(Document):
    """Which model."""

    provider: str = Field(description="The provider.")
    model_id: str = Field(description="The model.")


class PromptTool(Document):
    """A tool that the model was shown."""

    name: str = Field(description="Its name.")
    tier: str = Field(description="T0 to T4.")
    schema_hash: str = Field(description="Digest of what was shown of it.")
    shown: Any = Field(alias="schema", description="What was shown of it.")


class PromptMessage(Document):
    """A message that the model saw."""

    digest: str = Field(description="Its digest.")
    message: Any = Field(description="The message; null when the content is missing.")


class Part(Document):
    """A part of a system message."""

    label: str = Field(description="What it is; the label was not sent.")
    id: str | None = Field(description="The id of a text of the role's own.")
    digest: str = Field(description="SHA-256 of the text.")
    text: str = Field(description="The text.")


class Prompt(Document):
    """Exactly what a model saw."""

    schema_: Literal["harness.prompt/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    seq: int = Field(description="The harness.model.called event.")
    event_id: str = Field(description="Its id.")
    stage: str = Field(description="The stage.")
    visit_id: str = Field(description="The visit.")
    attempt: int = Field(description="The attempt.")
    persona: str = Field(description="The persona.")
    role: str = Field(description="The executor role.")
    turn: int = Field(description="Which turn of its role call.")
    call_id: str = Field(description="The call.")
    model: PromptModel = Field(description="The model.")
    params: dict[str, Any] = Field(description="Sampling and what else shapes the answer.")
    response_schema: Any = Field(description="The schema of the answer.")
    tools: list[PromptTool] = Field(description="The tools.")
    messages: list[PromptMessage] = Field(description="The messages, the system message first.")
    manifest: Any = Field(description="The manifest of the role call.")
    prompt_hash: str = Field(description="As it was recorded.")
    recomputed_hash: str | None = Field(description="Computed again from what is shown here.")
    equal: bool = Field(description="Whether the two are the same.")
    parts: list[Part] | None = Field(description="The parts of the system message, where its role can tell them.")


class RolePrompt(Document):
    """The prompt that a role has under the configuration as it is."""

    schema_: Literal["harness.role_prompt/1"] = Field(alias="schema")
    role: str = Field(description="The executor role.")
    persona: str | None = Field(description="The persona.")
    stage: str | None = Field(description="The stage whose tools are shown.")
    plugin: str = Field(description="Who answers for the role.")
    plugin_version: str = Field(description="Its version.")
    parts: list[Part] = Field(description="The parts, in order.")


class StageRetry(Document):
    """How a failed attempt is met."""

    strategy: str = Field(description="retry, corrective, fail_safe or fail_fast.")
    max_attempts: int = Field(description="Attempts of one visit in all.")
    tells_reason: bool = Field(description="Whether the next attempt reads why the last one failed.")
    temperature_backoff: bool = Field(description="Whether each further attempt samples at a lower temperature.")


class StageRule(Document):
    """One rule."""

    when: str = Field(description="The condition.")
    goto: list[str] = Field(description="Where to; the first whose routing is valid.")
    where: str = Field(description="The place it was written.")


class StageExplained(Document):
    """A stage as the kernel reads it."""

    name: str = Field(description="Its name.")
    where: str = Field(description="The place it was written.")
    role: str = Field(description="The persona.")
    executor: str = Field(description="The executor.")
    model: str | None = Field(description="The model; null when none is configured.")
    artifact: str = Field(description="Type of the result.")
    task: str | None = Field(description="What is to be done.")
    requirements: list[str] = Field(description="What the model must be able to do.")
    allowed_tools: list[str] = Field(description="Tool sets and tools.")
    approvals: dict[str, str] = Field(description="What it asks for beyond the policies.")
    retry: StageRetry = Field(description="How a failed attempt is met.")
    context: list[dict[str, Any]] = Field(description="What the model gets to read.")
    transitions: list[StageRule] = Field(description="Where it leads, from top to bottom.")


class Stages(Document):
    """The configured stages."""

    schema_: Literal["harness.stages/1"] = Field(alias="schema")
    initial: str = Field(description="Where a session begins.")
    items: list[StageExplained] = Field(description="The stages.")
    warnings: list[Problem] = Field(description="What is allowed and can hardly be meant.")


DOCUMENTS: tuple[type[Document], ...] = (Context, Prompt, RolePrompt, Stages)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
