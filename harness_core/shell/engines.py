"""What is installed to evaluate rules and to run code in, the one that a session uses out, built at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import attrs

from harness_hookspecs.errors import HarnessError, PluginError

from .config.effective import EffectiveConfig
from .parts import Need, Parts
from .plugins.catalogue import Catalogue

if TYPE_CHECKING:  # the models of every task and message come with an engine's protocol
    from harness_hookspecs.engine import Engine
    from harness_hookspecs.host import WaitLock
    from harness_hookspecs.rules import Rules

__all__ = ["BoundEngine", "Engines"]


class BoundEngine(NamedTuple):
    """An engine and what manifests call it: its name and the version of its plugin."""

    label: str
    engine: Engine


@attrs.frozen
class Engines:
    """Finds both among the parts of a session. Steps of code may run side by side, so they find theirs one by one."""

    catalogue: Catalogue
    parts: Parts
    config: EffectiveConfig
    lock: WaitLock

    def rules(self) -> Rules:
        """The rules engine.

        Raises:
            PluginError: There is none, or none of several is the default (``plugin.missing``), or it is broken.
        """
        offers = self.catalogue.offers_of("rules")
        out = [] if offers else self.catalogue.offers_out("rules")[:1]  # which says why there is none
        defaults = [one for one in offers if one.provided.default] or offers or out
        if len(defaults) != 1:
            names = ", ".join(one.provided.name for one in offers) or "none"
            raise PluginError(f"exactly one rules engine is needed, found: {names}", code="plugin.missing")
        rules: Rules = self.parts.get(Need("rules", defaults[0].provided.name))
        return rules

    def code(self, name: str | None = None) -> BoundEngine:
        """The engine of that name; without one that of ``harness.yaml``, or the default, or the only one installed.

        Raises:
            PluginError: ``engine.not_available``: nothing that is installed runs the code, or several might; else as
                building it says.
        """
        need = self._need(name)
        if need.where and not self.catalogue.providers_of("engine", need.name):
            raise _not_available(f"no installed plugin offers the engine {need.name}", where=need.where)
        with self.lock:
            part = self.parts.part(need)
        return BoundEngine(f"{need.key[1]}@{part.plugin_version}", part.thing)

    def usual(self) -> str | None:
        """The name of the engine that runs code which names none; nothing is built, and nothing raised, to say so."""
        try:
            return self.catalogue.resolve("engine", self._need(None).name).provided.name
        except PluginError:
            return None

    def out(self) -> dict[str, str]:
        """The engines that are installed and run nothing here, each with the reason that its plugin gives; none is
        built to say so."""
        found = {}
        for one in self.catalogue.offers_of("engine"):
            try:
                with self.lock:
                    self.parts.look(Need("engine", one.provided.name))
            except HarnessError as error:
                found[one.provided.name] = error.message
        return found

    def _need(self, name: str | None) -> Need:
        if name:
            return Need("engine", name, where="the step's engine")
        if self.config.harness.engine:
            return Need("engine", self.config.harness.engine, where=self.config.origin(("engine",)).text())
        return Need("engine", self._usual())

    def _usual(self) -> str:
        offers = self.catalogue.offers_of("engine")
        found = [one for one in offers if one.provided.default] or offers
        if len(found) > 1:
            out = self.out()
            found = [one for one in found if one.provided.name not in out] or found
        if len(found) == 1:
            return found[0].provided.name
        if not found:
            raise _not_available("no installed plugin runs code")
        names = ", ".join(one.provided.name for one in found)
        raise _not_available(f"several engines might run the code: {names}", hint="name one: engine in harness.yaml")


def _not_available(
    said: str, *, hint: str = "install harness-engine-monty", where: str | None = None
) -> PluginError:
    return PluginError(said, code="engine.not_available", hint=hint, where=where)
