"""The engine ``sandbox``: code goes in, and why it is not run comes out.

CPython holds nothing back: whoever runs the code of a model in it without a sandbox has run it on the host. So there is
no way around the refusal, no setting and no fallback; the engine runs code once a plugin of kind ``sandbox`` proves
what it isolates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_hookspecs.engine import EngineLimits
from harness_hookspecs.errors import PluginError
from harness_hookspecs.host import CancelToken
from harness_hookspecs.role import BoundTool

__all__ = ["SandboxEngine", "no_sandbox"]


class SandboxEngine:
    """Runs nothing."""

    def run(
        self,
        source: str,
        input: Any,  # noqa: A002  # the name the code itself sees
        *,
        tools: Mapping[str, BoundTool],
        limits: EngineLimits,
        seed: int,
        epoch_ms: int,
        cancel: CancelToken,
    ) -> Any:
        """Refuse; see :class:`harness_hookspecs.engine.Engine`.

        Raises:
            Cancelled: The token was set.
            PluginError: ``engine.not_available``, always.
        """
        cancel.raise_if_cancelled()
        raise no_sandbox()

    def close(self) -> None:
        """There is nothing to end."""


def no_sandbox() -> PluginError:
    """The error that says what is missing and what runs code meanwhile."""
    return PluginError(
        "the engine sandbox runs CPython inside a sandbox, of which this version has none; nothing was run",
        code="engine.not_available",
        hint="install harness-engine-monty and let it run the code: engine: monty in harness.yaml, or in the step",
    )
