"""Layers laid over each other: typed by the schema, merged by leaf, each leaf with its place, all problems at once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.settings import FILES
from harness_core.shell.config.effective import EffectiveConfig
from harness_core.shell.config.load import effective_config
from harness_core.shell.config.sources import Source, Sources
from harness_hookspecs.errors import ConfigError, NotFound

CASES = {
    case["id"]: case
    for case in map(json.loads, (Path(__file__).parents[1] / "cases" / "config.jsonl").read_text("utf-8").splitlines())
}
SCRIPTED = {
    "type": "object",
    "properties": {"script": {"type": "string"}, "speed": {"type": "integer", "default": 3, "maximum": 9}},
    "required": ["script"],
    "additionalProperties": False,
}
FREE = {
    "type": "object",
    "properties": {"values": {}, "words": {"type": "object", "additionalProperties": {"type": "string"}}},
}
LOCAL = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "gpu": {"type": "object"}, "kv_cache": {"type": "object"}},
}
SCHEMAS: dict[tuple[str, str], Mapping[str, Any] | None] = {
    ("provider", "scripted"): SCRIPTED,
    ("provider", "local"): LOCAL,
    ("tool", "probe"): FREE,
    ("role", "acme"): FREE,
    ("store", "sqlite"): {"type": "object", "properties": {"path": {"type": "string"}}},
    ("store", "memory"): None,
}


def make(
    project: Mapping[str, str] | None = None,
    user: Mapping[str, str] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> EffectiveConfig:
    files = [Source("user", name, f"~/{name}.yaml", text.encode()) for name, text in (user or {}).items()]
    files += [Source("project", name, f"{name}.yaml", text.encode()) for name, text in (project or {}).items()]
    return effective_config(Sources(tuple(files), env or {}, flags or {}), schemas=SCHEMAS)


def problems(*args: Any, **kwargs: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(ConfigError) as caught:
        make(*args, **kwargs)
    return [(one["code"], one["where"], one["path"]) for one in caught.value.facts["problems"]]


# ------------------------------------------------------------------------------------------------ typing


@pytest.mark.parametrize(
    "written", ["NO", "on", "1.10", "12:30:45", "0123", "3.0", "2024-01-01", "1e3", "0x1F", "true"]
)
def test_where_a_text_is_wanted_it_is_kept_as_written(written: str) -> None:
    found = make({"harness": f"project: {written}", "tools": f"tools: {{probe: {{words: {{{written}: {written}}}}}}}"})
    assert found.harness.project == written
    assert found.tools.tools["probe"].own == {"words": {written: written}}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12", 12),
        ("012", "012"),
        ("1.10", "1.10"),
        ("0.5", 0.5),
        ("12:30", "12:30"),
        ("NO", "NO"),
        ("true", True),
        ('"12"', "12"),
        ("9007199254740993", "9007199254740993"),
    ],
)
def test_where_anything_may_stand_only_what_is_spelt_like_json_is_a_number(written: str, value: object) -> None:
    assert make({"tools": f"tools: {{probe: {{values: {written}}}}}"}).tools.tools["probe"].own == {"values": value}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('run: {max_depth: "3"}', "remove the quotes"),
        ("run: {max_depth: 03}", "write it without leading zeros and underscores, below 2^53"),
        ("run: {max_depth: [3]}", None),
        ("project: [a]", "put the text in quotes"),
        ("run: {on_ask: asks}", 'did you mean "ask"?'),
        ("plugins: {disable: acme}", "write [acme]"),
        ("run: {tool_timeout_sec: .inf}", None),
        ("run: 3", None),
    ],
)
def test_a_value_of_another_type_is_an_error_that_says_what_to_write(line: str, hint: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        make({"harness": line})
    [problem] = caught.value.facts["problems"]
    assert (problem["code"], problem["hint"]) == ("config.type", hint)
    assert problem["where"].startswith("harness.yaml:1:")


@pytest.mark.parametrize("written", ["yes", "True"])
def test_truth_is_written_true_or_false(written: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make({"tools": f"tools: {{filesystem: {{enabled: {written}}}}}"})
    [problem] = caught.value.facts["problems"]
    assert (problem["code"], problem["hint"]) == ("config.type", "write true")


def test_a_list_item_that_is_null_is_an_error() -> None:
    assert problems({"harness": "plugins: {disable: [a, null]}"}) == [
        ("config.type", "harness.yaml:1:24", "plugins.disable[1]")
    ]


def test_a_key_without_a_value_is_unset_and_warned_about() -> None:
    found = make({"harness": "project: #name"})
    assert found.harness.project is None
    assert [(one.code, one.where) for one in found.warnings] == [("config.empty", "harness.yaml:1:9")]


def test_all_problems_of_all_files_are_told_at_once() -> None:
    found = problems(
        {
            "harness": "run: {max_depth: 99, max_visits: x}\nbindd: {}\nmodels: {}\nbind: {walker: x}\n",
            "stages": "stages: {a: {role: x, on_success: b}, retry: {role: x}}\n",
            "models": "models: {m: {provider: scripted, sript: x}}\nroutes: {coding: n}\n",
            "tools": "a: b: c\n",
        },
        {"policies": "tiers: {T2: maybe}\n"},
    )
    assert found == [
        ("config.invalid", "harness.yaml:1:18", "run.max_depth"),
        ("config.type", "harness.yaml:1:34", "run.max_visits"),
        ("config.unknown_key", "harness.yaml:2:1", "bindd"),
        ("config.unknown_key", "harness.yaml:3:1", "models"),
        ("config.invalid", "harness.yaml:4:16", "bind.walker"),
        ("config.unknown_key", "models.yaml:1:34", "models.m.sript"),
        ("config.invalid", "stages.yaml:1:46", "stages.retry"),
        ("config.yaml", "tools.yaml:1:5", ""),
        ("config.type", "~/policies.yaml:1:13", "tiers.T2"),
    ]


@pytest.mark.parametrize("bytes_of", ["harness", "stages", "models"])
@settings(max_examples=40, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.text(alphabet="stagemodl:{}[]'\"-<*&x \n", max_size=60).map(str.encode)))
def test_any_bytes_in_any_file_end_in_a_configuration_or_in_our_own_error(bytes_of: str, data: bytes) -> None:
    with contextlib.suppress(ConfigError):
        effective_config(Sources((Source("project", bytes_of, "f.yaml", data),)), schemas=SCHEMAS)


# ---------------------------------------------------------------------------------------------- layering


def test_a_small_project_file_leaves_the_rest_of_the_user_s_alone() -> None:
    assert "Only that leaf changes" in CASES["BR-081"]["right"]
    user = {"harness": "run: {max_depth: 1, max_turns: 2, max_visits: 3}"}
    run = make({"harness": "run: {max_turns: 9}"}, user).harness.run
    assert (run.max_depth, run.max_turns, run.max_visits) == (1, 9, 3)


def test_lists_replace_and_an_empty_mapping_adds_nothing() -> None:
    user = {"policies": "providers: {deny: [a, b]}", "models": "models: {u: {provider: local}}"}
    found = make({"policies": "providers: {deny: [c]}", "models": "models: {}"}, user)
    assert found.policies.providers.deny == ("c",)
    assert list(found.models.models) == ["u"]


def test_null_takes_back_a_leaf_an_entry_or_a_whole_mapping() -> None:
    user = {
        "harness": "project: mine\nrun: {max_depth: 1}",
        "models": "models: {a: {provider: local}, b: {provider: local}}",
    }
    found = make({"harness": "project: null\nrun: ~", "models": "models: {a: null}"}, user)
    assert found.harness.project is None
    assert found.harness.run.max_depth == 3
    assert list(found.models.models) == ["b"]


def test_a_plugin_s_default_stands_below_the_files_and_comes_back_with_null() -> None:
    user = {"models": "models: {m: {provider: scripted, script: a, speed: 5}}"}
    assert make(user).models.models["m"].own["speed"] == 5
    found = make({"models": "models: {m: {speed: null}}"}, user)
    assert found.models.models["m"].own["speed"] == 3
    assert found.origin("models.m.speed").text() == "provider scripted"


LEVELS = ("user", "project", "environment", "flag")
VALUES = st.dictionaries(st.sampled_from(LEVELS), st.integers(1, 16), max_size=4)


@settings(max_examples=60, deadline=None)
@given(depth=VALUES, turns=VALUES)
def test_the_highest_layer_that_speaks_wins_leaf_by_leaf(depth: dict[str, int], turns: dict[str, int]) -> None:
    said = {"max_depth": depth, "max_turns": turns}

    def text(level: str) -> dict[str, str]:
        lines = [f"  {key}: {values[level]}\n" for key, values in said.items() if level in values]
        return {"harness": "run:\n" + "".join(lines)} if lines else {}

    found = make(
        text("project"),
        text("user"),
        env={
            f"HARNESS__RUN__{key.upper()}": str(values["environment"])
            for key, values in said.items()
            if "environment" in values
        },
        flags={f"run.{key}": values["flag"] for key, values in said.items() if "flag" in values},
    )
    for key, values in said.items():
        winner = next((level for level in reversed(LEVELS) if level in values), None)
        default = {"max_depth": 3, "max_turns": 25}[key]
        assert getattr(found.harness.run, key) == (values[winner] if winner else default)
        assert found.origin(f"run.{key}").layer == (winner or "built-in")


def test_the_configuration_is_a_function_of_its_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"harness": "run: {max_depth: 2}", "stages": "stages: {s: {role: NO, on_success: end}}"}
    first = make(files)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    monkeypatch.setenv("HARNESS__RUN__MAX_DEPTH", "9")  # only what is declared as an input counts
    again = make(files)
    assert again.document() == first.document()
    assert make({**files, "harness": "# moved\nrun:\n  max_depth: 2"}).digest == first.digest
    assert make({**files, "harness": "run: {max_depth: 1}"}).digest != first.digest


# ------------------------------------------------------------------------------------ environment, flags


def test_variables_and_flags_reach_every_kind_of_key() -> None:
    found = make(
        {"models": "models: {qwen-14b: {provider: local}}", "stages": "stages: {s: {role: x, on_success: end}}"},
        env={
            "HARNESS__MODELS__QWEN_14B__CONTEXT_SIZE": "99",
            "HARNESS__MODELS__FRESH__PROVIDER": "scripted",
            "HARNESS__MODELS__FRESH__SCRIPT": "a b.yaml",
            "HARNESS__TIERS__T2": "deny",
            "HARNESS__BIND__WORKER_CODE_RUN": "acme",
            "HARNESS__STORE__PLUGIN": "memory",
        },
        flags={
            "bind.worker.tool-call": "acme",
            'bind."fixer@coder"': "acme",
            "stages.s.allowed_tools": "[a, b]",
            "approver": ["x"],
        },
    )
    assert found.models.models["qwen-14b"].context_size == 99
    assert found.models.models["fresh"].own["script"] == "a b.yaml"
    assert found.policies.tiers.T2 == "deny"
    assert found.harness.bind == {"worker.code-run": "acme", "worker.tool-call": "acme", "fixer@coder": "acme"}
    assert found.stages.stages["s"].allowed_tools == ("a", "b")
    assert found.policies.approver == ("x",)
    assert found.harness.store.plugin == "memory"
    assert found.origin("tiers.T2").text() == "HARNESS__TIERS__T2"
    assert found.origin('bind."worker.tool-call"').text() == "--set bind.worker.tool-call"


@pytest.mark.parametrize(
    ("env", "flags", "code"),
    [
        ({"HARNESS__RUM__MAX_DEPTH": "1"}, {}, "config.unknown_key"),
        ({"HARNESS__RUN__MAX_DEPHT": "1"}, {}, "config.unknown_key"),
        ({"HARNESS__RUN____": "1"}, {}, "config.path"),
        ({"HARNESS__RUN__MAX_DEPTH": "one"}, {}, "config.type"),
        ({"HARNESS__RUN__MAX_DEPTH": "1", "HARNESS__run__max_depth": "2"}, {}, "config.duplicate_key"),
        ({}, {"run.": "1"}, "config.path"),
        ({}, {"run.max_depth": "[1"}, "config.yaml"),
        ({}, {"stages.s.retry.max_attemps": "1"}, "config.unknown_key"),
    ],
)
def test_a_wrong_variable_or_flag_is_an_error_that_names_it(
    env: dict[str, str], flags: dict[str, str], code: str
) -> None:
    [(found, where, _)] = problems({"stages": "stages: {s: {role: x, on_success: end}}"}, env=env, flags=flags)
    assert found == code
    assert where.startswith(("HARNESS__", "--set"))


def test_an_empty_variable_is_an_empty_text_and_null_unsets() -> None:
    user = {"harness": "project: mine\nrun: {max_depth: 1}"}
    assert make({}, user, env={"HARNESS__RUN__MAX_DEPTH": "null"}).harness.run.max_depth == 3
    assert problems({}, user, env={"HARNESS__PROJECT": ""}) == [("config.invalid", "HARNESS__PROJECT", "project")]


# ---------------------------------------------------------------------------------------- plugins' keys


def test_a_plugin_s_own_keys_are_checked_against_its_manifest() -> None:
    text = "models:\n  m: {provider: scripted, speed: 12}\n"
    assert problems({"models": text}) == [
        ("config.invalid", "models.yaml:2:6", "models.m"),
        ("config.invalid", "models.yaml:2:34", "models.m.speed"),
    ]
    assert problems({"harness": "store: {plugin: memory, path: x}"}) == [
        ("config.unknown_key", "harness.yaml:1:25", "store.path")
    ]
    assert problems({"harness": "plugins: {settings: {acme: {valeus: 1}}}"})[0][0] == "config.unknown_key"


def test_a_key_of_an_offer_that_declares_no_settings_says_where_they_would_be_declared() -> None:
    with pytest.raises(ConfigError) as caught:
        make({"harness": "store: {plugin: memory, path: x}"})
    assert caught.value.facts["problems"][0]["hint"] == (
        'store "memory" declares no settings of its own (config in its manifest)'
    )


def test_the_choice_may_stand_in_another_layer_than_its_keys() -> None:
    found = make({"models": "models: {m: {script: a}}"}, {"models": "models: {m: {provider: scripted}}"})
    assert found.models.models["m"].own == {"script": "a", "speed": 3}


def test_keys_that_nothing_here_knows_are_warned_about_and_kept() -> None:
    found = make({"models": "models: {m: {provider: acme, depth: 010}}"})
    assert found.models.models["m"].own == {"depth": "010"}
    assert [(one.code, one.path) for one in found.warnings] == [("config.no_schema", "models.m.depth")]


def test_a_key_that_means_nothing_to_the_provider_is_warned_about() -> None:
    remote = "r: {provider: scripted, gpu: {layers: 1}, capabilities: [coding], script: a}"
    found = make({"models": f"models:\n  {remote}\n  l: {{provider: local, gpu: {{layers: 1}}}}\n"})
    assert [(one.code, one.path, one.where) for one in found.warnings] == [
        ("config.no_meaning", "models.r.gpu", "models.yaml:2:32")
    ]


def test_an_offer_gets_its_own_keys_and_those_of_the_core_that_it_names() -> None:
    entry = "{provider: local, path: w.gguf, context_size: 99, gpu: {layers: 2}, kv_cache: {quantization: q8_0}}"
    found = make({"models": f"models: {{m: {entry}}}", "harness": "store: {path: x}"})
    assert found.settings_for("provider", "m", LOCAL) == {
        "path": "w.gguf",
        "gpu": {"layers": 2, "residency": "dynamic", "swap_timeout_sec": 120.0},
        "kv_cache": {"quantization": "q8_0"},
    }
    assert found.settings_for("store", "sqlite", SCHEMAS["store", "sqlite"]) == {"path": "x"}
    assert found.settings_for("role", "acme", FREE) == {}


# -------------------------------------------------------------------------- what a session keeps, explain


def test_a_session_s_document_gives_the_same_configuration_back() -> None:
    found = make(
        {"stages": "stages:\n  s:\n    role: x\n    transitions:\n      - {when: 'true', goto: [end]}\n"},
        {"models": "models: {m: {provider: acme, own: 1}}", "policies": "rules:\n  - {tool: x, mode: deny}\n"},
        flags={"run.max_depth": 1},
    )
    document = json.loads(json.dumps(found.document()))
    again = EffectiveConfig.from_document(document)
    assert (again.six, again.digest, again.document()) == (found.six, found.digest, document)
    assert again.origin("rules[0]").text() == "~/policies.yaml:2:5"
    assert again.origin("stages.s.transitions[0].goto").text() == "stages.yaml:5:30"
    assert again.origin("run.max_turns").layer == "built-in"


def test_a_setting_that_came_later_is_kept_only_where_it_is_set() -> None:
    bare, anchored = make(), make({}, {"harness": "anchor: file:heads"})
    assert not {"anchor", "engine"} & bare.document()["settings"]["harness"].keys()
    assert bare.six.document()["harness"]["anchor"] is None
    assert anchored.digest != bare.digest
    assert EffectiveConfig.from_document(anchored.document()).harness.anchor == "file:heads"
    assert EffectiveConfig.from_document(bare.document()).harness.anchor is None


def test_a_kept_document_that_was_changed_is_refused() -> None:
    document = make().document()
    document["settings"]["harness"]["run"]["max_depth"] = 9
    with pytest.raises(ConfigError, match="digest"):
        EffectiveConfig.from_document(document)
    with pytest.raises(ConfigError, match="cannot be read"):
        EffectiveConfig.from_document({"settings": {}})


def test_explain_tells_every_layer_the_winner_and_why_the_others_lose() -> None:
    found = make(
        {"harness": "run: {max_depth: 2}"},
        {"harness": "run: {max_depth: 1, max_turns: 4}"},
        flags={"run.max_turns": "null"},
    )
    [depth] = found.explain("run.max_depth")
    assert depth.value == 2
    assert [(voice.layer, voice.value, voice.wins, voice.reason) for voice in depth.voices] == [
        ("flag", None, False, "not set"),
        ("environment", None, False, "not set"),
        ("project", 2, True, ""),
        ("user", 1, False, "lower layer"),
        ("plugin", None, False, "not set"),
        ("built-in", None, False, "not set"),
    ]
    assert depth.voices[1].where == "HARNESS__RUN__MAX_DEPTH"
    [turns] = found.explain("run.max_turns")
    assert (turns.value, turns.voices[-1].wins) == (25, True)
    assert turns.voices[3].reason == "taken back by --set run.max_turns"


def test_explain_takes_a_mapping_a_list_item_and_no_typo() -> None:
    found = make({"policies": "rules:\n  - {tool: x, mode: deny}\n"})
    assert [one.path for one in found.explain("providers")] == ["providers.deny"]
    [rule] = found.explain("rules[0].mode")
    assert (rule.value, rule.voices[2].where, rule.voices[2].wins) == ("deny", "policies.yaml:2:21", True)
    with pytest.raises(NotFound) as caught:
        found.explain("tiers.TT2")
    assert caught.value.hint == 'did you mean "T2"?'


def test_a_rule_that_does_not_compile_is_an_error_at_its_place() -> None:
    rules = "    transitions:\n      - {when: artifact.statuz, goto: end}\n    on_failure: failed\n"
    text = f"stages:\n  s:\n    role: x\n{rules}"
    sources = Sources((Source("project", "stages", "stages.yaml", text.encode()),))
    with pytest.raises(ConfigError) as caught:
        effective_config(sources, schemas={}, check_rule=lambda when: "no statuz" if "statuz" in when else None)
    assert (caught.value.code, caught.value.where) == ("config.rule", "stages.yaml:5:9")
    assert "no statuz" in caught.value.message


def test_the_six_files_share_one_namespace_without_a_clash() -> None:
    from harness_core.shell.config.core_shapes import file_shapes

    names = [name for file in FILES for name in file_shapes()[file].property_names()]
    assert len(names) == len(set(names))
