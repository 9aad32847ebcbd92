"""A persona's name in, the persona with everything it inherits out."""

from __future__ import annotations

from collections.abc import Mapping

from .stages import Persona

__all__ = ["persona_of"]


def persona_of(name: str, roles: Mapping[str, Persona]) -> Persona:
    """Resolve ``extends``: what a persona says comes first, then what the one it extends says, and so on.

    Args:
        name: The stage's role. One that stands nowhere in ``roles`` is an empty persona.
        roles: The personas; references were checked when the files were read, so there is no circle.

    Returns:
        A persona that extends nothing.
    """
    merged: dict[str, object] = {}
    at: str | None = name
    while at is not None and at in roles:
        found = roles[at]
        said = {
            key: value for key in ("model", "prompt", "tools", "output") if (value := getattr(found, key)) is not None
        }
        merged = {**said, **merged}
        at = found.extends
    return Persona.model_validate(merged)
