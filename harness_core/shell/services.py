"""What every call of a role call needs beside its own facts, as one frozen value."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness_hookspecs.host import CancelToken, Ports
from harness_hookspecs.provider import Chunk

from .deadlines import Deadlines
from .loop import SessionLoop
from .redaction import Redactor

__all__ = ["Services"]


@attrs.frozen
class Services:
    """The doors, the loop, and who is told of chunks."""

    ports: Ports
    loop: SessionLoop
    redactor: Redactor
    deadlines: Deadlines
    cancel: CancelToken  # tools, validators and prompts stop at once
    late_cancel: CancelToken  # a model call in flight may go on for cancel_grace_sec (K-30)
    on_chunk: Callable[[Chunk], None]
