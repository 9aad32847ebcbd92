"""Phase 12: a plan and the workflow it is written for go in; where it is another one comes out."""

from __future__ import annotations

from collections.abc import Iterator

from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.workflow import PlanFinding, WorkflowDefinitionSnapshot

from .findings import Place, finding
from .plans import Plan

__all__ = ["check_match"]


def check_match(plan: Plan, definition: WorkflowDefinitionSnapshot | None) -> Iterator[PlanFinding]:
    """Compare name, input schema and output schema; a plan that stands by itself matches."""
    if definition is None:
        return
    name = plan.workflow.metadata.name
    if name != definition.name:
        message = f"The plan is called {name}; it is written for {definition.name}."
        yield finding("binding.name_mismatch", Place(("metadata", "name")), None, message, f"call it {definition.name}")
    for part, wanted in (("input", definition.input_schema), ("output", definition.output_schema)):
        if digest(plan.data[part]["schema"]) != digest(wanted):
            message = f"The plan's {part} schema is not that of {definition.name}."
            hint = f"copy the {part} schema of the workflow as it is"
            yield finding(f"binding.{part}_schema_mismatch", Place((part, "schema")), None, message, hint)
