"""Who takes part: records and what was said about them go in, one row with a status comes out for each plugin.

Statuses: ``ok``; ``disabled`` by someone's word; ``skipped`` because it does not fit here (contract range, mode
explicit, conflict); ``broken``; ``doubled``, when another plugin offers the same and no line says which is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness_hookspecs.errors import ConfigError
from harness_hookspecs.manifest import Flaw

from .names import did_you_mean, normalise
from .records import Record

__all__ = ["Named", "Row", "Selection", "judge", "row_document", "unknown_names", "with_flags"]


class Named(NamedTuple):
    """A name and who wrote it: a flag, a variable or ``harness.yaml:3:5``."""

    name: str
    where: str


class Selection(NamedTuple):
    """What was said about plugins.

    ``bind`` maps ROLE or ROLE@PERSONA to an offer name. ``chosen`` lists ``(kind, name, where)`` of everything that the
    configuration chooses by name; ``ID:NAME`` among them settles a doubled name.
    """

    mode: str = "open"
    disable: tuple[Named, ...] = ()
    allow: tuple[Named, ...] = ()
    require: tuple[Named, ...] = ()
    bind: Mapping[str, Named] = {}
    chosen: tuple[tuple[str, str, str], ...] = ()
    nothing: str | None = None  # who said that no plugin at all takes part

    def every_choice(self) -> Iterable[tuple[str, str, str]]:
        """Everything chosen by name, bindings included."""
        yield from self.chosen
        for named in self.bind.values():
            yield "role", named.name, named.where


class Row(NamedTuple):
    """One plugin and what became of it; ``code`` is the flaw's, ``doubled`` the offers that are not told apart."""

    record: Record
    status: str
    reason: str | None = None
    code: str | None = None
    hint: str | None = None
    doubled: tuple[tuple[str, str], ...] = ()

    @property
    def takes_part(self) -> bool:
        """Whether its offers may be used; of a doubled plugin those that no other has."""
        return self.status in {"ok", "doubled"}


def with_flags(selection: Selection, disabled: Sequence[tuple[str, str]], *, nothing: str | None = None) -> Selection:
    """Add what flags and environment say, which come before any file.

    Args:
        selection: What the configuration says.
        disabled: Plugins left out, each with who says so.
        nothing: Who says that no plugin at all takes part.
    """
    disable = tuple(Named(*said) for said in disabled) + selection.disable
    return selection._replace(disable=disable, nothing=nothing or selection.nothing)


def unknown_names(records: Sequence[Record], selection: Selection) -> list[ConfigError]:
    """List an error for each name in ``disable``, ``allow`` and ``require`` that no installed plugin has."""
    known = {name for record in records for name in (record.id, record.distribution)}
    return [
        ConfigError(
            f'{key}no installed plugin is called "{named.name}"',
            code="plugin.unknown",
            where=named.where,
            hint=did_you_mean(normalise(named.name), known) or "harness plugins list shows what is installed",
        )
        for key, named in _said(selection)
        if not any(record.is_called(named.name) for record in records)
    ]


def _said(selection: Selection) -> Iterable[tuple[str, Named]]:
    for key, names in (
        ("plugins.disable: ", selection.disable),
        ("plugins.allow: ", selection.allow),
        ("plugins.require: ", selection.require),
    ):
        # a flag or a variable is named by itself
        yield from ((key if ":" in named.where else "", named) for named in names)


Verdicts = Callable[[Record], "Flaw | None"]


def judge(records: Sequence[Record], selection: Selection, verdict: Verdicts = lambda _: None) -> tuple[Row, ...]:
    """Give each plugin its row, in the order of the records.

    Args:
        records: What is installed.
        selection: What was said about it.
        verdict: What is known to be wrong with a plugin's first import; ``None`` for nothing.
    """
    rows = [_alone(record, selection, verdict) for record in records]
    rows = _without_doubled_ids(rows)
    rows = _without_conflicts(rows)
    return tuple(_without_doubled_offers(rows, selection))


