"""models.yaml: which models there are, what each can do and which one is taken, as a frozen model."""

from typing import Annotated, Literal

from pydantic import Field

from harness_hookspecs.value import Table

from .base import NO, OK, Choice, Name, Seconds, Settings, Tokens

__all__ = ["Gpu", "Inference", "KvCache", "ModelEntry", "ModelLimits", "ModelsSettings"]


class KvCache(Settings):
    """How a local engine keeps what it has read."""

    quantization: Name | None = Field(
        None,
        description="Type of the key and value cache, q8_0 or f16 for example; absent: the engine's own.",
        examples=["q8_0"],
    )


class Gpu(Settings):
    """How a local model lives in the memory of a device."""

    layers: Annotated[int, Field(ge=-1, le=100_000)] | None = Field(
        None, description="Layers held on the device; -1 all, 0 none, absent: the engine decides."
    )
    residency: Literal["pinned", "dynamic", "ephemeral"] = Field(
        "dynamic",
        description=(
            "For a provider that unloads models: pinned never, dynamic when memory is needed, ephemeral after each use."
        ),
    )
    swap_timeout_sec: Seconds = Field(
        120.0,
        description="How long a call may wait for its model to be loaded, in seconds; then provider.swap_timeout.",
    )


class Inference(Settings):
    """Sampling, sent with every request; what is absent is not sent."""

    temperature: Annotated[float, Field(ge=0, le=5)] | None = Field(
        None, description="Sampling temperature; 0 takes the likeliest token."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="Share of the probability that is sampled from."
    )
    repeat_penalty: Annotated[float, Field(ge=0, le=5)] | None = Field(
        None, description="Penalty for repeated tokens; 1 is none."
    )
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = Field(
        None, description="Seed of the sampler; without it the session's (`run --seed`), one higher for each attempt."
    )
    max_output_tokens: Tokens = Field(
        1024, description="Tokens of one reply; reserved from the budget before the call."
    )


class ModelLimits(Settings):
    """How much one model is asked to do at once."""

    max_parallel_sessions: Annotated[int, Field(ge=1, le=1024)] = Field(
        1, description="Calls to this model that run at once; further ones wait."
    )


class ModelEntry(Choice):
    """One model; the keys of its provider stand beside these."""

    provider: Name = Field(description="The provider that runs or reaches it, by offer name or ID:NAME.")
    path: str | None = Field(None, description="File of the weights, for providers that load one.")
    capabilities: tuple[Name, ...] = Field(
        (),
        description=(
            "What it can do, an open set of words such as coding, tool_calling, reasoning; a stage's "
            "requirements are looked up here."
        ),
    )
    context_size: Tokens = Field(4096, description="Tokens of prompt and reply together.")
    kv_cache: KvCache = Field(KvCache(), description="How a local engine keeps what it has read.")
    gpu: Gpu = Field(Gpu(), description="How a local model lives in the memory of a device.")
    inference: Inference = Field(Inference(), description="Sampling, sent with every request.")
    limits: ModelLimits = Field(ModelLimits(), description="How much it is asked to do at once.")
    first_token_timeout_sec: Seconds = Field(
        600.0,
        description="How long the first token may take, in seconds; long, because a slow machine reads a long prompt.",
    )
    inter_token_timeout_sec: Seconds = Field(120.0, description="How long each further token may take, in seconds.")
    call_timeout_sec: Seconds = Field(1800.0, description="How long a whole call may take, in seconds.")


class ModelsSettings(Settings):
    """The whole of models.yaml."""

    default: Name | None = Field(
        None,
        description="The model taken where nothing names one; absent: the only entry, if there is just one.",
        json_schema_extra=OK,
    )
    models: Table[ModelEntry] = Field({}, description="The models by name.", json_schema_extra=NO)
    routes: Table[Name] = Field(
        {},
        description=(
            "Route to model name, for leased tasks and model slots; `coding` is the route of tasks that name none."
        ),
        json_schema_extra=NO,
    )

    def default_name(self) -> str | None:
        """Give the name of the model that is taken where nothing names one, or None when nothing settles it."""
        if self.default is not None:
            return self.default
        return next(iter(self.models)) if len(self.models) == 1 else None
