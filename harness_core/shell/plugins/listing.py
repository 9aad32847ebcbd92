"""The documents of a list as they were made last time: an index and what they depend on go in, they come out.

Making them means records, rules and a configuration; keeping them means that ``harness plugins list`` imports none of
that while nothing has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from harness_core.settings import FILES
from harness_core.shell.config.xdg import xdg_folder

from .index import Index
from .scan import file_state

__all__ = ["STATUSES", "Listing", "configuration_state", "kept_listing"]

STATUSES = ("ok", "disabled", "skipped", "broken", "doubled")

Listing = dict[str, Any]
"""``items``: the plugin documents; ``complaints``: a line for each that is broken; ``code``: states they depend on."""


def kept_listing(index: Index, key: Any, make: Callable[[], Listing]) -> Listing:
    """Give the listing that was kept under this key, or make and keep it.

    Args:
        index: Where it is kept; what changes in the index ends it.
        key: Everything else that it depends on, as JSON.
        make: Makes it.
    """
    kept = index.fact("rows", key)
    if isinstance(kept, dict) and kept.get("code") == index.verdict_states():
        return kept
    made = make()
    index.keep_fact("rows", key, {**made, "code": index.verdict_states()})
    return made


def configuration_state(project: str, env: Mapping[str, str]) -> list[Any]:
    """Give everything that the configuration's words about plugins depend on, as JSON."""
    trust = os.path.join(xdg_folder(env, "XDG_STATE_HOME", ".local/state"), "trust")
    folders = (xdg_folder(env, "XDG_CONFIG_HOME", ".config"), os.path.join(project, ".harness"))
    # All six: what any of them sets decides whether the project is trusted, and so whether the others count.
    files = [os.path.join(folder, f"{name}.yaml") for folder in folders for name in FILES]
    states = [list(file_state(file)) for file in (*files, trust)]
    return [states, sorted([name, value] for name, value in env.items() if name.startswith("HARNESS__"))]
