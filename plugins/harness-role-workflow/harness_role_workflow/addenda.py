"""What each executor role is told about its part, after the developer's own words: a role in, its addendum out."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from harness_hookspecs.role import ExecutorRole

__all__ = ["ADDENDA", "Addendum"]


class Addendum(NamedTuple):
    """One addendum; ``id`` changes with every change of meaning, ``digest`` with every change of a letter."""

    id: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text, as it stands in manifests."""
        return hashlib.sha256(self.text.encode()).hexdigest()


_AI_GENERATE = """You do one step of a larger job. Use only what you are given. Reply with the result alone."""

_PLANNER = """You write a workflow as one JSON document for the definition and the input you are given. Use only the \
tools and model slots it permits. Where findings about an earlier document are given, mend every one of them. Reply \
with the document alone."""

_ORCHESTRATOR = """You reach the goal by running workflows, never by guessing their results. You have:
- plan_workflow(workflowId, input) -> workflowVersionId
- run_workflow(workflowVersionId, input) -> output
- start_workflow(workflowId, input) -> output, with its workflowVersionId and runId
- bash(cmd) -> {stdout, stderr, exitCode}
Each workflow also has a tool of its own, which plans and runs it. Plan a workflow once and run its version for as \
many inputs as there are. Reply with the final output alone."""

_CODE_RUN = """This step is code; it is run as it stands and no model is asked."""

_TOOL_CALL = """This step is one tool call; it is made as it stands and no model is asked."""

_FIXER = """You repair the source of one code step. You are given the source, its input, the error and earlier tries. \
Change no more than the error needs and keep the entry point `async def main(input, tools)`. Reply with the whole \
source alone."""

ADDENDA: Final[dict[ExecutorRole, Addendum]] = {
    "planner": Addendum("planner/1", _PLANNER),
    "orchestrator": Addendum("orchestrator/2", _ORCHESTRATOR),
    "worker.ai-generate": Addendum("worker.ai-generate/1", _AI_GENERATE),
    "worker.code-run": Addendum("worker.code-run/1", _CODE_RUN),
    "worker.tool-call": Addendum("worker.tool-call/1", _TOOL_CALL),
    "fixer": Addendum("fixer/1", _FIXER),
}
"""The six, by role."""
