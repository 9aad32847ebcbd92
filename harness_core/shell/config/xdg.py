"""The environment in, Harness's own folder below one of the person's base folders out; light, for quick commands."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness_hookspecs.errors import ConfigError, NotFound

__all__ = ["home_of", "working_folder_gone", "xdg_folder"]


def home_of(env: Mapping[str, str]) -> str:
    """Give the person's home: ``HOME``, a relative one counts as unset, else what the system knows.

    Raises:
        ConfigError: ``config.no_home``: nobody knows it. A folder in its place would be another one from everywhere.
    """
    said = env.get("HOME", "")
    if os.path.isabs(said):
        return said
    import pwd  # where it is needed at all

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError as error:
        hint = "set HOME to the absolute folder where Harness may keep its log, its cache and what is trusted"
        message = f"this user, {os.getuid()}, has no home: HOME is not set and the system knows of none"
        raise ConfigError(message, code="config.no_home", hint=hint) from error


def xdg_folder(env: Mapping[str, str], variable: str, usual: str) -> str:
    """Give ``harness`` below the folder that an ``XDG_*`` variable names; a relative one counts as unset, as XDG says.

    Args:
        env: The environment.
        variable: ``XDG_CONFIG_HOME`` for example.
        usual: The folder below the home that is meant where the variable is unset.
    """
    said = env.get(variable, "")
    return os.path.join(said if os.path.isabs(said) else os.path.join(home_of(env), usual), "harness")


def working_folder_gone() -> NotFound:
    """Make the error for whoever stands in a folder that was removed."""
    hint = "go to a folder that is there, or name the project's by an absolute path: --project DIR"
    message = "the folder that this was started in is not there any more"
    return NotFound(message, code="project.not_found", hint=hint)
