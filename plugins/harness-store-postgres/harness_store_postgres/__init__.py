"""Offers the store ``postgres``: settings and a host go in, the event log in a PostgreSQL database comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["harness_provide_stores"]


def _build(settings: Any, host: Any) -> Any:
    from .store import open_store

    return open_store(settings, host)


def _look(settings: Any, host: Any) -> str:
    from .store import look_at_store

    return look_at_store(settings, host)


def _settings() -> type[BaseModel]:
    from .settings import Settings

    return Settings


@implements(hooks.harness_provide_stores)
def harness_provide_stores() -> list[Offer[Any]]:
    """Offer the one store of this distribution."""
    return [Offer(kind="store", name="postgres", build=_build, settings=_settings, look=_look)]
