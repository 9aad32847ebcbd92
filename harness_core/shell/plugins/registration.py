"""What a plugin's module really offers: the imported module and its promises go in, its offers and its flaws come out.

Everything is looked at before anything is registered (``registry``). The same checks run in the child process of the
first import and in the host.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Final, NamedTuple

from harness_core.shell.ports.interruption import is_interruption
from harness_hookspecs import hooks
from harness_hookspecs.kit.failure import headline
from harness_hookspecs.manifest import Flaw, Provided
from harness_hookspecs.markers import PROJECT
from harness_hookspecs.offer import Offer

from .names import did_you_mean

__all__ = ["Checked", "check_module"]

_PREFIXES = ("harness_provide_", "harness_on_")
_KIND_OF_HOOK = {hook: kind for kind, hook in hooks.HOOK_OF_KIND.items()}


class Checked(NamedTuple):
    """The offers of a module, by kind and name, and everything that is wrong with it."""

    offers: dict[tuple[str, str], Offer[Any]]
    flaws: list[Flaw]


def check_module(module: ModuleType, provides: Iterable[Provided]) -> Checked:
    """Call the hooks that collect offers and compare what they give with the manifest.

    Raises nothing that the module's code raises; a Ctrl-C meanwhile passes.
    """
    found = list(_implementations(module))
    flaws = [flaw for name, function in found for flaw in _hook_flaws(name, function)]
    flaws += _unmarked(module, {function for _, function in found})
    if flaws:
        return Checked({}, flaws)
    offers: dict[tuple[str, str], Offer[Any]] = {}
    for name, function in found:
        if name in _KIND_OF_HOOK:
            given, wrong = _collected(name, function)
            flaws += wrong
            for offer in given:
                key = (offer.kind, offer.name)
                flaws += [Flaw("HP008", f"{offer.kind}:{offer.name} is offered twice")] if key in offers else []
                offers[key] = offer
    return Checked(offers, flaws or list(_disagreements(offers, list(provides))))


def _implementations(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that carry the marker, by the hook they mean to implement."""
    for name, value in sorted(vars(module).items()):
        marked = getattr(value, f"{PROJECT}_impl", None) if inspect.isroutine(value) else None
        if isinstance(marked, dict):
            yield marked.get("specname") or name, value


def _specification(name: str) -> Callable[..., Any] | None:
    found = getattr(hooks, name, None) if name.startswith(_PREFIXES) else None
    return found if callable(found) else None


def _hook_flaws(name: str, function: Callable[..., Any]) -> Iterator[Flaw]:
    specification = _specification(name)
    if specification is None:
        yield Flaw("HP040", f"there is no hook {name}", did_you_mean(name, filter(_specification, dir(hooks))))
        return
    allowed = list(inspect.signature(specification).parameters)
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        yield Flaw("HP041", f"{name} has no signature: {error}")
        return
    shape = f"it must take ({', '.join(allowed)})"
    named = {one.name for one in taken if one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}}
    if named - set(allowed):
        yield Flaw("HP041", f"{name} takes {', '.join(sorted(named - set(allowed)))}", shape)
    elif len(named) < len(list(taken)):
        yield Flaw("HP041", f"{name} takes * arguments", shape)
    elif inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        yield Flaw("HP041", f"{name} is asynchronous or a generator", "a hook is a plain function")


def _unmarked(module: ModuleType, marked: set[Callable[..., Any]]) -> Iterator[Flaw]:
    """Functions of its own that are named like a hook and would silently never be called."""
    for name, value in sorted(vars(module).items()):
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        if own and name.startswith(_PREFIXES) and value not in marked:
            yield Flaw("HP040", f"{name} is no hook: it is not marked", f"write @implements(hooks.{name}) above it")


def _collected(name: str, function: Callable[..., Any]) -> tuple[list[Offer[Any]], list[Flaw]]:
    kind = _KIND_OF_HOOK[name]
    try:
        given = function()
    except BaseException as error:
        if is_interruption(error):
            raise
        return [], [Flaw("HP042", f"{name} raised {_told(error)}")]
    if not isinstance(given, list | tuple) or not all(isinstance(offer, Offer) for offer in given):
        return [], [Flaw("HP042", f"{name} returned no list of offers but {type(given).__name__}")]
    hint = f"kind must be {kind}"
    wrong = [(offer.name, offer.kind) for offer in given if offer.kind != kind]
    flaws = [Flaw("HP043", f"{name} offers {called} as kind {other}", hint) for called, other in wrong]
    return [offer for offer in given if offer.kind == kind], flaws


_DECLARE: Final = "declare them in the manifest: config (a JSON Schema) or config_file (a JSON file beside it)"


def _disagreements(offers: dict[tuple[str, str], Offer[Any]], provides: list[Provided]) -> Iterator[Flaw]:
    promised = {(provided.kind, provided.name): provided for provided in provides}
    for kind, name in sorted(set(offers) - set(promised)):
        yield Flaw("HP044", f"{kind}:{name} is offered, but is not in the manifest", "add a [[provides]] table")
    for kind, name in sorted(set(promised) - set(offers)):
        yield Flaw("HP045", f"{kind}:{name} is in the manifest, but is not offered")
    for key in sorted(set(offers) & set(promised)):
        said, does = sorted(promised[key].roles), sorted(offers[key].roles)
        if said != does:
            yield Flaw("HP046", f"{key[0]}:{key[1]} serves {', '.join(does)}; its manifest says {', '.join(said)}")
        if (offers[key].settings is None) != (promised[key].config is None):
            which = "manifest" if offers[key].settings is None else "offer"
            hint = _DECLARE if which == "offer" else "give the offer settings=, a function that returns the class"
            yield Flaw("HP047", f"settings of {key[0]}:{key[1]}: only the {which} has any", hint)


def _told(error: BaseException) -> str:
    return headline(error).splitlines()[0][:300]
