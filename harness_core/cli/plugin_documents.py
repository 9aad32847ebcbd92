"""The documents of ``harness plugins`` and ``harness doctor``, as models; their JSON Schemas are published."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from harness_core.settings.schemas import published

from .documents import Document

__all__ = [
    "DOCUMENTS",
    "Doctor",
    "Plugin",
    "PluginCheck",
    "PluginDetails",
    "PluginSwitch",
    "PluginWhy",
    "Plugins",
    "schemas",
]


class Offered(Document):
    """One offer that a manifest promises."""

    kind: str = Field(description="The kind.")
    name: str = Field(description="The name that configuration chooses it by.")
    roles: list[str] = Field(description="For kind role the executor roles it serves.")


class Touched(Document):
    """What a plugin says it touches; nothing holds it to that."""

    network: list[str] = Field(description="Hosts.")
    filesystem: list[str] = Field(description="Roots, each with read: or write: before it.")
    subprocess: list[str] = Field(description="Programs.")
    environment: list[str] = Field(description="Variables.")
    secrets: list[str] = Field(description="Secrets by name.")
    native_code: bool = Field(description="Whether it loads compiled code.")
    gpu: bool = Field(description="Whether it uses a device.")
    threads: bool = Field(description="Whether it starts threads.")


class Plugin(Document):
    """One installed plugin."""

    id: str = Field(description="Its id.")
    distribution: str = Field(description="The distribution that brings it.")
    version: str = Field(description="The distribution's version.")
    status: Literal["ok", "disabled", "skipped", "broken", "doubled"] = Field(description="What became of it.")
    reason: str | None = Field(description="Why it does not take part, or not wholly.")
    spec: str = Field(description="The contract versions it was made for; empty while its manifest is flawed.")
    provides: list[Offered] = Field(description="What it offers.")
    capabilities: Touched | Literal["undeclared"] = Field(description="What it says it touches.")
    lock: str = Field(description="What harness.lock says of it; unlocked where there is no such file.")
    source: str = Field(description="Where it was installed from: index, a URL, or editable and a URL.")
    origin: Literal["built-in", "local", "third-party"] = Field(description="Where it comes from, as the host sees it.")


class Plugins(Document):
    """The installed plugins, by id."""

    schema_: Literal["harness.plugins/1"] = Field(alias="schema")
    items: list[Plugin] = Field(description="The plugins.")


class Chosen(Document):
    """A line of the configuration that chooses an offer."""

    kind: str = Field(description="The kind.")
    name: str = Field(description="The offer, as the line names it.")
    where: str = Field(description="File, line and column.")


class PluginDetails(Plugin):
    """All that is known of one plugin."""

    schema_: Literal["harness.plugin/1"] = Field(alias="schema")
    code: str | None = Field(description="The stable code of what is wrong.")
    hint: str | None = Field(description="What to do about it.")
    summary: str = Field(description="Its own words.")
    module: str = Field(description="The module that is registered.")
    files: str | None = Field(description="Where its code lies.")
    manifest: str | None = Field(description="Its manifest's file.")
    digest: str | None = Field(description="SHA-256 of the manifest.")
    conflicts: dict[str, str] = Field(description="Plugins that must not take part with it, and why.")
    imported_before: bool = Field(description="Whether its code, as it is now, was tried in a child process.")
    config: dict[str, dict[str, Any] | None] = Field(description="The settings schema of each offer.")
    defaults: list[str] = Field(description="Offers that belong to the usual set.")
    chosen: list[Chosen] = Field(description="The lines that choose one of its offers.")


class Candidate(Document):
    """One who might answer."""

    name: str = Field(description="The offer.")
    plugin: str = Field(description="The plugin.")
    answers: bool = Field(description="Whether it is the one that answers.")
    why: str = Field(description="Why it does or does not.")


class PluginWhy(Document):
    """Who answers for a role or an offer."""

    schema_: Literal["harness.plugin_why/1"] = Field(alias="schema")
    question: str = Field(description="What was asked.")
    items: list[Candidate] = Field(description="Everyone who might, whoever does first.")


class PluginFinding(Document):
    """One thing that is wrong with a plugin."""

    plugin: str = Field(description="Its id.")
    distribution: str = Field(description="Its distribution.")
    code: str = Field(description="Stable code, HP001 and so on.")
    message: str = Field(description="What is wrong.")
    hint: str | None = Field(description="What to do about it.")


class PluginCheck(Document):
    """What a check of plugins found."""

    schema_: Literal["harness.plugin_check/1"] = Field(alias="schema")
    checked: int = Field(description="How many plugins were looked at.")
    imported: bool = Field(description="Whether their code was run, in a child process.")
    items: list[PluginFinding] = Field(description="The findings by plugin.")


class PluginSwitch(Document):
    """A plugin that was switched off or on."""

    schema_: Literal["harness.plugin_switch/1"] = Field(alias="schema")
    plugin: str = Field(description="The plugin.")
    enabled: bool = Field(description="Whether it may take part now.")
    changed: bool = Field(description="Whether this command changed that.")
    file: str = Field(description="The file that says so.")
    disable: list[str] = Field(description="The list plugins.disable in that file.")


class Looked(Document):
    """One thing that the doctor looked at."""

    name: str = Field(description="What.")
    state: Literal["ok", "warning", "problem"] = Field(description="How it is.")
    message: str = Field(description="What was found.")
    fix: str | None = Field(description="What to do about it.")
    facts: dict[str, Any] = Field(description="The same for programs.")


class LayerPlugins(Document):
    """Who does the work of one layer."""

    layer: str = Field(description="The layer, from user to tools.")
    plugins: list[str] = Field(description="Plugin ids, harness-host for the host itself.")
    missing: list[str] = Field(description="What it lacks.")


class Doctor(Document):
    """What is wrong with an installation."""

    schema_: Literal["harness.doctor/1"] = Field(alias="schema")
    ok: bool = Field(description="Whether there is no problem; warnings do not count.")
    checks: list[Looked] = Field(description="What was looked at.")
    layers: list[LayerPlugins] = Field(description="The layers; empty while the configuration is wrong.")


DOCUMENTS: tuple[type[Document], ...] = (Plugins, PluginDetails, PluginWhy, PluginCheck, PluginSwitch, Doctor)


def schemas() -> dict[str, dict[str, Any]]:
    """Give the schema of each document by the document's id."""
    found = {}
    for model in DOCUMENTS:
        schema = model.model_json_schema()
        name = schema["properties"]["schema"]["const"]
        found[name] = published(name, schema)
    return found
