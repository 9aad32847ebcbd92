"""Who offers what: an index and a selection go in, offers come out; only the plugin that is asked for is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_hookspecs.errors import HarnessError, NotFound, PluginError
from harness_hookspecs.manifest import Flaw, Provided

from .index import Index
from .names import did_you_mean, normalise
from .policy import Row, Selection, judge, unknown_names
from .records import Record

if TYPE_CHECKING:
    from harness_hookspecs.host import Processes
    from harness_hookspecs.offer import Offer

    from .registry import Registry

__all__ = ["Catalogue", "Provider", "complaint"]


class Provider(NamedTuple):
    """One plugin's promise of one offer."""

    row: Row
    provided: Provided


class Catalogue:
    """What is installed, who takes part, and the way to an offer.

    Args:
        index: What was found.
        selection: What configuration, flags and environment say.
        processes: Tries first imports in a child; ``None`` imports without trying, for suites in memory.
    """

    def __init__(self, index: Index, selection: Selection = Selection(), *, processes: Processes | None = None) -> None:
        self.index = index
        self.selection = selection
        self._processes = processes
        self._failed: dict[str, Flaw] = {}
        self._offers: dict[str, dict[tuple[str, str], Offer[Any]]] = {}
        self._registry: Registry | None = None
        self.rows: tuple[Row, ...] = ()
        self._judge()

    def _judge(self) -> None:
        self.rows = judge(self.index.records, self.selection, self._known_flaw)

    def _known_flaw(self, record: Record) -> Flaw | None:
        return self._failed.get(_plugin(record)) or self.index.known_flaw(record)

    # ------------------------------------------------------------------------------------------- questions

    def problems(self) -> list[HarnessError]:
        """List what must be put right before anything runs: unknown names, required plugins that do not take part."""
        found: list[HarnessError] = list(unknown_names(self.index.records, self.selection))
        for named in self.selection.require:
            meant = [row for row in self.rows if row.record.is_called(named.name)]
            if not any(row.status == "ok" for row in meant):
                found += [_unusable(row, f"{named.where} requires the plugin {row.record.id}") for row in meant[:1]]
        return found

    def complaints(self) -> list[str]:
        """Give one line for each plugin that is broken or doubled: distribution, cause and how to switch it off."""
        return [complaint(row) for row in self.rows if row.status in {"broken", "doubled"}]

    def row(self, name: str) -> Row:
        """Give the row of a plugin by id, distribution or module.

        Raises:
            NotFound: Nothing of that name is installed.
        """
        found = [row for row in self.rows if row.record.is_called(name)]
        if not found:
            known = [row.record.id for row in self.rows]
            raise NotFound(
                f'no installed plugin is called "{name}"',
                code="plugin.not_found",
                hint=did_you_mean(normalise(name), known) or "harness plugins list shows what is installed",
            )
        return next((row for row in found if row.status == "ok"), found[0])

    def providers_of(self, kind: str, name: str) -> list[Provider]:
        """List everyone who promises an offer, those who do not take part included.

        Args:
            kind: The kind.
            name: The offer's name, or ``ID:NAME`` for that of one plugin.
        """
        owner, _, bare = name.rpartition(":")
        return [
            Provider(row, provided)
            for row in self.rows
            for provided in row.record.provides
            if (provided.kind, provided.name) == (kind, bare) and (not owner or row.record.is_called(owner))
        ]

    def offers_of(self, kind: str) -> list[Provider]:
        """List every promise of a kind that may be used, by plugin and name."""
        return [
            Provider(row, provided)
            for row in self.rows
            for provided in row.record.provides
            if row.takes_part and provided.kind == kind and self._is_unrivalled(row, provided)
        ]

    def offers_out(self, kind: str) -> list[Provider]:
        """List every promise of a kind that may not be used, by plugin and name; ``resolve`` says why."""
        return [
            Provider(row, provided)
            for row in self.rows
            for provided in row.record.provides
            if provided.kind == kind and not (row.takes_part and self._is_unrivalled(row, provided))
        ]

    def manifest_schemas(self) -> dict[tuple[str, str], Mapping[str, Any] | None]:
        """Give the settings schema of each offer that takes part, by kind and name, ``ID:NAME`` included.

        ``None`` stands for an offer without settings; a doubled name stands there only as ``ID:NAME``.
        """
        schemas: dict[tuple[str, str], Mapping[str, Any] | None] = {}
        for row in self.rows:
            for provided in row.record.provides if row.takes_part else ():
                schemas[provided.kind, f"{row.record.id}:{provided.name}"] = provided.config
                if self._is_unrivalled(row, provided):
                    schemas.setdefault((provided.kind, provided.name), provided.config)
        return schemas

    def _is_unrivalled(self, row: Row, provided: Provided) -> bool:
        """Whether the bare name means this plugin: no other has it, or a line names this one."""
        if (provided.kind, provided.name) in row.doubled:
            return False
        owners = self._owners_named(provided.kind, provided.name)
        return not owners or row.record.id in owners

    def _owners_named(self, kind: str, name: str) -> set[str]:
        """The plugins that some line names as ``ID:NAME`` for this offer, as far as they take part."""
        said = [choice.rpartition(":") for asked, choice, _ in self.selection.every_choice() if asked == kind]
        named = [owner for owner, _, bare in said if owner and bare == name]
        taking = [row.record for row in self.rows if row.takes_part]
        return {record.id for owner in named for record in taking if record.is_called(owner)}

    def resolve(self, kind: str, name: str, *, where: str | None = None) -> Provider:
        """Find the one plugin that answers for a name; nothing is imported.

        Args:
            kind: The kind.
            name: The offer's name, or ``ID:NAME``.
            where: Who asks, for the error.

        Raises:
            PluginError: Nobody offers it (``plugin.missing``), nobody who does takes part or is sound
                (``plugin.bound_broken``), or several do (``plugin.doubled``).
        """
        found = self.providers_of(kind, name)
        usable = [one for one in found if one.row.takes_part]
        owners = self._owners_named(kind, name)
        if len(usable) > 1 and len(owners) == 1:  # a line elsewhere has settled who is meant
            usable = [one for one in usable if one.row.record.id in owners]
        if len(usable) == 1:
            return usable[0]
        if usable:
            ids = [one.row.record.id for one in usable]
            hint = f"plugins: {{disable: [{ids[-1]}]}} in harness.yaml"
            hint = hint if kind == "workflow" else f"write {ids[0]}:{name}, or {hint}"
            said = f"{kind} {name} is offered by {' and '.join(ids)}"
            raise PluginError(said, code="plugin.doubled", where=where, hint=hint, plugins=ids)
        if found:
            raise _unusable(found[0].row, f"{kind} {name} is needed", where)
        known = {one.provided.name for one in self.offers_of(kind)}
        hint = did_you_mean(name, known) or f"installed: {', '.join(sorted(known)) or 'none'}"
        raise PluginError(f"no plugin offers the {kind} {name}", code="plugin.missing", where=where, hint=hint)

    def set_of(self, tool: str, *, where: str | None = None) -> str:
        """Find the tool set that a tool belongs to: the one of that name, or the longest whose name it begins with.

        One that may not be used counts as well: a tool of it is not another set's.

        Args:
            tool: The name of a tool, or of a set.
            where: Who asks, for the error.

        Raises:
            PluginError: As for ``resolve``; a set that is installed and may not be used is named with the reason.
        """
        offers = (*self.offers_of("tool"), *self.offers_out("tool"))
        fitting = [one.provided.name for one in offers if f"{tool}_".startswith(f"{one.provided.name}_")]
        found = max(fitting, key=len, default=tool)
        self.resolve("tool", found, where=where)
        return found

    # --------------------------------------------------------------------------------------------- imports

    def try_new(self, rows: Iterable[Row] | None = None, *, again: bool = False) -> None:
        """Try the first import of plugins that are new or changed, in a child process, and keep the verdicts.

        Args:
            rows: Which; all that take part by default.
            again: Whether bad verdicts are tried again too.
        """
        if self._processes is None:
            return
        asked = [row.record for row in (self.rows if rows is None else rows) if _may_be_tried(row)]
        new = [record for record in asked if self._is_new(record, again)]
        if new and self.index.catch_up():
            self._judge()
            new = [record for record in new if self._is_new(record, again)]
        if not new:
            return
        from .trial import try_imports

        self.learn(zip(new, try_imports(new, self.index.path, self._processes)))

    def learn(self, verdicts: Iterable[tuple[Record, Sequence[Flaw]]]) -> None:
        """Keep what trying first imports has shown, and judge anew."""
        for record, flaws in verdicts:
            self.index.remember(record, flaws[0] if flaws else None)
            self._failed.pop(_plugin(record), None)
        self.index.save()
        self._judge()

    def _is_new(self, record: Record, again: bool) -> bool:
        return not self.index.was_tried(record) or (again and self.index.known_flaw(record) is not None)

    def offer(self, kind: str, name: str, *, where: str | None = None) -> Offer[Any]:
        """Give an offer, importing the one plugin that has it.

        Args:
            kind: The kind.
            name: The offer's name, or ``ID:NAME``.
            where: Who asks, for the error.

        Raises:
            PluginError: As for ``resolve``, or the plugin turned out to be broken (``plugin.bound_broken``).
        """
        self.try_new([self.resolve(kind, name, where=where).row])
        row, provided = self.resolve(kind, name, where=where)
        plugin = _plugin(row.record)
        if plugin not in self._offers:
            found = self._registered().add(row.record)
            if found.flaws:
                raise self._broke(row.record, found.flaws[0], f"{kind} {name} is needed", where)
            self._offers[plugin] = found.offers
        return self._offers[plugin][provided.kind, provided.name]

    def _broke(self, record: Record, flaw: Flaw, need: str, where: str | None) -> PluginError:
        """What goes wrong in the host itself is known from then on."""
        self._failed[_plugin(record)] = flaw
        self._judge()
        return _unusable(Row(record, "broken", flaw.message, flaw.code, flaw.hint), need, where)

    def listeners(self, hook: str) -> list[tuple[str, Callable[..., object]]]:
        """List plugin id and function of whoever was imported and listens to a hook, by id, not by load order.

        Args:
            hook: ``harness_on_event`` or ``harness_on_chunk``.
        """
        return self._registered().listeners(hook)

    def _registered(self) -> Registry:
        if self._registry is None:
            from .registry import Registry

            self._registry = Registry()
        return self._registry


def _may_be_tried(row: Row) -> bool:
    """Whether anybody wants its code to run, and only running it can show whether it is broken."""
    return row.takes_part or (row.status == "broken" and row.record.flaw is None and row.code != "HP020")


def _plugin(record: Record) -> str:
    return f"{record.distribution}/{record.id}"


def complaint(row: Row) -> str:
    """Give the one line that names a plugin, what is wrong with it and how to go on without it."""
    record = row.record
    cure = f"; {row.hint}" if row.status == "doubled" and row.hint else ""
    name = record.distribution if row.code == "HP020" else record.id
    return (
        f"harness: plugin {record.id} ({record.distribution} {record.version}) is {row.status}: {row.reason} "
        f"[{row.code}]{cure}; to go on without it: harness plugins disable {name}"
    )


def _unusable(row: Row, need: str, where: str | None = None) -> PluginError:
    record = row.record
    state = {"ok": "is not wanted"}.get(row.status, f"is {row.status}")
    return PluginError(
        f"{need}, but the plugin {record.id} ({record.distribution} {record.version}) {state}: {row.reason}",
        code="plugin.bound_broken",
        where=where,
        hint=row.hint or f"harness plugins info {record.id}",
        plugin=record.id,
        flaw=row.code,
    )
