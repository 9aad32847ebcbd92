"""The leaves of a project and what the user already allows in, the leaves that need trust and their digest out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from harness_core.settings.paths import ConfigPath, format_path
from harness_hookspecs.errors import ConfigError, HarnessError
from harness_hookspecs.host import Files
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.canonical import digest, sha256
from harness_hookspecs.kit.paths import encode_path

from .folders import command_word, make_folder
from .origins import UNSET, Origin, Tree, leaves
from .stricter import is_stricter

__all__ = [
    "TRUST_HINT",
    "UntrustedLeaf",
    "leaves_digest",
    "remember_trust",
    "trusted_digest",
    "untrusted_error",
    "untrusted_leaves",
]

TRUST_HINT: Final = "read what it sets (harness trust --dry-run), then: harness trust"

_SCHEMA: Final = "harness.trust_record/1"


@attrs.frozen
class UntrustedLeaf:
    """A leaf of a project's files that only a trusted project may set.

    Attributes:
        path: The key.
        value: What the project says; None where it says null.
        origin: File, line and column.
        reason: Why it needs trust.
    """

    path: ConfigPath
    value: Any
    origin: Origin
    reason: str

    def document(self) -> dict[str, Any]:
        """Give the leaf as plain JSON."""
        return {"path": format_path(self.path), "value": self.value, "where": self.origin.text(), "reason": self.reason}


def untrusted_leaves(project: Tree | None, base: Mapping[str, Any]) -> tuple[UntrustedLeaf, ...]:
    """List the leaves that need trust.

    Args:
        project: The project's layer.
        base: What holds without the project, by top-level key, defaults included.
    """
    return tuple(_needing(project, base))


def _needing(project: Tree | None, base: Mapping[str, Any]) -> Iterator[UntrustedLeaf]:
    for path, leaf in leaves(project):
        value = None if leaf.value is UNSET else leaf.value
        if leaf.untrusted == "ok" or leaf.value == {}:  # an empty mapping sets nothing
            continue
        if leaf.untrusted == "tighten":
            held = _base(base, path)
            held = leaf.default if held is None else held
            if value is None or not is_stricter(leaf.comparator, value, held):
                yield UntrustedLeaf(path, value, leaf.origin, _looser(held))
        else:
            yield UntrustedLeaf(path, value, leaf.origin, "only a trusted project may set it")


def _base(base: Any, path: ConfigPath) -> Any:
    for part in path:
        base = base.get(part) if isinstance(base, Mapping) else None
    return base


def _looser(held: Any) -> str:
    return f"it is not stricter than {codec.dumps(held).decode()}, which holds without it"


def leaves_digest(found: tuple[UntrustedLeaf, ...]) -> str:
    """Give the digest that trust remembers: of the leaves that need it and of nothing else."""
    return digest(sorted([format_path(leaf.path), leaf.value] for leaf in found))


def untrusted_error(found: tuple[UntrustedLeaf, ...], project: Path) -> ConfigError:
    """Make the error that stops a run: it names the first leaf and lists all."""
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    said = f"its files set {format_path(first.path)}{more}: {first.reason}"
    hint = f"read what it sets, then: harness trust {command_word(project)}"
    return ConfigError(
        f"{encode_path(project)} is not trusted, and {said}",
        code="config.untrusted",
        where=first.origin.text(),
        hint=hint,
        leaves=[leaf.document() for leaf in found],
    )


def _file(project: Path) -> str:
    return f"trust/{sha256(encode_path(project).encode()).hex()[:32]}.json"


def trusted_digest(files_at: Callable[[Path], Files], state: Path, project: Path) -> str | None:
    """Read what was trusted of a project; None when nothing was, or the record cannot be read."""
    if not state.is_dir():
        return None
    try:
        record = codec.loads(files_at(state).read_bytes(_file(project), limit_bytes=65_536))
    except (HarnessError, OSError):  # no record, or one that says nothing: then nothing is trusted
        return None
    fits = isinstance(record, dict) and (record.get("schema"), record.get("project")) == (_SCHEMA, encode_path(project))
    return str(record.get("digest")) if fits else None


def remember_trust(
    files_at: Callable[[Path], Files], state: Path, project: Path, found: tuple[UntrustedLeaf, ...]
) -> str:
    """Trust what a project sets now; one file a project, so that two of these never undo each other.

    Args:
        files_at: ``ports.files``.
        state: The person's state folder; it is made.
        project: The folder that holds ``.harness``.
        found: What it sets.

    Returns:
        The digest that was remembered.
    """
    value = leaves_digest(found)
    record = {"schema": _SCHEMA, "project": encode_path(project), "digest": value}
    make_folder(state, mode=0o700)
    files_at(state).write_bytes(_file(project), codec.dumps(record) + b"\n")
    return value
