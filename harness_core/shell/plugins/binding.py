"""Who answers for an executor role: a catalogue and a role go in, the plugin that answers and why come out."""

from __future__ import annotations

from typing import NamedTuple

from harness_hookspecs.errors import NotFound, PluginError
from harness_hookspecs.offer import EXECUTOR_ROLES

from .catalogue import Catalogue, Provider

__all__ = ["Answer", "Candidate", "answer_for", "candidates_for"]


class Answer(NamedTuple):
    """Who answers for a role.

    Attributes:
        role: The executor role, with ``@persona`` when it was asked for one.
        name: The offer's name.
        provider: The plugin and its promise.
        where: The line that binds, ``default`` when none does.
    """

    role: str
    name: str
    provider: Provider
    where: str


class Candidate(NamedTuple):
    """One who might answer, and why it does or does not."""

    name: str
    plugin: str
    answers: bool
    why: str


def answer_for(catalogue: Catalogue, role: str, persona: str | None = None) -> Answer:
    """Find who answers for a role: bound at the persona, bound for the role, else the default.

    Args:
        catalogue: Who offers what.
        role: The executor role, for example ``worker.ai-generate``.
        persona: The persona of the stage, when there is one.

    Raises:
        PluginError: What is bound is missing, broken, doubled or does not serve the role; or nothing is bound and there
            is no default role harness (``plugin.no_default_role``) or more than one (``plugin.doubled``).
    """
    asked = f"{role}@{persona}" if persona else role
    for key in dict.fromkeys((asked, role)):
        named = catalogue.selection.bind.get(key)
        if named is not None:
            provider = catalogue.resolve("role", named.name, where=named.where)
            if role not in provider.provided.roles:
                served = ", ".join(provider.provided.roles)
                said = f"{named.name} is bound to {key}, but serves only {served}"
                raise PluginError(said, code="plugin.role_not_served", where=named.where, plugin=provider.row.record.id)
            return Answer(asked, named.name, provider, f"{named.where} (bind.{key})")
    provider = _default(catalogue, role)
    return Answer(asked, provider.provided.name, provider, "default")


def _default(catalogue: Catalogue, role: str) -> Provider:
    every = [one for one in catalogue.offers_of("role") if one.provided.default and role in one.provided.roles]
    # Being installed makes nobody the default beside the one that is shipped.
    found = [one for one in every if one.row.record.origin == "built-in"] or every
    if len(found) == 1:
        return found[0]
    if found:
        ids = [one.row.record.id for one in found]
        hint = f"bind: {{{role}: {found[0].provided.name}}} in harness.yaml"
        raise PluginError(f"{' and '.join(ids)} are both the default for {role}", code="plugin.doubled", hint=hint)
    out = _defaults_out(catalogue, role)
    row = out[0].row if out else None
    reason = f": {row.record.id} is {row.status}, {row.reason}" if row else ""
    cure = (row.hint or f"harness plugins info {row.record.id}") if row else "install harness-role-workflow"
    hint = f"{cure}; or bind the role in harness.yaml"
    raise PluginError(f"no default role harness for {role}{reason}", code="plugin.no_default_role", hint=hint)


def _defaults_out(catalogue: Catalogue, role: str) -> list[Provider]:
    """Defaults that are installed and may not be used."""
    out = [one for one in catalogue.offers_out("role") if one.row.status != "ok"]
    return [one for one in out if one.provided.default and role in one.provided.roles]


def candidates_for(catalogue: Catalogue, question: str) -> list[Candidate]:
    """List everyone who might answer a question of ``plugins why``, the one who does first.

    Args:
        catalogue: Who offers what.
        question: ``ROLE``, ``ROLE@PERSONA`` or ``KIND:NAME``.

    Raises:
        NotFound: ``role.not_found``.
        PluginError: Nobody installed offers such a thing (``plugin.missing``, for a role ``plugin.no_default_role``).
    """
    kind, colon, name = question.partition(":")
    if colon:
        found = _named(catalogue, kind, name)
    else:
        role, _, persona = question.partition("@")
        if role not in EXECUTOR_ROLES:
            hint = f"roles: {', '.join(EXECUTOR_ROLES)}; an offer is asked for as KIND:NAME"
            raise NotFound(f'there is no role "{role}"', code="role.not_found", hint=hint)
        found = _bound(catalogue, role, persona or None)
    if not found:
        raise PluginError(f"no installed plugin offers {question}", code="plugin.missing")
    return sorted(found, key=lambda one: (not one.answers, one.plugin))


def _named(catalogue: Catalogue, kind: str, name: str) -> list[Candidate]:
    every = catalogue.providers_of(kind, name)
    usable = [one for one in every if one.row.takes_part]
    said = [(name, where) for asked, name, where in catalogue.selection.every_choice() if asked == kind]
    lines = {choice.rpartition(":")[0]: where for choice, where in said}
    found = []
    for one in every:
        record = one.row.record
        line = next((where for owner, where in lines.items() if owner and record.is_called(owner)), None)
        alone = usable == [one]
        if one not in usable:
            why = f"{one.row.status}: {one.row.reason}"
        elif line:
            why = f"named in {line}"
        else:
            why = "the only one that takes part" if alone else (one.row.reason or "another one is named")
        found.append(Candidate(name, record.id, one in usable and (alone or line is not None), why))
    return found


def _bound(catalogue: Catalogue, role: str, persona: str | None) -> list[Candidate]:
    promises = [
        Provider(row, provided)
        for row in catalogue.rows
        for provided in row.record.provides
        if provided.kind == "role" and role in provided.roles
    ]
    try:
        answer = answer_for(catalogue, role, persona)
    except PluginError as error:
        if not promises:
            raise
        return [Candidate(one.provided.name, one.row.record.id, False, _why_not(one, str(error))) for one in promises]
    return [
        Candidate(
            one.provided.name,
            one.row.record.id,
            one == answer.provider,
            _why(answer) if one == answer.provider else _why_not(one, f"{answer.where} names {answer.name}"),
        )
        for one in promises
    ]


def _why(answer: Answer) -> str:
    return "the default, nothing is bound" if answer.where == "default" else f"bound in {answer.where}"


def _why_not(one: Provider, otherwise: str) -> str:
    return otherwise if one.row.takes_part else f"{one.row.status}: {one.row.reason}"
