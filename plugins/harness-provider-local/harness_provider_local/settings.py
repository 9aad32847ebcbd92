"""What a model entry with ``provider: local`` may say, checked and frozen."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Gpu", "Inference", "KvCache", "KvType", "Limits", "LocalModelSettings"]

KvType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]

_Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
_Tokens = Annotated[int, Field(ge=1, le=1_000_000_000)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class KvCache(_Settings):
    """How the engine keeps what it has read."""

    quantization: KvType | None = Field(
        None, description="Type of keys and values, f16 when absent; q8_0 takes half the memory and reads more slowly."
    )


class Gpu(_Settings):
    """How the model lives in the memory of a device."""

    layers: Annotated[int, Field(ge=-1, le=100_000)] | None = Field(
        None, description="Layers held on the device; -1 all, 0 or absent none."
    )
    residency: Literal["pinned", "dynamic", "ephemeral"] = Field(
        "dynamic", description="Reserved for swapping; today a model stays loaded until the host closes."
    )
    swap_timeout_sec: _Seconds = Field(
        120.0, description="How long a call may wait for its model to be loaded; then provider.swap_timeout."
    )


class Inference(_Settings):
    """Sampling where the request says nothing."""

    temperature: Annotated[float, Field(ge=0, le=5)] | None = Field(None, description="0 takes the likeliest token.")
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(None, description="Share of the probability used.")
    repeat_penalty: Annotated[float, Field(ge=0, le=5)] | None = Field(None, description="1 is no penalty.")
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = Field(
        None, description="Seed of the sampler; absent: the session's, which the host sends, one higher an attempt."
    )
    max_output_tokens: _Tokens | None = Field(None, description="Tokens of one reply; absent: what the context holds.")


class Limits(_Settings):
    """How much the model is asked to do at once."""

    max_parallel_sessions: Annotated[int, Field(ge=1, le=1024)] = Field(
        1, description="Calls that run at once, each with the whole context_size; further ones wait."
    )


class LocalModelSettings(_Settings):
    """One local model."""

    path: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        description="The GGUF file: absolute, below ~, relative to the project, or pkg:NAME or pkg:NAME/FILE.gguf for "
        "a file inside an installed Python package, which is looked up and never imported."
    )
    backend: Literal["auto", "xllamacpp", "llama_cpp"] = Field(
        "auto", description="The engine; auto takes what is installed. llama_cpp is refused for now."
    )
    context_size: _Tokens = Field(4096, description="Tokens of prompt and reply together; never more than was trained.")
    kv_cache: KvCache = Field(KvCache(), description="How the engine keeps what it has read.")
    gpu: Gpu = Field(Gpu(), description="How the model lives in the memory of a device.")
    inference: Inference = Field(Inference(), description="Sampling where the request says nothing.")
    limits: Limits = Field(Limits(), description="How much it is asked to do at once.")
    threads: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        None, description="Threads that compute; absent: the physical cores less one, which is faster than all of them."
    )
    chat_template: Annotated[str, Field(min_length=1, max_length=65_536)] | None = Field(
        None, description="A Jinja chat template in place of the file's own, or for a file that has none."
    )
    first_token_timeout_sec: _Seconds = Field(
        600.0, description="How long a worker may be without progress before its first token; prompt pieces count."
    )
    inter_token_timeout_sec: _Seconds = Field(120.0, description="How long each further token may take.")
