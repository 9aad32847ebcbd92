"""The role against a real service on this machine: what is sent, what is taken, and how each failure is called."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.role import FakeRoleContext, FakeTool, RoleContract
from harness_hookspecs.errors import Cancelled, CodecError, NotFound, RoleError
from harness_hookspecs.kit import codec
from harness_hookspecs.messages import OracleResponse, Usage
from harness_hookspecs.role import DelegateToDefault, RoleHarness, RoleTask, parse_task
from harness_role_remote import harness_provide_roles

SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"enum": ["ok", "no"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
DONE = {"kind": "execute_step", "output": {"verdict": "ok"}, "artifactRefs": []}
TOKEN = "sesame-open-sesame"
WHERE = {"stepPath": "judge", "visitIndex": 0}


def role(url: str, host: Any = None, **settings: Any) -> RoleHarness:
    [offer] = harness_provide_roles()
    assert offer.settings is not None
    built: RoleHarness = offer.build(offer.settings().model_validate({"url": url, **settings}), host)
    return built


def step_task(uses: str = "ai.generate", output: Mapping[str, Any] | None = None, **more: Any) -> RoleTask:
    settings = {
        "ai.generate": {"model": "small", "prompt": "Judge it."},
        "code.run": {"language": "python", "source": "return 1"},
        "tool.call": {"tool": "look"},
    }[uses]
    step = {"id": "judge", "uses": uses, "with": settings, "output": output or {"mode": "object", "schema": SCHEMA}}
    return parse_task({"kind": "execute_step", "step": step, "stepInput": None, "stepContext": WHERE, **more})


def plan_task() -> RoleTask:
    snapshot = {
        "workflowId": "tickets", "name": "Tickets", "definitionHash": "0" * 64, "inputSchema": True,
        "outputSchema": True, "modelSlots": {"small": {"capabilities": []}}, "tools": [],
        "permissions": {"models": ["small"], "tools": []}, "planner": {"maxRepairs": 2}, "workers": {}, "memory": [],
        "limits": {},
    }  # fmt: skip
    return parse_task({"kind": "plan", "workflowSnapshot": snapshot, "input": {"ticket": 7}})


def failure(service: Any, say: Any, task: RoleTask | None = None, **settings: Any) -> RoleError:
    service.say = say
    with pytest.raises(RoleError) as caught:
        role(service.url, **settings).run(task or step_task(), FakeRoleContext())
    return caught.value


class TestRemoteRole(RoleContract):
    """The suite of the kind; what the script says is said by the service."""

    @pytest.fixture(autouse=True)
    def _beside(self, service: Any) -> None:
        self.service = service

    def subject(self) -> RoleHarness:
        return role(self.service.url)

    def context(
        self,
        script: Sequence[OracleResponse | BaseException] | Callable[..., OracleResponse],
        *,
        tools: Mapping[str, FakeTool] | None = None,
        system: str | None = "Be brief.",
    ) -> FakeRoleContext:
        first = script(0, None) if callable(script) else script[0]
        if isinstance(first, OracleResponse):
            if first.tool_calls:
                pytest.skip("a remote role runs no tool")
            self.service.say = self._saying(first)
        return FakeRoleContext(() if callable(script) else script, tools=tools, system=system)

    def _saying(self, answer: OracleResponse) -> Any:
        if answer.finish_reason == "refusal":
            return self.service.answering({"error": "refused"}, status=422)
        try:
            output = codec.loads(answer.text)
        except CodecError:
            return self.service.answering(answer.text.encode())
        return self.service.answering({"kind": "execute_step", "output": output, "artifactRefs": []})


# -------------------------------------------------------------------------------------------------- what is sent


@pytest.mark.req("A-96")
def test_exactly_these_keys_are_sent_and_the_answer_is_the_result(service: Any) -> None:
    service.say = service.answering(DONE)
    tool = FakeTool(description="Looks.", schema={"type": "object", "properties": {"jobId": {"type": "string"}}})
    ctx = FakeRoleContext(tools={"look": tool}, system="Be brief.")
    assert role(service.url).run(step_task(), ctx).to_wire() == DONE
    [sent] = service.sent
    assert list(sent.body) == ["task", "scope", "modelSlotId", "system", "toolsManifest"]
    assert sent.body["task"] == step_task().to_wire()
    assert (sent.body["modelSlotId"], sent.body["system"]) == ("small", "Be brief.")
    assert sent.body["toolsManifest"] == {"look": {"description": "Looks.", "inputSchema": tool.input_schema}}
    assert sent.path == "/roles?team=acme"
    assert sent.headers["Content-Type"] == "application/json"


@pytest.mark.req("A-96")
@pytest.mark.parametrize("system", [None, ""])
def test_a_system_text_that_is_not_set_is_absent(service: Any, system: str | None) -> None:
    service.say = service.answering(DONE)
    role(service.url).run(step_task(), FakeRoleContext(system=system))
    assert list(service.sent[0].body) == ["task", "scope", "modelSlotId", "toolsManifest"]


@pytest.mark.req("A-98")
def test_no_key_no_function_and_no_place_of_the_host_crosses(service: Any, tmp_path: Path) -> None:
    service.say = service.answering(DONE)
    host = FakeHost(tmp_path, secrets={"env:ACME": TOKEN})
    ctx = FakeRoleContext(tools={"look": FakeTool()})
    ctx.scope = ctx.scope.model_copy(update={"log_dir": str(tmp_path / "runs")})
    role(service.url, host, bearer="env:ACME").run(step_task(), ctx)
    [sent] = service.sent
    assert sent.headers["Authorization"] == f"Bearer {TOKEN}"
    text = sent.data.decode()
    assert not [word for word in (TOKEN, "execute(", '"execute"', str(tmp_path), "ACME") if word in text]
    assert set(sent.body["scope"]) == {"runId", "logDir", "role"}
    assert set(sent.body["toolsManifest"]["look"]) == {"description", "inputSchema"}


def test_the_same_call_is_the_same_question_wherever_its_log_lies(service: Any) -> None:
    service.say = service.answering(DONE)
    for folder in ("/here", "/there"):
        ctx = FakeRoleContext()
        ctx.scope = ctx.scope.model_copy(update={"log_dir": folder})
        role(service.url).run(step_task(), ctx)
    assert service.sent[0].data == service.sent[1].data


def test_headers_are_what_their_references_lead_to(service: Any, tmp_path: Path) -> None:
    service.say = service.answering(DONE)
    host = FakeHost(tmp_path, secrets={"env:ONE": "first-value", "file:two": "second-value"})
    role(service.url, host, headers={"X-One": "env:ONE", "X-Two": "file:two"}).run(step_task(), FakeRoleContext())
    headers = service.sent[0].headers
    assert (headers["X-One"], headers["X-Two"]) == ("first-value", "second-value")


def test_a_secret_that_no_header_can_hold_is_named_and_not_told(service: Any, tmp_path: Path) -> None:
    for value in (f"{TOKEN}\r\nX-Evil: 1", f"{TOKEN}é"):
        host = FakeHost(tmp_path, secrets={"env:ACME": value})
        with pytest.raises(RoleError) as caught:
            role(service.url, host, bearer="env:ACME").run(step_task(), FakeRoleContext())
        assert (caught.value.code, caught.value.facts) == ("role.remote_header", {"header": "Authorization"})
        assert TOKEN not in repr(caught.value) and caught.value.__cause__ is None
    with pytest.raises(NotFound):
        role(service.url, FakeHost(tmp_path), bearer="env:NOBODY").run(step_task(), FakeRoleContext())
    assert service.sent == []


def test_a_question_that_is_too_large_is_not_sent(service: Any) -> None:
    error = failure(service, None, step_task(stepInput="x" * 2_000), max_request_bytes=2_000)
    assert error.code == "role.remote_request_too_large"
    assert service.sent == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "https://me:pass-word@example.org/",
        "https://example.org/#part",
        "ftp://127.0.0.1/",
        "https:///x",
        "https://example.org:99999/",
        "https://exa mple.org/",
        "https://example.org/\r\nX: 1",
        "http://127.0.0.1.example.org/",
    ],
)
def test_a_url_that_is_not_safe_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="The url") as caught:
        role(url)
    assert url not in str(caught.value) and "pass-word" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://example.org/x?y=1", "http://localhost:1/", "http://[::1]:1/", "http://127.9.9.9"])
def test_a_url_that_is_encrypted_or_leads_here_is_taken(url: str) -> None:
    assert role(url) is not None


@pytest.mark.parametrize("headers", [{"Content-Length": "env:A"}, {"X Y": "env:A"}, {"X": "as it is"}])
def test_headers_that_are_not_to_be_set_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="headers"):
        role("http://localhost/", headers=headers)


@pytest.mark.parametrize(
    "settings", [{"headers": {"X": "env:A", "x": "env:B"}}, {"headers": {"AUTHORIZATION": "env:A"}, "bearer": "env:B"}]
)
def test_a_header_that_is_set_twice_is_refused(settings: Any) -> None:
    with pytest.raises(ValueError, match="set twice"):
        role("http://localhost/", **settings)


# ---------------------------------------------------------------------------------------------- who does what


@pytest.mark.req("A-15")
def test_the_plan_task_goes_to_the_service_and_every_step_is_left_to_the_default(service: Any) -> None:
    service.say = service.answering({"kind": "plan", "lwir": {"steps": []}})
    chosen = role(service.url, tasks=["plan"])
    plan = chosen.run(plan_task(), FakeRoleContext(role="planner"))
    assert plan.to_wire() == {"kind": "plan", "lwir": {"steps": []}}
    for uses in ("ai.generate", "code.run", "tool.call"):
        assert chosen.run(step_task(uses), FakeRoleContext()) == DelegateToDefault()
    assert [sent.body["task"]["kind"] for sent in service.sent] == ["plan"]


@pytest.mark.req("A-16")
def test_code_steps_are_left_to_the_default_and_the_others_are_sent(service: Any) -> None:
    service.say = service.answering(DONE)
    chosen = role(service.url, steps=["ai.generate", "tool.call", "decision"])
    found = [chosen.run(step_task(uses), FakeRoleContext()).kind for uses in ("ai.generate", "code.run", "tool.call")]
    assert found == ["execute_step", "delegate_to_default", "execute_step"]
    assert [sent.body["task"]["step"]["uses"] for sent in service.sent] == ["ai.generate", "tool.call"]


# ---------------------------------------------------------------------------------------------- what is taken


@pytest.mark.req("A-99")
@pytest.mark.parametrize(
    ("told", "known"),
    [
        ({"inputTokens": 90, "outputTokens": 12}, Usage(input_tokens=90, output_tokens=12)),
        ({"inputTokens": 90}, Usage(input_tokens=90, known=False)),
        (None, Usage.unknown()),
        ({}, Usage.unknown()),
    ],
)
def test_what_was_used_is_what_is_reported_or_unknown(service: Any, told: Any, known: Usage) -> None:
    service.say = service.answering({**DONE, "usage": told})
    ctx = FakeRoleContext()
    used: list[Usage] = []
    far = ctx.model.elsewhere

    def watched(answer: Any, **named: Any) -> Any:
        def noted(*asked: Any) -> OracleResponse:
            response: OracleResponse = answer(*asked)
            used.append(response.usage)
            return response

        return far(noted, **named)

    ctx.model.elsewhere = watched  # type: ignore[method-assign]
    role(service.url).run(step_task(), ctx)
    assert [(one.known, one.total_tokens) for one in used] == [(known.known, known.total_tokens)]


def test_what_the_service_did_itself_is_noted_as_remote(service: Any) -> None:
    hm = {"type": "role.note", "payload": {"text": "hm"}}
    events = [{"type": "harness.model.called", "payload": {"turn": 1}}, hm]
    service.say = service.answering({**DONE, "events": events})
    ctx = FakeRoleContext()
    role(service.url).run(step_task(), ctx)
    assert [noted.given for noted in ctx.noted if noted.what == "note"] == [
        {"text": one["type"], "facts": one["payload"], "remote": True} for one in events
    ]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "session.completed", "payload": {}}, "role.remote_event"),
        ({"type": "harness.session.started", "payload": {}}, "role.remote_event"),
        ({"type": "approval.granted", "payload": {}}, "role.remote_event"),
        ({"type": "role.note", "payload": []}, "role.remote_event"),
        ({"type": ["role.note"], "payload": {}}, "role.remote_event"),
        ({"type": "role.note"}, "role.remote_invalid"),
        ("role.note", "role.remote_invalid"),
    ],
)
def test_an_event_that_only_the_host_may_write_is_refused_and_none_is_noted(
    service: Any, event: Any, code: str
) -> None:
    events: list[Any] = [{"type": "role.note", "payload": {"text": "hm"}}, event]
    service.say = service.answering({**DONE, "events": events})
    ctx = FakeRoleContext()
    with pytest.raises(RoleError) as caught:
        role(service.url).run(step_task(), ctx)
    assert caught.value.code == code
    assert [noted.what for noted in ctx.noted] == ["model"]


# ------------------------------------------------------------------------------------------------ what fails


@pytest.mark.req("A-97")
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_status_is_an_error_of_its_own_and_its_text_is_not_repeated(service: Any, status: int) -> None:
    answer = service.answering({"secret": TOKEN}, status=status, headers={"Retry-After": "7"})
    error = failure(service, answer)
    assert (error.code, error.facts) == ("role.remote_status", {"status": status, "retry_after_seconds": 7})
    assert TOKEN not in repr(error)
    assert len(service.sent) == 1  # asked once


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(service: Any, status: int) -> None:
    elsewhere = service.answering(b"", status=status, headers={"Location": service.url})
    error = failure(service, elsewhere)
    assert (error.code, error.facts["status"], len(service.sent)) == ("role.remote_redirect", status, 1)


@pytest.mark.req("A-97")
def test_a_service_that_says_nothing_is_not_waited_for(service: Any) -> None:
    started = time.monotonic()
    error = failure(service, lambda handler: service.gone.wait(30), timeout_sec=0.3)
    assert (error.code, len(service.sent)) == ("role.remote_timeout", 1)
    assert time.monotonic() - started < 5


def test_a_service_that_goes_on_saying_little_is_not_waited_for_either(service: Any) -> None:
    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not service.gone.wait(0.02):
            handler.wfile.write(b" ")

    assert failure(service, drip, timeout_sec=0.5).code == "role.remote_timeout"


@pytest.mark.req("A-97")
@pytest.mark.parametrize("begun", [False, True])
def test_a_cancel_ends_the_wait_within_half_a_second_and_cuts_the_connection(service: Any, begun: bool) -> None:
    asked, cut = threading.Event(), threading.Event()

    def hang(handler: Any) -> None:
        if begun:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
        asked.set()
        handler.connection.settimeout(20)
        if not handler.connection.recv(1):
            cut.set()

    service.say = hang
    ctx = FakeRoleContext()
    at: list[float] = []

    def cancel() -> None:
        asked.wait(20)
        at.append(time.monotonic())
        ctx.abort_signal.cancel("by the person")

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(Cancelled):
        role(service.url).run(step_task(), ctx)
    assert time.monotonic() - at[0] < 0.5
    assert cut.wait(20)


def test_a_call_that_was_cancelled_before_asks_nobody(service: Any) -> None:
    ctx = FakeRoleContext()
    ctx.abort_signal.cancel("by the person")
    with pytest.raises(Cancelled):
        role(service.url).run(step_task(), ctx)
    assert (service.sent, ctx.noted) == ([], [])


@pytest.mark.req("A-97")
def test_an_answer_that_is_announced_as_too_large_is_not_read(service: Any) -> None:
    def announce(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "999999999999")
        handler.end_headers()
        service.gone.wait(20)

    assert failure(service, announce, max_answer_bytes=2_000).code == "role.remote_too_large"


def test_of_an_answer_without_an_end_no_more_is_read_than_allowed(service: Any) -> None:
    written: list[int] = []

    def pour(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while not service.gone.is_set():
            handler.wfile.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
            written.append(65_536)

    assert failure(service, pour, max_answer_bytes=100_000).code == "role.remote_too_large"
    assert sum(written) < 64_000_000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<html>", "codec.syntax"),
        (b"", "codec.syntax"),
        (b'{"kind": "execute_step", "kind": "plan"}', "codec.duplicate_key"),
        (b'{"output": NaN}', "codec.not_finite"),
        (b'{"output": 1e999}', "codec.not_finite"),
        (b'{"output": "\xff"}', "codec.not_utf8"),
        (b"[" * 100 + b"]" * 100, "codec.too_deep"),
    ],
)
def test_an_answer_that_is_no_strict_json_says_why_and_is_not_repeated(service: Any, data: bytes, reason: str) -> None:
    error = failure(service, service.answering(data))
    assert (error.code, error.facts) == ("role.remote_not_json", {"reason": reason})
    assert error.__cause__ is None


def test_a_compressed_answer_is_refused(service: Any) -> None:
    error = failure(service, service.answering(DONE, headers={"Content-Encoding": "gzip"}))
    assert (error.code, error.facts) == ("role.remote_not_json", {"reason": "content-encoding"})


@pytest.mark.req("A-97")
@pytest.mark.parametrize("kind", ["plan", "fix_step", "delegate_to_default", "dance", 7, None])
def test_a_result_of_another_kind_is_refused(service: Any, kind: Any) -> None:
    assert failure(service, service.answering({**DONE, "kind": kind})).code == "role.result_kind_mismatch"


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "execute_step", "output": {"verdict": "ok"}},
        {**DONE, "artifactRefs": [7]},
        {**DONE, "more": 1},
        {**DONE, "usage": {"inputTokens": -1, "outputTokens": 0}},
        {**DONE, "usage": {"inputTokens": 1, "outputTokens": 0, "costUsd": 3}},
        {**DONE, "usage": 7},
        {**DONE, "events": {}},
        [DONE],
    ],
)
def test_an_answer_that_lacks_something_or_has_too_much_is_none(service: Any, answer: Any) -> None:
    assert failure(service, service.answering(answer)).code == "role.remote_invalid"


@pytest.mark.parametrize(
    ("output", "given", "path"),
    [
        ({"mode": "object", "schema": SCHEMA}, {"verdict": "maybe"}, "/verdict"),
        ({"mode": "object", "schema": True}, [1], ""),
        ({"mode": "array", "schema": {"items": {"type": "integer"}}}, [1, "x"], "/1"),
        ({"mode": "text"}, {"text": "x"}, ""),
        ({"mode": "choice", "values": ["billing", "refund"]}, "Billing", ""),
        ({"mode": "json", "schema": False}, 1, ""),
    ],
)
def test_an_output_that_the_step_does_not_promise_is_told_by_its_place(
    service: Any, output: dict[str, Any], given: Any, path: str
) -> None:
    error = failure(service, service.answering({**DONE, "output": given}), step_task(output=output))
    assert (error.code, error.facts["findings"][0]["path"]) == ("role.output_invalid", path)


def test_the_narrowed_schema_is_the_one_that_holds(service: Any) -> None:
    service.say = service.answering({**DONE, "output": {"verdict": "no"}})
    narrowed = {**SCHEMA, "properties": {"verdict": {"const": "ok"}}}
    with pytest.raises(RoleError) as caught:
        role(service.url).run(step_task(), FakeRoleContext(response_schema=narrowed))
    assert caught.value.code == "role.output_invalid"


def _hang_up(handler: Any) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def _break_off(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"kind"')
    handler.close_connection = True


def _mumble(handler: Any) -> None:
    handler.wfile.write(b"good day\r\n\r\n")
    handler.close_connection = True


@pytest.mark.parametrize("say", [_hang_up, _break_off, _mumble])
def test_a_connection_that_breaks_is_an_error_of_its_own(service: Any, say: Any) -> None:
    assert failure(service, say).code == "role.remote_unreachable"


def test_a_service_that_is_not_there_cannot_be_reached() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(RoleError) as caught:
            role(f"http://127.0.0.1:{taken.getsockname()[1]}/").run(step_task(), FakeRoleContext())
    assert caught.value.code == "role.remote_unreachable"


def test_a_service_without_tls_is_not_spoken_to_in_clear(service: Any) -> None:
    url = service.url.replace("http:", "https:")
    with pytest.raises(RoleError) as caught:
        role(url).run(step_task(), FakeRoleContext())
    assert (caught.value.code, service.sent) == ("role.remote_tls", [])


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(service: Any, tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    try:
        subprocess.run([*made, "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not there to make a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    service.server.socket = context.wrap_socket(service.server.socket, server_side=True)
    service.server.handle_error = lambda *_: None
    with pytest.raises(RoleError) as caught:
        role(service.url.replace("http://127.0.0.1", "https://localhost")).run(step_task(), FakeRoleContext())
    assert (caught.value.code, service.sent) == ("role.remote_tls", [])
    assert "certificate" in caught.value.message


def test_neither_a_proxy_nor_a_file_of_passwords_is_used(
    service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.say = service.answering(DONE)
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password sesame\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    role(service.url).run(step_task(), FakeRoleContext())
    assert "Authorization" not in service.sent[0].headers


