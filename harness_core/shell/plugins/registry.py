"""The plugins imported into this process: a record goes in, its checked offers come out; nothing is half registered."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import pluggy

from harness_core.shell.ports.interruption import is_interruption
from harness_core.shell.ports_streams import quiet_stdout
from harness_hookspecs import hooks
from harness_hookspecs.kit.failure import headline
from harness_hookspecs.manifest import Flaw
from harness_hookspecs.markers import PROJECT

from .records import Record
from .registration import Checked, check_module

__all__ = ["Registry"]


class Registry:
    """One pluggy manager, into which only what was checked is let."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hooks)

    def add(self, record: Record) -> Checked:
        """Import a plugin, check it and register it; one with flaws is not registered.

        Raises nothing that the plugin's code raises; a Ctrl-C meanwhile passes.
        """
        try:
            with quiet_stdout():
                module = import_module(record.module)
                checked = check_module(module, record.provides)
            if not checked.flaws:
                self._register(module, record.id)
        except BaseException as error:
            if is_interruption(error):
                raise
            return Checked({}, [Flaw("HP030", f"its import raises {headline(error)}")])
        return checked

    def _register(self, module: ModuleType, plugin: str) -> None:
        """The last word is pluggy's; what it refuses is taken out again whole."""
        try:
            self._manager.register(module, name=plugin)
            self._manager.check_pending()
        except pluggy.PluginValidationError:
            self._manager.unregister(module)
            raise

    def plugins(self) -> list[str]:
        """List the ids of what is registered, sorted."""
        return sorted(name for name, _ in self._manager.list_name_plugin())

    def listeners(self, hook: str) -> list[tuple[str, Callable[..., object]]]:
        """List plugin id and function of whoever implements a hook, by id: the order of loading does not count."""
        found = getattr(self._manager.hook, hook).get_hookimpls()
        return sorted(((one.plugin_name, one.function) for one in found), key=lambda one: one[0])
