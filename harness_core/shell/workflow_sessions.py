"""What is wanted of a workflow, by its name, by a version's id or as a plan, in; what its session is begun with out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_hookspecs.host import Ports, RunOptions
from harness_hookspecs.kit.canonical import canonical, read_canonical
from harness_hookspecs.store import Store

from .answering import person
from .beginning import RunRequest, checked_request
from .perform_compile import CompileSite, version_drift
from .plan_check import refuse_unsound
from .session_parts import SessionParts
from .workflow_parts import workflow_parts
from .workflow_start import ID_PREFIX, checked_goal, spec_of_plan, spec_of_version, spec_of_workflow

if TYPE_CHECKING:
    from .opening import Opened

__all__ = ["Site", "Wanted", "request_of", "wanted_by_name", "wanted_plan"]


class Site(NamedTuple):
    """What a host has for it.

    Attributes:
        opened: The project.
        store: The logs.
        parts_of: Builds, once, what runs under a configuration.
        find_version: Finds a version by its id.
    """

    opened: Opened
    store: Store
    parts_of: Callable[[Opened], SessionParts]
    find_version: Callable[[str], Mapping[str, Any]]

    def redacted(self, value: Any) -> Any:
        """It without the secrets that are known: it is kept as it stands, and not only as text."""
        return self.opened.redactor.value(value)


class Wanted(NamedTuple):
    """A session that is to be begun: under which configuration, with what, and what runs it."""

    opened: Opened
    spec: Mapping[str, Any]
    parts: SessionParts


def wanted_by_name(name: str, given: Any, goal: str, site: Site, *, accept_drift: bool) -> Wanted:
    """The session that runs a version, or plans a workflow and, unless the goal is ``plan``, runs the plan.

    Raises:
        HarnessError: As ``Host.start_workflow``.
    """
    chosen, given = checked_goal(goal, name), site.redacted(given)
    if name.startswith(ID_PREFIX):
        return _wanted_version(site.find_version(name), given, site, accept_drift=accept_drift)
    opened = site.opened.running(name)
    return _wanted(spec_of_workflow(name, chosen, given, site.parts_of(opened), opened.config), opened, site)


def _wanted_version(version: Mapping[str, Any], given: Any, site: Site, *, accept_drift: bool) -> Wanted:
    planned_for = read_canonical(site.store.blob(version["plan_ref"]))["metadata"]["name"]
    opened = site.opened.running(planned_for)
    wanted = _wanted(spec_of_version(version, given, site.parts_of(opened), site.store, opened.config), opened, site)
    if not accept_drift:
        version_drift(version, CompileSite(wanted.parts, opened.ports, opened.redactor, site.store.blob))
    return wanted


def wanted_plan(document: Mapping[str, Any], given: Any, site: Site) -> Wanted:
    """The session that registers and runs a plan, of which this is what its check says.

    Raises:
        HarnessError: As ``Host.start_plan``.
    """
    refuse_unsound(document)
    plan = site.redacted(document["plan"])
    opened = site.opened.running(plan["metadata"]["name"])
    spec = spec_of_plan(plan, site.redacted(given), site.parts_of(opened), stage=document["stage"])
    return _wanted(spec, opened, site)


def _wanted(spec: Mapping[str, Any], opened: Opened, site: Site) -> Wanted:
    return Wanted(opened, spec, workflow_parts(site.parts_of(opened), spec, opened.parts))


def request_of(wanted: Wanted, options: RunOptions, ports: Ports) -> RunRequest:
    """How the session is begun.

    Raises:
        ConfigError: As for ``Host.start``.
    """
    seed = options.get("seed")
    return checked_request(
        canonical(wanted.spec["input"]).decode(),
        options.get("on_ask", "deny"),
        options.get("budget"),
        options.get("yolo", "off"),
        int.from_bytes(ports.random.bytes(4), "big") if seed is None else seed,
        person(options.get("by")),
    )
