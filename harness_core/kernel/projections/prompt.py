"""A recorded model call and stored content in, exactly what the model saw out, proved by its hash (I-40)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness_core.kernel.facts import Event
from harness_hookspecs.kit.canonical import read_canonical
from harness_hookspecs.kit.prompt import PromptHasher

from .places import Place, Places

__all__ = ["PromptCall", "prompt_calls", "prompt_document", "rehash"]

ReadBlob = Callable[[str], bytes | None]


class PromptCall:
    """A model call with where it stood and the manifest hash of its role call."""

    __slots__ = ("event", "manifest_hash", "place", "role")

    def __init__(self, event: Event, place: Place, role: str, manifest_hash: str | None) -> None:
        self.event, self.place, self.role, self.manifest_hash = event, place, role, manifest_hash


def prompt_calls(events: Iterable[Event]) -> list[PromptCall]:
    """Every question to a model, in order."""
    places, manifests, found = Places(), {}, []
    for event in events:
        place = places.see(event)
        role_call = event.refs.get("role_call_id")
        if event.type == "harness.session.started":
            manifests[role_call] = event.payload["manifestHash"]
        elif event.type == "harness.model.called":
            found.append(PromptCall(event, place, places.role_of(event), manifests.get(role_call)))
    return found


def rehash(payload: Mapping[str, Any], messages: Iterable[Mapping[str, Any]] | None = None) -> str:
    """The promptHash computed again.

    Args:
        payload: Of ``harness.model.called``.
        messages: The messages themselves; absent: their recorded digests are taken.
    """
    request = payload["request"]
    hasher = PromptHasher(
        provider=request["model"]["provider"],
        model_id=request["model"]["modelId"],
        params=request.get("params") or {},
        tools={tool["name"]: tool["schemaHash"] for tool in request.get("tools", ())},
    )
    if messages is None:
        hasher.add_digests(bytes.fromhex("".join(request["messages"])))
    else:
        for message in messages:
            hasher.add(message)
    return hasher.hexdigest()


def prompt_document(call: PromptCall, read_blob: ReadBlob, session_id: str) -> dict[str, Any]:
    """What ``prompt show`` prints.

    Args:
        call: Which question.
        read_blob: Stored content by digest, ``None`` where there is none.
        session_id: The session.
    """
    payload, place = call.event.payload, call.place
    request = payload["request"]
    digests = request["messages"]
    messages = [_json(read_blob(digest)) for digest in digests]
    complete = all(message is not None for message in messages)
    recomputed = rehash(payload, messages) if complete else None
    params = dict(request.get("params") or {})
    return {
        "schema": "harness.prompt/1",
        "session_id": session_id,
        "seq": call.event.seq,
        "event_id": call.event.id,
        "stage": place.stage,
        "visit_id": place.visit_id,
        "attempt": place.attempt,
        "persona": place.persona,
        "role": call.role,
        "turn": payload["turn"],
        "call_id": payload["callId"],
        "model": {"provider": request["model"]["provider"], "model_id": request["model"]["modelId"]},
        "params": params,
        "response_schema": _json(read_blob(params["responseSchemaHash"])) if "responseSchemaHash" in params else None,
        "tools": [
            {
                "name": tool["name"],
                "tier": tool["tier"],
                "schema_hash": tool["schemaHash"],
                "schema": _json(read_blob(tool["schemaHash"])),
            }
            for tool in request.get("tools", ())
        ],
        "messages": [{"digest": digest, "message": message} for digest, message in zip(digests, messages, strict=True)],
        "manifest": _json(read_blob(call.manifest_hash)) if call.manifest_hash else None,
        "prompt_hash": payload["promptHash"],
        "recomputed_hash": recomputed,
        "equal": recomputed == payload["promptHash"],
        "parts": None,
    }


def _json(content: bytes | None) -> Any:
    return None if content is None else read_canonical(content)
