"""Hand-made logs in; names, report, moves, approvals, timeline and events out."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.kernel.projections.approvals import approval_items, doubt_items, grant_items
from harness_core.kernel.projections.artifacts import artifact_items, artifact_ref, digest_of_ref
from harness_core.kernel.projections.event import causes, keeps
from harness_core.kernel.projections.naming import resolve_one, resolve_session
from harness_core.kernel.projections.report import report_document
from harness_core.kernel.projections.timeline import timeline
from harness_core.kernel.projections.transitions import transition_items
from harness_hookspecs.errors import NotFound
from tests.kernel.handmade import SHA, Log

# -- naming ---

IDS = [
    "0199aaaa-0000-7000-8000-00000000beef",
    "0199aaaa-0000-7000-8000-00000000cafe",
    "0199bbbb-0000-7000-8000-00000000cafe",
]


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (IDS[1], IDS[1]), (IDS[1].upper(), IDS[1]), ("beef", IDS[0]), ("0199b", IDS[2]), ("@last", IDS[0]),
        ("0199aaaa", "session.ambiguous"), ("cafe", "session.ambiguous"), ("eef", "session.not_found"),
        ("", "session.not_found"), ("   ", "session.not_found"), ("nope-nope", "session.not_found"),
        ("@first", "session.not_found"),
    ],
)  # fmt: skip
def test_a_session_is_named_by_its_id_or_a_unique_end_and_nothing_is_guessed(reference: str, found: str) -> None:
    if not found.startswith("session."):
        assert resolve_session(reference, IDS) == found
        return
    with pytest.raises(NotFound) as caught:
        resolve_session(reference, IDS)
    assert caught.value.code == found
    if found == "session.ambiguous":
        assert len(caught.value.facts["candidates"]) == 2


@pytest.mark.parametrize(("what", "said"), [("effect", "the id of an effect"), ("session", "the id of a session")])
def test_what_is_too_short_for_an_id_is_told_in_good_words(what: str, said: str) -> None:
    with pytest.raises(NotFound, match=f'"eff" is too short for {said}: at least 4 characters'):
        resolve_one("eff", IDS, what, hint="")


def test_the_last_of_no_sessions_is_an_error() -> None:
    with pytest.raises(NotFound, match="no session yet"):
        resolve_session("@last", [])


# -- report ---


def test_the_report_adds_calls_once_counts_the_unknown_and_flags_failed_attempts() -> None:
    log = Log().add("session.started").visit("build")
    log.asked("c1").answered(
        "c1",
        {"inputTokens": 100, "outputTokens": 10, "cachedInputTokens": 90, "reasoningTokens": 5},
        totalMs=7,
        firstTokenMs=3,
    )
    log.asked("c2", 2).add("harness.model.failed", turn=2, callId="c2", error={})
    log.add("harness.session.completed", {"role_call_id": "role_1"}, usage={"inputTokens": 100, "outputTokens": 10})
    log.retried(2)
    log.asked("c3", role="role_2").answered("c3", {"known": False})
    log.add("harness.tool_call.succeeded", callId="t", toolName="fs_read", durationMs=4)
    log.add("harness.tool_call.failed", callId="u", toolName="fs_read", error={})
    log.left("build", attempts=2).add("session.completed")
    report = report_document(log.events, "s")
    assert report["status"] == "completed"
    assert report["usage"] == {
        "input_tokens": 100, "output_tokens": 10, "cached_input_tokens": 90, "reasoning_tokens": 5,
        "total_tokens": 110, "known": False,
    }  # fmt: skip
    assert (report["calls"], report["failed_calls"], report["unknown_calls"]) == (3, 1, 2)
    assert (report["cost_usd"], report["unpriced_calls"]) == (None, 3)
    assert report["roll_ups"] == {"role_calls": 1, "equal": True}
    stage = report["stages"][0]
    assert [(one["attempt"], one["failed"], one["calls"]) for one in stage["visits"][0]["attempts"]] == [
        (1, True, 2),
        (2, False, 1),
    ]
    assert stage["visits"][0]["attempts"][0]["code"] == "validation.payload"
    assert [(call["outcome"], call["attempt_failed"]) for call in report["model_calls"]] == [
        ("stop", True),
        ("failed", True),
        ("stop", False),
    ]
    assert (report["model_calls"][0]["first_token_ms"], report["model_calls"][0]["total_ms"]) == (3, 7)
    assert report["tools"] == [{"tool": "fs_read", "calls": 2, "succeeded": 1, "failed": 1, "duration_ms": 4}]
    for group in ("stages", "roles", "personas", "models"):
        assert sum(row["usage"]["total_tokens"] for row in report[group]) == 110
        assert sum(row["calls"] for row in report[group]) == 3


def test_a_roll_up_that_is_not_the_sum_is_seen() -> None:
    log = Log().visit("a").asked("c").answered("c", {"inputTokens": 1, "outputTokens": 1})
    log.add("harness.session.completed", {"role_call_id": "role_1"}, usage={"inputTokens": 2, "outputTokens": 1})
    assert report_document(log.events, "s")["roll_ups"]["equal"] is False


def test_a_call_without_an_end_is_open_and_what_it_used_is_unknown() -> None:
    report = report_document(Log().visit("a").asked("c").events, "s")
    assert (report["calls"], report["unknown_calls"], report["failed_calls"]) == (1, 1, 0)
    assert (report["model_calls"][0]["outcome"], report["model_calls"][0]["usage"]) == ("open", None)
    for row in (report, *report["stages"], *report["roles"], *report["personas"], *report["models"]):
        assert row["usage"]["known"] is False


def test_an_empty_log_has_an_empty_report() -> None:
    report = report_document([], "s")
    assert (report["calls"], report["seconds"], report["stages"]) == (0, 0.0, [])


# -- transitions, artifacts ---


def test_moves_carry_rule_values_reasons_and_the_rejected_output() -> None:
    log = Log().visit("build").add("artifact.proposed", output_ref=SHA).retried(2, reason="no JSON")
    log.add("stage.skipped", stage="build", visit_id="stg_build0", reason="gave up")
    log.taken("build", "check", 'artifact.status == "success"', artifact={"status": "success"})
    retry, skip, move = transition_items(log.events)
    assert (retry["kind"], retry["from"], retry["attempt"], retry["reason"], retry["output_ref"]) == (
        "retry",
        "build",
        2,
        "no JSON",
        SHA,
    )
    assert (skip["kind"], skip["to"], skip["reason"]) == ("skip", None, "gave up")
    assert (move["from"], move["to"], move["rule"], move["values"]) == (
        "build", "check", 'artifact.status == "success"', {"artifact": {"status": "success"}},
    )  # fmt: skip


def test_artifacts_say_which_attempt_made_them() -> None:
    log = (
        Log()
        .visit("build")
        .retried(2)
        .add("artifact.accepted", artifact_id="art_1", type="text", status="partial", body_ref=SHA)
    )
    (item,) = artifact_items(log.events)
    assert (item["ref"], item["stage"], item["attempt"], item["status"]) == (
        f"artifact://sha256-{SHA}",
        "build",
        2,
        "partial",
    )


@pytest.mark.parametrize(
    "text", ["", SHA, "artifact://", f"artifact://sha256-{SHA[:-1]}", f"artifact://sha256-{'G' * 64}", f"file://{SHA}"]
)
def test_what_is_no_reference_has_no_digest(text: str) -> None:
    assert digest_of_ref(text) is None
    assert digest_of_ref(artifact_ref(SHA)) == SHA


# -- approvals ---


def _asked(log: Log, name: str) -> Log:
    return log.add(
        "approval.requested", approval_id=name, subject="tool", name="net", tier="T3", args={"x": 1}, digest=SHA,
        rule="policies.yaml:3:5", visit_id="stg", persona="p",
    )  # fmt: skip


def test_approvals_wait_until_answered_and_grants_last_until_the_session_ends() -> None:
    log = _asked(_asked(Log().visit("a"), "appr_1"), "appr_2")
    assert [item["id"] for item in approval_items(log.events, "s")] == ["appr_1", "appr_2"]
    log.add("approval.granted", approval_id="appr_1", digest=SHA, by="ann", kind="person", scope="session", say="go")
    assert [item["id"] for item in approval_items(log.events, "s")] == ["appr_2"]
    (grant,) = grant_items(log.events, "s")
    assert (grant["name"], grant["tier"], grant["by"], grant["active"]) == ("net", "T3", "ann", True)
    log.add("session.cancelled", reason="operator")
    assert approval_items(log.events, "s") == []
    history = approval_items(log.events, "s", history=True)
    assert [item["status"] for item in history] == ["granted", "closed"]
    assert history[0]["answer"]["say"] == "go"
    assert grant_items(log.events, "s")[0]["active"] is False


def test_an_effect_is_in_doubt_until_it_is_settled() -> None:
    log = Log().visit("a").add("harness.tool_call.started", callId="c", toolName="net", args={"x": 1}, tier="T3")
    log.add("effect.in_doubt", effect_id="eff_1", role_call_id="r", call_id="c", tool_name="net", args_digest=SHA)
    (item,) = doubt_items(log.events, "s")
    assert (item["id"], item["args"], item["tier"], item["stage"]) == ("eff_1", {"x": 1}, "T3", "a")
    log.add("effect.settled", effect_id="eff_1", outcome="happened", by="ann", kind="person")
    assert doubt_items(log.events, "s") == []


# -- timeline, events ---


def test_the_timeline_says_attempts_escapes_and_marks_what_it_does_not_know() -> None:
    log = Log().visit("a").retried(2, reason="\x1b[31mred\nline").add("space.opened", x=1).add("config.loaded")
    lines = timeline(log.events)
    assert [(line.seq, line.mark) for line in lines] == [(1, "."), (2, "-"), (3, ".")]
    assert "attempt 1 of 2 failed: \\x1b[31mred\\nline" in lines[1].text
    assert "space.opened (unknown" in lines[2].text


@pytest.mark.parametrize(("count", "said"), [(0, "0 items"), (1, "1 item"), (2, "2 items, 3 left out")])
def test_the_timeline_counts_what_a_model_is_given(count: int, said: str) -> None:
    left_out = 3 if count == 2 else 0
    log = Log().visit("a")
    log.add("context.assembled", tokens=1, budget_tokens=9, items=count, left_out=left_out)
    assert timeline(log.events)[-1].text.endswith(f"context 1/9 tokens, {said}")


def test_a_chain_of_causes_ends_at_the_command_and_survives_a_circle() -> None:
    documents: list[dict[str, Any]] = [
        {"id": "a", "causation_id": None, "correlation_id": "a"},
        {"id": "b", "causation_id": "a", "correlation_id": "a"},
        {"id": "c", "causation_id": "d", "correlation_id": "a"},
        {"id": "d", "causation_id": "c", "correlation_id": "a"},
    ]
    assert [one["id"] for one in causes(documents, "b")] == ["b", "a"]
    assert [one["id"] for one in causes(documents, "c")] == ["c", "d", "a"]
    with pytest.raises(NotFound):
        causes(documents, "e")


def test_events_are_filtered_by_globs_and_category() -> None:
    document = {"type": "validation.failed", "category": "domain"}
    table = {
        ("*", None): True,
        ("validation.*", None): True,
        ("tool.*, validation.f*", "domain"): True,
        ("validation.*", "tool"): False,
        ("Validation.*", None): False,
        ("", None): False,
    }
    assert {key: keeps(*key)(document) for key in table} == table
