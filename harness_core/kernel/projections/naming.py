"""What a person typed for a session and the sessions there are in, the one id that is meant out."""

from __future__ import annotations

from collections.abc import Sequence

from harness_hookspecs.errors import IllegalMove, NotFound

__all__ = ["LAST", "ended", "no_last", "resolve_one", "resolve_session"]

LAST = "@last"
_SHORTEST = 4
_SHOWN = 8


def ended(session_id: str, said: str) -> IllegalMove:
    """The error about a session that has ended; its hint is what there still is to see of it."""
    name = session_id[-8:]
    hint = f"harness report {name} shows what it used, harness replay {name} runs through it again"
    return IllegalMove(f"session {name} {said}", code="state.final", hint=hint)


def no_last(others: int, *, in_project: bool) -> NotFound:
    """The error about ``@last`` where nothing ran yet; its hint is how a session begins, or where there are some.

    Args:
        others: How many sessions other projects have.
        in_project: Whether the person stands in a project.
    """
    begin = 'start one: harness run "TEXT"' if in_project else "harness init makes a project here"
    if not others:
        what = "there is no session yet"
    else:
        what = "this project has no session yet" if in_project else "there is no project here, and so no session of it"
        has = f"{others} session{'s' if others != 1 else ''} of other projects"
        begin = f"{has}: harness sessions --all lists them, --project DIR looks there; {begin}"
    return NotFound(what, code="session.not_found", hint=begin)


def resolve_session(
    reference: str, newest_first: Sequence[str], *, others: int = 0, in_project: bool = True
) -> str:
    """The id of a session.

    Args:
        reference: The whole id, a unique beginning or end of at least four characters, or ``@last``.
        newest_first: The ids there are.
        others: As for ``no_last``.
        in_project: As for ``no_last``.

    Raises:
        NotFound: ``session.not_found`` or, naming the candidates, ``session.ambiguous``. Nothing is ever guessed
            and nothing is started in its place.
    """
    if reference == LAST:
        if not newest_first:
            raise no_last(others, in_project=in_project)
        return newest_first[0]
    hint = f"harness sessions lists them; {LAST} is the newest of this project"
    return resolve_one(reference.lower(), newest_first, "session", hint=hint)


def resolve_one(reference: str, ids: Sequence[str], what: str, *, hint: str) -> str:
    """The id that a whole id or a unique end of one means; ``what`` names the kind of thing in messages and codes.

    Raises:
        NotFound: ``WHAT.not_found`` or ``WHAT.ambiguous``.
    """
    if reference in ids:
        return reference
    if not reference.strip():
        raise NotFound(f"an empty text is no id of {_a(what)}", code=f"{what}.not_found", hint=hint)
    if len(reference) < _SHORTEST:
        message = f'"{reference}" is too short for the id of {_a(what)}: at least {_SHORTEST} characters of either end'
        raise NotFound(message, code=f"{what}.not_found", hint=hint)
    fitting = [one for one in ids if one.startswith(reference) or one.endswith(reference)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise NotFound(f'there is no {what} "{reference}"', code=f"{what}.not_found", hint=hint)
    shown = ", ".join(one[-12:] for one in fitting[:_SHOWN]) + (" ..." if len(fitting) > _SHOWN else "")
    raise NotFound(
        f'"{reference}" fits {len(fitting)} {what}s: {shown}',
        code=f"{what}.ambiguous",
        hint="type more of it",
        candidates=fitting,
    )


def _a(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
