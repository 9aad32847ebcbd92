"""A cancel token: set once with a reason, seen by everyone who holds it."""

from __future__ import annotations

from collections.abc import Callable

from harness_hookspecs.errors import Cancelled

__all__ = ["Token"]


class Token:
    """Implements :class:`~harness_hookspecs.host.CancelToken`, and ``cancel``.

    It needs no lock: the reason is written before the callbacks are taken, and a callback is taken by whoever pops it.
    """

    def __init__(self) -> None:
        self._reason: str | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}

    @property
    def reason(self) -> str | None:
        return self._reason

    def cancelled(self) -> bool:
        return self._reason is not None

    def raise_if_cancelled(self) -> None:
        if self._reason is not None:
            raise Cancelled(f"cancelled: {self._reason}", reason=self._reason)

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        key = id(callback)
        self._callbacks[key] = callback
        if self._reason is not None and self._callbacks.pop(key, None) is not None:
            callback()
        return lambda: self._forget(key)

    def _forget(self, key: int) -> None:
        self._callbacks.pop(key, None)

    def cancel(self, reason: str) -> None:
        """Set the token; a second call changes nothing."""
        if self._reason is not None:
            return
        self._reason = reason
        for key in list(self._callbacks):
            callback = self._callbacks.pop(key, None)
            if callback is not None:
                callback()
