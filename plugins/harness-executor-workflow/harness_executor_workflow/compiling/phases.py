"""The twelve phases in their order: a document and what there is go in, a locked plan or its findings come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from harness_hookspecs.compiler import Compilation, Surroundings
from harness_hookspecs.errors import RuleError
from harness_hookspecs.kit.canonical import sha256
from harness_hookspecs.workflow import PlanFinding

from .binding import check_binding
from .bounds import check_bounds, most_executions
from .document import Document, read_document
from .fanout import check_fan_out
from .findings import CODES, MOST_CHARACTERS, MOST_FINDINGS, finding
from .form import read_form
from .lock import lock_of, version_id
from .matching import check_match
from .outputs import check_outputs
from .plans import Plan
from .reaching import check_reach
from .scene import World
from .schemas import check_schemas
from .sources import examine, tool_names
from .structure import check_structure
from .trial import Expression, Source, Tried, try_all
from .uses import Judged, judge_all

__all__ = ["compile_plan"]


class _Work:
    """A compilation under way; each phase adds what the next ones read."""

    document: Document
    plan: Plan
    world: World
    judged: Judged
    sources: dict[Source, Tried]

    def __init__(self, source: Any, surroundings: Surroundings) -> None:
        self.source: Final = source
        self.surroundings: Final = surroundings


_Phase: TypeAlias = Callable[[_Work], Iterator[PlanFinding]]


def compile_plan(source: Any, surroundings: Surroundings) -> Compilation:
    """Check a plan; see :class:`harness_hookspecs.compiler.Compiler`."""
    work = _Work(source, surroundings)
    told: list[PlanFinding] = []
    for phase in _PHASES:
        told += _first(phase(work))
        if any(one.severity == "error" for one in told):
            return Compilation(findings=tuple(told))
    lwir_hash = sha256(work.document.data).hex()
    return Compilation(
        findings=tuple(told),
        workflow_version_id=version_id(lwir_hash),
        lwir_hash=lwir_hash,
        lock=lock_of(work.plan, lwir_hash, surroundings),
        plan=work.plan.workflow,
        max_step_executions=most_executions(work.plan),
    )


def _first(found: Iterator[PlanFinding]) -> Iterator[PlanFinding]:
    """As many as are told; a name of the plan that is very long stands in each place below it."""
    characters = 0
    for number, one in enumerate(found, 1):
        yield one
        characters += len(one.path) + len(one.message)
        if number == MOST_FINDINGS or characters > MOST_CHARACTERS:
            return


def _canonical(work: _Work) -> Iterator[PlanFinding]:
    found = read_document(work.source)
    if isinstance(found, PlanFinding):
        yield found
    else:
        work.document = found


def _shape(work: _Work) -> Iterator[PlanFinding]:
    found = read_form(work.document.value)
    if isinstance(found, list):
        yield from found
    else:
        work.plan = Plan(found, work.document.value)


def _data_schemas(work: _Work) -> Iterator[PlanFinding]:
    return check_schemas(work.plan.data, work.plan.all)


def _graph(work: _Work) -> Iterator[PlanFinding]:
    return check_structure(work.plan)


def _reachability(work: _Work) -> Iterator[PlanFinding]:
    work.world = World(work.plan)
    yield from check_reach(work.world)
    work.judged = judge_all(work.world)
    yield from work.judged.errors("output.")


def _expressions(work: _Work) -> Iterator[PlanFinding]:
    """What the compiler itself cannot read, then what a child process cannot, then what the engine here cannot."""
    found = work.judged.errors("expr.", "ref.dynamic_step")
    yield from found
    work.sources = {}
    if not found:
        yield from _tried(work)


def _tried(work: _Work) -> Iterator[PlanFinding]:
    uses = work.judged.uses
    expressions = list(dict.fromkeys(Expression(use.text, use.roots) for use in uses))
    sources = list(dict.fromkeys(_sources(work.plan).values()))
    trial = work.surroundings.trial
    if trial is not None and (expressions or sources):
        verdicts = try_all(trial, expressions, sources)
    else:
        verdicts = [[] for _ in expressions] + [examine(*source) for source in sources]
    work.sources = dict(zip(sources, verdicts[len(expressions) :]))
    refused = dict(zip(expressions, verdicts))
    for expression in expressions if not any(refused.values()) else ():
        refused[expression] = _compiled(work.surroundings, expression)
    for use in uses:
        for flaw in refused[Expression(use.text, use.roots)]:
            code = flaw["code"] if flaw["code"] in CODES else "expr.refused"
            yield finding(code, use.place, use.step, flaw["message"], flaw["hint"])


def _compiled(surroundings: Surroundings, expression: Expression) -> Tried:
    try:
        surroundings.rules.compile(expression.text, roots=expression.roots)
    except RuleError as error:
        return [{"code": error.code, "message": error.message, "hint": error.hint}]
    return []


def _sources(plan: Plan) -> dict[str, Source]:
    return {
        one.id: Source(one.settings["source"], tuple(one.settings.get("tools", ())))
        for one in plan.all
        if one.uses == "code.run"
    }


def _references(work: _Work) -> Iterator[PlanFinding]:
    yield from work.judged.errors("ref.")
    yield from (one for one in work.judged.findings if one.severity == "warning")


def _binding(work: _Work) -> Iterator[PlanFinding]:
    yield from check_binding(work.plan, work.surroundings, work.judged.shapes)
    yield from check_outputs(work.plan, work.surroundings, work.judged.shapes)


def _code(work: _Work) -> Iterator[PlanFinding]:
    for step, source in _sources(work.plan).items():
        place = work.plan.steps[step].place / "with"
        for names in _collisions(source.tools):
            message = f"{' and '.join(names)} would both be tools.{names[0].replace('.', '_')}."
            yield finding("code.tool_collision", place / "tools", step, message, "declare one of them in another step")
        for flaw in work.sources[source]:
            yield finding(flaw["code"], place / "source", step, flaw["message"], flaw["hint"])


def _collisions(tools: Sequence[str]) -> Iterator[list[str]]:
    return (names for names in tool_names(tools).values() if len(names) > 1)


def _fan_out(work: _Work) -> Iterator[PlanFinding]:
    return check_fan_out(work.plan, work.judged)


def _bounds(work: _Work) -> Iterator[PlanFinding]:
    return check_bounds(work.plan, work.surroundings)


def _match(work: _Work) -> Iterator[PlanFinding]:
    return check_match(work.plan, work.surroundings.definition)


_PHASES: Final[tuple[_Phase, ...]] = (
    _canonical, _shape, _data_schemas, _graph, _reachability, _expressions, _references, _binding, _code, _fan_out,
    _bounds, _match,
)  # fmt: skip
