"""A fork is a new session that goes on from an event of another one, under other settings; that one stays as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from harness_core import Host
from harness_core.shell.answering import Answered
from harness_hookspecs.errors import ConfigError, HarnessError, NotFound, StoreError
from harness_hookspecs.kit.codec import dumps
from harness_hookspecs.store import Draft
from tests.reference import calls, one_stage, payloads, says, trust, types_of

FLOW: Mapping[str, Any] = {
    "initial": "draft",
    "stages": {
        "draft": {"role": "writer", "task": "Draft it.", "allowed_tools": ["effects"], "on_success": "review"},
        "review": {
            "role": "reviewer",
            "task": "Review it.",
            "context": {"sources": [{"kind": "artifact", "stage": "draft"}]},
            "transitions": [{"when": "visit.index >= 1", "goto": "publish"}, {"when": "true", "goto": "draft"}],
        },
        "publish": {"role": "writer", "task": "Publish it.", "on_success": "completed"},
    },
}
REPLIES = (
    calls(("keyed", {"note": "k"}), ("unkeyed", {"note": "u"}), when={"stage": "draft", "turn": 1}),
    says("A draft.", when={"stage": "draft"}),
    says("Fine.", when={"stage": "review"}),
    says("Out.", when={"stage": "publish"}),
)
OTHER = {"schema": "harness.script/1", "replies": [says("Other words.")]}
MODES: tuple[Mapping[str, Any], ...] = (
    {"mode": "full"},
    {"mode": "partial", "until": 9},
    {"mode": "cursor", "first": 5},
    {"mode": "skip-inference"},
    {"mode": "simulate"},
)


def models() -> dict[str, Any]:
    """A second model, which says something else."""
    entry = {"provider": "scripted", "capabilities": ["tool_calling"], "context_size": 32768}
    scripts = {"scripted": "script.yaml", "other": "other.yaml"}
    return {"default": "scripted", "models": {name: {**entry, "script": file} for name, file in scripts.items()}}


@pytest.fixture
def done(play: Any) -> Any:
    """A session that is over: draft, review, draft, review, publish."""
    session = play(*REPLIES, stages=FLOW, models=models())
    (session.site.project / "other.yaml").write_text(json.dumps(OTHER), encoding="utf-8")
    assert session.run()["status"] == "completed"
    return session


def log(session: Any, session_id: str) -> list[Any]:
    """All of a session's events, to the byte."""
    return list(session.host.events(session_id))


def seq_of(session: Any, session_id: str, kind: str, nth: int = 0) -> int:
    """The seq of the nth event of a type."""
    return int([event.seq for event in log(session, session_id) if event.type == kind][nth])


def forked(session: Any, session_id: str) -> Any:
    """What a fork says of where it comes from."""
    [found] = payloads(log(session, session_id), "session.forked")
    return found


def stages(session: Any, session_id: str) -> list[tuple[str, int, str]]:
    """The stages a session entered itself, each with its visit and its model."""
    entered = payloads(log(session, session_id), "stage.entered")
    return [(one["stage"], one["visit_index"], one["model"]) for one in entered]


def texts(session: Any, document: Any) -> list[str]:
    """What the artifacts of a session say."""
    return [json.loads(session.host.artifact(ref))["text"] for ref in document["artifacts"]]


# -------------------------------------------------------------------------------------------------- what a fork is


def test_a_fork_goes_on_from_an_early_event_with_another_model_to_its_own_end(done: Any) -> None:
    parent = done.host.session("@last")
    before, effects = log(done, parent["id"]), done.effects()
    at = seq_of(done, parent["id"], "transition.taken")
    done.reopen(overrides={"default": "other"})
    fork = done.host.fork(parent["id"], at)
    assert (fork["status"], fork["parent_id"]) == ("completed", parent["id"])
    assert stages(done, fork["id"]) == [
        ("review", 0, "other"), ("draft", 1, "other"), ("review", 1, "other"), ("publish", 0, "other"),
    ]  # fmt: skip
    assert texts(done, fork) == ["A draft.", *["Other words."] * 4]
    assert len(payloads(log(done, fork["id"]), "harness.model.called")) == 4
    assert done.effects() == effects, "what was done before the fork is not done again"
    assert log(done, parent["id"]) == before
    assert done.host.session(parent["id"]) == parent