def _alone(record: Record, selection: Selection, verdict: Verdicts) -> Row:
    """The row as far as the other plugins do not matter."""
    where = selection.nothing or next((said.where for said in selection.disable if record.is_called(said.name)), None)
    if where:
        return Row(record, "disabled", f"disabled by {where}")
    if selection.mode == "explicit" and not any(record.is_called(said.name) for said in selection.allow):
        hint = f"plugins: {{allow: [{record.id}]}} in harness.yaml"
        return Row(record, "disabled", "not in plugins.allow, and plugins.mode is explicit", hint=hint)
    flaw = record.flaw or verdict(record)
    if flaw is not None:
        status = "skipped" if flaw.code == "HP011" else "broken"
        return Row(record, status, flaw.message, flaw.code, flaw.hint)
    if selection.mode == "explicit" and record.capabilities is None:
        return Row(record, "skipped", "declares no capabilities, and plugins.mode is explicit", "HP014")
    return Row(record, "ok")


def _without_doubled_ids(rows: list[Row]) -> list[Row]:
    holders: dict[str, list[Row]] = {}
    for row in rows:
        if row.status != "disabled":
            holders.setdefault(row.record.id, []).append(row)
    return [_doubled_id(row, holders.get(row.record.id, [])) for row in rows]


def _doubled_id(row: Row, holders: list[Row]) -> Row:
    if row.status == "disabled" or len(holders) < 2:
        return row
    names = [other.record.distribution for other in holders]
    reason = f"the id {row.record.id} is carried by the distributions {' and '.join(names)}"
    hint = f"plugins: {{disable: [{names[-1]}]}} in harness.yaml, or uninstall one"
    return Row(row.record, "broken", reason, "HP020", hint)


def _without_conflicts(rows: list[Row]) -> list[Row]:
    present = {row.record.id for row in rows if row.status == "ok"}
    return [_conflict(row, present) for row in rows]


def _conflict(row: Row, present: set[str]) -> Row:
    """The one that declares the conflict steps back: nobody may switch another off by being installed."""
    for other, why in row.record.conflicts.items() if row.status == "ok" else ():
        if other in present:
            hint = f"plugins: {{disable: [{other}]}} in harness.yaml, to use this one instead"
            return Row(row.record, "skipped", f"conflicts with {other}: {why}", "HP022", hint)
    return row


def _without_doubled_offers(rows: list[Row], selection: Selection) -> Iterable[Row]:
    holders: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for provided in row.record.provides if row.status == "ok" else ():
            holders.setdefault((provided.kind, provided.name), []).append(row.record.id)
    settled = {(kind, name.partition(":")[2]) for kind, name, _ in selection.every_choice() if ":" in name}
    doubled = {offer: ids for offer, ids in holders.items() if len(ids) > 1 and offer not in settled}
    return [_doubled_offers(row, doubled) for row in rows]


def _doubled_offers(row: Row, doubled: Mapping[tuple[str, str], list[str]]) -> Row:
    own = tuple((provided.kind, provided.name) for provided in row.record.provides)
    mine = tuple(offer for offer in own if offer in doubled) if row.status == "ok" else ()
    if not mine:
        return row
    kind, name = mine[0]
    ids = doubled[mine[0]]
    hint = f"plugins: {{disable: [{ids[-1]}]}} in harness.yaml"
    if kind != "workflow":  # which is called by its own name alone
        hint = f"write {ids[0]}:{name} where {kind} {name} is chosen, or {hint}"
    return Row(row.record, "doubled", f"{kind}:{name} is offered by {' and '.join(ids)}", "HP021", hint, mine)


def row_document(row: Row) -> dict[str, Any]:
    """Give the plugin document of ``harness.plugins/1``."""
    record = row.record
    return {
        "id": record.id,
        "distribution": record.distribution,
        "version": record.version,
        "status": row.status,
        "reason": row.reason,
        "spec": record.spec,
        "provides": [
            {"kind": provided.kind, "name": provided.name, "roles": list(provided.roles)}
            for provided in record.provides
        ],
        "capabilities": "undeclared" if record.capabilities is None else dict(record.capabilities),
        "lock": "unlocked",
        "source": record.source,
        "origin": record.origin,
    }
