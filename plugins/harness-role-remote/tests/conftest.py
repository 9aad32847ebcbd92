"""A service on this machine that says what it is told to, and keeps what it was sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

from harness_hookspecs.kit import codec


class Sent(NamedTuple):
    """One question."""

    path: str
    headers: dict[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        return codec.loads(self.data)


Say = Callable[[BaseHTTPRequestHandler], None]


class Service:
    """What answers, and what it was asked.

    Attributes:
        sent: The questions so far.
        say: Answers one; it may do with the connection what it likes.
        gone: Set when the service is to end whatever it waits for.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.gone = threading.Event()
        self.say: Say = self.answering({})
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                service.sent.append(Sent(self.path, dict(self.headers), data))
                try:
                    service.say(self)
                except OSError:  # whoever asked has gone
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name
                """Nothing is printed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/roles?team=acme"

    def answering(self, value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Say:
        """Answer with a JSON value, or with bytes as they are."""
        data = value if isinstance(value, bytes) else codec.dumps(value)

        def say(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, text in {"Content-Length": str(len(data)), **(headers or {})}.items():
                handler.send_header(name, text)
            handler.end_headers()
            handler.wfile.write(data)

        return say

    def close(self) -> None:
        self.gone.set()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.close()
