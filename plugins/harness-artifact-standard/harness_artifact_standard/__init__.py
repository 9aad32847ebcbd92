"""What harness-artifact-standard offers: five artifact types and their models; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

__all__ = ["ImplementationArtifact", "ReleaseNotes", "Review", "TextArtifact", "harness_provide_artifacts"]

_NAMES = ("implementation", "json", "release_notes", "review", "text")


@implements(hooks.harness_provide_artifacts)
def harness_provide_artifacts() -> list[Offer[Any]]:
    """One offer a type; none takes settings."""
    return [Offer(kind="artifact", name=name, build=_builder(name)) for name in _NAMES]


def _builder(name: str) -> Callable[[Any, Any], Any]:
    def build(settings: Any, host: Any) -> Any:
        if name == "json":
            from .any_json import JsonArtifact

            return JsonArtifact()
        from .artifact import standard_type

        return standard_type(name)

    return build


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import models

    return getattr(models, name)
