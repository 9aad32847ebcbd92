"""Whatever bytes come, a reader gives a value or an error of ours, soon, and what it gave it would give again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from harness_core.kernel.inbox import is_command
from harness_core.shell.posting import said
from harness_core.shell.schemas import schema_findings
from harness_core.shell.yaml_nodes import read_yaml
from harness_hookspecs.errors import HarnessError
from harness_hookspecs.events import EVENTS, check_payload
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.framer import Frame, Framer
from harness_hookspecs.messages import ChatInput, OracleResponse
from harness_hookspecs.store import Posted
from harness_hookspecs.workflow import Workflow
from harness_rules_cel.rules import CelRules
from tests.fuzz.mutation import mutated

TESTS = Path(__file__).parents[1]
CASES = TESTS / "cases"
SECONDS = 60.0 if os.environ.get("HARNESS_TEST_PROFILE") == "deep" else 1.0
HANG_SECONDS = 1.0  # of processor time, so that no neighbour is taken for a hang

LINES = [
    line
    for name in ("json_borders", "runtime", "config")
    for line in (CASES / f"{name}.jsonl").read_bytes().split(b"\n")
]
WORKFLOWS = [(CASES / "lwir" / name).read_bytes() for name in sorted(os.listdir(CASES / "lwir")) if name[0].isdigit()]
CONFIG = [
    path.read_bytes()
    for path in (TESTS.parent / "harness_core" / "shell" / "config" / "templates").iterdir()
    if path.suffix == ".yaml"
]
EXPRESSIONS = [
    b"artifact.status == 'success'", b"artifact.body.risks.size() > 3 && visits < 2", b"'x' in artifact.body.files",
    b"artifact.body.items.exists(i, i.size > 3 ? true : false)", b"has(artifact.body.note) || attempt >= 1.5",
    b"artifact.body.text.matches('^a+$')", b"{'a': [1, 2, -3]}.a[0] + int('7') == 8",
]  # fmt: skip
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["path"],
    "properties": {
        "path": {"type": "string", "maxLength": 20}, "lines": {"type": "array", "items": {"type": "integer"}},
    },
}  # fmt: skip
ARGUMENTS = [b'{"path": "a.txt", "lines": [1, 2]}', b'{"path": "", "lines": []}', b'{"path": 1, "more": null}']
VALUES: Mapping[str, Any] = {
    "artifact": {"status": "success", "body": {"risks": [], "files": ["x"], "items": [{"size": 4}], "text": "aaa"}},
    "visits": 1,
    "attempt": 1,
}


def _json(data: bytes) -> bool:
    value = codec.loads(data)
    return bool(codec.loads(codec.dumps(value)) == value)


def _frames(data: bytes, chance: Random) -> bool:
    framer = Framer(max_line_bytes=4096)
    found = []
    at = 0
    while at < len(data):
        size = chance.choice((1, 7, 64, 4096))
        found += framer.feed(data[at : at + size])
        at += size
    found += framer.close()
    assert len(found) <= data.count(b"\n") + 1
    values = [frame.value for frame in found if isinstance(frame, Frame)]
    assert all(_json(codec.dumps(value)) for value in values)
    return len(values) == len(found)


def _reply(data: bytes) -> bool:
    value, _ = codec.lenient_object(data.decode("utf-8", "surrogateescape"))
    return codec.lenient_object(codec.dumps(value).decode()) == (value, ())


def _model(model: Any, data: bytes) -> bool:
    value = model.from_json_bytes(data)
    return bool(model.from_json_bytes(value.to_json_bytes()) == value)


def _payload(data: bytes, chance: Random) -> bool:
    payload = codec.loads(data)
    if isinstance(payload, dict):
        check_payload(chance.choice(sorted(EVENTS)), payload)
    return isinstance(payload, dict)


def _inbox(data: bytes) -> bool:
    kind, body = said(Posted("session", "command", data, None))
    return is_command(kind, body) and bool(codec.dumps(body))


def _arguments(data: bytes) -> bool:
    findings = schema_findings(SCHEMA, codec.loads(data))
    return bool(codec.dumps(findings)) and not findings


def _yaml(data: bytes) -> bool:
    return read_yaml(data, "f.yaml") == read_yaml(data, "f.yaml")


def _expression(rules: CelRules, data: bytes) -> bool:
    program = rules.compile(data.decode("utf-8", "replace"), roots=sorted(VALUES))
    return rules.condition(program, VALUES) is rules.condition(program, VALUES)


class Target(NamedTuple):
    """What is fed, and with what it began."""

    corpus: Sequence[bytes]
    read: Callable[[bytes, Random], bool]  # whether it was taken, to its end, and would be again
    may_refuse_by_saying: bool = False  # and not only by an error


def _alone(read: Callable[[bytes], bool]) -> Callable[[bytes, Random], bool]:
    return lambda data, chance: read(data)


TARGETS = {
    "JSON": Target([*LINES, *WORKFLOWS], _alone(_json)),
    "JSONL frames": Target(LINES, _frames, True),
    "replies of a model": Target([*LINES, b'<think>so</think>```json\n{"a": 1}\n```'], _alone(_reply)),
    "arguments of a tool call": Target(ARGUMENTS, _alone(_arguments), True),
    "YAML": Target(CONFIG, _alone(_yaml)),
    "expressions": Target(EXPRESSIONS, _alone(partial(_expression, CelRules()))),
    "workflows": Target(WORKFLOWS, _alone(partial(_model, Workflow))),
    "answers of a provider": Target(
        [b'{"content":[{"type":"text","text":"x"}],"finishReason":"stop","usage":{"inputTokens":1,"known":true}}'],
        _alone(partial(_model, OracleResponse)),
    ),
    "questions to a model": Target(
        [b'{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":["a_b"],"temperature":0.5}'],
        _alone(partial(_model, ChatInput)),
    ),
    "payloads of events": Target(
        [b'{"effect_id":"eff_1","reason":"late"}', b'{"callId":"c","turn":1,"error":{"name":"E","message":"m"}}'],
        _payload,
        True,
    ),
    "rows of the inbox": Target(
        [b'{"kind":"answer","body":{"approval_id":"a","decision":"approve","digest":"0","by":"me","kind":"person"}}'],
        _alone(_inbox),
        True,
    ),
}


def _fed(target: Target, chance: Random) -> Iterator[bytes]:
    yield from target.corpus  # as they are, so that the right way is taken too
    until = time.process_time() + SECONDS
    while time.process_time() < until:
        yield mutated(target.corpus, chance)


@pytest.mark.gate("G7")
@pytest.mark.inv("I-8", "I-25", "I-32")
@pytest.mark.parametrize("name", TARGETS)
def test_no_bytes_break_a_reader_or_hold_it_up(name: str, record_property: Any) -> None:
    seed = int.from_bytes(os.urandom(4))
    chance, target = Random(seed), TARGETS[name]
    outcomes = {"read": 0, "refused": 0}
    for data in _fed(target, chance):
        begin = time.process_time()
        try:
            taken = target.read(data, chance)
            assert taken or target.may_refuse_by_saying, "what was read is not read alike again"
            outcomes["read" if taken else "refused"] += 1
        except HarnessError:
            outcomes["refused"] += 1
        except BaseException as error:
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error} from {data[:2000]!r}")
        assert time.process_time() - begin < HANG_SECONDS, f"seed {seed}: {data[:2000]!r}"
    assert min(outcomes.values()) > 0, outcomes  # both ways were taken
    record_property("targets", 1)
    record_property("inputs", sum(outcomes.values()))
