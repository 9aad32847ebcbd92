"""The real clock and ids, and the failpoints: times are UTC whatever the zone, ids rise and never repeat."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness_core.shell.ports import HostPorts, make_ports
from harness_core.shell.ports.failpoints import ACTIONS, FAILPOINTS, Failpoints
from harness_core.shell.ports.world import timestamp_of
from harness_hookspecs.errors import ConfigError, InternalError

ROOT = Path(__file__).resolve().parents[2]
CASES = {case["id"]: case for case in map(json.loads, (ROOT / "tests/cases/ports.jsonl").read_text().splitlines())}
ZONES = ("UTC", "Asia/Kolkata", "America/New_York", "Pacific/Chatham", "not a zone")
MOMENTS = {
    "the start of the count": datetime(1970, 1, 1, tzinfo=UTC),
    "an hour that New York has not": datetime(2026, 3, 8, 7, 30, 0, 1_000, tzinfo=UTC),
    "an hour that New York has twice": datetime(2026, 11, 1, 5, 30, 0, 999_000, tzinfo=UTC),
    "a leap day": datetime(2028, 2, 29, 23, 59, 59, 500_000, tzinfo=UTC),
}


@pytest.fixture(params=["threads", "inline", "simulated"])
def ports(request: pytest.FixtureRequest) -> Iterator[HostPorts]:
    made = make_ports(request.param)
    yield made
    made.close()


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


# -------------------------------------------------------------------------------------------------------- time


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_stored_time_is_utc_with_milliseconds_in_every_zone(zone: str, moment: datetime) -> None:
    moment_ms = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    text = timestamp_of(moment_ms)
    assert text == f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
    assert datetime.fromisoformat(text) == moment


def test_half_an_hour_is_half_an_hour_in_every_zone(zone: str) -> None:
    """Expiry is measured by the clock that never jumps; across both changes of summer time, restarts in between."""
    case = CASES["BR-101"]
    assert case["invariants"] == ["I-10"]
    for moment in MOMENTS.values():
        left_seconds, shown = 1800.0, moment
        for _ in range(3):  # each with new ports: what outlives a process is the time left, not a time of day
            ports = make_ports("simulated")
            before, wall = ports.clock.monotonic(), ports.clock.now()
            ports.clock.sleep(600)
            left_seconds -= ports.clock.monotonic() - before
            shown += ports.clock.now() - wall
            ports.close()
        assert left_seconds == 0
        assert shown - moment == timedelta(minutes=30)


def test_times_of_all_ports_carry_their_offset_and_whole_milliseconds(ports: HostPorts, zone: str) -> None:
    now = ports.clock.now()
    assert now.utcoffset() == timedelta(0)
    assert now.microsecond % 1000 == 0
    stored = datetime.fromisoformat(ports.clock.timestamp())
    assert timedelta(0) <= stored - now < timedelta(minutes=1)
    assert ports.clock.monotonic() <= ports.clock.monotonic()


def test_the_real_clock_is_the_machines() -> None:
    clock = make_ports("threads").clock
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    assert before <= clock.now() <= datetime.now(UTC)
    assert before <= datetime.fromisoformat(clock.timestamp()) <= datetime.now(UTC)


# --------------------------------------------------------------------------------------------------------- ids


def test_uuids_rise_and_never_repeat_also_over_threads(ports: HostPorts) -> None:
    drawn = [list[str]() for _ in range(4)]

    def draw(mine: list[str]) -> None:
        mine.extend(ports.ids.uuid7() for _ in range(500))

    for task in [ports.spawn(draw, mine) for mine in drawn]:
        task.join()
    everything = [one for mine in drawn for one in mine]
    assert len(set(everything)) == 2_000
    assert all(mine == sorted(mine) for mine in drawn)
    # more than 4096 in one millisecond: the count flows over into the next
    assert all(uuid.UUID(one).version == 7 and uuid.UUID(one).variant == uuid.RFC_4122 for one in everything)
    assert all(one == str(uuid.UUID(one)) for one in everything)


def test_a_uuid_and_a_ulid_begin_with_their_time(ports: HostPorts) -> None:
    now_ms = (ports.clock.now() - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert 0 <= (uuid.UUID(ports.ids.uuid7()).int >> 80) - now_ms < 60_000
    prefix, _, ulid = ports.ids.ulid("call").partition("_")
    assert (prefix, len(ulid)) == ("call", 26)
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    number = sum(digits.index(letter) << 5 * place for place, letter in enumerate(reversed(ulid)))
    assert 0 <= (number >> 80) - now_ms < 60_000
    assert len({ports.ids.ulid("call") for _ in range(1_000)}) == 1_000


def test_uuids_rise_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = make_ports("threads").ids
    first = ids.uuid7()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert ids.uuid7() > first


def test_chance_has_the_length_and_the_range_asked_for(ports: HostPorts) -> None:
    assert [len(ports.random.bytes(count)) for count in (0, 1, 33)] == [0, 1, 33]
    assert ports.random.bytes(16) != ports.random.bytes(16)
    drawn = [ports.random.uniform(2.0, 3.0) for _ in range(200)]
    assert all(2.0 <= one <= 3.0 for one in drawn) and len(set(drawn)) > 100


# -------------------------------------------------------------------------------------------------- failpoints


WRONG = (
    "decide.done", "decide.done:", "decide.done:explode", "decide.done@:kill", "decide.done@0:kill",
    "decide.done@-1:kill", "decide.done@x:kill", "decide.done@\u0663:kill", "no.such.place:kill", ":kill", "@1:kill",
    "decide.done:raise:kill", " decide.done:kill", "decide.done:kill\n", "decide.done@1@2:kill",
)  # fmt: skip


@pytest.mark.parametrize("setting", WRONG)
def test_a_failpoint_of_another_form_is_refused_with_the_names(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_FAILPOINT", setting)
    with pytest.raises(ConfigError, match=r"is not NAME\[@N\]:kill\|raise\|stop") as caught:
        make_ports("threads")
    assert caught.value.code == "failpoint.form"
    assert all(name in (caught.value.hint or "") for name in FAILPOINTS)


@pytest.mark.parametrize("nth", [1, 2, 5])
def test_a_failpoint_acts_at_the_nth_time_once(nth: int, ports: HostPorts) -> None:
    points = Failpoints(f"append.before@{nth}:raise")
    seen = list[int]()
    for count in range(1, 8):
        points.reach("decide.done")
        try:
            points.reach("append.before")
        except InternalError as error:
            seen.append(count)
            assert error.code == "failpoint.raised"  # noqa: PT017 - several times round
    assert seen == [nth]
    assert points.reached == {"decide.done": 7, "append.before": 7}
    ports.reach("append.before")  # without a setting nothing happens
    assert ports.failpoints.reached == {"append.before": 1}


def test_a_failpoint_acts_once_when_many_threads_reach_it() -> None:
    ports, points, raised = make_ports("threads"), Failpoints("append.before@500:raise"), list[str]()

    def reach() -> None:
        for _ in range(250):
            try:
                points.reach("append.before")
            except InternalError as error:
                raised.append(error.code)

    for task in [ports.spawn(reach) for _ in range(4)]:
        task.join()
    ports.close()
    assert raised == ["failpoint.raised"]


def _reaching(action: str) -> subprocess.Popen[str]:
    code = (
        "from harness_core.shell.ports import make_ports\nports = make_ports('threads')\n"
        "for _ in range(3):\n    ports.reach('append.committed')\n    print('after', flush=True)\n"
    )
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "HARNESS_FAILPOINT": f"append.committed@2:{action}",
    }
    return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)


def test_a_failpoint_can_kill_or_stop_the_process() -> None:
    assert ACTIONS == ("kill", "raise", "stop")
    with _reaching("kill") as child:
        assert child.communicate()[0] == "after\n"
        assert child.returncode == -signal.SIGKILL
    with _reaching("stop") as child:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        os.kill(child.pid, signal.SIGCONT)
        assert child.communicate()[0] == "after\n" * 3
        assert child.returncode == 0
