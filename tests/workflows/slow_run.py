"""A slow interpreter of plans for tests: plan, input and outcomes in, open calls and the end out, by looking again.

It says the rules as they are told: after each outcome it goes through all steps of all levels until nothing changes,
knows no graph but the plan, and gives each expression everything. Steps stand in an order in which edges lead forward;
what leads to an earlier step, or to itself, leads back.
"""

from __future__ import annotations

import itertools
from typing import Any

from harness_executor_workflow.plan.paths import Segment, format_path
from harness_executor_workflow.plan.templates import filled
from harness_executor_workflow.running.tasks import delay_of
from harness_hookspecs.rules import Rules

SETTLED = ("completed", "skipped", "failed")
ROOTS = ("input", "steps", "visit", "run", "item")


class SlowStep:
    """What is known of one step of one level."""

    def __init__(self) -> None:
        self.status = ""
        self.visit = 0
        self.attempt = 0
        self.outputs: list[Any] = []
        self.error: Any = None
        self.to: str | None = None
        self.ask: dict[str, Any] | None = None
        self.task: Any = None
        self.fan: SlowFan | None = None


class SlowFan:
    """The branches of a step."""

    def __init__(self, items: list[Any], keys: list[str]) -> None:
        self.items = items
        self.keys = keys
        self.begun = 0
        self.open: dict[int, SlowLevel] = {}
        self.envelopes: dict[int, Any] = {}
        self.failed: Any = None


