"""A model with random weights, held to the schema of sketches by the local provider, writes sketches that compile."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from harness_executor_workflow.compiling.compiler import WorkflowCompiler
from harness_hookspecs import Message, ModelRequest
from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.messages import TextPart
from harness_hookspecs.provider import CallContext
from tests.compiling.there import PLANS, definition, surroundings

TINY = Path(__file__).parents[2] / "plugins/harness-provider-local/tests/conftest.py"
COMPILER = WorkflowCompiler()
WHERE = {
    "a ticket": surroundings(definition=definition(PLANS["1"])),
    "all tools": surroundings(),
}


def tiny(folder: Path) -> str:
    """The weights that the local provider is tested with: every text is about as likely as any other."""
    spec = importlib.util.spec_from_file_location("tiny_model", TINY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.write_model(folder / "tiny.gguf"))


def test_a_model_without_any_sense_writes_sketches_that_compile(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the local provider's engine is not installed")
    from harness_provider_local.provider import build
    from harness_provider_local.settings import LocalModelSettings

    host: Any = FakeHost(tmp_path, entry_name="tiny")
    provider = build(LocalModelSettings(path=tiny(tmp_path), context_size=8192), host)
    told = [Message(role="user", content=(TextPart(text="Plan it."),))]
    try:
        for name, where in WHERE.items():
            for seed in range(3):
                params = {"max_output_tokens": 6000, "seed": seed, "temperature": 0.8}
                schema = COMPILER.sketch_schema(where)
                request = ModelRequest("tiny", told, params=params, response_schema=schema)
                answer = provider.complete(request, CallContext(host.ports.wait.token(), lambda chunk: None))
                assert answer.finish_reason == "stop", (name, seed)
                assert COMPILER.expand(answer.text, where).ok, (name, seed, answer.text)
    finally:
        provider.close()