def test_a_fork_says_which_event_it_goes_on_from_and_what_is_otherwise(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    border = seq_of(done, parent, "stage.left")
    done.reopen(overrides={"default": "other"})
    amid = seq_of(done, parent, "harness.model.responded", 2)
    fork = done.host.fork(parent, amid)["id"]
    told = forked(done, fork)
    stands_at = log(done, parent)[border - 1]
    assert (told["parent_id"], told["seq"], told["asked_seq"]) == (parent, border, amid)
    assert (told["hash"], told["target"], told["visits"]) == (stands_at.hash.hex(), "review", {"draft": 1})
    assert [one["key"] for one in told["changes"]] == ["models.default"]
    assert types_of(log(done, fork))[:5] == [
        "session.created", "config.loaded", "session.forked", "session.started", "stage.entered",
    ]  # fmt: skip


def test_a_setting_of_one_role_changes_that_role_alone(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    done.reopen(overrides={"roles.reviewer.model": "other"})
    fork = done.host.fork(parent, 1)["id"]
    assert stages(done, fork) == [
        ("draft", 0, "scripted"), ("review", 0, "other"), ("draft", 1, "scripted"), ("review", 1, "other"),
        ("publish", 0, "scripted"),
    ]  # fmt: skip


def test_every_event_of_a_session_can_be_forked_at_and_the_fork_stands_between_stages(done: Any) -> None:
    parent = done.host.session("@last")
    entered = [event.seq for event in log(done, parent["id"]) if event.type == "stage.entered"]
    left = [event.seq for event in log(done, parent["id"]) if event.type == "transition.taken"]
    for at in range(1, parent["last_seq"] + 1, 3):
        fork = done.host.fork(parent["id"], at)
        assert fork["status"] == "completed"
        done_before = [seq for seq in left[:-1] if seq <= at]
        assert len(stages(done, fork["id"])) == len(entered) - len(done_before)
        assert max(done_before, default=min(at, 3)) <= forked(done, fork["id"])["seq"] <= at
        assert done.host.verify(fork["id"])["equal"]


def test_a_fork_of_a_session_that_failed_on_its_settings_completes_under_others(play: Any) -> None:
    session = play(*REPLIES, stages=FLOW, models=models(), harness={"run": {"max_visits": 3}})
    failed = session.run()
    assert failed["failure"]["code"] == "limits.max_visits"
    session.reopen(overrides={"run.max_visits": 9})
    fork = session.host.fork(failed["id"], failed["last_seq"])
    assert fork["status"] == "completed"
    assert [stage for stage, _, _ in stages(session, fork["id"])] == ["review", "publish"]


def test_a_fork_counts_what_it_uses_itself_and_keeps_limits_seed_and_text(done: Any) -> None:
    at = seq_of(done, "@last", "transition.taken", 2)
    parent = done.host.run("Go on.", budget={"tokens": 5000}, seed=7)
    fork = done.host.fork(parent["id"], at)
    assert fork["status"] == "completed"
    assert fork["usage"]["input_tokens"] < parent["usage"]["input_tokens"]
    [of_parent], [of_fork] = (payloads(log(done, one["id"]), "session.created") for one in (parent, fork))
    names = ("title", "text_ref", "seed", "budget", "on_ask")
    assert [of_fork[name] for name in names] == [of_parent[name] for name in names]
    other = done.host.fork(parent["id"], at, budget={"calls": 1})
    assert [one["kind"] for one in other["waiting"]] == ["budget"]


# ------------------------------------------------------------------------------------------ nothing happens twice


def test_effects_of_a_stage_that_begins_anew_have_identities_of_their_own(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    done.host.fork(parent, seq_of(done, parent, "harness.tool_call.succeeded"))
    keys = [line["key"] for line in done.site.effects()]
    assert len(keys) == len(set(keys)) == 8  # two stages with two effects each, twice


ASKS: Mapping[str, Any] = {
    "initial": "first",
    "stages": {
        "first": {"role": "worker", "task": "Plan.", "on_success": "work"},
        "work": {"role": "worker", "task": "Do it.", "allowed_tools": ["effects"], "on_success": "completed"},
    },
}
ASKING = (
    says("A plan.", when={"stage": "first"}),
    calls(("network", {"note": "n"}), when={"stage": "work", "turn": 1}),
    says("Done.", when={"stage": "work"}),
)


@pytest.mark.inv("I-23")
def test_an_approval_of_the_parent_open_or_granted_lets_nothing_happen_in_the_fork(play: Any) -> None:
    session = play(*ASKING, stages=ASKS)
    parent = session.run()
    [asked] = session.pending()
    early = session.host.fork(parent["id"], parent["last_seq"], on_ask="suspend")
    questions = {one["session_id"]: one for one in session.pending()}
    assert early["status"] == "awaiting_approval"
    assert questions[early["id"]]["digest"] != asked["digest"]
    assert isinstance(session.answer(asked, "auto_session"), Answered)
    assert session.host.resume(parent["id"])["status"] == "completed"
    assert session.effects() == ["n"]
    late = session.host.fork(parent["id"], session.host.session(parent["id"])["last_seq"], on_ask="suspend")
    assert late["status"] == "awaiting_approval", "a grant holds for the session it was given to"
    assert session.effects() == ["n"]


def test_an_effect_in_doubt_stays_so_in_the_parent_and_holds_up_no_fork(play: Any) -> None:
    tools = {"tools": {"effects": {"probes": False}}}
    session = play(calls(("unkeyed", {"note": "u"})), says("Done."), stages=one_stage(), tools=tools)
    session.run_until_it_breaks("effect.done@2")
    session.reopen()
    parent = session.resume()
    [doubt] = parent["waiting"]
    fork = session.host.fork(parent["id"], parent["last_seq"])
    assert (doubt["kind"], fork["status"], fork["waiting"]) == ("in_doubt", "completed", [])
    assert session.host.session(parent["id"]) == parent
    [first, second] = [line["key"] for line in session.site.effects()]
    assert first == doubt["id"] != second, "what the fork does is an effect of its own"


def test_yolo_is_given_to_one_session_and_not_to_its_forks(play: Any) -> None:
    session = play(*ASKING, stages=ASKS)
    parent = session.run(yolo="on")
    assert (parent["status"], session.effects()) == ("completed", ["n"])
    assert session.host.fork(parent["id"], parent["last_seq"])["status"] == "awaiting_approval"
    assert session.host.fork(parent["id"], parent["last_seq"], yolo="on")["status"] == "completed"


# ---------------------------------------------------------------------------------------- forks are whole sessions


@pytest.mark.req("B-04", "B-93", "B-94", "B-95", "B-96", "B-97")
def test_a_fork_and_a_fork_of_it_verify_and_come_out_the_same_in_all_five_modes(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    done.reopen(overrides={"default": "other"})
    first = done.host.fork(parent, seq_of(done, parent, "stage.left", 1))["id"]
    second = done.host.fork(first, seq_of(done, first, "harness.model.called", 1))["id"]
    assert forked(done, second)["visits"] == {"draft": 2, "review": 1}
    for one in (first, second):
        verified = done.host.verify(one)
        assert (verified["equal"], verified["broken"]) == (True, [])
        for options in MODES:
            report = done.host.replay(one, **options)
            equal = None if "until" in options else True  # what is kept to compare with is of the end
            assert (report["equal"], report["diverged"], options) == (equal, None, options)


@pytest.mark.req("B-98")
def test_a_fork_is_shown_as_of_any_event_with_what_it_brought_along(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    fork = done.host.fork(parent, seq_of(done, parent, "stage.left", 1))["id"]
    shown = [done.host.session(fork, at=seq) for seq in range(1, 6)]
    assert [one["status"] for one in shown] == ["created"] * 3 + ["active"] * 2
    assert [len(one["artifacts"]) for one in shown] == [0, 0, 2, 2, 2]
    assert [one["parent_id"] for one in shown] == [None, None, parent, parent, parent]
    items = done.host.artifacts(fork)
    assert [(one["stage"], one["visit"]) for one in items[:2]] == [("draft", 0), ("review", 0)]
    assert {one["seq"] for one in items[:2]} == {3}
    assert list(done.host.session(fork)["artifacts"]) == [one["ref"] for one in items]


def test_a_session_that_runs_is_forked_and_goes_on_undisturbed(play: Any) -> None:
    slow = calls(("slow", {"note": "s", "seconds": 0.5}), when={"stage": "work", "turn": 1})
    session = play(ASKING[0], slow, ASKING[2], stages=ASKS)
    parent = session.host.start("Go.")
    session.until("harness.tool_call.started")
    [fork, other] = (session.host.fork(parent, at, wait=False)["id"] for at in (1, len(log(session, parent))))
    for one in (other, fork, parent):
        assert session.host.wait(one)["status"] == "completed"
        assert session.host.verify(one)["equal"]
        assert session.host.replay(one, "simulate")["equal"]
    assert [stage for stage, _, _ in stages(session, other)] == ["work"]
    assert len(session.effects()) == 3


def test_a_fork_that_stopped_is_resumed_like_any_session(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_FAILPOINT", "intent.committed:raise")
        done.reopen()
        with pytest.raises(HarnessError):
            done.host.fork(parent, seq_of(done, parent, "stage.left"))
    done.reopen()
    fork = done.host.session("@last")
    assert (fork["parent_id"], fork["status"]) == (parent, "active")
    assert done.host.resume(fork["id"])["status"] == "completed"
    assert done.host.replay(fork["id"], "simulate")["equal"]


@pytest.mark.inv("I-7")
def test_a_parent_with_another_event_where_the_fork_began_is_found(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    fork = done.host.fork(parent, seq_of(done, parent, "stage.left"))["id"]
    assert done.host.verify(fork)["equal"]
    [created, *_], store = log(done, fork), done.host.store
    assert created.seq == 1

    class Changed:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def read(self, stream: str, **bounds: Any) -> Any:
            found = store.read(stream, **bounds)
            return (one._replace(hash=bytes(32)) for one in found) if parent in stream else found

    done.host._store = Changed()
    [broken] = done.host.verify(fork)["broken"]
    assert (broken["invariant"], broken["seq"], broken["code"]) == ("I-7", 3, "store.changed")
    done.host._store = store


@pytest.mark.req("B-92")
@pytest.mark.inv("I-11")
def test_what_a_newer_version_says_of_a_fork_is_passed_over(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    fork = "01990000-0000-7000-8000-000000000009"
    created, loaded, *_ = (Draft(*event[3:10])._replace(id=f"n{event.seq}") for event in log(done, parent))
    forked = created._replace(id="n3", type="session.forked", version=2, payload=b'{"parents":[]}')
    summary = dumps({**done.host.session(parent), "id": fork, "parent_id": parent})
    done.host.store.append(f"session:{fork}", [created, loaded, forked], expected_seq=0, summary=summary)
    found = done.host.verify(fork)
    assert [one["forked_at"] for one in done.host.tree(fork)["items"]] == [None, None]
    assert (found["broken"], found["unknown_seq"]) == ([], 3)


# ------------------------------------------------------------------------------------------------------- the tree


def test_the_tree_shows_the_whole_family_from_any_member(done: Any) -> None:
    parent = done.host.session("@last")["id"]
    alone = done.host.run("Something else.")["id"]
    first = done.host.fork(parent, 30)["id"]
    second = done.host.fork(parent, 10)["id"]
    below = done.host.fork(first, 8)["id"]
    for member in (parent, first, second, below):
        tree = done.host.tree(member)
        assert (tree["schema"], tree["session_id"]) == ("harness.tree/1", member)
        found = [(one["id"], one["parent_id"], one["depth"]) for one in tree["items"]]
        assert found == [(parent, None, 0), (first, parent, 1), (below, first, 2), (second, parent, 1)]
        assert [one["forked_at"] for one in tree["items"]] == [
            None, *(forked(done, one)["seq"] for one in (first, below, second)),
        ]  # fmt: skip
    assert [one["id"] for one in done.host.tree(alone)["items"]] == [alone]


# ----------------------------------------------------------------------------------------------------- bad inputs


@pytest.mark.parametrize("at", [0, -1, 10**6, 2**80, True, "3", None], ids=repr)
def test_an_event_that_is_not_there_begins_no_fork(done: Any, at: Any) -> None:
    with pytest.raises(NotFound) as caught:
        done.host.fork("@last", at)
    assert caught.value.code == "event.not_found"
    assert len(done.host.sessions()) == 1


def test_a_session_with_events_of_a_newer_version_is_not_forked_behind_them(done: Any) -> None:
    parent, store = done.host.session("@last"), done.host.store
    drafts = [Draft(f"{one.id[:-1]}x", *one[4:10]) for one in log(done, parent["id"])[:3]]
    newer = drafts[-1]._replace(id="newer", type="session.dreamt")
    session_id = f"{parent['id'][:-8]}ffffffff"
    summary = dumps({**dict(parent), "id": session_id, "usage": {}, "artifacts": [], "last_seq": 4})
    store.append(f"session:{session_id}", [*drafts, newer], expected_seq=0, summary=summary)
    with pytest.raises(StoreError) as caught:
        done.host.fork(session_id, 4)
    assert caught.value.code == "store.newer_events"
    assert done.host.fork(session_id, 3)["status"] == "completed"


def test_an_unknown_session_begins_no_fork(done: Any) -> None:
    with pytest.raises(NotFound) as caught:
        done.host.fork("ffffffff", 1)
    assert caught.value.code == "session.not_found"


def test_a_session_of_another_project_is_forked_there_only(play: Any) -> None:
    session = play(says("done"))
    parent = session.run()
    elsewhere = session.site._replace(project=session.site.project.with_name("elsewhere"))
    shutil.copytree(session.site.project, elsewhere.project)
    trust(elsewhere)
    with Host.open(elsewhere.project) as host, pytest.raises(ConfigError) as caught:
        host.fork(parent["id"], 3)
    assert caught.value.code == "session.other_project"
    assert str(session.site.project) in str(caught.value.hint)
