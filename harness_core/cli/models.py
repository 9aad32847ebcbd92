"""``harness models``: the configured models, the living workers, and what a model can do; a list loads nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from harness_hookspecs.kit.render import escape_line, labels

from .output import complain, emit, json_option, labelled, options_of, tabled

if TYPE_CHECKING:
    from harness_core.shell.config.effective import EffectiveConfig
    from harness_core.shell.plugins.catalogue import Catalogue
    from harness_hookspecs.host import Ports

__all__ = ["models"]


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def models(ctx: click.Context) -> None:
    """List and probe models.

    The processes that hold them are shown as well.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)


def _open(ctx: click.Context) -> tuple[EffectiveConfig, Catalogue, Ports]:
    from harness_core.shell.plugins.index import open_index
    from harness_core.shell.plugins.opening import open_catalogue
    from harness_core.shell.ports import make_ports

    from .config import load

    options, ports = options_of(ctx), make_ports("threads")
    config = load(ctx)
    catalogue = open_catalogue(
        open_index(), config, disabled=options.disabled, no_plugins=options.no_plugins, processes=ports.processes
    )
    return config, catalogue, ports


# ---------------------------------------------------------------------------------------------------- list


@models.command("list")
@json_option
@click.pass_context
def list_models(ctx: click.Context) -> None:
    """List the models of models.yaml.

    No provider is imported and nothing is loaded.
    """
    from harness_core.shell.model_entries import entry_rows, no_model

    config, catalogue, _ = _open(ctx)
    items = [{**row._asdict(), "capabilities": list(row.capabilities)} for row in entry_rows(config, catalogue)]
    emit(ctx, {"schema": "harness.models/1", "items": items}, lambda one: _listed(one, *no_model(config)))


def _listed(document: Mapping[str, Any], nothing: str, fix: str) -> str:
    items = document["items"]
    if not items:
        return f"{escape_line(nothing)}\n  {fix}"
    rows = [
        [
            f"{item['name']} *" if item["default"] else item["name"],
            item["provider"] if item["plugin"] else f"{item['provider']} (!)",
            str(item["context_tokens"]),
            " ".join(item["capabilities"]) or "-",
            item["path"] or "-",
        ]
        for item in items
    ]
    for item in items:
        if item["reason"]:
            complain(f"harness: {labels([(item['name'], item['reason'])])[0]}")
    return tabled(("model", "provider", "context", "capabilities", "path"), rows, optional=("capabilities", "path"))


# ------------------------------------------------------------------------------------------------------ ps


@models.command()
@json_option
@click.pass_context
def ps(ctx: click.Context) -> None:
    """Show the living model workers of every process of yours."""
    from harness_core.shell.config.folders import folders_of
    from harness_core.shell.ports import make_ports
    from harness_core.shell.workers import living_workers

    workers = living_workers(make_ports("threads").files, folders_of(os.environ).state)
    items = [worker._asdict() for worker in workers]
    emit(ctx, {"schema": "harness.workers/1", "items": items}, _shown)


def _shown(document: Mapping[str, Any]) -> str:
    rows = [
        [str(item["pid"]), item["model"] or "?", item["backend"] or "?", item["state"], _mib(item["memory_bytes"])]
        for item in document["items"]
    ]
    return tabled(("pid", "model", "backend", "state", "memory"), rows) if rows else "no model is loaded"


def _mib(size_bytes: int | None) -> str:
    return "?" if size_bytes is None else f"{size_bytes / 2**20:.0f} MiB"


# --------------------------------------------------------------------------------------------------- probe


@models.command()
@click.argument("model")
@json_option
@click.pass_context
def probe(ctx: click.Context, model: str) -> None:
    """Find out what a model can do; may load it and make a tiny call."""
    from harness_core.shell.model_entries import find_entry
    from harness_core.shell.model_entries import probe as probe_entry

    config, catalogue, ports = _open(ctx)
    entry = find_entry(config, model)
    began = ports.clock.monotonic()
    facts = probe_entry(model, config, catalogue, ports)
    document = {
        "schema": "harness.model_probe/1",
        "model": model,
        "provider": entry.provider,
        **facts._asdict(),
        "detail": dict(facts.detail),
        "seconds": round(ports.clock.monotonic() - began, 3),
    }
    emit(ctx, document, _probed)


def _probed(document: Mapping[str, Any]) -> str:
    words = {True: "yes", False: "no", None: "unknown"}
    pairs = [
        ("model", f"{document['model']} ({document['provider']})"),
        ("context", "unknown" if document["context_tokens"] is None else f"{document['context_tokens']} tokens"),
        ("tools", words[document["supports_tools"]]),
        ("schema", words[document["supports_schema"]]),
        ("took", f"{document['seconds']:.2f} s"),
    ]
    pairs += [(key, str(value)) for key, value in document["detail"].items() if not isinstance(value, Mapping)]
    return "\n".join(labelled(pairs))
