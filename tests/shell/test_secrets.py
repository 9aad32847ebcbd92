"""What refers to a secret is read when a host opens, ordinary text never; what cannot be read is passed over there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_core.settings.models import ModelsSettings
from harness_core.shell.host import Host
from harness_core.shell.kind_hosts import PartHost, register_secrets, resolve_secret
from harness_core.shell.ports import HostPorts
from harness_core.shell.redaction import MARK, Redactor
from harness_hookspecs.errors import ConfigError, HarnessError, Refused
from harness_hookspecs.host import Ports
from tests.reference import one_stage, says, trust, write_site

SECRET = "correct-horse-battery"

UNREADABLE: Mapping[str, tuple[str, type[Exception]]] = {
    "a user that is not there": ("file:~nosuchuser/x", ConfigError),
    "a file that is not text": ("file:bad.bin", ConfigError),
    "a name with a NUL": ("file:nul\0x", ConfigError),
    "links in a circle": ("file:circle/x", HarnessError),  # who sees it first depends on Python's version
    "a folder": ("file:folder", Refused),
    "a file that is not there": ("file:none", ConfigError),
    "a variable that is not text": ("env:BAD_TEXT", ConfigError),
    "a variable that is not there": ("env:NOT_SET_ANYWHERE", ConfigError),
}


@pytest.fixture
def ports(threads: HostPorts) -> Ports:
    return threads


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder and an environment with whatever a reference can lead to."""
    (tmp_path / "bad.bin").write_bytes(b"horse-battery-\xff")
    (tmp_path / "key").write_text(f"{SECRET}\n")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("BAD_TEXT", "horse-battery-\udcff")
    return tmp_path


class NoCatalogue:
    """Of an installation without plugins."""

    def manifest_schemas(self) -> dict[Any, Any]:
        return {}


NOTHING: Any = NoCatalogue()


def entries(**own: Any) -> ModelsSettings:
    return ModelsSettings.model_validate({"models": {"one": {"provider": "p", **own}}})


@pytest.mark.inv("I-29")
@pytest.mark.parametrize(("reference", "error"), UNREADABLE.values(), ids=list(UNREADABLE))
def test_a_reference_that_cannot_be_read_is_an_error_for_who_asks_and_stops_no_other_secret(
    place: Path, ports: Ports, reference: str, error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        resolve_secret(reference, ports, place)
    assert "battery" not in str(raised.value)
    redactor = Redactor()
    register_secrets(redactor, NOTHING, entries(bad=reference, keys=["file:key"]), ports, place)
    assert redactor.text(f"use {SECRET}") == f"use {MARK}"


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("value", ["file:my key", {"deep": ["file:my key"]}])
def test_a_secret_is_known_wherever_it_stands_among_a_providers_keys_and_whatever_its_file_is_called(
    place: Path, ports: Ports, value: Any
) -> None:
    (place / "my key").write_text(SECRET)
    redactor = Redactor()
    register_secrets(redactor, NOTHING, entries(key=value), ports, place)
    assert redactor.text(SECRET) == MARK


@pytest.mark.inv("I-29")
def test_what_a_manifest_says_a_key_is_without_an_entry_refers_to_a_secret_too(place: Path, ports: Ports) -> None:
    class Catalogue:
        def manifest_schemas(self) -> dict[Any, Any]:
            keys = {"key": {"type": "string", "default": "file:key"}, "plain": True}
            return {("provider", "p"): {"type": "object", "properties": keys}}

    known, own, catalogue = Redactor(), Redactor(), Catalogue()
    register_secrets(known, catalogue, entries(), ports, place)  # type: ignore[arg-type]
    register_secrets(own, catalogue, entries(key="plain text"), ports, place)  # type: ignore[arg-type]
    assert (known.text(SECRET), own.text(SECRET)) == (MARK, SECRET)


@pytest.mark.inv("I-29")
def test_what_the_settings_of_a_role_refer_to_is_known_and_those_of_other_kinds_refer_to_nothing(
    place: Path, ports: Ports
) -> None:
    class Catalogue:
        def manifest_schemas(self) -> dict[Any, Any]:
            return {("role", "far"): None, ("validator", "near"): None}

    settings, catalogue = {"far": {"headers": {"X": "file:key"}}, "near": {"key": "file:other"}}, Catalogue()
    (place / "other").write_text("another-secret")
    redactor = Redactor()
    register_secrets(redactor, catalogue, entries(), ports, place, settings=settings)  # type: ignore[arg-type]
    assert redactor.text(f"{SECRET} another-secret") == f"{MARK} another-secret"


@pytest.mark.parametrize("text", ["env:WORD", "file:~nosuchuser/x", "file:word"])
def test_ordinary_text_that_looks_like_a_reference_is_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    site = write_site(tmp_path, stages=one_stage(task=text), replies=[says("yes")]).enter(monkeypatch)
    monkeypatch.setenv("WORD", SECRET)
    (site.project / "word").write_text(SECRET)
    with Host.open(None) as host:
        assert host.run(f"say {SECRET}")["title"] == f"say {SECRET}"


@pytest.mark.inv("I-29")
def test_of_a_project_that_is_not_trusted_no_secret_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = write_site(tmp_path, stages=one_stage(task="file:word"), replies=[says("yes")]).enter(monkeypatch)
    with_key = '{"default": "one", "models": {"one": {"provider": "nobody-has-it", "key": "file:KEY"}}}'
    (site.project / ".harness/models.yaml").write_text(with_key.replace("KEY", "key"))
    remote = '{"plugins": {"settings": {"remote": {"url": "https://acme.example/", "bearer": "env:ACME_TOKEN"}}}}'
    (site.project / ".harness/harness.yaml").write_text(remote)
    asked: list[str] = []

    def seen(reference: str, *_: Any) -> str:
        asked.append(reference)
        return SECRET

    monkeypatch.setattr("harness_core.shell.kind_hosts.resolve_secret", seen)
    Host.open(None).close()
    assert asked == []
    trust(site)
    Host.open(None).close()
    assert asked == ["file:key", "env:ACME_TOKEN"]


@pytest.mark.inv("I-29")
@pytest.mark.parametrize("written", [SECRET, f"sk:{SECRET}", f"{SECRET}:", f"Env:{SECRET}"])
@pytest.mark.parametrize("kind", ["provider", "role", "tool"])
def test_a_secret_written_where_a_reference_belongs_is_in_no_error_and_redacted_from_then_on(
    place: Path, ports: Ports, written: str, kind: str
) -> None:
    redactor = Redactor()
    host = PartHost(ports, place, place, place, kind, "one", None, redactor, NOTHING, NOTHING)
    with pytest.raises(HarnessError) as raised:
        host.secret(written)
    assert "battery" not in f"{raised.value!r} {raised.value} {raised.value.hint}"
    if kind != "tool":
        place_of = {"provider": "models.one", "role": "plugins.settings.one"}
        assert (raised.value.code, raised.value.where) == ("secret.reference", place_of[kind])
        assert redactor.text(f"the key {written}") == f"the key {MARK}"
