"""What an expression reads and of what shape it is: its tree and its scene go in; its shape and what is wrong come out.

A shape that is not known is ``ANY``: what only a run can tell is never refused. What a guard is stands in ``guards``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from harness_hookspecs.kit.nearest import nearest

from .findings import did_you_mean
from .guards import Fact, known_if, path_of
from .shapes import ANY, UNTYPED, Shape, either, element, field, kinds, missing, names
from .tree import Binary, Call, Choice, Field, Index, ListOf, Literal, Macro, MapOf, Name, Node, Unary

__all__ = ["Flaw", "Judge", "Scene"]

_BOOLEAN: Final = {"type": "boolean"}
_INTEGER: Final = {"type": "integer"}
_NUMBER: Final = {"type": "number"}
_STRING: Final = {"type": "string"}
_OF_SIGN: Final = {
    **dict.fromkeys(("&&", "||", "==", "!=", "<", "<=", ">", ">=", "in"), _BOOLEAN),
    "%": _INTEGER,
}
_OF_CALL: Final = {
    **dict.fromkeys(("bool", "contains", "endsWith", "has", "startsWith"), _BOOLEAN),
    **dict.fromkeys(("int", "size", "uint"), _INTEGER),
    "double": _NUMBER,
    "string": _STRING,
}
_OF_MACRO: Final = dict.fromkeys(("all", "exists", "exists_one"), _BOOLEAN)


_JUDGED_BY: Final = {
    Name: "_path", Field: "_path", Index: "_path", Unary: "_operation", Binary: "_operation", Choice: "_choice",
    Macro: "_macro", Call: "_call", ListOf: "_list", MapOf: "_map",
}  # fmt: skip


class Flaw(NamedTuple):
    """One thing that is wrong with an expression."""

    code: str
    message: str
    hint: str | None = None
    is_warning: bool = False


class Scene(Protocol):
    """What may be read at one place of a plan."""

    @property
    def roots(self) -> Mapping[str, Shape]:
        """The roots with their shapes, without ``steps``."""

    def step(self, step: str) -> Flaw | None:
        """Why there is no such step to be read here."""

    def steps(self) -> list[str]:
        """The steps that can be read here."""

    def accessor(self, step: str, accessor: str) -> Shape | Flaw:
        """The shape of what an accessor of a step gives, or why it gives nothing."""

    def unset(self, step: str, accessor: str, facts: tuple[Fact, ...]) -> Flaw | None:
        """Why a read may find nothing."""


class Judge:
    """Walks one expression; ``flaws`` are what it finds."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.flaws: list[Flaw] = []

    def shape(self, node: Node, facts: tuple[Fact, ...] = (), bound: Mapping[str, Shape] | None = None) -> Shape:
        """The shape of the value.

        Args:
            node: The tree.
            facts: What is known before.
            bound: The variables of the macros around it.
        """
        bound = bound or {}
        if isinstance(node, Literal):
            return {"const": node.value}
        return getattr(self, _JUDGED_BY[type(node)])(node, facts, bound)

    def _choice(self, node: Choice, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        self.shape(node.when, facts, bound)
        yes = self.shape(node.yes, (*facts, *known_if(node.when, True)), bound)
        return either([yes, self.shape(node.no, (*facts, *known_if(node.when, False)), bound)])

    def _list(self, node: ListOf, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        return {"type": "array", "items": either([self.shape(one, facts, bound) for one in node.items]) or ANY}

    def _flaw(self, code: str, message: str, hint: str | None = None) -> Shape:
        self.flaws.append(Flaw(code, message, hint))
        return ANY

    def _operation(self, node: Unary | Binary, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        if isinstance(node, Unary):
            of = self.shape(node.of, facts, bound)
            return _BOOLEAN if node.sign == "!" else _sum(of, of)
        left = self.shape(node.left, facts, bound)
        if node.sign in ("&&", "||"):
            facts = (*facts, *known_if(node.left, node.sign == "&&"))
        right = self.shape(node.right, facts, bound)
        return _OF_SIGN.get(node.sign) or _sum(left, right)

    def _call(self, node: Call, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        if node.of is None and node.name == "has":
            return self._has(node, facts, bound)
        if node.of is not None:
            self.shape(node.of, facts, bound)
        for one in node.args:
            self.shape(one, facts, bound)
        return _OF_CALL.get(node.name, ANY)

    def _has(self, node: Call, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        tested = node.args[0] if len(node.args) == 1 else None
        if not isinstance(tested, Field):
            hint = "write has(steps.review.last)"
            self._flaw("expr.syntax", "has(...) asks for one field, written with a dot.", hint)
        else:
            path = path_of(tested)
            self._path(tested, facts if path is None else (*facts, Fact(path, is_set=True)), bound)
        return _BOOLEAN

    def _macro(self, node: Macro, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        of = self.shape(node.of, facts, bound)
        inner = element(of) if "array" in kinds(of) else _STRING  # of a map, the keys are walked
        bound = {**bound, node.variable: ANY if inner is None or of == UNTYPED else inner}
        # a name of the macro hides a root, so what is known of the root is not known of it
        facts = tuple(one for one in facts if one.path[0] != node.variable)
        bodies = [self.shape(one, facts, bound) for one in node.body]
        if node.name == "filter":
            return of
        return _OF_MACRO.get(node.name) or {"type": "array", "items": bodies[-1]}

    def _map(self, node: MapOf, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        found: dict[str, Shape] = {}
        is_known = True
        for key, value in node.pairs:
            self.shape(key, facts, bound)
            shape = self.shape(value, facts, bound)
            is_known = is_known and isinstance(key, Literal) and key.known
            if isinstance(key, Literal):
                found[str(key.value)] = shape
        named = {"type": "object", "required": sorted(found), "properties": found}
        return named if is_known else {"type": "object"}

    # --------------------------------------------------------------------------------------------- paths

    def _path(self, node: Node, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Shape:
        parts: list[Field | Index] = []
        while isinstance(node, Field | Index):
            parts.append(node)
            node = node.of
        parts.reverse()
        keys = [self._key(part, facts, bound) for part in parts]
        if not isinstance(node, Name):
            return self._along(self.shape(node, facts, bound), (), keys, facts)
        if node.text == "steps" and node.text not in bound:
            return self._step(keys, facts)
        if node.text in bound:
            return self._along(bound[node.text], (node.text,), keys, facts)
        if node.text in self._scene.roots:
            return self._along(self._scene.roots[node.text], (node.text,), keys, facts)
        return self._unknown_root(node.text)

    def _key(self, part: Field | Index, facts: tuple[Fact, ...], bound: Mapping[str, Shape]) -> Any:
        """The name or the number behind a dot or in brackets; None for one that is computed."""
        if isinstance(part, Field):
            return part.name
        if isinstance(part.key, Literal):
            return part.key.value if part.key.known else None
        self.shape(part.key, facts, bound)
        return None

    def _unknown_root(self, name: str) -> Shape:
        if name in self._scene.steps():
            hint: str | None = f"write steps.{name}.output"
        else:
            meant = nearest(name, ["steps", *self._scene.roots])
            hint = f"did you mean {meant}?" if meant else f"there is {', '.join(sorted(['steps', *self._scene.roots]))}"
        return self._flaw("expr.unknown_root", f"`{name}` does not exist here.", hint)

    def _step(self, keys: list[Any], facts: tuple[Fact, ...]) -> Shape:
        if not keys or not isinstance(keys[0], str):
            hint = "write steps.NAME.output with the step's id"
            return self._flaw("ref.dynamic_step", "A step is read by its own name, not by a computed one.", hint)
        step, accessor = keys[0], keys[1] if len(keys) > 1 else None
        flaw = self._scene.step(step)
        if flaw is not None:
            return self._flaw(*flaw[:3])
        if not isinstance(accessor, str):
            hint = f"write steps.{step}.output"
            return self._flaw("ref.bad_accessor", f"`steps.{step}` is read without saying what of it.", hint)
        shape = self._scene.accessor(step, accessor)
        if isinstance(shape, Flaw):
            return self._flaw(*shape[:3])
        if Fact(("steps", step, accessor), is_set=True) not in facts:
            flaw = self._scene.unset(step, accessor, facts)
            self.flaws += [flaw] if flaw is not None else []
        return self._along(shape, ("steps", step, accessor), keys[2:], facts)

    def _along(self, shape: Shape, path: tuple[str, ...], keys: list[Any], facts: tuple[Fact, ...]) -> Shape:
        shown = ".".join(path) or "the value"
        for key in keys:
            if shape == UNTYPED:
                hint = "give the step's output a schema"
                return self._flaw("ref.missing_schema", f"`{shown}` is JSON without a schema.", hint)
            if not isinstance(key, str):
                inner = element(shape)
                path = (*path, str(key)) if path and key is not None else ()
                shape, shown = ANY if inner is None else inner, f"{shown}[{'...' if key is None else key}]"
                continue
            found = field(shape, key)
            if found is None:
                is_object = "object" in kinds(shape)
                what = "" if is_object else f"; it is {missing(shape)}"
                near = did_you_mean(key, names(shape)) if is_object else None
                return self._flaw("ref.no_such_field", f"`{shown}` has no field `{key}`{what}.", near)
            path = (*path, key) if path else ()
            shown = f"{shown}.{key}"
            if not found.always and Fact(path, is_set=True) not in facts:
                message = f"`{shown}` may be absent; the schema does not require it."
                ask = f"write has({shown}) ? {shown} : ..." if path else None
                self.flaws.append(Flaw("ref.maybe_unset", message, ask, is_warning=True))
            shape = found.shape
        return shape


def _sum(left: Shape, right: Shape) -> Shape:
    """The shape of a sum, a product and the like."""
    one, other = kinds(left), kinds(right)
    if one == other == {"string"}:
        return _STRING
    if one == other == {"array"}:
        return {"type": "array"}
    if one and other and one | other <= {"integer", "number"}:
        return _NUMBER if "number" in one | other else _INTEGER
    return ANY
