"""The static manifest: the text of a ``harness-plugin.toml`` goes in, one frozen value or its flaws come out.

Reading a manifest runs none of the plugin's code. Flaws carry stable codes, shared with ``harness plugins check``::

    HP001  there is no manifest                     HP020  two distributions carry one plugin id
    HP002  it is not readable TOML                  HP021  two plugins offer one KIND:NAME
    HP003  its ``manifest`` version is unknown      HP022  it conflicts with another plugin taking part
    HP004  a key is unknown                         HP030  the import raises
    HP005  a key is missing or has a wrong value    HP031  the import ends the process
    HP006  a kind is unknown                        HP032  the import does not end in time
    HP007  roles are wrong                          HP033  the import writes to standard output
    HP008  one KIND:NAME stands there twice         HP040  a hook's name is unknown
    HP009  a config schema is wrong                 HP041  a hook's signature is wrong
    HP010  ``spec`` is not a version range          HP042  a hook raises or returns no offers
    HP011  the contract is outside ``spec``         HP043  an offer's kind is not its hook's
    HP012  ``id`` is not the entry point's name     HP044  an offer is not in the manifest
    HP013  ``id`` is not the distribution's name    HP045  a promise of the manifest is not offered
    HP014  no capabilities are declared             HP046  roles of offer and manifest differ
    HP015  the entry point is no module name        HP047  settings of offer and manifest differ
    HP016  the package is not found                 HP048  a tool set cannot be built, or a tool is none
                                                    HP049  a workflow is none, or cannot be built
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .errors import PluginError

__all__ = [
    "MANIFEST_FILE",
    "Capabilities",
    "Flaw",
    "Manifest",
    "Provided",
    "ReadFile",
    "manifest_from_table",
    "parse_manifest",
    "read_table",
]

MANIFEST_FILE = "harness-plugin.toml"

ReadFile = Callable[[str], bytes]
"""Gives the bytes of a file beside the manifest; raises ``OSError`` when there is none."""


class Flaw(NamedTuple):
    """One thing that is wrong with a plugin: its stable code, what is wrong, what to do about it."""

    code: str
    message: str
    hint: str | None = None


class Provided(NamedTuple):
    """One ``[[provides]]``: what the plugin promises to offer.

    ``default`` says that the usual set has it; ``config`` is the JSON Schema of its settings, ``None`` when it takes
    none, with ``x-untrusted`` on its leaves.
    """

    kind: str
    name: str
    roles: tuple[str, ...] = ()
    default: bool = False
    config: Mapping[str, Any] | None = None


class Capabilities(NamedTuple):
    """What the plugin says it touches. Disclosure, not containment: nothing holds it to that."""

    network: tuple[str, ...] = ()
    filesystem: tuple[str, ...] = ()
    subprocess: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    native_code: bool = False
    gpu: bool = False
    threads: bool = False


class Manifest(NamedTuple):
    """A manifest without a flaw.

    ``spec`` is the range of contract versions it was written for, ``capabilities`` is ``None`` when undeclared,
    ``conflicts`` maps the id of a plugin that must not take part with this one to the reason.
    """

    id: str
    summary: str
    spec: str
    provides: tuple[Provided, ...]
    capabilities: Capabilities | None
    conflicts: Mapping[str, str]


def parse_manifest(data: bytes, *, where: str = MANIFEST_FILE, read: ReadFile | None = None) -> Manifest:
    """Read a manifest file.

    Args:
        data: Its bytes.
        where: What it is called in errors.
        read: Reads what ``config_file`` names; without it such a key is a flaw.

    Raises:
        PluginError: It has flaws; the code is the first one's, the fact ``flaws`` lists ``[code, message]`` of each.
    """
    return manifest_from_table(read_table(data, where=where), where=where, read=read)


def read_table(data: bytes, *, where: str = MANIFEST_FILE) -> dict[str, Any]:
    """Read the TOML alone, without looking at what it says.

    Raises:
        PluginError: It is not TOML in UTF-8 (code ``HP002``).
    """
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PluginError(f"the manifest is not readable TOML: {error}", code="HP002", where=where) from error


def manifest_from_table(
    table: Mapping[str, Any], *, where: str = MANIFEST_FILE, read: ReadFile | None = None
) -> Manifest:
    """Make a manifest of a table that was read, also of the literal ``HARNESS`` of a single-file plugin.

    Raises:
        PluginError: As for ``parse_manifest``.
    """
    from .manifest_flaws import manifest_flaws  # listing what is installed needs the values above, not the rules

    flaws = manifest_flaws(table, read=read)
    if flaws:
        first = flaws[0]
        found = [[flaw.code, flaw.message] for flaw in flaws]
        raise PluginError(first.message, code=first.code, where=where, hint=first.hint, flaws=found)
    capabilities = table.get("capabilities")
    return Manifest(
        id=table["id"],
        summary=table["summary"],
        spec=table["spec"],
        provides=tuple(_provided(entry, read) for entry in table["provides"]),
        capabilities=None if capabilities is None else _capabilities(capabilities),
        conflicts=dict(table.get("conflicts", {})),
    )


def _provided(entry: Mapping[str, Any], read: ReadFile | None) -> Provided:
    from .manifest_flaws import read_config

    config = read_config(entry, read) if "config_file" in entry else entry.get("config")
    return Provided(entry["kind"], entry["name"], tuple(entry.get("roles", ())), entry.get("default", False), config)


def _capabilities(table: Mapping[str, Any]) -> Capabilities:
    values: dict[str, Any] = {key: value if isinstance(value, bool) else tuple(value) for key, value in table.items()}
    return Capabilities(**values)
