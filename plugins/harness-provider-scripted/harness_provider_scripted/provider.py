"""The provider ``scripted``: a script file is read once, requests come in, its replies go out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness_hookspecs.errors import ConfigError, ProviderError
from harness_hookspecs.host import Ports, ProviderHost
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import Message, OracleResponse
from harness_hookspecs.provider import CallContext, Chunk, ModelRequest, ToolSchema
from harness_hookspecs.value import thaw

from .answer import chunks_of, response_of
from .script import Script, choose, parse
from .settings import ScriptedSettings

__all__ = ["ScriptedProvider", "build", "look"]

_BYTES_A_TOKEN = 4


def build(settings: ScriptedSettings, host: ProviderHost) -> ScriptedProvider:
    """Read the script.

    Raises:
        ConfigError: There is no such file or it is no script.
    """
    return ScriptedProvider(_script(settings, host), settings.script, host.ports)


def look(settings: ScriptedSettings, host: ProviderHost) -> str:
    """Say what the script has; raises as ``build`` does."""
    count = len(_script(settings, host).replies)
    return f"{settings.script} has {count} repl{'y' if count == 1 else 'ies'}"


def _script(settings: ScriptedSettings, host: ProviderHost) -> Script:
    return parse(_read(host.project_dir / settings.script), settings.script)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        hint = "Name a file relative to the project."
        raise ConfigError(f"The script cannot be read: {error.strerror}.", where=str(path), hint=hint) from error
    except UnicodeDecodeError as error:
        raise ConfigError("The script is not UTF-8.", where=str(path)) from error


class ScriptedProvider:
    """Answers from a script; has no state, so any thread and any resumed session gets the same answers."""

    def __init__(self, script: Script, file: str, ports: Ports) -> None:
        self._script = script
        self._file = file
        self._ports = ports

    def complete(self, request: ModelRequest, call: CallContext) -> OracleResponse:
        """Answer one request; see the contract. Schema and tools of the request do not change what is answered."""
        call.cancel.raise_if_cancelled()
        call.on_begin()  # a script is never busy
        reply = choose(self._script, request, self._file)
        self._wait(reply.delay_ms / 1000, call)
        for text in chunks_of(reply):
            call.cancel.raise_if_cancelled()
            call.on_chunk(Chunk("text", text))
        call.cancel.raise_if_cancelled()
        if reply.error is not None:
            raise ProviderError(f"The script says {reply.error.code}.", code=reply.error.code, where=self._file)
        return response_of(reply, request.routing.turn)

    def _wait(self, seconds: float, call: CallContext) -> None:
        limit = call.deadline_seconds
        late = limit is not None and seconds > limit
        if seconds:
            self._ports.clock.sleep(limit if late and limit is not None else seconds, call.cancel)
        if late:
            raise ProviderError("The script answers too late.", code="provider.timeout", where=self._file)

    def count_tokens(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
        """A stand-in for a tokenizer, which a script does not have: a token for every four bytes, rounded up."""
        asked = [*(message.to_wire() for message in messages), *(thaw(dict(tool._asdict())) for tool in tools)]
        return -(-sum(len(codec.dumps(item)) for item in asked) // _BYTES_A_TOKEN)

    def close(self) -> None:
        """There is nothing to end."""
