"""Kind ``mount``: memory stores, scratch folders and skills, as the values that say what a role may see and where."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from .value import Name, Text, WireModel

__all__ = ["HarnessRuntimeMount", "MemoryMount", "MountMode", "MountPath", "ScratchMount", "SkillDescriptor"]

MountMode = Literal["ro", "rw"]
MountPath = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=4096)]


class MemoryMount(WireModel):
    """A memory store at a path; ``purpose`` is what the role reads about it."""

    path: MountPath
    mode: MountMode
    purpose: Text
    store_id: Name


class ScratchMount(WireModel):
    """A writable folder of this run only; archived or removed when the run is collected."""

    path: MountPath
    mode: Literal["rw"] = "rw"
    purpose: Text
    ephemeral: Literal[True] = True


class SkillDescriptor(WireModel):
    """A skill as the prompt shows it; the body is read at ``path`` through bash."""

    name: Name
    description: Text
    path: MountPath


class HarnessRuntimeMount(WireModel):
    """One mount that the execution environment must realise; ``source`` means something to it, never to the role."""

    path: MountPath
    mode: MountMode
    kind: Literal["memory", "scratch", "skill", "workspace"]
    source: Text
