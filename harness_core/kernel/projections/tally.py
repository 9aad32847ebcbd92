"""Model calls in, what they used out: unknown counts as unknown, subsets are never added, roll-ups not again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

__all__ = ["Tally"]

_COUNTERS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "reasoningTokens": "reasoning_tokens",
}


@attrs.define
class Tally:
    """Tokens, calls and milliseconds of one group. Cached and reasoning tokens are inside the others (A-68)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    failed_calls: int = 0
    unknown_calls: int = 0
    model_ms: int = 0

    def answered(self, usage: Mapping[str, Any], timing: Mapping[str, Any]) -> None:
        """Count a call that was answered."""
        self.calls += 1
        for wire, name in _COUNTERS.items():
            setattr(self, name, getattr(self, name) + int(usage.get(wire, 0)))
        self.unknown_calls += 0 if usage.get("known", True) else 1
        self.model_ms += int(timing.get("totalMs") or 0)

    def failed(self) -> None:
        """Count a call that failed: nobody knows what it used, which is not nothing (D-22)."""
        self.calls += 1
        self.failed_calls += 1
        self.unknown_calls += 1

    def lost(self) -> None:
        """Count a call that was cut off before its answer, or has none yet: nobody knows how much it used (D-22)."""
        self.calls += 1
        self.unknown_calls += 1

    def document(self) -> dict[str, Any]:
        """The counters; with unknown calls among them they are what is known, a lower bound."""
        return {
            "usage": {
                "input_tokens": self.input_tokens,
                "output_tokens": self.output_tokens,
                "cached_input_tokens": self.cached_input_tokens,
                "reasoning_tokens": self.reasoning_tokens,
                "total_tokens": self.input_tokens + self.output_tokens,
                "known": self.unknown_calls == 0,
            },
            "calls": self.calls,
            "failed_calls": self.failed_calls,
            "unknown_calls": self.unknown_calls,
            "model_ms": self.model_ms,
        }
