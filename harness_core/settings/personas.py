"""A persona's name in, the persona with everything it inherits out, and what a stage makes of its limits."""

from __future__ import annotations

from collections.abc import Mapping

from .stages import OutputLimits, Persona, Stage

__all__ = ["limits_of", "persona_of"]


def persona_of(name: str, roles: Mapping[str, Persona]) -> Persona:
    """Resolve ``extends``: what a persona says comes first, then what the one it extends says, and so on.

    Args:
        name: The stage's role. One that stands nowhere in ``roles`` is an empty persona.
        roles: The personas; references were checked when the files were read, so there is no circle.

    Returns:
        A persona that extends nothing.
    """
    merged: dict[str, object] = {}
    output = OutputLimits()
    at: str | None = name
    while at is not None and at in roles:
        persona = roles[at]
        said = {
            key: value for key in ("model", "prompt", "tools") if (value := getattr(persona, key)) is not None
        }
        output = _under(output, persona.output)
        merged = {**said, **merged}
        at = persona.extends
    return Persona.model_validate({**merged, "output": output})


def limits_of(stage: Stage, persona: Persona) -> OutputLimits:
    """How large an answer of a stage may be: what the stage says comes before what its persona says."""
    return _under(stage.output, persona.output)


def _under(first: OutputLimits, then: OutputLimits | None) -> OutputLimits:
    """Limits where each one that the first does not set is the second's."""
    if then is None:
        return first
    return OutputLimits(max_tokens=first.max_tokens or then.max_tokens, max_bytes=first.max_bytes or then.max_bytes)
