"""The ids of the plugins that this project ships: a plugin's id goes in, where it comes from comes out.

What a plugin says of itself is not asked. A test compares the list with the folders.
"""

from __future__ import annotations

__all__ = ["SHIPPED", "origin_of"]

SHIPPED = frozenset(
    """
    approver-policy approver-terminal artifact-standard broker-camel compression-standard engine-monty engine-sandbox
    executor-agent executor-orchestrate executor-task executor-workflow mount-standard observer-otel observer-prices
    provider-local provider-openai provider-scripted role-remote role-workflow rules-cel sandbox-bwrap store-memory
    store-postgres store-sqlite surface-chat surface-controlplane surface-runner surface-web surface-worker tool-bash
    tool-curl tool-filesystem tool-git tool-mcp tool-shell validator-standard
    """.split()
)


def origin_of(plugin_id: str, distribution: str, source: str) -> str:
    """Give ``built-in``, ``local`` (installed from a folder of this machine) or ``third-party``.

    Args:
        plugin_id: The id, normalised.
        distribution: The distribution's name, normalised.
        source: Where it was installed from, as ``Record.source`` says it.
    """
    if plugin_id in SHIPPED and distribution == f"harness-{plugin_id}":
        return "built-in"
    return "local" if "file:" in source else "third-party"
