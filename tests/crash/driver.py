"""Orders on stdin, one JSON document a line; each is carried out in a process of its own and answered on stdout.

An order ``{"phase", "failpoint", "seconds", "meanwhile", "crashes"}`` makes a child that plays that phase of a session
in the folder this process was started in, with that ``HARNESS_FAILPOINT``; one that has not ended after ``seconds`` is
killed; while a failpoint has stopped it, ``meanwhile`` is carried out. What the phase gives is printed with how the
child ended; a phase that looks at the end gives what the checker finds broken, who is told how often an owner has died.
``{"plant"}`` puts a bug in on purpose. Children are forked from a process that has imported everything, which makes
each cost hundredths of a second.

A child writes outside of what is under test, as it happens: ``acks`` gets a line for each event it was told of,
``asked`` one for each call of the provider.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from harness_core import Host
from harness_core.kernel.checking.check import check
from harness_core.kernel.checking.history import NOTHING, Broken, Happened, History
from harness_core.shell.heads import copied_head
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.kit.canonical import digest
from harness_hookspecs.store import StoredEvent

__all__ = ["PHASES"]

TEXT = "Write the report."
_HUNG_SECONDS = 30.0
OURS = (
    "harness_", "peewee", "pysqlite3", "pydantic", "orjson", "jsonschema_rs", "rfc8785", "cel",
    "yaml",
)  # fmt: skip


def _append(name: str, line: str) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def _acknowledged(event: StoredEvent) -> None:
    _append("acks", json.dumps([event.seq, event.id]))


def _open() -> Host:
    return Host.open(".", on_event=_acknowledged)


def _counted(complete: Callable[..., Any]) -> Callable[..., Any]:
    """The provider's own call, with a line outside for each."""

    def counted(self: Any, request: Any, call: Any) -> Any:
        [*_, asked] = (message for message in request.messages if message.role == "user")
        _append("asked", json.dumps([*request.routing, len(request.messages), digest(asked.to_wire())]))
        return complete(self, request, call)

    return counted


# ------------------------------------------------------------------------------------------------------- phases


def begin(host: Host) -> Any:
    """The session from its start to where it waits for a person."""
    return host.run(TEXT, on_ask="suspend")


def answer(host: Host) -> Any:
    """A person elsewhere approves all that waits; nobody runs the session meanwhile."""
    for item in host.approvals():
        if host.store.posted(f"answer:{item['id']}") is None:
            host.answer(item["id"], "approve", digest=item["digest"])
    return host.session("@last")


def resume(host: Host) -> Any:
    """The session from where it stopped to the next stop."""
    return host.resume("@last", on_ask="suspend")


def finish(host: Host) -> Any:
    """Whatever is there, to its end: begun when nothing is, answered and settled where something waits."""
    document = _taken_over(host)
    while not _is_final(document):
        for waiting in document["waiting"]:
            if waiting["kind"] == "in_doubt":
                _settle(host, waiting["id"])
        answer(host)
        document = resume(host)
    return look(host)


def _taken_over(host: Host) -> Any:
    if not host.sessions():
        return begin(host)
    document = host.session("@last")
    return document if _is_final(document) else resume(host)


def _is_final(document: Mapping[str, Any]) -> bool:
    return document["status"] in ("completed", "failed", "cancelled")


def _settle(host: Host, effect_id: str) -> None:
    """Say of an effect in doubt what the file outside says."""
    happened = effect_id in {line["key"] for line in _lines(os.environ["HARNESS_EFFECTS_FILE"])}
    _append("settled", effect_id)
    if happened:
        host.settle(effect_id, "happened", value={"done": "as was seen"})
    else:
        host.settle(effect_id, "never_happened")


def look(host: Host) -> Mapping[str, Any]:
    """Nothing but a look, and what a replay says."""
    [document] = host.sessions()
    replayed = {mode: dict(host.replay(document["id"], mode)) for mode in ("skip-inference", "simulate")}
    return {**document, "replayed": replayed}


