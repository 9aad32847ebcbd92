"""The environment in, Harness's own folder below one of the person's base folders out; light, for quick commands."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["home_of", "xdg_folder"]


def home_of(env: Mapping[str, str]) -> str:
    """Give the person's home: ``HOME``, else what the system knows."""
    return env.get("HOME") or os.path.expanduser("~")


def xdg_folder(env: Mapping[str, str], variable: str, usual: str) -> str:
    """Give ``harness`` below the folder that an ``XDG_*`` variable names; a relative one counts as unset, as XDG says.

    Args:
        env: The environment.
        variable: ``XDG_CONFIG_HOME`` for example.
        usual: The folder below the home that is meant where the variable is unset.
    """
    said = env.get(variable, "")
    return os.path.join(said if os.path.isabs(said) else os.path.join(home_of(env), usual), "harness")