class SlowLevel:
    """A plan or the body of a branch."""

    def __init__(self, run: SlowRun, steps: list[Any], way: list[Segment], turn: str, outer: Any, item: Any) -> None:
        self.run, self.plans, self.way, self.turn, self.outer, self.item = run, steps, way, turn, outer, item
        self.steps = {step["id"]: SlowStep() for step in steps}
        self.place = {step["id"]: number for number, step in enumerate(steps)}
        self.failed: Any = None
        self.edges = [edge for step in steps for edge in self._edges(step)]
        self.loops = self._loops()

    # -- the graph, by the plan's words ---

    def _edges(self, step: Any) -> list[tuple[str, str, str]]:
        targets = [("decision", case["to"]) for case in step["with"].get("cases", ())]
        targets += [("decision", step["with"]["default"])] if step["uses"] == "decision" else []
        targets += [("failure", step["onFailure"]["to"])] if "to" in step.get("onFailure", {}) else []
        found = [("needs", need, step["id"]) for need in step.get("needs", ())]
        found += [(kind, step["id"], to) for kind, to in targets if to in self.place]
        return list(dict.fromkeys(found))

    def is_back(self, edge: tuple[str, str, str]) -> bool:
        return self.place[edge[2]] <= self.place[edge[1]]

    def _after(self, step: str, within: set[str]) -> set[str]:
        found = {step}
        for _ in self.plans:
            found |= {e[2] for e in self.edges if not self.is_back(e) and e[1] in found and {e[1], e[2]} <= within}
        return found

    def _loops(self) -> list[tuple[set[str], list[Any]]]:
        everything = set(self.steps)
        loops = []
        for edge in self.edges:
            if self.is_back(edge):
                between = {one for one in self._after(edge[2], everything) if edge[1] in self._after(one, everything)}
                loops.append((between | {edge[1], edge[2]}, [edge]))
        while (merged := self._merged(loops)) is not None:
            loops = merged
        return sorted(loops, key=lambda loop: len(loop[0]))

    def _merged(self, loops: list[Any]) -> list[Any] | None:
        """The loops with some of them made one, while there is a reason to."""
        for one, other in itertools.combinations(loops, 2):
            nested = one[0] < other[0] or other[0] < one[0]
            if one[0] & other[0] and not nested:
                rest = [loop for loop in loops if loop is not one and loop is not other]
                return [*rest, (one[0] | other[0], one[1] + other[1])]
        for scope in (set(self.steps), *(steps for steps, _ in loops)):
            inner = [loop for loop in loops if loop[0] < scope]
            largest = [loop for loop in inner if not any(loop[0] < other[0] for other in inner)]
            for loop in largest:
                onwards, backwards = (self._spread(loop[0], scope, largest, way) for way in ((1, 2), (2, 1)))
                both = onwards & backwards
                if both != loop[0]:
                    within = [other for other in largest if other[0] <= both]
                    rest = [other for other in loops if other not in within]
                    return [*rest, (both, [edge for other in within for edge in other[1]])]
        return None

    def _spread(self, start: set[str], scope: set[str], loops: list[Any], way: tuple[int, int]) -> set[str]:
        """All that is reached by edges that do not lead back; of a loop that is reached, all of it."""
        found = set(start)
        for _ in self.plans:
            steps = {e[way[1]] for e in self.edges if not self.is_back(e) and e[way[0]] in found and e[way[1]] in scope}
            found |= steps.union(*(loop for loop, _ in loops if loop & steps))
        return found

    def live(self, edge: tuple[str, str, str]) -> bool:
        source = self.steps[edge[1]]
        if edge[0] == "needs":
            return source.status == "completed"
        return source.status == ("completed" if edge[0] == "decision" else "failed") and source.to == edge[2]

    def settled(self, names: Any) -> bool:
        return all(self.steps[name].status in SETTLED for name in names)

    def counts(self, edge: tuple[str, str, str]) -> bool:
        left = [loop for loop in self.loops if edge[1] in loop[0] and edge[2] not in loop[0]]
        quiet = all(self.settled(steps) and not any(self.live(back) for back in backs) for steps, backs in left)
        return self.settled([edge[1]]) and quiet

    # -- looking again ---

    def look(self) -> bool:
        """Do one thing that is due; whether there was one."""
        for plan in self.plans:
            fan = self.steps[plan["id"]].fan
            if fan is not None and self._look_at_fan(plan, fan):
                return True
        if self.failed:
            return False
        for steps, backs in self.loops:
            chosen = [back for back in backs if self.live(back)]
            if self.settled(steps) and chosen:
                self._again(steps, chosen)
                return True
        return any(self._look_at(plan) for plan in self.plans)

    def _look_at(self, plan: Any) -> bool:
        step = self.steps[plan["id"]]
        incoming = [edge for edge in self.edges if edge[2] == plan["id"] and not self.is_back(edge)]
        if step.status or not all(self.counts(edge) for edge in incoming):
            return False
        routed = [edge[1] for edge in incoming if edge[0] != "needs" and self.live(edge)]
        needed = [edge for edge in incoming if edge[0] == "needs"]
        unrouted = not routed and any(edge[0] != "needs" for edge in incoming)
        if unrouted or (needed and not any(self.live(edge) or edge[1] in routed for edge in needed)):
            step.status = "skipped"
        else:
            self._begin(plan, step)
        return True

    def _again(self, steps: set[str], chosen: list[Any]) -> None:
        body = sorted(set().union(*(self._after(edge[2], steps) for edge in chosen)), key=self.place.__getitem__)
        for name in body:
            if self.steps[name].visit + 1 >= self.plan(name).get("maxVisits", 1):
                self.fail(self.plan(name), {"code": "max_visits_exceeded"})
                return
        for name in body:
            step = self.steps[name]
            step.visit, step.status, step.to, step.error = step.visit + 1, "", None, None
        for head in sorted({edge[2] for edge in chosen}, key=self.place.__getitem__):
            self._begin(self.plan(head), self.steps[head])

    def _look_at_fan(self, plan: Any, fan: SlowFan) -> bool:
        if any(branch.look() for branch in fan.open.values()):
            return True
        over = next((number for number, branch in fan.open.items() if branch.over()), None)
        more = not fan.failed and not self.failed and fan.begun < len(fan.items)
        if over is not None:
            self._close(plan, fan, over, fan.open[over])
        elif more and len(fan.open) < plan["with"]["maxConcurrency"]:
            self._branch(plan, fan)
        elif not fan.open and not more:
            self._end(plan, fan)
        else:
            return False
        return True

    def _branch(self, plan: Any, fan: SlowFan) -> None:
        way = [*self.way, self.segment(plan, fan.keys[fan.begun])]
        turn = f"{self.turn}{self.steps[plan['id']].attempt}."
        fan.open[fan.begun] = SlowLevel(self.run, plan["steps"], way, turn, self, fan.items[fan.begun])
        fan.begun += 1

    def _end(self, plan: Any, fan: SlowFan) -> None:
        step = self.steps[plan["id"]]
        step.fan = None
        if self.failed:
            step.status = "stopped"
        elif fan.failed:
            self.failed_attempt(plan, step, fan.failed)
        else:
            order = plan["with"].get("fanIn", {}).get("order")
            found = [fan.envelopes[number] for number in range(len(fan.items))]
            self.complete(plan, step, sorted(found, key=lambda one: one["itemKey"]) if order == "itemKey" else found)

    def _close(self, plan: Any, fan: SlowFan, number: int, branch: SlowLevel) -> None:
        del fan.open[number]
        last = branch.steps[plan["with"].get("fanIn", {}).get("outputStep", plan["steps"][-1]["id"])]
        error = branch.failed and {name: branch.failed[name] for name in ("code", "message", "stepPath")}
        fan.envelopes[number] = {
            "itemKey": fan.keys[number],
            "status": "failed" if branch.failed else "completed",
            "output": last.outputs[-1] if last.outputs and not branch.failed else None,
            "error": error or None,
            "artifacts": [],
        }
        if branch.failed and plan["with"]["failureMode"] == "fail_fast" and not fan.failed:
            fan.failed = branch.failed
            for other in fan.open.values():
                other.stop()

    def over(self) -> bool:
        if self.failed:
            return not any(step.ask or step.fan for step in self.steps.values())
        return self.settled(self.steps)

    # -- a step ---

    def plan(self, name: str) -> Any:
        return next(plan for plan in self.plans if plan["id"] == name)

    def segment(self, plan: Any, key: str | None = None) -> Segment:
        visits = plan.get("maxVisits", 1) > 1
        return Segment(plan["id"], key, self.steps[plan["id"]].visit if visits else None)

    def path(self, plan: Any) -> str:
        return format_path([*self.way, self.segment(plan)])

    def ask(self, plan: Any, kind: str, tail: str = "", **more: Any) -> None:
        step = self.steps[plan["id"]]
        where = {"path": self.path(plan), "visit": step.visit}
        step.ask = {"id": f"{where['path']}#{self.turn}{step.attempt}{tail}", "kind": kind, **where, **more}

    def value(self, plan: Any, template: Any, **more: Any) -> Any:
        roots = {"input": self.run.given, "run": self.run.about, "steps": self.seen(), **more}
        roots |= {"visit": {"index": self.steps[plan["id"]].visit}}
        roots |= {} if self.item is None or "item" in more else {"item": self.item}
        rules = self.run.rules
        return filled(template, lambda text: rules.compile(text, roots=ROOTS).evaluate(roots))

    def seen(self) -> dict[str, Any]:
        found = self.outer.seen() if self.outer is not None else {}
        for plan in self.plans:
            step = self.steps[plan["id"]]
            view: dict[str, Any] = {} if step.error is None else {"error": step.error}
            if step.outputs and plan.get("maxVisits", 1) > 1:
                view |= {"last": step.outputs[-1], "all": step.outputs}
            elif step.outputs:
                view |= {"output": step.outputs[-1]}
            found[plan["id"]] = view
        return found

    def _begin(self, plan: Any, step: SlowStep) -> None:
        step.status, step.attempt = "running", 1
        if plan["uses"] == "tool.call":
            step.task = self.value(plan, plan["with"].get("args", {}))
        self.attempt(plan, step)

    def attempt(self, plan: Any, step: SlowStep) -> None:
        step.ask = None
        if plan["uses"] == "wait":
            self.ask(plan, "timer", delay_ms=plan["with"]["durationMs"])
        elif plan["uses"] == "parallel":
            items = self.value(plan, plan["with"]["items"])
            step.fan = SlowFan(items, [str(self.value(plan, plan["with"]["itemKey"], item=item)) for item in items])
        else:
            self.ask(plan, "call", task=step.task)

    def complete(self, plan: Any, step: SlowStep, output: Any) -> None:
        step.ask = None
        if plan["uses"] == "decision":
            if output == "fail":
                self.fail(plan, {"code": "decision.fail"})
                return
            step.to = output
        else:
            step.outputs.append(output)
        step.status = "completed"

    def failed_attempt(self, plan: Any, step: SlowStep, error: Any) -> None:
        retry = plan.get("retry", {})
        step.ask = None
        if step.attempt < retry.get("maxAttempts", 1):
            step.attempt += 1
            identity = f"{self.path(plan)}#{self.turn}{step.attempt}.delay"
            delay = delay_of(retry, step.attempt, f"{self.run.seed}|{identity}")
            if delay:
                self.ask(plan, "timer", ".delay", delay_ms=delay)
            else:
                self.attempt(plan, step)
            return
        to = plan.get("onFailure", {}).get("to", "fail")
        if to == "fail":
            self.fail(plan, error)
            return
        step.status, step.to = "failed", to
        step.error = {"code": error["code"], "message": error["message"]}

    def fail(self, plan: Any, error: Any) -> None:
        step = self.steps[plan["id"]]
        step.ask, step.status = None, "stopped"
        self.run.failures += 1
        self.failed = {"code": error["code"], "message": error.get("message", ""), "stepPath": self.path(plan)}
        self.failed["stepPath"] = error.get("stepPath", self.failed["stepPath"])
        self.stop()

    def stop(self) -> None:
        self.failed = self.failed or {"code": "parallel.stopped", "message": "", "stepPath": ""}
        for step in self.steps.values():
            if step.ask is not None and step.ask["kind"] == "timer":
                step.ask = None
            for branch in step.fan.open.values() if step.fan is not None else ():
                branch.stop()

    def asks(self) -> list[tuple[SlowLevel, Any, dict[str, Any]]]:
        found = []
        for plan in self.plans:
            step = self.steps[plan["id"]]
            if step.ask is not None:
                found.append((self, plan, step.ask))
            for branch in step.fan.open.values() if step.fan is not None else ():
                found += branch.asks()
        return found


