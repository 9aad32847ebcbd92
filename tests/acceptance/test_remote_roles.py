"""Sessions whose roles a service answers: what is recorded, what is counted, and that nobody is asked for it again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.errors import HarnessError
from tests.acceptance.listing import listed, outcomes, ran, replays_equal, step
from tests.acceptance.test_secrets import kept
from tests.reference import one_stage, says

TOKEN = "sesame-open-sesame"
DONE = {"kind": "execute_step", "output": {"text": "from far away"}, "artifactRefs": []}
USED = {"inputTokens": 90, "outputTokens": 12}


class Service:
    """Answers every question with the same, and keeps them with their headers."""

    def __init__(self) -> None:
        self.answer: Any = DONE
        self.status = 200
        self.sent: list[tuple[Any, Mapping[str, str]]] = []
        self.hangs = False
        self.asked, self.gone = threading.Event(), threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.sent.append((body, dict(self.headers)))
                service.asked.set()
                if service.hangs:
                    service.gone.wait(60)
                self.send_response(service.status)
                self.end_headers()
                answer = service.answer
                self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name
                """Nothing is printed."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

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


@pytest.fixture
def begin(play: Any, service: Service, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A project whose agent stages are answered by the service; ``more`` are settings of the role."""
    monkeypatch.setenv("ACME_TOKEN", TOKEN)

    def begun(
        *replies: Any, stages: Any = None, run: Any = None, bind: Sequence[str] = ("worker.ai-generate",), **more: Any
    ) -> Any:
        url = f"http://127.0.0.1:{service.server.server_port}/roles?key=none"
        settings = {"url": url, "bearer": "env:ACME_TOKEN", **more}
        harness = {"bind": dict.fromkeys(bind, "remote"), "plugins": {"settings": {"remote": settings}}}
        files = {"harness": {**harness, **({"run": run} if run else {})}, "stages": stages or one_stage()}
        return play(*(replies or (says("unused"),)), **files)

    return begun


def text_of(session: Any) -> Any:
    [artifact] = session.host.artifacts("@last")
    return json.loads(session.host.artifact(artifact["ref"]))["text"]


@pytest.mark.req("A-96")
def test_a_stage_is_done_by_the_service_and_what_was_sent_can_be_looked_at(begin: Any, service: Service) -> None:
    session = begin()
    document = session.run()
    assert (document["status"], text_of(session)) == ("completed", "from far away")
    [(body, headers)] = service.sent
    assert list(body) == ["task", "scope", "modelSlotId", "toolsManifest"]
    assert (body["modelSlotId"], body["scope"]["runId"]) == ("scripted", document["id"])
    assert set(body["toolsManifest"]) >= {"effects_pure"}
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    [called] = session.payloads("harness.model.called")
    port = service.server.server_port
    assert called["request"]["model"] == {"provider": "remote", "modelId": f"127.0.0.1:{port}/roles"}
    [shown] = session.host.prompt("@last")["messages"]
    assert json.loads(shown["message"]["content"][0]["text"]) == body
    [started] = session.payloads("harness.session.started")
    manifest = json.loads(session.host.artifact(f"artifact://sha256-{started['manifestHash']}"))
    assert manifest["pluginId"] == "role-remote"


@pytest.mark.req("A-99")
@pytest.mark.parametrize("told", [USED, {"inputTokens": 90}, None])
def test_a_report_says_what_the_service_used_or_that_nobody_knows(begin: Any, service: Service, told: Any) -> None:
    service.answer = DONE if told is None else {**DONE, "usage": told}
    session = begin()
    document = session.run()
    [completed] = session.payloads("harness.session.completed")
    known = told == USED
    assert document["usage"]["known"] == completed["usage"]["known"] == known
    report = session.host.report("@last")
    assert (report["usage"]["known"], report["unknown_calls"]) == (known, 0 if known else 1)
    assert report["usage"]["total_tokens"] == (102 if known else 90 if told else 0)
    assert [(one["provider"], one["calls"]) for one in report["models"]] == [("remote", 1)]


@pytest.mark.inv("I-18")
@pytest.mark.parametrize("mode", ["full", "skip-inference", "simulate"])
@pytest.mark.parametrize("status", [200, 503])
def test_a_replay_asks_no_service(begin: Any, service: Service, mode: str, status: int) -> None:
    service.status = status
    service.answer = {**DONE, "events": [{"type": "role.note", "payload": {"text": "hm"}}]}
    session = begin(stages=one_stage(retry={"max_attempts": 2}))
    session.run()
    asked = len(service.sent)
    assert asked == (1 if status == 200 else 2)
    session.reopen()
    service.status, service.answer = 500, None
    report = session.host.replay("@last", mode)
    assert report["equal"], report["diverged"]
    assert len(service.sent) == asked


@pytest.mark.inv("I-18")
def test_a_replay_of_another_question_is_a_difference_and_asks_nobody(begin: Any, service: Service) -> None:
    session = begin()
    session.run()
    harness = json.loads((session.site.project / ".harness/harness.yaml").read_text())
    harness["plugins"]["settings"]["remote"]["url"] = f"http://127.0.0.1:{service.server.server_port}/elsewhere"
    session.site.write("harness", harness)
    session.reopen()
    assert session.host.replay("@last", "skip-inference", session.site.project)["diverged"]
    assert len(service.sent) == 1


@pytest.mark.inv("I-28")
def test_a_failure_is_tried_again_by_the_stage_alone(begin: Any, service: Service) -> None:
    service.status = 503
    session = begin(stages=one_stage(retry={"max_attempts": 3}))
    document = session.run()
    assert (document["status"], document["failure"]["code"]) == ("failed", "role.remote_status")
    assert len(service.sent) == 3 == len(session.payloads("role.failed"))
    assert not session.host.session("@last")["usage"]["known"]  # what the failed ones used nobody knows


@pytest.mark.parametrize(("failpoint", "asked"), [("intent.committed", 1), ("effect.done", 2)])
def test_a_question_whose_answer_was_lost_is_asked_again_as_it_was(
    begin: Any, service: Service, failpoint: str, asked: int
) -> None:
    session = begin()
    session.run_until_it_breaks(failpoint)
    session.reopen()
    assert session.resume()["status"] == "completed"
    assert (len(service.sent), text_of(session)) == (asked, "from far away")
    assert len({json.dumps(body) for body, _ in service.sent}) == 1  # a service can tell that it is the same


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("status", [200, 401])
def test_what_the_headers_hold_is_in_no_event_and_no_error(begin: Any, service: Service, status: int) -> None:
    service.status = status
    events = [{"type": "role.note", "payload": {"seen": TOKEN}}]
    service.answer = {**DONE, "output": {"text": f"I was told {TOKEN}"}, "events": events}
    session = begin()
    document = session.run()
    assert TOKEN not in json.dumps(dict(document), default=str)
    if status == 200:
        assert text_of(session) == "I was told [secret]"
    assert TOKEN.encode() not in kept(session)


@pytest.mark.inv("I-29")
def test_a_secret_that_comes_back_in_escapes_is_found(begin: Any, service: Service) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in TOKEN)
    service.answer = json.dumps({**DONE, "output": {"text": "TOKEN"}}).replace("TOKEN", escaped).encode()
    session = begin()
    assert session.run()["status"] == "completed"
    assert text_of(session) == "[secret]"
    content = kept(session)
    assert TOKEN.encode() not in content and escaped.encode() not in content


@pytest.mark.req("A-98")
def test_a_secret_in_the_task_is_not_sent(begin: Any, service: Service) -> None:
    session = begin(stages=one_stage(task=f"Use {TOKEN} to look."))
    session.run()
    assert "Use [secret] to look." in json.dumps(service.sent[0][0])


def test_what_the_service_did_itself_is_in_the_log_as_its_word(begin: Any, service: Service) -> None:
    did = {"type": "harness.model.responded", "payload": {"turn": 1, "usage": {"inputTokens": 9}}}
    service.answer = {**DONE, "usage": USED, "events": [did]}
    session = begin()
    session.run()
    [note] = session.payloads("role.note")
    assert (note["text"], note["facts"], note["remote"]) == (did["type"], did["payload"], True)
    [event] = [one for one in session.events() if one.type == "role.note"]
    assert event.actor == "agent"
    assert session.host.report("@last")["usage"]["total_tokens"] == 102  # its word counts for nothing


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "session.completed", "payload": {}}, "role.remote_event"),
        ({"type": "role.note", "payload": {"usage": {"costUsd": 3}}}, "usage.cost"),
    ],
)
def test_what_only_the_host_may_say_is_refused(begin: Any, service: Service, event: Any, code: str) -> None:
    service.answer = {**DONE, "events": [event]}
    session = begin()
    assert session.run()["failure"]["code"] == code
    assert session.payloads("role.note") == []


@pytest.mark.req("A-13", "A-16")
def test_a_step_that_is_not_sent_is_done_by_the_default_in_the_same_run(begin: Any, service: Service) -> None:
    session = begin(says("from here"), steps=["code.run"])
    document = session.run()
    assert (document["status"], text_of(session), service.sent) == ("completed", "from here", [])
    [delegated] = session.payloads("role.delegated")
    assert (delegated["source"], delegated["target"]) == ("role-remote", "role-workflow")
    [started] = session.payloads("harness.session.started")
    assert started["runId"] == document["id"]


CALL = step("call", "tool.call", {"tool": "effects.pure", "args": {"note": "a"}})
CODE = ran("count", "async def main(input, tools):\n    return 1\n")


@pytest.mark.req("A-96")
@pytest.mark.parametrize("call", [CALL, CODE], ids=["tool.call", "code.run"])
def test_a_step_that_asks_no_model_can_be_done_by_the_service_too(begin: Any, service: Service, call: Any) -> None:
    service.answer = {**DONE, "output": {"n": 7}, "usage": USED}
    session = begin(stages=listed(call), bind=[call["role"]])
    document = session.run()
    assert outcomes(session) == [{"ok": True, "value": {"n": 7}}]
    [(body, _)] = service.sent
    assert (body["task"]["step"]["uses"], body["modelSlotId"]) == (call["task"]["step"]["uses"], "")
    [completed] = session.payloads("harness.session.completed")
    assert completed["usage"]["inputTokens"] == document["usage"]["input_tokens"] == 90
    replays_equal(session, roles=1)
    assert len(service.sent) == 1 and not session.effects()


@pytest.mark.req("A-97")
def test_a_session_is_cancelled_while_the_service_is_waited_for(begin: Any, service: Service) -> None:
    service.hangs = True
    session = begin(run={"cancel_grace_sec": 60})
    ended: list[Any] = []
    running = threading.Thread(target=lambda: ended.append(session.run()))
    running.start()
    assert service.asked.wait(60)
    session.host.cancel("@last")
    running.join(30)
    assert [one["status"] for one in ended] == ["cancelled"]


def test_without_a_url_the_role_is_not_built_and_says_what_is_missing(play: Any) -> None:
    session = play(says("unused"), harness={"bind": {"worker.ai-generate": "remote"}})
    with pytest.raises(HarnessError, match="url") as caught:
        session.run()
    assert caught.value.code == "config.invalid"


def test_an_untrusted_project_may_not_say_where_tasks_go(begin: Any, service: Service, tmp_path: Path) -> None:
    session = begin()
    file = session.site.project / ".harness/harness.yaml"
    file.write_text(file.read_text().replace("/roles", "/elsewhere"))
    session.reopen()
    with pytest.raises(HarnessError) as caught:
        session.run()
    assert (caught.value.code, service.sent) == ("config.untrusted", [])
