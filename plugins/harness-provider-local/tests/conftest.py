"""A model of 250 KB with random weights, made anew for each test run, and a host to use it with.

The weights are random, so every text is about as likely as any other: whatever keeps such a model to a schema will keep
any model to it. The file is written by hand, because a library for it would be needed for nothing else.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_hookspecs.contracts.host import FakeHost
from harness_hookspecs.provider import CallContext, Chunk

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
EMBEDDING, HEADS, FEED_FORWARD, LAYERS = 64, 2, 128, 2
UINT32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5
F32, F16 = 0, 1
UNKNOWN, CONTROL, NORMAL, BYTE = 2, 3, 1, 6


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def _pair(key: str, kind: int, form: str, value: Any) -> bytes:
    return _text(key) + struct.pack("<I", kind) + (_text(value) if kind == STRING else struct.pack("<" + form, value))


def _list(key: str, kind: int, items: Sequence[bytes]) -> bytes:
    return _text(key) + struct.pack("<IIQ", ARRAY, kind, len(items)) + b"".join(items)


def _vocabulary() -> list[tuple[str, float, int]]:
    """Three special tokens, 256 bytes, the chat markers and printable ASCII: any text can be said."""
    tokens = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    tokens += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    tokens += [("<|im_start|>", 0.0, CONTROL), ("<|im_end|>", 0.0, CONTROL), ("\u2581", -1.0, NORMAL)]
    return tokens + [(chr(code), -2.0 - code * 0.01, NORMAL) for code in range(33, 127)]


def _metadata(tokens: list[tuple[str, float, int]], chat_template: str | None, context: int) -> list[bytes]:
    numbers = {
        "context_length": context, "embedding_length": EMBEDDING, "block_count": LAYERS,
        "feed_forward_length": FEED_FORWARD, "attention.head_count": HEADS, "attention.head_count_kv": HEADS,
        "rope.dimension_count": EMBEDDING // HEADS, "vocab_size": len(tokens),
    }  # fmt: skip
    pairs = [_pair("general.architecture", STRING, "", "llama"), _pair("general.name", STRING, "", "tiny")]
    pairs += [_pair(f"llama.{key}", UINT32, "I", value) for key, value in numbers.items()]
    pairs += [
        _pair("general.file_type", UINT32, "I", F16),
        _pair("llama.attention.layer_norm_rms_epsilon", FLOAT32, "f", 1e-5),
        _pair("tokenizer.ggml.model", STRING, "", "llama"),
        _list("tokenizer.ggml.tokens", STRING, [_text(text) for text, _, _ in tokens]),
        _list("tokenizer.ggml.scores", FLOAT32, [struct.pack("<f", score) for _, score, _ in tokens]),
        _list("tokenizer.ggml.token_type", INT32, [struct.pack("<i", kind) for _, _, kind in tokens]),
        _pair("tokenizer.ggml.bos_token_id", UINT32, "I", 1),
        _pair("tokenizer.ggml.eos_token_id", UINT32, "I", 2),
        _pair("tokenizer.ggml.eot_token_id", UINT32, "I", [text for text, _, _ in tokens].index("<|im_end|>")),
        _pair("tokenizer.ggml.add_bos_token", BOOL, "?", True),
        _pair("tokenizer.ggml.add_space_prefix", BOOL, "?", False),
    ]
    return pairs if chat_template is None else [*pairs, _pair("tokenizer.chat_template", STRING, "", chat_template)]


def _shapes(vocabulary: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "token_embd.weight", (EMBEDDING, vocabulary)
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{norm}.weight", (EMBEDDING,)
        for matrix in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{matrix}.weight", (EMBEDDING, EMBEDDING)
        for matrix in ("ffn_gate", "ffn_up"):
            yield f"blk.{layer}.{matrix}.weight", (EMBEDDING, FEED_FORWARD)
        yield f"blk.{layer}.ffn_down.weight", (FEED_FORWARD, EMBEDDING)
    yield "output_norm.weight", (EMBEDDING,)
    yield "output.weight", (EMBEDDING, vocabulary)


def _weights(shape: tuple[int, ...], chance: random.Random) -> bytes:
    if len(shape) == 1:
        return struct.pack(f"<{shape[0]}f", *[1.0] * shape[0])
    count, scale = shape[0] * shape[1], shape[0] ** -0.5
    return struct.pack(f"<{count}e", *[chance.gauss(0.0, scale) for _ in range(count)])


def write_model(path: Path, *, seed: int = 7, chat_template: str | None = CHATML, context: int = 32_768) -> Path:
    """Write a GGUF file with random weights, the same bytes for the same arguments."""
    tokens, chance = _vocabulary(), random.Random(seed)
    pairs = _metadata(tokens, chat_template, context)
    infos, data = b"", b""
    shapes = list(_shapes(len(tokens)))
    for name, shape in shapes:
        kind = F32 if len(shape) == 1 else F16
        infos += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data))
        data += _weights(shape, chance)
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(pairs)) + b"".join(pairs) + infos
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model."""
    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="session")
def write() -> Callable[..., Path]:
    """Writes a tiny model of one's own."""
    return write_model


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    """A host whose threads, files and processes are real."""
    return FakeHost(tmp_path, entry_name="tiny")


class Caller:
    """One caller: its cancel token and what it heard."""

    def __init__(self, host: FakeHost) -> None:
        self.token = host.ports.wait.token()
        self.chunks: list[Chunk] = []
        self.begun = 0
        self.on_chunk: Callable[[Chunk], None] = lambda chunk: None

    def context(self, deadline_seconds: float | None = None) -> CallContext:
        return CallContext(self.token, self._hear, deadline_seconds, self._begin)

    def _begin(self) -> None:
        self.begun += 1

    def _hear(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.on_chunk(chunk)


@pytest.fixture
def caller(host: FakeHost) -> Caller:
    """A caller of the host."""
    return Caller(host)


@pytest.fixture
def callers(host: FakeHost) -> Callable[[], Caller]:
    """Makes callers."""
    return lambda: Caller(host)
