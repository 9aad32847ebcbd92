"""Kind ``broker``: an untrusted agent's tool request in, a judged and performed effect out (later distribution)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from .host import CancelToken
from .value import Json, WireModel

__all__ = ["Broker", "BrokerContext", "BrokerReply", "BrokerRequest"]


class BrokerRequest(WireModel):
    """One of the closed set ``sandbox.read``, ``sandbox.apply_patch``, ``sandbox.run_recipe`` (C-50)."""

    request_id: str
    tool: str
    input: Json


class BrokerReply(WireModel):
    """Bounded, and marked untrusted by the host."""

    request_id: str
    ok: bool
    content: str
    details: Json = None


class BrokerContext(NamedTuple):
    """The lease the request came under and the workspace it may touch."""

    lease: Json
    workspace_dir: Path
    cancel: CancelToken


class Broker(Protocol):
    """Policy runs before the effect, over values with provenance (trap 21)."""

    def handle(self, request: BrokerRequest, ctx: BrokerContext) -> BrokerReply:
        """Judge and, when allowed, perform; a refusal is a reply, not an error."""
