"""``harness models``: lists load nothing, ps shows what lives, probe asks the model itself."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from harness_core.cli.main import main
from harness_hookspecs import Message, ModelRequest, ProviderError
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.messages import TextPart
from harness_hookspecs.provider import CallContext, Chunk
from tests.reference import write_reference

PLUGIN = Path(__file__).parents[2] / "plugins" / "harness-provider-local"
MODELS = """
models:
  tiny: {{provider: local, path: {path}, capabilities: [coding], context_size: 512, threads: 1,
         kv_cache: {{quantization: q8_0}}}}
  lost: {{provider: local, path: /nowhere/at/all.gguf}}
  elsewhere: {{provider: nobody_has_this}}
default: tiny
"""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The local provider's own model with random weights."""
    spec = importlib.util.spec_from_file_location("tiny_models", PLUGIN / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path: Path = module.write_model(tmp_path_factory.mktemp("weights") / "tiny.gguf")
    return path


@pytest.fixture
def project(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's configuration with three models, and the local provider installed."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    config = tmp_path / "config" / "harness"
    config.mkdir(parents=True)
    (config / "models.yaml").write_text(MODELS.format(path=tiny), encoding="utf-8")
    _install(tmp_path / "site", monkeypatch)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the plugin runs from its folder, give it the metadata that an installation would have."""
    try:
        metadata.distribution("harness-provider-local")
    except metadata.PackageNotFoundError:
        info = site / "harness_provider_local-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: harness-provider-local\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text(
            "[harness.plugins]\nprovider-local = harness_provider_local\n"
            "[harness.manifest]\nprovider-local = harness_provider_local\n"
        )
        monkeypatch.syspath_prepend(str(site))


@pytest.fixture
def harness(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command and gives its document."""

    def run(*arguments: str, exit_code: int = 0) -> Any:
        capsys.readouterr()
        assert main([*arguments, "--json"]) == exit_code
        return json.loads(capsys.readouterr().out)

    return run


def test_models_are_listed_without_loading_anything(
    harness: Callable[..., Any], tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)  # another test may have needed it
    document = harness("models")
    assert document["schema"] == "harness.models/1"
    rows = {item["name"]: item for item in document["items"]}
    assert list(rows) == ["elsewhere", "lost", "tiny"]
    assert (rows["tiny"]["plugin"], rows["tiny"]["path"]) == ("provider-local", str(tiny))
    assert [name for name, row in rows.items() if row["default"]] == ["tiny"]
    assert (rows["tiny"]["capabilities"], rows["tiny"]["context_tokens"]) == (["coding"], 512)
    assert rows["elsewhere"]["plugin"] is None
    assert "nobody_has_this" in rows["elsewhere"]["reason"]
    assert "xllamacpp" not in sys.modules
    assert harness("models", "ps")["items"] == []


@pytest.mark.req("B-30", "B-32")
def test_a_probe_tells_what_the_model_has(harness: Callable[..., Any]) -> None:
    document = harness("models", "probe", "tiny")
    assert document["context_tokens"] == 512
    assert (document["detail"]["type_k"], document["detail"]["type_v"]) == ("q8_0", "q8_0")
    assert document["detail"]["settings"]["threads"] == document["detail"]["threads"] == 1
    assert document["supports_schema"] is True
    assert harness("models", "ps")["items"] == []  # the probe's worker has ended with it


def test_a_probe_that_cannot_succeed_says_why(harness: Callable[..., Any]) -> None:
    assert harness("models", "probe", "tinny", exit_code=4)["hint"] == 'did you mean "tiny"?'
    failed = harness("models", "probe", "lost", exit_code=13)
    assert (failed["code"], failed["facts"]["reason"]) == ("provider.model_file", "missing")
    assert "/nowhere/at/all.gguf" in failed["message"]


class Generation:
    """A long answer that is being generated on a thread of its own."""

    def __init__(self, provider: Any, host: FakeHost) -> None:
        self.started = threading.Event()
        self.error: ProviderError | None = None
        self._call = CallContext(host.ports.wait.token(), self._hear)
        self._provider = provider
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _hear(self, chunk: Chunk) -> None:
        self.started.set()

    def _run(self) -> None:
        endless = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 15_000}
        message = Message(role="user", content=(TextPart(text="hi"),))
        try:
            self._provider.complete(ModelRequest("tiny", [message], response_schema=endless), self._call)
        except ProviderError as error:
            self.error = error


@pytest.fixture
def provider(project: Path, tmp_path: Path, tiny: Path) -> Iterator[tuple[Any, FakeHost]]:
    """A provider as a running session has it."""
    from harness_provider_local.provider import build
    from harness_provider_local.settings import LocalModelSettings

    host = FakeHost(tmp_path / "host", entry_name="tiny")
    host.state_dir = tmp_path / "state" / "harness"
    built = build(LocalModelSettings(path=str(tiny), context_size=32_768), host)
    yield built, host
    built.close()


@pytest.mark.req("B-37", "B-42")
def test_the_pid_that_is_listed_is_the_one_that_generates(
    harness: Callable[..., Any], provider: tuple[Any, FakeHost], tiny: Path
) -> None:
    generation = Generation(*provider)
    assert generation.started.wait(30)
    [worker] = harness("models", "ps")["items"]
    assert (worker["model"], worker["backend"], worker["state"]) == ("tiny", "xllamacpp", "busy")
    assert (worker["path"], worker["memory_bytes"] > 1_000_000) == (str(tiny), True)
    os.kill(worker["pid"], signal.SIGKILL)
    generation.thread.join(5)
    assert generation.error is not None
    assert (generation.error.code, generation.error.facts["returncode"]) == ("provider.worker_died", -signal.SIGKILL)
    assert harness("models", "ps")["items"] == []


def test_a_provider_that_cannot_be_asked_is_no_model_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_reference(tmp_path).enter(monkeypatch)
    assert main(["models", "probe", "scripted"]) == 1
    assert capsys.readouterr().err.splitlines()[1:] == ["  harness models shows what its entry says of it"]


def test_people_read_tables(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    shown = capsys.readouterr()
    assert "tiny *" in shown.out
    assert "nobody_has_this (!)" in shown.out
    assert main(["models", "ps"]) == 0
    assert capsys.readouterr().out == "no model is loaded\n"
