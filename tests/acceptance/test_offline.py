"""Without any network the command finishes a job on a local model, in a process that could not leave the machine."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_core import Host
from harness_hookspecs.contracts.distribution import make_distribution
from tests.reference import HARNESS, one_stage, payloads, write_site

MODELS = Path(__file__).parents[2] / "plugins" / "harness-provider-local" / "tests" / "conftest.py"

# Read by every Python below it: whatever is no local socket is refused, and leaves a line.
NO_NETWORK = """
import os, socket

def refuse(*arguments, **more):
    with open(os.environ["NETWORK_FILE"], "a", encoding="utf-8") as file:
        file.write(f"{arguments}\\n")
    raise OSError("there is no network")

connect = socket.socket.connect
socket.socket.connect = lambda one, to: connect(one, to) if one.family == socket.AF_UNIX else refuse(to)
socket.getaddrinfo = socket.create_connection = refuse
with open(os.environ["NETWORK_FILE"], "a", encoding="utf-8") as file:
    file.write("")
"""

NOTE = """
from harness_hookspecs import hooks
from harness_hookspecs.artifact import ParsedArtifact
from harness_hookspecs.markers import implements
from harness_hookspecs.offer import Offer

SCHEMA = {"type": "object", "properties": {"note": {"type": "string", "maxLength": 8}}, "required": ["note"],
          "additionalProperties": False}

class Note:
    name = "acme.Note"
    validators = ()

    def schema(self):
        return SCHEMA

    def parse(self, output):
        return ParsedArtifact(output, "success")

@implements(hooks.harness_provide_artifacts)
def harness_provide_artifacts():
    return [Offer(kind="artifact", name="acme.Note", build=lambda settings, host: Note())]
"""


def write_model(path: Path) -> None:
    """Write the tiny model that the local provider is tested with; its weights are random."""
    spec = importlib.util.spec_from_file_location("tiny_model", MODELS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write_model(path)


def without_network() -> Sequence[str]:
    """The words by which the system itself takes the network away, where a person may ask for that."""
    words = ["unshare", "--user", "--map-root-user", "--net"]
    if shutil.which(words[0]) and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
        return words
    print("no network namespace here: only Python's own sockets are closed")
    return []


@pytest.mark.req("B-03")
def test_a_run_on_a_local_model_completes_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp", reason="the local provider's engine is not installed")
    make_distribution(
        tmp_path / "site", "acme-note", provides=[{"kind": "artifact", "name": "acme.Note"}], code=NOTE
    )
    (tmp_path / "site" / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    write_model(tmp_path / "tiny.gguf")
    entry = {"provider": "local", "path": str(tmp_path / "tiny.gguf"), "context_size": 4096}
    models: dict[str, Any] = {"models": {"tiny": entry}}
    root = tmp_path / "person"
    root.mkdir()
    stages = one_stage(allowed_tools=[], artifact="acme.Note")
    site = write_site(root, stages=stages, replies=[], models=models).enter(monkeypatch)
    tried = tmp_path / "tried"
    paths = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*without_network(), *HARNESS, "run", "Go.", "--json"], cwd=site.project, capture_output=True, text=True,
        env=site.process_env(PYTHONPATH=paths, NETWORK_FILE=str(tried)), stdin=subprocess.DEVNULL, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "completed"
    assert tried.read_text(encoding="utf-8") == ""  # it was closed, and nobody knocked
    with Host.open(site.project) as host:
        [called] = payloads(host.events("@last"), "harness.model.called")
    assert called["request"]["model"]["provider"] == "local"
