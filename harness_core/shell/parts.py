"""The parts of a session: what it needs goes in, the built things come out, and what could not be built as facts.

Nothing is imported that no need names. A part that the configuration binds must be built; one that only watches
(``optional``) may fail, and its failure is a ``plugin.failed`` event. Who is built is told secrets, so what it says
while it is built, looked at, asked or ended passes the redactor here, whoever is told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from harness_hookspecs.errors import ConfigError, HarnessError, PluginError
from harness_hookspecs.host import KindHost
from harness_hookspecs.kit.failure import headline, is_whole
from harness_hookspecs.offer import Offer

from .perform_attempt import attempt
from .plugins.catalogue import Catalogue
from .plugins.records import Record
from .ports.interruption import is_interruption
from .promised import lacking
from .redaction import Redactor

__all__ = ["Need", "Part", "PartFailed", "Parts"]


_ENDING: Final = ("engine", "observer", "provider")
"""Kinds whose things are closed with the host; a store is closed by whoever opened it."""


class Need(NamedTuple):
    """One thing that a session uses.

    Attributes:
        kind: The kind of the offer.
        name: The offer's name, or ``ID:NAME``.
        entry: The entry that chooses it (a model, a tool); empty: the offer's own name.
        where: The line that asks for it, for errors.
        optional: Whether the session goes on without it.
    """

    kind: str
    name: str
    entry: str = ""
    where: str | None = None
    optional: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What the thing is found by: kind and entry."""
        return self.kind, self.entry or self.name.rpartition(":")[2]


class Part(NamedTuple):
    """A built thing and who built it, as manifests of calls name them."""

    thing: Any
    need: Need
    plugin_id: str
    plugin_version: str


class PartFailed(NamedTuple):
    """Something that could not be built, as a ``plugin.failed`` event tells it."""

    plugin: str
    offer: str | None
    error: HarnessError

    def payload(self) -> dict[str, Any]:
        """Give the event's payload."""
        from harness_hookspecs.kit.failure import describe

        return {"plugin": self.plugin, "offer": self.offer, "error": describe(self.error)}


Settings = Callable[[Need, "Mapping[str, Any] | None"], Mapping[str, Any]]
"""Gives the plain settings of a need, told the schema in the manifest."""


