"""Every code that a plan can be refused with, and how a finding is made: place and reason go in, a value comes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from harness_hookspecs.workflow import PlanFinding

__all__ = ["CODES", "MOST_CHARACTERS", "MOST_FINDINGS", "Place", "did_you_mean", "finding", "place_of", "warning"]

CODES: Final[Mapping[str, str]] = {
    # 1 canonical
    "lwir.non_hashable": "The plan is not strict JSON: no JSON at all, a key twice, NaN, half a surrogate pair.",
    "lwir.too_large": "The plan is larger than 1 MiB or nested deeper than 32 levels.",
    # 2 shape
    "schema.invalid": "The plan, or a schema in it, is not of the form that its schema asks for.",
    # 3 data schemas
    "schema.unsupported_key": "A data schema uses a keyword outside the small subset.",
    # 4 graph
    "step.duplicate_id": "Two steps have the same id; ids are unique in the whole plan, bodies included.",
    "step.missing_dependency": "A step needs a step that is not there, or not in the same body.",
    "decision.target_not_in_scope": "A case, a default or onFailure leads to a step that is not in the same body.",
    "lwir.cycle_without_decision": "Steps wait for each other in a circle that no decision can leave.",
    "lwir.cycle_step_single_visit": "A step of a loop has maxVisits 1; the loop could not turn.",
    "step.sensitive": "A step is sensitive, and nothing here keeps its output out of the log.",
    "finally.unknown_step": "finally names no step of the plan's own level.",
    "finally.not_apart": "The finally step needs, leads to, or is led to or needed by another step.",
    "finally.decision": "The finally step is a decision, which could lead nowhere.",
    # 5 reachability
    "step.unreachable": "No run can come to this step.",
    "output.maybe_unset": "The plan's output reads a step that some runs skip.",
    # 6 expressions
    "expr.syntax": "An expression, or the template around it, cannot be read.",
    "expr.too_long": "An expression has more than 1024 characters or more than 128 words and signs.",
    "expr.too_complex": "An expression is nested too deeply, or broke the engine that tried it.",
    "expr.too_many_macros": "An expression has more than two of all, exists, exists_one, filter, map.",
    "expr.unknown_root": "An expression reads a name that does not exist in its place.",
    "expr.not_boolean": "A case of a decision is not true or false.",
    "expr.refused": "The rules engine refuses an expression for a reason of its own.",
    "ref.dynamic_step": "The id of a step is computed; only the run would know what is read.",
    # 7 references
    "ref.unknown_step": "An expression reads a step that is not there, or that is hidden in another body.",
    "ref.bad_accessor": "A step is read by something else than output, last, all or error, or by none.",
    "ref.ambiguous_multi_visit": "A step of several visits is read by output; last or all says which.",
    "ref.undeclared_dependency": "A step is read by one that does not come after it.",
    "ref.no_such_field": "The schema has no such field.",
    "ref.missing_schema": "A field is read from JSON that has no schema.",
    "ref.maybe_unset": "A step, or a field, is read that may be absent, and has(...) ? : does not ask first.",
    "ref.decision_has_no_output": "A decision is read; it has no output.",
    # 8 binding
    "bind.unknown_model": "A model slot does not exist, or the plan's permissions do not name it.",
    "bind.tool_not_permitted": "A tool is not among the permissions of the plan, or of those who let it run.",
    "bind.tool_missing": "A tool does not exist.",
    "bind.tier_exceeded": "A tool does more than maxTier allows, or maxTier more than those who let the plan run.",
    "bind.missing_arg": "A call lacks an argument that the tool requires.",
    "bind.unknown_arg": "A call has an argument that the tool does not know.",
    "bind.arg_type": "An argument is of another type than the tool takes.",
    "bind.unknown_engine": "An engine for code does not exist, or runs nothing here.",
    "output.type": "The output of the plan, or of a step, could never be what its schema or mode asks for.",
    "bind.permission_exceeded": "The plan asks for more models, secrets or network than those who let it run allow.",
    # 9 code
    "code.syntax": "The source is not Python, or too deeply nested to be read.",
    "code.bad_entry": "The source has no async def main(input, tools) at its top level.",
    "code.tool_not_declared": "The source calls a tool that the step does not declare.",
    "code.tool_collision": "Two tools of a step have the same name once dots are underscores.",
    # 10 parallel and fixer
    "parallel.concurrency_exceeds_branches": "maxConcurrency is larger than maxBranches.",
    "parallel.nested_too_deep": "Parallel steps are nested deeper than two levels.",
    "parallel.bad_output_step": "fanIn.outputStep is no step of the body, or one without an output.",
    "parallel.items_not_array": "items is no template of one expression that gives an array.",
    "parallel.too_many_items": "items is a list that is written out, and longer than maxBranches.",
    "parallel.item_key_type": "itemKey gives neither text nor a whole number.",
    "fixer.only_code_run": "Only a code.run step can have a fixer.",
    # 11 bounds
    "limits.too_many_executions": "The plan could run more steps than a limit allows.",
    "limits.exceeded": "A limit of the plan is above that of those who let it run.",
    # the sketch form
    "sketch.invalid": "A sketch is not of the form that its schema asks for.",
    # 12 definition match
    "binding.name_mismatch": "The plan has another name than the workflow it is written for.",
    "binding.input_schema_mismatch": "The plan's input schema is not that of the workflow it is written for.",
    "binding.output_schema_mismatch": "The plan's output schema is not that of the workflow it is written for.",
}
"""Each code with one line for a person; a plan is refused with no other."""

MOST_FINDINGS: Final = 500
"""Of one phase; who wrote more that is wrong starts anew, and neither a log nor a prompt has room for them."""

MOST_CHARACTERS: Final = 250_000
"""Of their places and sentences together; the one that goes beyond is the last."""

_NEAR: Final = 3
_COMPARED: Final = 256  # characters of a name; longer ones are no names, and comparing them takes long


class Place(tuple[str | int, ...]):
    """Where in the plan something stands: the keys and numbers on the way to it, as text a JSON pointer."""

    __slots__ = ()

    def __truediv__(self, part: str | int) -> Place:
        return Place((*self, part))

    def __str__(self) -> str:
        return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in self)


def place_of(pointer: str) -> Place:
    """The place that a JSON pointer names."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return Place(int(part) if part.isdecimal() else part for part in parts)


def finding(code: str, place: Place, step: str | None, message: str, hint: str | None = None) -> PlanFinding:
    """An error at a place."""
    return PlanFinding(severity="error", code=code, path=str(place), step=step, message=message, hint=hint)


def warning(code: str, place: Place, step: str | None, message: str, hint: str | None = None) -> PlanFinding:
    """Something that a run may trip over, and that does not keep the plan from being registered."""
    return PlanFinding(severity="warning", code=code, path=str(place), step=step, message=message, hint=hint)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the three nearest names, told apart by whether they are alike at all."""
    names, name = sorted(set(known)), name[:_COMPARED]
    near = get_close_matches(name, names, n=_NEAR, cutoff=0.4)
    if near:
        return f"did you mean {', '.join(near)}?"
    if not names:
        return "there is none"
    nearest = get_close_matches(name, names, n=_NEAR, cutoff=0.0) or names[:_NEAR]
    there = "there is" if len(names) <= _NEAR else f"of {len(names)} the nearest are"
    return f"{there} {', '.join(nearest)}"
