"""A secret that the host resolved is in nothing that is kept and nothing that is sent, whoever wrote it there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.distribution import make_distribution
from tests.reference import says

SECRET = "correct-horse-battery"
MARK = b"[secret]"

CODE = """
import os

from pydantic import BaseModel

from harness_hookspecs import hooks
from harness_hookspecs.markers import implements
from harness_hookspecs.messages import ChatInput, Message, OracleResponse, TextPart, ToolCallRequest, Usage
from harness_hookspecs.offer import Offer
from harness_hookspecs.role import ExecuteStepResult


class Settings(BaseModel):
    key: str


class Vault:
    def __init__(self, settings, host):
        host.secret(settings.key)

    def complete(self, request, call):
        with open(os.environ["VAULT_SEEN"], "a") as seen:
            seen.write(repr(request) + "\\n")
        return OracleResponse(content=(TextPart(text="yes"),), finish_reason="stop", usage=Usage.unknown())

    def close(self):
        pass


class Leaky:
    def run(self, task, ctx):
        words = "use " + os.environ["VAULT_KEY"]
        for turn in range(2):
            ctx.model.complete(ChatInput(messages=(Message(role="user", content=(TextPart(text=words),)),)))
        tool = os.environ.get("VAULT_TOOL", "effects_network")
        args = {"note": words, **({"seconds": 60} if tool == "effects_slow" else {})}
        ctx.call_tools([ToolCallRequest(call_id="c", tool_name=tool, args=args)])
        return ExecuteStepResult(output={"text": "done"}, artifact_refs=())


@implements(hooks.harness_provide_providers)
def harness_provide_providers():
    return [Offer(kind="provider", name="vault", build=Vault, settings=lambda: Settings)]


@implements(hooks.harness_provide_roles)
def harness_provide_roles():
    return [Offer(kind="role", name="leaky", build=lambda settings, host: Leaky(), roles=("worker.ai-generate",))]
"""

PROVIDES: list[dict[str, Any]] = [
    {"kind": "provider", "name": "vault", "config": {"type": "object", "properties": {"key": {"type": "string"}}}},
    {"kind": "role", "name": "leaky", "roles": ["worker.ai-generate"]},
]
MODELS = {"models": {"one": {"provider": "vault", "key": "env:VAULT_KEY", "capabilities": ["tool_calling"]}}}


@pytest.fixture
def vault(play: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session whose provider has a secret and whose role knows it too."""
    make_distribution(tmp_path / "site", "acme-vault", provides=PROVIDES, code=CODE)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("VAULT_KEY", SECRET)
    monkeypatch.setenv("VAULT_SEEN", str(tmp_path / "seen"))
    tools = {"tools": {"effects": {"probes": False}}}
    yield play(says("unused"), models=MODELS, tools=tools, harness={"bind": {"worker.ai-generate": "leaky"}})
    sys.modules.pop("acme_vault", None)


def kept(session: Any) -> bytes:
    """Every byte of the folders where the log, its content and the inbox lie."""
    session.host.close()
    folders = [Path(session.site.env[f"XDG_{name}_HOME"]) for name in ("DATA", "STATE")]
    return b"".join(file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file())


@pytest.mark.inv("I-29")
def test_what_a_role_writes_itself_reaches_provider_and_log_without_the_secrets(vault: Any, tmp_path: Path) -> None:
    assert vault.run()["status"] == "awaiting_approval"
    seen = (tmp_path / "seen").read_text()
    assert seen.count("use [secret]") == 2
    assert vault.pending()[0]["args"] == {"note": "use [secret]"}  # the person is shown what would be done
    content = kept(vault)
    assert MARK in content
    assert SECRET not in seen and SECRET.encode() not in content


@pytest.mark.inv("I-29")
def test_a_replay_leaves_out_what_the_run_left_out(vault: Any) -> None:
    vault.run()
    vault.reopen()
    vault.answer(vault.pending()[0])
    assert vault.resume()["status"] == "completed"
    vault.reopen()
    assert vault.host.replay("@last", "skip-inference")["equal"]


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("built", [True, False])
def test_what_a_person_says_is_posted_without_the_secrets_also_by_a_host_that_runs_nothing(
    vault: Any, built: bool
) -> None:
    document = vault.run()
    if not built:
        vault.reopen()
    vault.answer(vault.pending()[0], "deny", say=f"not with {SECRET}", by=SECRET)
    vault.host.submit({"session": document["id"], "id": "s1", "kind": "steer", "body": {"text": SECRET, "by": "me"}})
    content = kept(vault)
    assert content.count(MARK) >= 3
    assert SECRET.encode() not in content


@pytest.mark.inv("I-29")
def test_a_value_that_settles_an_effect_is_posted_without_the_secrets(
    vault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_TOOL", "effects_slow")
    vault.host.start("Go.")
    vault.until("harness.tool_call.started")
    vault.reopen()
    [doubt] = vault.resume()["waiting"]
    stands = vault.host.settle(doubt["id"], "happened", value={"key": SECRET})
    assert stands["value"] == {"key": "[secret]"}
    assert SECRET.encode() not in kept(vault)
