"""The error tree: what may go wrong, named, with the facts as attributes.

    HarnessError
     |- ConfigError            harness.yaml and its siblings: unknown key, wrong type, untrusted leaf
     |- NotFound               a session, an artifact, a plugin, a file that the caller named
     |- PluginError            a plugin is missing, broken, doubled or breaks its contract
     |- Refused                a policy, a tier, an allow-list or a person said no
     |- Locked                 another living process owns the session
     |- Drift                  the session was started under something else
     |- StoreError             the log cannot be read or written
     |   |- StoreConflict      the head moved: nothing was written
     |   `- StoreCorrupt       foreign, newer, truncated or changed file
     |- CodecError             bytes or values that strict JSON does not allow
     |- VocabularyError        an event, a role or a field outside the closed vocabulary
     |- ProviderError          the model could not answer
     |- ToolError              a tool could not do what it was asked
     |- RoleError              a role harness broke its promise
     |- RuleError              an expression cannot be compiled or evaluated
     |- ValidationFailed       an artifact or a payload is not what was promised
     |- BudgetExhausted        a reservation does not fit the budget
     |- Diverged               a replay met something else than the record
     |- Cancelled              a CancelToken was set while the call ran
     |- IllegalMove            a state machine refuses the move
     `- InternalError          a promise of ours was broken
    Suspend (BaseException)    a call inside a role must wait without a thread

The docstring's first line is the default message; ``code`` is stable and is what exits, events and
documents carry. Facts are keyword arguments and become attributes of ``facts``.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "BudgetExhausted",
    "Cancelled",
    "CodecError",
    "ConfigError",
    "Diverged",
    "Drift",
    "HarnessError",
    "IllegalMove",
    "InternalError",
    "Locked",
    "NotFound",
    "PluginError",
    "ProviderError",
    "Refused",
    "RoleError",
    "RuleError",
    "StoreConflict",
    "StoreCorrupt",
    "StoreError",
    "Suspend",
    "ToolError",
    "ValidationFailed",
    "VocabularyError",
]


class HarnessError(Exception):
    """Something went wrong in Harness.

    Args:
        message: What happened, in one sentence; the class docstring's first line when omitted.
        code: A stable dotted code, more exact than the class's own.
        hint: What the person can do next.
        where: The place, for example ``stages.yaml:4:5`` or ``session:0197...#12``.
        facts: Anything else a program may want, JSON-safe.
    """

    code: ClassVar[str] = "harness.error"

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        hint: str | None = None,
        where: str | None = None,
        **facts: Any,
    ) -> None:
        self.message = message or (type(self).__doc__ or type(self).__name__).strip().splitlines()[0]
        if code is not None:
            self.code = code  # type: ignore[misc]  # an instance may be more exact than its class
        self.hint = hint
        self.where = where
        self.facts = facts
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    @property
    def __notes__(self) -> list[str]:  # Python keeps a list; the hint may change later
        """What Python prints below the message in a traceback: the hint as it is now, then notes that others added."""
        hint, added = vars(self).get("hint"), vars(self).get("_added_notes", [])
        return [f"hint: {hint}", *added] if isinstance(hint, str) and hint else [*added]

    @__notes__.setter
    def __notes__(self, notes: list[str]) -> None:
        vars(self)["_added_notes"] = list(notes)

    def add_note(self, note: str, /) -> None:
        """Keep a note for tracebacks, as any exception does."""
        vars(self).setdefault("_added_notes", []).append(note)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.code, self.hint, self.where, self.facts)


def _rebuild(
    kind: type[HarnessError], message: str, code: str, hint: str | None, where: str | None, facts: dict[str, Any]
) -> HarnessError:
    return kind(message, code=code, hint=hint, where=where, **facts)


class ConfigError(HarnessError):
    """The configuration is not valid."""

    code = "config.invalid"


class NotFound(HarnessError):
    """There is nothing of that name."""

    code = "not_found"


class PluginError(HarnessError):
    """A plugin is missing, broken or breaks its contract."""

    code = "plugin.broken"


class Refused(HarnessError):
    """A policy or a person refused it."""

    code = "refused"


class Locked(HarnessError):
    """Another process owns the session."""

    code = "run.locked"


class Drift(HarnessError):
    """The session was started under another configuration."""

    code = "config.drift"


class StoreError(HarnessError):
    """The event store cannot be read or written."""

    code = "store.error"


class StoreConflict(StoreError):
    """The stream's head has moved; nothing was written."""

    code = "store.conflict"


class StoreCorrupt(StoreError):
    """The store file is foreign, newer, truncated or changed; it was left as it is."""

    code = "store.corrupt"


class CodecError(HarnessError):
    """The value or the bytes are not strict JSON."""

    code = "codec.invalid"


class VocabularyError(HarnessError):
    """The event, role or field is outside the closed vocabulary."""

    code = "vocabulary.unknown"


class ProviderError(HarnessError):
    """The model provider could not answer."""

    code = "provider.unavailable"


class ToolError(HarnessError):
    """The tool could not do what it was asked."""

    code = "tool.failed"


class RoleError(HarnessError):
    """The role harness broke its promise."""

    code = "role.failed"


class RuleError(HarnessError):
    """The expression cannot be compiled or evaluated."""

    code = "rule.error"


class ValidationFailed(HarnessError):
    """The value is not what was promised."""

    code = "validation.failed"


class BudgetExhausted(HarnessError):
    """The budget does not allow the next call."""

    code = "budget.exhausted"


class Diverged(HarnessError):
    """The replay met something else than the record."""

    code = "replay.diverged"


class Cancelled(HarnessError):
    """The call was cancelled."""

    code = "cancelled"


class IllegalMove(HarnessError):
    """The state does not allow that move."""

    code = "state.illegal_move"


class InternalError(HarnessError):
    """A promise of Harness itself was broken; please report it."""

    code = "internal"


class Suspend(BaseException):
    """A call inside a role must wait without a thread (architecture D-5).

    Raised by ``ctx`` calls only. A role lets it pass; whatever the role does with it, the ctx stays closed
    and the host trusts the ctx's flag, not this exception.

    Args:
        kind: ``approval``, ``child``, ``timer``, ``budget`` or ``in_doubt``.
        wait_id: The id of what is waited for.
    """

    def __init__(self, kind: str, wait_id: str) -> None:
        self.kind = kind
        self.wait_id = wait_id
        super().__init__(f"suspended: waits for {kind} {wait_id}")