class SlowRun:
    """A run of a plan; its last step is a level of its own."""

    def __init__(self, document: Any, given: Any, about: Any, seed: str, rules: Rules) -> None:
        self.given, self.about, self.seed, self.rules = given, about, seed, rules
        self.failures = 0  # levels that a failure stopped
        last = document.get("finally")
        self.document = document
        self.root = SlowLevel(self, [step for step in document["steps"] if step["id"] != last], [], "", None, None)
        self.last_plan = [step for step in document["steps"] if step["id"] == last]
        self.last: SlowLevel | None = None
        self.end: tuple[str, Any] | None = None
        self._look()

    def open(self) -> dict[str, dict[str, Any]]:
        """What is asked, by id."""
        return {ask["id"]: ask for _, _, ask in self._asks()} if self.end is None else {}

    def hear(self, request_id: str, value: Any, error: Any) -> None:
        """The outcome of one of them."""
        level, plan, ask = next(found for found in self._asks() if found[2]["id"] == request_id)
        step = level.steps[plan["id"]]
        if level.failed:
            step.ask = None
        elif error is not None:
            level.failed_attempt(plan, step, error)
        elif ask["kind"] == "timer" and plan["uses"] != "wait":
            level.attempt(plan, step)
        else:
            level.complete(plan, step, None if ask["kind"] == "timer" else value)
        self._look()

    def _asks(self) -> list[Any]:
        return self.root.asks() + ([] if self.last is None else self.last.asks())

    def _look(self) -> None:
        while self.root.look():
            pass
        if not self.root.over():
            return
        if self.last_plan and self.last is None:
            self.last = SlowLevel(self, self.last_plan, [], "", self.root, None)
        while self.last is not None and self.last.look():
            pass
        if self.last is not None and not self.last.over():
            return
        failed = self.root.failed or (self.last.failed if self.last is not None else None)
        plan = self.root.plans[0]
        output = None if failed else self.root.value(plan, self.document["output"]["value"])
        self.end = ("error", failed["code"]) if failed else ("output", output)
