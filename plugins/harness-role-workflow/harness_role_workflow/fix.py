"""A code step that failed goes in, the source that a model proposes in its place comes out; the host runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from harness_hookspecs.errors import RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import ChatInput, ErrorEnvelope, Message
from harness_hookspecs.role import FixStepResult, FixStepTask, RoleContext
from harness_hookspecs.workflow import CodeRunStep, Fixer

from .asking import asked_once, said
from .prompt import prompt_parts, prompt_text, system_texts
from .schema_line import schema_line
from .settings import WorkflowRoleSettings

__all__ = ["fix"]

_WRAPPERS: Final = (
    re.compile(r"\s*<think>.*?</think>\s*(?P<rest>.*)", re.DOTALL),
    re.compile(r"\s*```(?:python|py)?[ \t]*\n(?P<rest>.*?)\n?```\s*", re.DOTALL),
)
_ENTRY: Final = re.compile(r"^async\s+def\s+main\s*\(", re.MULTILINE)
_NO_ENTRY: Final = "There is no `async def main(input, tools)` in it. Answer again with the whole source alone."


def fix(task: FixStepTask, ctx: RoleContext, settings: WorkflowRoleSettings) -> FixStepResult:
    """Ask for a source, once more when what is answered is none.

    Returns:
        The source; its output is left to the host, which runs it.

    Raises:
        RoleError: ``fixer.not_opted_in``: the step allows no repair; ``fixer.no_source``: the model gave none; or as
            :func:`~harness_role_workflow.asking.asked_once` says.
        Suspend: As a call of the context raised it.
    """
    step, fixer = _opted_in(task)
    parts = prompt_parts("fixer", system=system_texts(ctx, fixer.system), tools=ctx.tools)
    question = "\n\n".join(f"{heading}\n{body}" for heading, body in _blocks(task, step, fixer))
    messages: list[Message] = [said("system", prompt_text(parts)), said("user", question)]
    for _ in range(settings.equal_failures):
        answer = asked_once(ChatInput(messages=tuple(messages)), ctx)
        source = _source_in(answer.text)
        if source is not None:
            return FixStepResult(output=None, fixed_source=source, attempts=task.prior_fix_attempts + 1)
        messages += [said("assistant", answer.text or "(nothing)"), said("user", _NO_ENTRY)]
    raise RoleError("The model gave no source with an entry point.", code="fixer.no_source")


def _opted_in(task: FixStepTask) -> tuple[CodeRunStep, Fixer]:
    step = task.step
    if isinstance(step, CodeRunStep) and step.on_failure is not None and step.on_failure.fixer is not None:
        return step, step.on_failure.fixer
    message = f"The step {step.id} is not to be repaired: only a code step with onFailure.fixer is."
    raise RoleError(message, code="fixer.not_opted_in", step=step.id)


def _blocks(task: FixStepTask, step: CodeRunStep, fixer: Fixer) -> Iterator[tuple[str, str]]:
    """What the model is told, what stays the same between attempts first."""
    yield "Source:", _fenced(step.with_.source)
    yield "Input:", codec.dumps(task.step_input).decode()
    yield "Output:", _promised(step)
    yield "Error:", _told(task.original_attempt_error)
    for number, tried in enumerate(task.prior_attempts or (), 1):
        yield f"Repair {number} that did not help:", f"{_fenced(tried.source)}\n{_told(tried.error)}"
    yield "Task:", f"Repair the source. This is repair {task.prior_fix_attempts + 1} of {fixer.max_attempts}."


def _fenced(source: str) -> str:
    return f"```python\n{source.strip()}\n```"


def _promised(step: CodeRunStep) -> str:
    output = step.output
    if output.mode == "choice":
        return f"one of {', '.join(output.values or ())}"
    return output.mode if output.schema_ is None else schema_line(output.schema_)


def _told(error: ErrorEnvelope) -> str:
    """The error in the words of the one who ran the code, with where it was raised and what is wrong with an output."""
    details: Any = error.details or {}
    lines = [f"{error.code or error.name}: {error.message}"]
    if isinstance(details.get("traceback"), str):
        lines.append(details["traceback"].strip())
    lines += [f"- {one.get('path') or 'output'}: {one.get('message')}" for one in details.get("findings") or ()]
    return "\n".join(lines)


def _source_in(text: str) -> str | None:
    """The source in an answer, without a think block before it and a fence around it; nothing is searched for."""
    for wrapper in _WRAPPERS:
        match = wrapper.fullmatch(text)
        text = match["rest"] if match else text
    return f"{text.strip()}\n" if _ENTRY.search(text) else None
