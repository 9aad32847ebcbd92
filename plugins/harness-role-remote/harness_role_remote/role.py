"""The role harness ``remote``: a task goes to a service by one POST, its JSON answer comes back as the result.

Asked once, never again: another attempt is the stage's to decide (I-28). The question is recorded before it is sent and
the answer as it came, as those of a model, so that a resumed or replayed session asks nobody what has been answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final

from harness_hookspecs.errors import HarnessError, RoleError
from harness_hookspecs.host import CancelToken, Ports, RoleHost
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import ChatInput, Message, OracleResponse, TextPart
from harness_hookspecs.provider import CallContext, ModelRequest
from harness_hookspecs.role import DelegateToDefault, ExecuteStepTask, RoleContext, RoleResult, RoleTask
from harness_hookspecs.workflow import ParallelStep

from .answer import read_answer, read_result, take_apart
from .body import wire_body
from .settings import RemoteRoleSettings, is_loopback

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse
    from socket import socket

__all__ = ["RemoteRole"]

_PIECE_BYTES: Final = 65_536
_AGENT: Final = "harness-role-remote/0.1.0"


class RemoteRole:
    """Sends what its settings name, and lets the default role do the rest."""

    def __init__(self, settings: RemoteRoleSettings, host: RoleHost) -> None:
        self._settings, self._host = settings, host

    def run(self, task: RoleTask, ctx: RoleContext) -> RoleResult:
        """Run one task; see :class:`harness_hookspecs.role.RoleHarness`.

        Raises:
            RoleError: ``role.parallel``, ``role.remote_request_too_large`` or one of the others in the README.
            Cancelled: The call was cancelled while the answer was waited for.
        """
        if isinstance(task, ExecuteStepTask) and isinstance(task.step, ParallelStep):
            message = "A parallel step is no task of a role: fan-out belongs to the runtime."
            raise RoleError(message, code="role.parallel", step=task.step.id)
        if not self._wants(task):
            return DelegateToDefault()
        ctx.abort_signal.raise_if_cancelled()
        body = wire_body(task, ctx)
        self._check_size(body)
        settings = self._settings
        far = ctx.model.elsewhere(self._asking(ctx), provider="remote", model_id=settings.name)
        question = Message(role="user", content=(TextPart(text=body.decode()),))
        answer = far.complete(ChatInput(messages=(question,)))
        found = take_apart(read_answer(answer.text))
        for event in found.events:
            ctx.durability.remote(event)
        return read_result(found.result, task, ctx.response_schema)

    def _wants(self, task: RoleTask) -> bool:
        if isinstance(task, ExecuteStepTask) and task.step.uses not in self._settings.steps:
            return False
        return task.kind in self._settings.tasks

    def _check_size(self, body: bytes) -> None:
        limit = self._settings.max_request_bytes
        if len(body) > limit:
            message = f"The question has {len(body)} bytes, and {limit} are allowed."
            raise RoleError(message, code="role.remote_request_too_large", hint="raise max_request_bytes of the role")

    def _asking(self, ctx: RoleContext) -> Any:
        """What is called when nobody has recorded an answer; the host has taken the secrets out of what it is given.

        The answer is written anew, for with escapes as it came a secret in it could not be told from other text.
        """

        def ask(request: ModelRequest, call: CallContext) -> OracleResponse:
            body = request.messages[-1].text.encode()
            answer = read_answer(_post(self._settings, body, self._headers(), ctx.ports, ctx.abort_signal))
            said = TextPart(text=codec.dumps(answer).decode())
            return OracleResponse(content=(said,), finish_reason="stop", usage=take_apart(answer).usage)

        return ask

    def _headers(self) -> dict[str, str]:
        """The headers of one question; what is secret is resolved now, and is in no error."""
        settings = self._settings
        found = {name: self._host.secret(reference) for name, reference in settings.headers.items()}
        if settings.bearer is not None:
            found["Authorization"] = f"Bearer {self._host.secret(settings.bearer)}"
        for name, value in found.items():
            if not value.isascii() or not value.isprintable():
                message = f"What {name} refers to cannot be sent in a header: it has more than plain characters."
                raise RoleError(message, code="role.remote_header", header=name)
        own = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
        return {**found, **own, "Content-Type": "application/json", "User-Agent": _AGENT}


def _post(
    settings: RemoteRoleSettings, body: bytes, headers: Mapping[str, str], ports: Ports, cancel: CancelToken
) -> bytes:
    """The body of the answer; whoever waits for it stops when it is cancelled or its time is over, and the connection
    is cut then."""
    exchange, done = _Exchange(settings, body, headers), ports.wait.queue()
    ports.spawn(exchange.run, done.put, name="remote")
    try:
        found = done.get(settings.timeout_sec, cancel)
    finally:
        exchange.cut()
    if found is None:
        raise _too_late(settings.timeout_sec)
    if isinstance(found, HarnessError):
        raise found
    answer: bytes = found
    return answer


class _Exchange:
    """One question and its answer over a connection of its own, on a worker of the host."""

    def __init__(self, settings: RemoteRoleSettings, body: bytes, headers: Mapping[str, str]) -> None:
        self._settings, self._body, self._headers = settings, body, headers
        self._socket: socket | None = None  # kept, since the connection lets go of it once the answer begins
        self._is_cut = False

    def run(self, tell: Any) -> None:
        """Tell the bytes of the answer, or the error in their place."""
        found: bytes | HarnessError = _unreachable("it broke off")
        try:
            found = self._answer()
        except RoleError as error:
            found = error
        finally:
            tell(found)

    def cut(self) -> None:
        """Whoever reads or writes is woken, and ends."""
        from socket import SHUT_RDWR

        self._is_cut = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(SHUT_RDWR)

    def _answer(self) -> bytes:
        import ssl
        from http.client import HTTPException

        try:
            with closing(self._connection()) as connection:
                self._connect(connection)
                place = self._settings.place
                path = (place.path or "/") + (f"?{place.query}" if place.query else "")
                connection.request("POST", path, self._body, dict(self._headers))
                with closing(connection.getresponse()) as response:
                    return _read(response, self._settings.max_answer_bytes)
        except ssl.SSLError as error:  # before OSError, of which it is one
            reason = getattr(error, "verify_message", None) or error.reason or "no secure connection"
            raise RoleError(f"The service cannot be trusted: {reason}.", code="role.remote_tls") from None
        except TimeoutError:
            raise _too_late(self._settings.timeout_sec) from None
        except OSError as error:
            raise _unreachable(error.strerror or type(error).__name__) from None
        except HTTPException as error:  # its text may be what came
            raise _unreachable(f"it does not speak HTTP ({type(error).__name__})") from None

    def _connection(self) -> HTTPConnection:
        """No proxy is used and no file of passwords is read: what is sent goes to this host and with these headers."""
        from http.client import HTTPConnection, HTTPSConnection

        place, seconds = self._settings.place, self._settings.timeout_sec
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        return kind(place.hostname or "", place.port, timeout=seconds)

    def _connect(self, connection: HTTPConnection) -> None:
        connection.connect()
        self._socket = connection.sock
        if self._is_cut:
            raise _unreachable("nobody waits any more")
        if self._settings.place.scheme == "http" and not is_loopback(connection.sock.getpeername()[0]):
            raise _unreachable("its name does not lead to this machine")


def _read(response: HTTPResponse, limit: int) -> bytes:
    """The body, read piece by piece and never beyond the limit; of an answer that is none nothing is read."""
    _check_status(response)
    announced = response.length
    if announced is not None and announced > limit:
        raise _too_large(limit)
    if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        message = "The answer is compressed, though it was asked for as it is."
        raise RoleError(message, code="role.remote_not_json", reason="content-encoding")
    pieces, size = [], 0
    while piece := response.read(min(_PIECE_BYTES, limit + 1 - size)):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
    if announced is not None and size != announced:
        raise _unreachable("the answer ends too early")
    return b"".join(pieces)


def _check_status(response: HTTPResponse) -> None:
    status = response.status
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        message = f"The service sends the question elsewhere (HTTP {status}), which is not followed."
        raise RoleError(message, code="role.remote_redirect", hint="write the right url", status=status)
    facts: dict[str, Any] = {"status": status}
    after = response.headers.get("Retry-After", "")
    if after.isascii() and after.isdigit():
        facts["retry_after_seconds"] = int(after[:9])
    raise RoleError(f"The service answers with HTTP {status}.", code="role.remote_status", **facts)


def _too_late(seconds: float) -> RoleError:
    message = f"There was no answer within {seconds:g} seconds."
    return RoleError(message, code="role.remote_timeout", hint="raise timeout_sec of the role")


def _too_large(limit: int) -> RoleError:
    message = f"The answer has more than {limit} bytes."
    return RoleError(message, code="role.remote_too_large", hint="raise max_answer_bytes of the role")


def _unreachable(why: str) -> RoleError:
    return RoleError(f"The service cannot be reached: {why}.", code="role.remote_unreachable")
