from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from harness_tool_effects import harness_provide_tools
from harness_tool_effects.settings import EffectsSettings
from harness_tool_effects.tool import EffectsTools, build

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.contracts.tool import ToolContract
from harness_hookspecs.errors import Cancelled, ConfigError
from harness_hookspecs.tool import ToolContext


def lines(folder: Path) -> list[dict[str, Any]]:
    file = folder / "effects.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class TestEffects(ToolContract):
    set_name = "effects"

    def subject(self) -> EffectsTools:
        return build(EffectsSettings(file=str(self.folder / "effects.jsonl")), self.host)

    def calls(self) -> Mapping[str, Mapping[str, Any]]:
        special: dict[str, dict[str, Any]] = {
            "fail": {"how": "never"},
            "big": {"size_bytes": 100},
            "slow": {"seconds": 0},
        }
        names = ("pure", "keyed", "unkeyed", "network", "destroy", *special)
        return {f"effects_{name}": special.get(name, {"note": name}) for name in names}

    def impossible_calls(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [("effects_fail", {}), ("effects_fail", {"how": "refused"})]

    def world(self) -> list[dict[str, Any]]:
        """The lines of pure tools are witnesses, no effects."""
        return [line for line in lines(self.folder) if line["tool"] not in {"effects_pure", "effects_big"}]


def test_the_file_is_named_by_settings_or_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [offer] = harness_provide_tools()
    assert offer.settings is not None
    written = resources.files("harness_tool_effects").joinpath("settings.json").read_text()
    assert json.loads(written) == offer.settings().model_json_schema()
    monkeypatch.delenv("HARNESS_EFFECTS_FILE", raising=False)
    host = FakeHost(tmp_path)
    with pytest.raises(ConfigError):
        offer.build(offer.settings()(), host)
    monkeypatch.setenv("HARNESS_EFFECTS_FILE", str(tmp_path / "effects.jsonl"))
    tools = offer.build(offer.settings()(), host)
    tools.execute("effects_pure", {"note": "ü"}, ToolContext(host.ports.wait.token(), host.ports, "k", 1.0))
    [line] = lines(tmp_path)
    assert (line["tool"], line["key"], line["args"]) == ("effects_pure", "k", {"note": "ü"})


def test_a_slow_call_leaves_its_line_before_it_is_cancelled_or_never(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    tools = build(EffectsSettings(file=str(tmp_path / "effects.jsonl")), host)
    for line, count in (("after", 0), ("before", 1)):
        token = host.ports.wait.token()

        class Clock:
            def sleep(self, seconds: float, cancel: Any = None, token: Any = token) -> None:
                token.cancel("stop")
                cancel.raise_if_cancelled()

        host.ports.clock = Clock()  # type: ignore[assignment]
        with pytest.raises(Cancelled):
            tools.execute("effects_slow", {"line": line}, ToolContext(token, host.ports, "k", 1.0))
        assert len(lines(tmp_path)) == count


def test_a_crash_is_no_error_of_the_contract(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    tools = build(EffectsSettings(file=str(tmp_path / "effects.jsonl")), host)
    with pytest.raises(RuntimeError):
        tools.execute("effects_fail", {"how": "crash"}, ToolContext(host.ports.wait.token(), host.ports, "k", 1.0))
