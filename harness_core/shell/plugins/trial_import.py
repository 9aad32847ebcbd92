"""One plugin is imported and checked here and now: its module and promises go in, its flaws as JSON come out.

Runs in the child process of a trial only.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_core.shell.ports_startup import temporary_folder
from harness_hookspecs.errors import HarnessError, NotFound
from harness_hookspecs.kit.failure import headline
from harness_hookspecs.manifest import Flaw, Provided
from harness_hookspecs.offer import Offer

from .registration import check_module

if TYPE_CHECKING:
    from harness_core.shell.kind_hosts import PartHost

__all__ = ["try_import"]


def try_import(module: str, provides: Sequence[Sequence[Any]], *, settings: bool = False) -> list[list[Any]]:
    """Import a module and check its hooks, its offers and, when asked, what its offers give.

    Args:
        module: Its dotted name.
        provides: The manifest's promises as JSON: kind, name, roles, default, config.
        settings: Whether each offer's settings class is compared with the schema in the manifest, each tool set is
            built and asked for its tools, and each workflow is built.
    """
    promised = [Provided(kind, name, tuple(roles), default, config) for kind, name, roles, default, config in provides]
    try:
        found = check_module(import_module(module), promised)
    except (SystemExit, KeyboardInterrupt) as error:
        return [list(Flaw("HP031", f"its import raises {_told(error)}"))]
    except BaseException as error:  # whatever a stranger's import raises is a verdict about it
        return [list(Flaw("HP030", f"its import raises {_told(error)}{_place(error, module)}"))]
    flaws = found.flaws
    if settings and not flaws:
        pairs = [(found.offers[provided.kind, provided.name], provided) for provided in promised]
        flaws = [flaw for offer, provided in pairs for flaw in _settings(offer, provided)]
        flaws += [flaw for offer in found.offers.values() if offer.kind == "tool" for flaw in _tools(offer)]
        flaws += [flaw for offer in found.offers.values() if offer.kind == "workflow" for flaw in _workflow(offer)]
    return [list(flaw) for flaw in flaws]


def _told(error: BaseException) -> str:
    return " ".join(headline(error).split())[:300]


def _place(error: BaseException, module: str) -> str:
    """The last line of the plugin's own code in the traceback."""
    package = module.partition(".")[0]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if package in frame.filename]
    return f" ({own[-1].filename}:{own[-1].lineno})" if own else ""


def _settings(offer: Offer[Any], provided: Provided) -> Iterator[Flaw]:
    """Keys that only one of settings class and manifest knows."""
    if offer.settings is None or provided.config is None:
        return
    what = f"settings of {provided.kind}:{provided.name}"
    try:
        schema = offer.settings().model_json_schema()
    except BaseException as error:
        yield Flaw("HP047", f"{what} cannot be read: {_told(error)}")
        return
    does, said = set(schema.get("properties", {})), set(provided.config.get("properties", {}))
    for key in sorted(does ^ said):
        only, other = ("class", "config of the manifest") if key in does else ("manifest", "settings class")
        yield Flaw("HP047", f"{what}: only the {only} has {key}", f"add it to the {other}, or take it out")
    if set(schema.get("required", [])) != set(provided.config.get("required", [])):
        hint = "give required in the manifest the keys that have no default in the class"
        yield Flaw("HP047", f"{what}: class and manifest require different keys", hint)


def _tools(offer: Offer[Any]) -> Iterator[Flaw]:
    """What is wrong with a tool set; one that the usual settings do not suffice for is not asked."""
    from pydantic import ValidationError

    from harness_core.shell.toolbox import spec_flaw

    with temporary_folder() as folder:
        try:
            toolset = offer.build(None if offer.settings is None else offer.settings()(), _host(offer, Path(folder)))
        except (OSError, HarnessError, ValidationError):  # it may need settings, a program or a folder not here
            return
        except BaseException as error:
            yield Flaw("HP048", f"tool set {offer.name} cannot be built: {_told(error)}")
            return
        try:
            flaws = [spec_flaw(spec) for spec in toolset.specs()]
        except BaseException as error:
            yield Flaw("HP048", f"tool set {offer.name} cannot say what its tools are: {_told(error)}")
            return
    yield from (Flaw("HP048", f"tool set {offer.name} gives {flaw[1]}") for flaw in flaws if flaw is not None)


def _workflow(offer: Offer[Any]) -> Iterator[Flaw]:
    """What is wrong with the definition of a workflow; one that the usual settings do not suffice for is not built."""
    from pydantic import ValidationError

    from harness_core.shell.promised import lacking

    with temporary_folder() as folder:
        try:
            built = offer.build(None if offer.settings is None else offer.settings()(), _host(offer, Path(folder)))
            said = lacking(offer.kind, built)
        except (OSError, ValidationError):
            return
        except HarnessError as error:
            said = f"is none: {error}"
        except BaseException as error:
            said = f"cannot be built: {_told(error)}"
    if said is not None:
        yield Flaw("HP049", f"workflow {offer.name} {said}", "define_workflow makes one")


def _host(offer: Offer[Any], folder: Path) -> PartHost:
    """As a session has it, in folders of its own: what is tried here reaches nothing of a person's."""
    from harness_core.shell.kind_hosts import PartHost
    from harness_core.shell.ports import make_ports
    from harness_core.shell.redaction import Redactor

    def no_artifact(name: str) -> Any:
        raise NotFound(f"there is no artifact {name} here")

    folders = [folder / name for name in ("project", "state", "data")]
    for one in folders:
        one.mkdir()
    project, state, data = folders
    return PartHost(
        ports=make_ports("threads"),
        project_dir=project,
        state_dir=state,
        data_dir=data,
        kind=offer.kind,
        entry_name=offer.name,
        terminal=None,
        redactor=Redactor(),
        find_artifact=no_artifact,
    )
