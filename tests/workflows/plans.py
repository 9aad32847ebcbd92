"""Plans for tests: chance goes in; a plan that a checker would let pass comes out, and how each of its calls ends."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import strategies as st

__all__ = ["INPUT", "answer", "document", "plans"]

INPUT = {"xs": [{"k": "b", "n": 2}, {"k": "a", "n": 1}, {"k": "c/ü", "n": 0}], "none": []}


def document(steps: list[Any], *, last: Any = None, value: Any = None, limit: int | None = None) -> dict[str, Any]:
    """A whole plan around some steps."""
    found: dict[str, Any] = {
        "apiVersion": "harness.lwir/v1",
        "kind": "Workflow",
        "metadata": {"name": "test"},
        "input": {"schema": True},
        "output": {"schema": True, "value": value},
        "permissions": {"models": ["m"], "tools": ["t"]},
        "steps": [*steps, *([last] if last is not None else [])],
    }
    if last is not None:
        found["finally"] = last["id"]
    if limit is not None:
        found["limits"] = {"maxStepExecutions": limit}
    return found


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """A plan of a few steps of every kind, with loops, failure routes, retries, branches in branches, a last step."""
    steps = draw(levels(depth=0, prefix="s"))
    last = draw(st.one_of(st.none(), working("z", {}, (), visits=1)))
    return document(steps, last=last, value={step["id"]: maybe(step) for step in steps if has_output(step)})


@st.composite
def levels(draw: st.DrawFn, depth: int, prefix: str) -> list[Any]:
    """The steps of one level; edges lead to later steps, but for decisions that lead back to what they come from."""
    count = draw(st.integers(1, 6 if depth == 0 else 3))
    names = [f"{prefix}{number}" for number in range(count)]
    visits = draw(st.sampled_from((1, 2, 3)))
    steps: list[Any] = []
    above: dict[str, set[str]] = {}  # of each step all that has settled before it begins
    first: dict[str, set[str]] = {}  # of each step all without which it cannot start
    routed: dict[str, list[str]] = {name: [] for name in names}
    for number, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:number]), unique=True, max_size=2)) if number else []
        sources = [*needs, *routed[name]]
        above[name] = set(sources).union(*(above[source] for source in sources))
        ways = [first[source] for source in routed[name]]
        first[name] = {name}.union(*(first[need] for need in needs), set.intersection(*ways) if ways else set())
        seen = {step["id"]: step for step in steps if step["id"] in above[name]}
        later = names[number + 1 :]
        uses = draw(st.sampled_from(["tool.call", "tool.call", "decision", "wait", *(["parallel"] * (depth < 2))]))
        if uses == "decision":
            earlier = sorted(first[name])
            step = draw(choosing(name, [*later, "end"], earlier if visits > 1 else []))
        elif uses == "wait":
            step = {"id": name, "uses": "wait", "with": {"durationMs": 5}}
        elif uses == "parallel":
            step = draw(fanning(name, depth, prefix))
        else:
            step = draw(working(name, seen, later, visits=visits))
        step |= {"needs": needs} if needs else {}
        step |= {"maxVisits": visits} if visits > 1 else {}
        for target in targets(step):
            if target in later:
                routed[target].append(name)
        steps.append(step)
    return steps


def targets(step: Any) -> list[str]:
    """Where a step may lead."""
    settings = step["with"]
    found = [case["to"] for case in settings.get("cases", ())] + [settings.get("default", "")]
    return [*found, step.get("onFailure", {}).get("to", "")]


def working(name: str, seen: dict[str, Any], later: Any, *, visits: int) -> st.SearchStrategy[Any]:
    """A tool call that reads what came before, may be tried again and may lead somewhere when it fails."""
    args = {other: maybe(step) for other, step in seen.items() if has_output(step)}
    args |= {f"{other}_failed": f"{{{{ has(steps.{other}.error) ? steps.{other}.error.code : '' }}}}" for other in seen}
    args["visit"] = "{{ visit.index }} of {{ input.xs[0].k }}"
    retry = st.fixed_dictionaries(
        {"maxAttempts": st.integers(1, 3)},
        optional={"strategy": st.just("retry")},
    ).flatmap(delayed)
    route = st.sampled_from([*later, "end", "fail"]).map(lambda to: {"to": to})
    return st.fixed_dictionaries(
        {
            "id": st.just(name), "uses": st.just("tool.call"), "with": st.just({"tool": "t", "args": args}),
            "output": st.just({"mode": "json"}),
        },
        optional={"retry": retry, "onFailure": route},
    )  # fmt: skip


def delayed(retry: dict[str, Any]) -> st.SearchStrategy[Any]:
    """The same, perhaps with a delay."""
    timing = {"backoff": st.sampled_from(("linear", "exponential")), "jitter": st.sampled_from((0, 0.5, 1))}
    with_delay = st.fixed_dictionaries(
        {**{k: st.just(v) for k, v in retry.items()}, "delayMs": st.just(100)}, optional=timing
    )
    return st.one_of(st.just(retry), with_delay)


def choosing(name: str, later: list[str], earlier: list[str]) -> st.SearchStrategy[Any]:
    """A decision; more often than not it leads on."""
    target = st.sampled_from([*later, *later, *earlier, "fail"])
    cases = st.lists(target.map(lambda to: {"when": "true", "to": to}), min_size=1, max_size=2)
    settings = st.fixed_dictionaries({"cases": cases, "default": st.sampled_from(later)})
    return st.fixed_dictionaries({"id": st.just(name), "uses": st.just("decision"), "with": settings})


@st.composite
def fanning(draw: st.DrawFn, name: str, depth: int, prefix: str) -> Any:
    """Branches over the items of the input."""
    inner = draw(levels(depth=depth + 1, prefix=f"{prefix}{'pq'[depth]}"))
    settings: dict[str, Any] = {
        "items": draw(st.sampled_from(["{{ input.xs }}", "{{ input.xs }}", "{{ input.none }}"])),
        "itemKey": draw(st.sampled_from(["{{ item.k }}", "{{ item.n }}", "k-{{ item.n }}"])),
        "maxBranches": 3,
        "maxConcurrency": draw(st.integers(1, 3)),
        "failureMode": draw(st.sampled_from(["fail_fast", "all_settled"])),
    }
    if draw(st.booleans()):
        settings["fanIn"] = {"order": draw(st.sampled_from(["input", "itemKey"]))}
    return {"id": name, "uses": "parallel", "with": settings, "steps": inner}


def maybe(step: Any) -> str:
    """The template of a step's output, or of nothing."""
    return f"{{{{ has({read(step)}) ? [{read(step)}] : [] }}}}"


def has_output(step: Any) -> bool:
    """Whether a step has an output at all."""
    return bool(step["uses"] != "decision")


def read(step: Any) -> str:
    """The expression that reads a step's output."""
    return f"steps.{step['id']}.{'last' if step.get('maxVisits', 1) > 1 else 'output'}"


def answer(salt: str, ask: Any, step: Any, *, failures: int) -> tuple[Any, Any]:
    """How a call ends, value and error: the same for the same salt and id. Of ten, ``failures`` fail."""
    drawn = hashlib.sha256(f"{salt}|{ask['id']}".encode()).digest()
    if step["uses"] == "decision":
        targets = list(dict.fromkeys([*(case["to"] for case in step["with"]["cases"]), step["with"]["default"]]))
        return targets[drawn[0] % len(targets)], None
    if step["uses"] == "tool.call" and ask["kind"] == "call" and drawn[1] % 10 < failures:
        return None, {"name": "ToolError", "code": f"tool.{drawn[2] % 3}", "message": f"no {drawn[2] % 3}"}
    return {"of": ask["id"], "n": drawn[3]}, None
