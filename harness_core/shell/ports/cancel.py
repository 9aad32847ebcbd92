"""A cancel token: set once with a reason, seen by everyone who holds it."""

from __future__ import annotations

from collections.abc import Callable

from harness_hookspecs.errors import Cancelled

__all__ = ["Token"]


def _nothing() -> None:
    """What follows a cancel where nothing has to."""


class Token:
    """Implements :class:`~harness_hookspecs.host.CancelToken`, and ``cancel``.

    It needs no lock, so a signal handler may cancel it while the interrupted thread is inside it: the reason is
    written before the callbacks are taken, and a callback belongs to whoever takes it out. Callbacks only wake
    someone; they do not raise.

    Args:
        after: Called at the end of ``cancel``; the simulation switches there.
    """

    def __init__(self, after: Callable[[], None] = _nothing) -> None:
        self._reasons: dict[str, str] = {}
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._after = after

    @property
    def reason(self) -> str | None:
        return self._reasons.get("first")

    def cancelled(self) -> bool:
        return bool(self._reasons)

    def raise_if_cancelled(self) -> None:
        if self._reasons:
            raise Cancelled(f"cancelled: {self.reason}", reason=self.reason)

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        place = object()  # the same callback may be given twice
        self._callbacks[place] = callback
        if self._reasons:
            self._call(place)
        return lambda: self._forget(place)

    def _forget(self, place: object) -> None:
        self._callbacks.pop(place, None)

    def _call(self, place: object) -> None:
        callback = self._callbacks.pop(place, None)
        if callback is not None:
            callback()

    def cancel(self, reason: str) -> None:
        """Set the token; of several reasons the first one stays."""
        self._reasons.setdefault("first", reason)
        for place in list(self._callbacks):
            self._call(place)
        self._after()
