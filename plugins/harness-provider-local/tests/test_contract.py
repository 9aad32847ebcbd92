"""The local provider keeps what every provider promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.provider import ProviderContract, ask
from harness_hookspecs.provider import ModelRequest, Provider
from harness_provider_local.provider import build
from harness_provider_local.settings import LocalModelSettings


@pytest.mark.req("B-08")
class TestLocal(ProviderContract):
    """The suite over the tiny model."""

    @pytest.fixture(autouse=True)
    def _model(self, model_file: Path) -> None:
        self.model_file = model_file

    def subject(self) -> Provider:
        host: Any = self.host
        return build(LocalModelSettings(path=str(self.model_file), context_size=512), host)

    def failing_question(self) -> ModelRequest | None:
        return ask("word " * 500)