def broken(host: Host, document: Mapping[str, Any], crashes: int) -> tuple[Broken, ...]:
    """What the checker finds, given all that was written outside."""
    stream = f"session:{document['id']}"
    return check(
        History(
            stream,
            host.store.read(stream),
            host.store.head(stream),
            copied_head(host._ports.files(host._opened.data_dir), document["id"]) or NOTHING,
            host.store.blob,
            acknowledged=[(seq, event_id) for seq, event_id in _lines("acks")],
            happened=[Happened(line["tool"], line["key"]) for line in _lines(os.environ["HARNESS_EFFECTS_FILE"])],
            crashes=crashes,
            state_hash=document["state_hash"],
        )
    ).broken


def _lines(name: str) -> list[Any]:
    with open(name, "ab+") as file:
        file.seek(0)
        return [json.loads(line) for line in file]


PHASES: Mapping[str, Callable[[Host], Mapping[str, Any]]] = {
    one.__name__: one for one in (begin, answer, resume, finish, look)
}


# ------------------------------------------------------------------------------------------------------ children


def _play(order: Mapping[str, Any]) -> dict[str, Any]:
    from harness_provider_scripted.provider import ScriptedProvider

    setattr(ScriptedProvider, "complete", _counted(ScriptedProvider.complete))  # noqa: B010  # it is a method
    os.environ["HARNESS_FAILPOINT"] = order.get("failpoint", "")
    began = time.monotonic()
    try:
        host = _open()
        with host:
            document = dict(PHASES[order["phase"].partition(" ")[0]](host))
            if order["phase"] in ("finish", "look"):
                document["broken"] = broken(host, document, order.get("crashes", 0))
            reached = dict(host._ports.failpoints.reached)
    except HarnessError as error:
        return {"error": error.code, "message": error.message}
    loaded = [name for name in sys.modules if name.startswith(OURS)]
    return {"document": document, "reached": reached, "seconds": time.monotonic() - began, "modules": loaded}


def _carry_out(order: Mapping[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            json.dump(_play(order), out, default=_plain)
        os._exit(0)
    os.close(writer)
    meanwhile = _while_stopped(order["meanwhile"], child) if "meanwhile" in order else {}
    if "seconds" in order and not select.select([reader], [], [], order["seconds"])[0]:
        os.kill(child, signal.SIGKILL)
    text = _read(reader, child)
    status = os.waitpid(child, 0)[1]
    return {"killed": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, **json.loads(text or "{}"), **meanwhile}


def _while_stopped(order: Mapping[str, Any], child: int) -> dict[str, Any]:
    stopped = os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    answer = _carry_out(order) if stopped else {}
    if stopped:
        os.kill(child, signal.SIGCONT)
    return {"stopped": stopped, "meanwhile": answer}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else list(value)


def _read(reader: int, child: int) -> bytes:
    """All that the child says; one that hangs is killed, and has said nothing."""
    chunks = []
    while select.select([reader], [], [], _HUNG_SECONDS)[0]:
        chunk = os.read(reader, 65536)
        if not chunk:
            break
        chunks.append(chunk)
    else:
        os.kill(child, signal.SIGABRT)
        chunks = []
    os.close(reader)
    return b"".join(chunks)


def _prepare(modules: Iterable[str]) -> None:
    """Do once what every child would do again: import, complete what was put off, and keep the collector from it."""
    for name in modules:
        importlib.import_module(name)
    waiting = [BaseModel]
    while waiting:
        model = waiting.pop()
        waiting += model.__subclasses__()
        if model.__module__.startswith("harness_"):
            model.model_rebuild()
    gc.collect()
    gc.freeze()


def main() -> None:
    """Carry out orders until stdin ends."""
    for line in sys.stdin:
        order = json.loads(line)
        if "import" in order:
            _prepare(order["import"])
        if "plant" in order:
            importlib.import_module(order["plant"]).plant(pytest.MonkeyPatch())
        sys.stdout.write(json.dumps(_carry_out(order) if "phase" in order else {}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
