"""The prompt of a role call: what the host hands over goes in, the five labelled parts and their text come out.

The order is fixed: the developer's words, the role's addendum, skills, mounts, tools. A part that would be empty is
left out. Whatever comes from outside (a description, a purpose) stays on one line, so that it cannot pose as a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from harness_hookspecs.mount import MemoryMount, ScratchMount, SkillDescriptor
from harness_hookspecs.role import BoundTool, ExecutorRole, PromptPart, RoleContext

from .addenda import ADDENDA
from .schema_line import schema_line

__all__ = [
    "PROMPT_TEMPLATE_VERSION",
    "label_text",
    "prompt_parts",
    "prompt_text",
    "system_texts",
]

PROMPT_TEMPLATE_VERSION: Final = "workflow/1"
"""Changes with every change of headings, order or rendering, so that a resume notices it."""

_SKILLS: Final = "Skills (read .agents/skills/NAME/SKILL.md with bash):"
_MOUNTS: Final = "Mounts:"
_TOOLS: Final = "Tools:"
_HEADINGS: Final[Mapping[str, str]] = {_SKILLS: "skills", _MOUNTS: "mounts", _TOOLS: "tools"}


def prompt_parts(
    role: ExecutorRole,
    *,
    system: Sequence[str] = (),
    skills: Sequence[SkillDescriptor] = (),
    memory: Sequence[MemoryMount] = (),
    scratch: Sequence[ScratchMount] = (),
    tools: Mapping[str, BoundTool] | None = None,
) -> tuple[PromptPart, ...]:
    """Assemble the parts.

    Args:
        role: The executor role; chooses the addendum.
        system: The developer's texts, in order.
        skills: Names and descriptions; the bodies are read where the part says.
        memory: Memory stores the role may read, or also write.
        scratch: Folders of this run only.
        tools: The tools by name.
    """
    addendum = ADDENDA[role]
    parts = (
        PromptPart("developer system", "\n\n".join(text.strip() for text in system if text.strip())),
        PromptPart("role addendum", addendum.text, addendum.id),
        PromptPart("skills", _listed(_SKILLS, _skill_lines(skills))),
        PromptPart("mounts", _listed(_MOUNTS, _mount_lines(memory, scratch))),
        PromptPart("tools", _listed(_TOOLS, _tool_lines(tools or {}))),
    )
    return tuple(part for part in parts if part.text)


def prompt_text(parts: Iterable[PromptPart]) -> str:
    """The system message: the parts' texts, without their labels."""
    return "\n\n".join(part.text for part in parts)


def label_text(role: ExecutorRole, text: str) -> tuple[PromptPart, ...] | None:
    """Take a system message apart again.

    Only the developer's words may hold an empty line; every list is one block. So the last block that is the role's
    addendum parts the words from the lists.

    Returns:
        The parts, which joined are the text; None for a text that was not made here.
    """
    addendum = ADDENDA[role]
    before, found, after = f"\n\n{text}\n\n".rpartition(f"\n\n{addendum.text}\n\n")
    if not found:
        return None
    lists = [_labelled(block) for block in after.strip("\n").split("\n\n") if block]
    words = PromptPart("developer system", before.removeprefix("\n\n"))
    parts = (words, PromptPart("role addendum", addendum.text, addendum.id), *(part for part in lists if part))
    whole = tuple(part for part in parts if part.text)
    return whole if None not in lists and prompt_text(whole) == text else None


def _labelled(block: str) -> PromptPart | None:
    heading = block.partition("\n")[0]
    return PromptPart(_HEADINGS[heading], block) if heading in _HEADINGS else None


def system_texts(ctx: RoleContext, step_system: str | None) -> tuple[str, ...]:
    """The developer's texts of a call: the context's and the step's, one of them when they are the same."""
    return tuple(dict.fromkeys(text for text in (ctx.system, step_system) if text))


def _listed(heading: str, lines: Iterable[str]) -> str:
    found = [f"- {line}" for line in lines]
    return "\n".join([heading, *found]) if found else ""


def _skill_lines(skills: Sequence[SkillDescriptor]) -> Iterator[str]:
    for skill in skills:
        yield f"{_one_line(skill.name)}: {_one_line(skill.description)}"


def _mount_lines(memory: Sequence[MemoryMount], scratch: Sequence[ScratchMount]) -> Iterator[str]:
    for store in memory:
        yield f"{_one_line(store.path)} ({store.mode}): {_one_line(store.purpose)}"
    for folder in scratch:
        yield f"{_one_line(folder.path)} ({folder.mode}, ephemeral): {_one_line(folder.purpose)}"


def _tool_lines(tools: Mapping[str, BoundTool]) -> Iterator[str]:
    for name in sorted(tools):
        description = _one_line(tools[name].description).rstrip(".")
        yield f"{_one_line(name)}: {description}. Input: {schema_line(tools[name].input_schema)}"


def _one_line(text: str) -> str:
    """The text without line breaks and control characters, whatever it was meant to look like."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
