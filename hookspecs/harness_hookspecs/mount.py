"""Kind ``mount``: memory stores, scratch folders and skills, as the values that say what a role may see and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import StringConstraints

from .value import Name, Text, WireModel

__all__ = [
    "HarnessRuntimeMount",
    "MemoryMount",
    "MountMode",
    "MountPath",
    "MountSource",
    "ScratchMount",
    "SkillDescriptor",
]

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


class MountSource(Protocol):
    """What an offer of kind ``mount`` builds: it says what a role call may see (built by a later distribution)."""

    def mounts(self, session_id: str, role_call_id: str) -> Sequence[MemoryMount | ScratchMount]:
        """The stores and the scratch folder of one role call; the same ones when it is run again after a crash."""

    def skills(self) -> Sequence[SkillDescriptor]:
        """Names and descriptions; a body is read by its path only."""

    def realise(self, mounts: Sequence[MemoryMount | ScratchMount]) -> Sequence[HarnessRuntimeMount]:
        """Where each of them lies for the execution environment; every write is an event with its difference."""
