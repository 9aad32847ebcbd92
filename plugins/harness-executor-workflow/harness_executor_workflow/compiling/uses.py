"""Every expression of a plan: the plan goes in; each expression, judged, with its place and its step comes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from harness_executor_workflow.plan.templates import parse as parse_template
from harness_executor_workflow.plan.templates import templates_in
from harness_hookspecs.errors import RuleError
from harness_hookspecs.workflow import PlanFinding

from .findings import CODES, MOST_FINDINGS, Place, finding, place_of, warning
from .guards import Fact, known_if
from .judge import Flaw, Judge
from .plans import Located
from .scene import View, World
from .shapes import ANY, Shape, element, kinds, missing
from .tree import Node, parse

__all__ = ["MAX_EXPRESSIONS", "Judged", "Use", "judge_all"]

MAX_EXPRESSIONS: Final = 5_000
"""Expressions of one plan; a second or so of work."""


class Use(NamedTuple):
    """One expression where it stands."""

    text: str
    place: Place
    step: str | None
    roots: tuple[str, ...]


class Judged:
    """All expressions of a plan, what is wrong with them, and the shape of each template that is one expression."""

    def __init__(self) -> None:
        self.uses: Final[list[Use]] = []
        self.findings: Final[list[PlanFinding]] = []
        self.wrong = 0
        self.shapes: Final[dict[Place, Shape]] = {}

    def errors(self, *beginnings: str) -> list[PlanFinding]:
        """The errors whose codes begin so."""
        return [one for one in self.findings if one.severity == "error" and one.code.startswith(beginnings)]


class _Reader:
    """Judges the expressions of one place."""

    def __init__(self, world: World, judged: Judged, one: Located | None) -> None:
        self._world = world
        self._judged = judged
        self._one = one
        self._step = None if one is None else one.id
        self._trees: dict[str, Node] = {}
        self._views: dict[tuple[str, ...], View] = {}

    def values(self, value: Any, place: Place, roots: dict[str, Shape]) -> None:
        """Every template in a JSON value."""
        for pointer, text in templates_in(value, str(place)):
            self.template(text, place_of(pointer), roots)

    def template(self, text: str, place: Place, roots: dict[str, Shape]) -> Shape | None:
        """One template; its shape, None where it cannot be read."""
        try:
            template = parse_template(text)
        except RuleError as error:
            self._tell(_flaw_of(error), place)
            return None
        shapes = [self.expression(one.text, place, roots)[0] for one in template.expressions]
        shape = shapes[0] if template.whole is not None else {"type": "string"}
        self._judged.shapes[place] = shape
        return shape

    def expression(
        self, text: str, place: Place, roots: dict[str, Shape], facts: tuple[Fact, ...] = ()
    ) -> tuple[Shape, Node | None]:
        """One expression; its shape, and its tree where it has one."""
        if len(self._judged.uses) >= MAX_EXPRESSIONS or self._judged.wrong >= MOST_FINDINGS:
            return ANY, None
        self._judged.uses.append(Use(text, place, self._step, (*sorted(roots), "steps")))
        try:
            tree = self._trees.get(text) or parse(text)
        except RuleError as error:
            self._tell(_flaw_of(error), place)
            return ANY, None
        self._trees[text] = tree
        view = View(self._world, self._one, roots)
        judge = Judge(view)
        shape = judge.shape(tree, facts)
        for flaw in dict.fromkeys(judge.flaws):
            self._tell(flaw, place)
        return shape, tree

    def condition(self, text: str, place: Place, roots: dict[str, Shape], facts: tuple[Fact, ...]) -> list[Fact]:
        """A case of a decision; what is known when it did not hold."""
        shape, tree = self.expression(text, place, roots, facts)
        if "boolean" not in kinds(shape):
            message = f"A case is true or false; `{text}` is {missing(shape)}."
            self._tell(Flaw("expr.not_boolean", message, "compare it with something"), place)
        return [] if tree is None else list(known_if(tree, False))

    def _tell(self, flaw: Flaw, place: Place) -> None:
        make = warning if flaw.is_warning else finding
        self._judged.wrong += not flaw.is_warning
        self._judged.findings.append(make(flaw.code, place, self._step, flaw.message, flaw.hint))


def judge_all(world: World) -> Judged:
    """Judge the expressions of a plan whose structure holds together."""
    judged = Judged()
    for one in world.plan.all:
        _of_step(world, one, _Reader(world, judged, one))
    value = world.plan.data["output"]["value"]
    _Reader(world, judged, None).values(value, Place(("output", "value")), world.roots(None))
    if len(judged.uses) >= MAX_EXPRESSIONS:
        message = f"The plan has more than {MAX_EXPRESSIONS} expressions."
        judged.findings.append(finding("expr.too_complex", Place(), None, message, "use fewer templates"))
    return judged


def _of_step(world: World, one: Located, reader: _Reader) -> None:
    roots, place = world.roots(one), one.place / "with"
    reader.values(one.data.get("input"), one.place / "input", roots)
    if one.uses == "decision":
        facts: tuple[Fact, ...] = ()
        for number, case in enumerate(one.settings["cases"]):
            facts = (*facts, *reader.condition(case["when"], place / "cases" / number / "when", roots, facts))
    elif one.uses == "parallel":
        items = reader.template(one.settings["items"], place / "items", roots)
        world.items[one.id] = ANY if items is None or element(items) is None else element(items)
        reader.template(one.settings["itemKey"], place / "itemKey", {**roots, "item": world.items[one.id]})
    else:
        for name in _templated(one):
            reader.values(one.settings.get(name), place / name, roots)


def _templated(one: Located) -> Iterator[str]:
    """The settings of a step that are templates; source is code, and what names something names it plainly."""
    yield from {"ai.generate": ("prompt", "system"), "tool.call": ("args",)}.get(one.uses, ())


def _flaw_of(error: RuleError) -> Flaw:
    code = error.code if error.code in CODES else "expr.refused"
    return Flaw(code, error.message, error.hint)
