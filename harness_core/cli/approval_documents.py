"""The documents about approvals, effects in doubt and grants, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .documents import Document
from .session_documents import schemas_of

__all__ = ["DOCUMENTS", "Answer", "Approval", "Approvals", "Grants", "Settled", "schemas"]


class Decided(Document):
    """How an approval was answered."""

    by: str = Field(description="Who.")
    via: str = Field(description="person, policy, grant, yolo, on_ask or system.")
    scope: Literal["once", "session"] = Field(description="Whether it holds for the session.")
    say: str | None = Field(description="What the role was told.")
    reason: str | None = Field(description="Why, where nobody chose.")
    digest: str = Field(description="What it was bound to.")
    at: str | None = Field(description="UTC; null while it waits for its session to go on.")
    seq: int | None = Field(description="Its event.")


class _Approval(Document):
    id: str = Field(description="Its id, or that of the effect in doubt.")
    kind: Literal["approval", "in_doubt"] = Field(description="A question, or an effect nobody knows the end of.")
    session_id: str = Field(description="The session.")
    project: str = Field(description="The folder of its project.")
    status: str = Field(
        description="pending, answered, granted, denied, bypassed, expired, superseded, closed, in_doubt."
    )
    stage: str = Field(description="The stage that asks.")
    attempt: int | None = Field(None, description="Its attempt.")
    persona: str | None = Field(None, description="Who asks.")
    subject: str | None = Field(None, description="tool, artifact or inference.")
    name: str = Field(description="The tool, or the artifact's type.")
    tier: str | None = Field(description="T0 to T4.")
    args: Any = Field(description="The arguments.")
    digest: str | None = Field(None, description="What an answer is bound to.")
    rule: str | None = Field(None, description="The rule that asks.")
    preview_ref: str | None = Field(None, description="Content to look at before answering.")
    requested_at: str = Field(description="UTC.")
    requested_seq: int = Field(description="The event that asks.")
    answer: Decided | None = Field(None, description="The answer.")


class Approval(_Approval):
    """One approval or effect in doubt."""

    schema_: Literal["harness.approval/1"] = Field(alias="schema")
    preview: str | None = Field(description="The content to look at.")


class Approvals(Document):
    """Approvals and effects in doubt, oldest first."""

    schema_: Literal["harness.approvals/1"] = Field(alias="schema")
    items: list[_Approval] = Field(description="The approvals.")


class Answer(Document):
    """What became of an answer."""

    schema_: Literal["harness.answer/1"] = Field(alias="schema")
    approval_id: str = Field(description="The approval.")
    session_id: str = Field(description="Its session.")
    decision: Literal["approve", "deny", "auto_session"] = Field(description="What was answered here.")
    stands: bool = Field(description="Whether it is this answer that counts.")
    by: str = Field(description="Whose answer counts.")


class Settled(Document):
    """What was said of an effect in doubt."""

    schema_: Literal["harness.settled/1"] = Field(alias="schema")
    session_id: str = Field(description="The session.")
    effect_id: str = Field(description="The effect.")
    stands: bool = Field(description="Whether it is what was said here; else nothing was changed.")
    outcome: Literal["happened", "never_happened"] = Field(description="What counts.")
    by: str = Field(description="Whose word counts.")
    kind: str = Field(description="What that is, person for example.")
    value: Any = Field(None, description="What the effect gave.")


class Grant(Document):
    """A permission for one tool at one tier, until its session ends."""

    id: str = Field(description="The approval it was given by.")
    session_id: str = Field(description="The session.")
    name: str = Field(description="The tool.")
    tier: str = Field(description="The tier.")
    by: str = Field(description="Who gave it.")
    at: str = Field(description="UTC.")
    seq: int = Field(description="The event that gave it.")
    active: bool = Field(description="Whether its session has not ended.")


class Grants(Document):
    """The grants of a project's sessions."""

    schema_: Literal["harness.grants/1"] = Field(alias="schema")
    items: list[Grant] = Field(description="The grants.")


DOCUMENTS: tuple[type[Document], ...] = (Approval, Approvals, Answer, Settled, Grants)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schemas of this module's documents."""
    return schemas_of(DOCUMENTS)
