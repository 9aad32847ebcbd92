"""The doors of start-up: a path goes in, its bytes come out or are replaced, and nothing heavy is imported.

Listing plugins must not cost the import of the whole set of ports. Links are followed: what is read here was
installed, and an installer may link it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["new_mark", "read_file", "replace_file", "temporary_folder"]


def new_mark() -> str:
    """Give 32 hexadecimal digits that nobody has seen and nobody can guess."""
    return os.urandom(16).hex()


def read_file(path: str, *, limit_bytes: int = 16_777_216) -> bytes | None:
    """Give at most ``limit_bytes`` of a file, ``None`` when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit_bytes)
    except OSError:
        return None


def replace_file(path: str, data: bytes) -> bool:
    """Replace a file in one step, making its folder; ``False`` when that is not possible."""
    part = f"{path}.{os.urandom(8).hex()}.part"  # one a call: threads share a process's number
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(part, "xb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        return False
    return True


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Give an empty folder that nobody else uses, and remove it with what lies in it by then.

    Raises:
        OSError: There is no room for one.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="harness-", ignore_cleanup_errors=True) as folder:
        yield folder
