"""What tests that only look at a session share: one that has run to its end, made once a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness_core.cli.main import main
from tests.reference import REFERENCE, Site, write_reference


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The reference session, run to its end: an approval bypassed, a provider that failed once, two artifacts."""
    with pytest.MonkeyPatch.context() as patch:
        site = write_reference(tmp_path_factory.mktemp("done")).enter(patch)
        assert main(["run", REFERENCE, "--yolo", "--json"]) == 0
        yield site