class Parts:
    """Builds what a session uses, each thing once.

    Not for several threads at once: a session's parts are built before it runs.

    Args:
        catalogue: Who offers what.
        settings: Gives the settings of a need as plain JSON.
        host: Gives the host protocol that a need's kind promises.
        redactor: Knows the secrets that those hosts give.
    """

    def __init__(
        self, catalogue: Catalogue, settings: Settings, host: Callable[[Need], KindHost], redactor: Redactor
    ) -> None:
        self._catalogue = catalogue
        self._settings = settings
        self._host = host
        self._redactor = redactor
        self._parts: dict[tuple[str, str], Part] = {}
        self.failed: list[PartFailed] = []

    def try_new(self) -> None:
        """Try plugins that are new or changed in one child process, before the first part of a session is built.

        Also those that nobody needs: who installed a broken one hears of it now (``catalogue.complaints``), and not
        when it is bound some day.
        """
        self._catalogue.try_new()

    def build(self, needs: Iterable[Need]) -> None:
        """Build everything that is needed.

        Raises:
            PluginError: A part that is not optional cannot be built or lacks a method of its kind's protocol
                (``plugin.bound_broken`` and its kin).
            ConfigError: The settings of a part are refused by its settings class.
        """
        for need in needs:
            try:
                self.get(need)
            except HarnessError as error:
                if not need.optional:
                    raise
                self.failed.append(self._failure(need, error))

    def get(self, need: Need) -> Any:
        """Give a built thing, building it when it was not; raises as ``build`` does."""
        return self.part(need).thing

    def part(self, need: Need) -> Part:
        """Give a built thing with who built it; raises as ``build`` does."""
        if need.key not in self._parts:
            self._parts[need.key] = self._build(need)
        return self._parts[need.key]

    def built(self) -> list[Part]:
        """List what was built, in the order of kinds and entries."""
        return [self._parts[key] for key in sorted(self._parts)]

    def look(self, need: Need) -> str | None:
        """Say what is there of a thing that may not have been built, changing nothing; raises as ``build`` does.

        Returns:
            One line; ``None`` when only building it tells.
        """
        offer = self._catalogue.offer(need.kind, need.name, where=need.where)
        if offer.look is None:
            return None
        return self._redactor.text(str(self._made(need, offer, offer.look, "looked at")))

    def ask(self, need: Need, method: str) -> Any:
        """Give what a built thing says to a call without arguments.

        Raises:
            HarnessError: What it raises, without the secrets; what is none of ours as ``plugin.raised``.
        """
        said = attempt(getattr(self.get(need), method), what=f"{need.kind} {need.key[1]}")
        if said.error is not None:
            raise self._redactor.error(said.error)
        return said.value

    def close(self) -> list[HarnessError]:
        """End what has an end: providers, observers, engines; gives what they raise, without the secrets."""
        ending = [part for part in self.built() if part.need.kind in _ENDING]
        ended = [
            attempt(part.thing.close, what=f"the end of {part.need.kind} {part.need.key[1]}") for part in ending
        ]
        return [self._redactor.error(one.error) for one in ended if one.error is not None]

    def _build(self, need: Need) -> Part:
        offer = self._catalogue.offer(need.kind, need.name, where=need.where)
        record = self._catalogue.resolve(need.kind, need.name, where=need.where).row.record
        thing = self._made(need, offer, partial(_whole, need, record, offer.build), "built")
        return Part(thing, need, record.id, offer.version or record.version)

    def _made(self, need: Need, offer: Offer[Any], make: Callable[[Any, Any], Any], done: str) -> Any:
        """What a plugin makes of the settings and the host of a need."""
        provider = self._catalogue.resolve(need.kind, need.name, where=need.where)
        record = provider.row.record
        given = self._settings(need, provider.provided.config)
        try:
            settings = None if offer.settings is None else _checked(offer.settings(), given, need)
            return make(settings, self._host(need))
        except BaseException as error:
            if is_interruption(error):
                raise
            told = self._redactor.error(_named(error, need, record, done))
            raise told from told.__cause__

    def _failure(self, need: Need, error: HarnessError) -> PartFailed:
        owners = self._catalogue.providers_of(need.kind, need.name)
        return PartFailed(owners[0].row.record.id if owners else need.name, need.name, error)


def _whole(need: Need, record: Record, build: Callable[[Any, Any], Any], settings: Any, host: KindHost) -> Any:
    """Build a thing that is what its kind promises: who lacks a method is named now, and not in the midst of a call."""
    thing = build(settings, host)
    said = lacking(need.kind, thing)
    if said is not None:
        raise _broken(need, record, said)
    return thing


def _broken(need: Need, record: Record, said: str) -> PluginError:
    return PluginError(
        f"{need.kind} {need.name} of the plugin {record.id} {said}",
        code="plugin.bound_broken",
        where=need.where,
        hint=f"harness plugins info {record.id}",
        plugin=record.id,
    )


def _named(error: BaseException, need: Need, record: Record, done: str) -> HarnessError:
    """What a plugin raised instead of making something: one of ours as it is, anything else under its name."""
    if is_whole(error):
        return error
    named = _broken(need, record, f"cannot be {done}: {headline(error)}")
    named.__cause__ = error
    return named


def _checked(model: Any, given: Mapping[str, Any], need: Need) -> Any:
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        said = f"settings of {need.kind} {need.key[1]}: {path}: {first['msg']}" if path else str(first["msg"])
        raise ConfigError(said, where=need.where) from error
