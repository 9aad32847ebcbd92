"""The sketch form, for small models: an ordered list of steps goes in, the full plan that it stands for comes out.

A step says ``id``, ``uses``, a tool or a prompt, and ``inputs``: what a tool is called with, or what stands below the
prompt. What an input is said by is a *source*: ``input``, ``input.FIELD``, ``previous`` (the step before), the id of an
earlier step, each of the last three also with fields behind it; a text with ``{{ ... }}`` is the template that it is in
a plan; any other text, and whatever is no text, stands for itself.

The rest is filled in. Needs follow from what is read. The output of a tool is the tool's own schema; that of a model
is its ``fields`` (text, one each), its ``choices``, or text; the last step, if it is a model's and says nothing, gives
what the workflow should give. Permissions are the models and tools that are used, up to the highest of their tiers.
Ids that are doubled or reserved get an ending.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from harness_hookspecs.compiler import Surroundings
from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.tool import TIERS
from harness_hookspecs.value import Json, JsonObject, Maybe, Text, WireModel
from harness_hookspecs.workflow import NonEmpty, PlanFinding, Target

from .binding import allowed_models
from .document import read_document
from .findings import Place, finding
from .form import hint_of
from .schemas import SUBSET
from .shapes import kinds
from .sketch_sources import Earlier, needs_of
from .wording import flaws_of

__all__ = ["MAX_STEPS", "PromptStep", "Sketch", "ToolStep", "expand"]

MAX_STEPS: Final = 20
"""Steps of a sketch; who needs more writes a plan."""

_TAKEN: Final = frozenset(
    "end fail true false null in as break const continue else for function if import let loop package namespace return "
    "var void while".split()
)
"""What an id cannot be: reserved targets, and the words that CEL, or one of its bindings, keeps for itself."""

Names = Annotated[tuple[NonEmpty, ...], Field(min_length=1, max_length=20)]


class ToolStep(WireModel):
    """One tool call."""

    uses: Literal["tool.call"]
    id: Target
    tool: Text
    inputs: Maybe[JsonObject] = None


class PromptStep(WireModel):
    """One answer of a model."""

    uses: Literal["ai.generate"]
    id: Target
    prompt: NonEmpty
    inputs: Maybe[tuple[Text, ...]] = None
    model: Maybe[Text] = None
    fields: Maybe[Names] = None
    choices: Maybe[Annotated[tuple[NonEmpty, ...], Field(min_length=2, max_length=20)]] = None


SketchStep = Annotated[ToolStep | PromptStep, Field(discriminator="uses")]


class Sketch(WireModel):
    """The whole: steps in their order, and the output where it is not simply that of the last step."""

    steps: Annotated[tuple[SketchStep, ...], Field(min_length=1, max_length=MAX_STEPS)]
    name: Maybe[Text] = None
    output: Maybe[Json] = None


def expand(source: Any, surroundings: Surroundings) -> dict[str, Any] | list[PlanFinding]:
    """Make the full plan, or say why the sketch is none; the plan is still to be compiled."""
    document = read_document(source)
    if isinstance(document, PlanFinding):
        return [document]
    try:
        sketch = Sketch.from_wire(document.value)
    except ValidationFailed as error:
        flaws = flaws_of(error, "The sketch")
        return [finding("sketch.invalid", one.place, None, one.message, hint_of(one)) for one in flaws]
    if not surroundings.models and any(step.uses == "ai.generate" for step in sketch.steps):
        return [finding("bind.unknown_model", Place(), None, "There is no model slot for the steps of the sketch.")]
    return _Expansion(sketch, surroundings).plan()


class _Expansion:
    """A sketch under way: the steps made so far, by the names that later ones read them by."""

    def __init__(self, sketch: Sketch, surroundings: Surroundings) -> None:
        self._sketch = sketch
        self._surroundings = surroundings
        definition = surroundings.definition
        self._input: Any = True if definition is None else definition.to_wire()["inputSchema"]
        self._output: Any = None if definition is None else definition.to_wire()["outputSchema"]
        self._earlier = Earlier(self._input)
        self._steps: list[dict[str, Any]] = []

    def plan(self) -> dict[str, Any]:
        """The plan."""
        for step in self._sketch.steps:
            name = self._fresh(step.id)
            made = self._tool_step(step) if isinstance(step, ToolStep) else self._prompt_step(step)
            made = {"id": name, "uses": step.uses, **made}
            needs = needs_of([made.get("with")], [one["id"] for one in self._steps])
            self._steps.append({**made, "needs": needs} if needs else made)
            self._earlier.add(step.id, name, made["output"])
        return {
            "apiVersion": "harness.lwir/v1",
            "kind": "Workflow",
            "metadata": {"name": self._name()},
            "input": {"schema": self._input},
            "output": {"schema": self._output_schema(), "value": self._output_value()},
            "permissions": self._permissions(),
            "steps": self._steps,
        }

    def _fresh(self, wanted: str) -> str:
        taken = {*_TAKEN, *(step["id"] for step in self._steps)}
        if wanted not in taken:
            return wanted
        number = next(number for number in range(2, MAX_STEPS + 4) if f"{wanted[:60]}_{number}" not in taken)
        return f"{wanted[:60]}_{number}"

    def _name(self) -> str:
        definition = self._surroundings.definition
        return definition.name if definition is not None else self._sketch.name or "sketch"

    def _tool_step(self, step: ToolStep) -> dict[str, Any]:
        tool = self._surroundings.tools.get(step.tool)
        known: Mapping[str, Any] = {} if tool is None else tool.spec.input_schema.get("properties", {})
        args = {}
        for name, value in (step.inputs or {}).items():
            reading = self._earlier.read(value)
            wants_text = isinstance(known.get(name), Mapping) and known[name].get("type") == "string"
            args[name] = reading.as_text() if wants_text else reading.as_value()
        made: dict[str, Any] = {"with": {"tool": step.tool, "args": args}}
        schema = None if tool is None else tool.spec.output_schema
        return {**made, "output": _contract(schema)}

    def _prompt_step(self, step: PromptStep) -> dict[str, Any]:
        parts = [step.prompt, *(self._shown(source) for source in step.inputs or ())]
        settings = {"model": step.model or self._model(), "prompt": "\n\n".join(parts)}
        return {"with": settings, "output": self._prompt_output(step)}

    def _shown(self, source: str) -> str:
        reading = self._earlier.read(source)
        title = source if reading.path else "also"
        return f"{title}:\n{reading.as_text()}"

    def _model(self) -> str:
        """The slot of a prompt that names none: one that a plan may use, and of these one of the workflow."""
        definition = self._surroundings.definition
        slots = allowed_models(self._surroundings) or sorted(self._surroundings.models)
        wanted = sorted(definition.model_slots) if definition is not None else []
        return next((slot for slot in wanted if slot in slots), slots[0])

    def _prompt_output(self, step: PromptStep) -> dict[str, Any]:
        if step.choices is not None:
            values = list(dict.fromkeys(step.choices))
            return {"mode": "choice", "values": values} if len(values) > 1 else {"mode": "text"}
        if step.fields is not None:
            names = list(dict.fromkeys(step.fields))
            properties = {name: {"type": "string"} for name in names}
            return {"mode": "object", "schema": {"type": "object", "required": names, "properties": properties}}
        is_last = step is self._sketch.steps[-1] and self._sketch.output is None
        return _contract(self._output) if is_last and self._output is not None else {"mode": "text"}

    def _output_value(self) -> Any:
        if self._sketch.output is not None:
            return self._earlier.filled(self._sketch.to_wire()["output"])
        last = self._earlier.read("previous")
        return last.as_text() if self._output is not None and kinds(self._output) == {"string"} else last.as_value()

    def _output_schema(self) -> Any:
        if self._output is not None:
            return self._output
        contract = self._steps[-1]["output"] if self._sketch.output is None else {}
        if contract.get("mode") in ("text", "choice"):
            return {"type": "string"}
        return contract.get("schema", True)

    def _permissions(self) -> dict[str, Any]:
        models = {step["with"]["model"] for step in self._steps if step["uses"] == "ai.generate"}
        tools = {step["with"]["tool"] for step in self._steps if step["uses"] == "tool.call"}
        known = self._surroundings.tools
        tiers = [known[name].tier for name in tools if name in known]
        return {
            "models": sorted(models),
            "tools": sorted(tools),
            "maxTier": max(tiers, key=TIERS.index, default=TIERS[0]),
        }


def _contract(schema: Any) -> dict[str, Any]:
    """The output contract for a schema; what plans cannot say of it is left out."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if schema is None or isinstance(schema, bool):
        return {"mode": "json"}
    if kind == "string" and not schema.keys() - {"type", "description"}:
        return {"mode": "text"}
    if kind == "string" and isinstance(schema.get("enum"), list) and len(set(schema["enum"])) > 1:
        return {"mode": "choice", "values": list(dict.fromkeys(schema["enum"]))}
    return {"mode": kind if kind in ("object", "array") else "json", "schema": _within_subset(schema)}


def _within_subset(schema: Any) -> Any:
    """The schema without the keywords that plans do not have; it allows no less than before."""
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    for word, inner in schema.items():
        if word == "properties" and isinstance(inner, Mapping):
            found[word] = {name: _within_subset(one) for name, one in inner.items()}
        elif word in ("anyOf", "oneOf") and isinstance(inner, list):
            found["anyOf"] = [_within_subset(one) for one in inner]
        elif word in SUBSET:
            found[word] = _within_subset(inner) if word in ("items", "additionalProperties") else inner
    return found
