"""The leaves of a project, what the user already allows and what was trusted in, the leaves that need trust out."""

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
    "Trusted",
    "UntrustedLeaf",
    "gone",
    "is_trusted",
    "marked",
    "read_trust",
    "remember_trust",
    "untrusted_error",
    "untrusted_leaves",
]

TRUST_HINT: Final = "read what it sets (harness trust --dry-run), then: harness trust"

_SCHEMA: Final = "harness.trust_record/1"
_RECORD_BYTES: Final = 33_554_432  # six files of a project at their limit, each leaf with its digest, are below it


@attrs.frozen
class Trusted:
    """What was trusted of a project earlier.

    Attributes:
        digest: Of all its leaves that needed trust.
        leaves: The digest of each value, by the text of its key.
    """

    digest: str
    leaves: Mapping[str, str]


@attrs.frozen
class UntrustedLeaf:
    """A leaf of a project's files that only a trusted project may set.

    Attributes:
        path: The key.
        value: What the project says; None where it says null.
        origin: File, line and column.
        reason: Why it needs trust.
        new: Whether this very value was not trusted earlier.
    """

    path: ConfigPath
    value: Any
    origin: Origin
    reason: str
    new: bool = True

    def document(self) -> dict[str, Any]:
        """Give the leaf as plain JSON."""
        return {
            "path": format_path(self.path),
            "value": self.value,
            "where": self.origin.text(),
            "reason": self.reason,
            "new": self.new,
        }


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


def _digest(found: tuple[UntrustedLeaf, ...]) -> str:
    """The digest that trust remembers: of the leaves that need it and of nothing else."""
    return digest(sorted([format_path(leaf.path), leaf.value] for leaf in found))


def is_trusted(found: tuple[UntrustedLeaf, ...], earlier: Trusted | None) -> bool:
    """Whether exactly this was trusted, or nothing needs it."""
    return not found or (earlier is not None and earlier.digest == _digest(found))


def marked(found: tuple[UntrustedLeaf, ...], earlier: Trusted | None) -> tuple[UntrustedLeaf, ...]:
    """Mark the leaves that were trusted earlier as they are now."""
    known = earlier.leaves if earlier is not None else {}
    return tuple(attrs.evolve(leaf, new=known.get(format_path(leaf.path)) != digest(leaf.value)) for leaf in found)


def gone(found: tuple[UntrustedLeaf, ...], earlier: Trusted | None) -> tuple[str, ...]:
    """List the keys that were trusted earlier and that the project does not set any more, or now only tightens."""
    paths = {format_path(leaf.path) for leaf in found}
    return tuple(path for path in (earlier.leaves if earlier is not None else ()) if path not in paths)


def untrusted_error(found: tuple[UntrustedLeaf, ...], project: Path, earlier: Trusted | None = None) -> ConfigError:
    """Make the error that stops a run: it names the first leaf that was not trusted, and lists all."""
    new = [leaf for leaf in found if leaf.new]
    lost = gone(found, earlier)
    count = len(new) + len(lost) - 1
    more = f" (and {count} more)" if count else ""
    said = f"set {format_path(new[0].path)}{more}: {new[0].reason}" if new else f"no longer set {lost[0]}{more}"
    if earlier is None:
        message = f"{encode_path(project)} is not trusted, and its files {said}"
    else:
        message = f"{encode_path(project)} was trusted and has changed since: its files {'now ' if new else ''}{said}"
    return ConfigError(
        message,
        code="config.untrusted",
        where=new[0].origin.text() if new else None,
        hint=f"read what it sets, then: harness trust {command_word(project)}",
        leaves=[leaf.document() for leaf in found],
        gone=list(lost),
    )


def _file(project: Path) -> str:
    return f"trust/{sha256(encode_path(project).encode()).hex()[:32]}.json"


def read_trust(files_at: Callable[[Path], Files], state: Path, project: Path) -> Trusted | None:
    """Read what was trusted of a project; None when nothing was, or the record cannot be read."""
    if not state.is_dir():
        return None
    try:
        record = codec.loads(files_at(state).read_bytes(_file(project), limit_bytes=_RECORD_BYTES))
    except (HarnessError, OSError):  # no record, or one that says nothing: then nothing is trusted
        return None
    fits = isinstance(record, dict) and (record.get("schema"), record.get("project")) == (_SCHEMA, encode_path(project))
    if not fits or not isinstance(record.get("leaves"), dict):
        return None
    return Trusted(str(record.get("digest")), record["leaves"])


def remember_trust(
    files_at: Callable[[Path], Files], state: Path, project: Path, found: tuple[UntrustedLeaf, ...]
) -> None:
    """Trust what a project sets now; one file a project, so that two of these never undo each other.

    Args:
        files_at: ``ports.files``.
        state: The person's state folder; it is made.
        project: The folder that holds ``.harness``.
        found: What it sets.
    """
    leaves = {format_path(leaf.path): digest(leaf.value) for leaf in found}
    record = {"schema": _SCHEMA, "project": encode_path(project), "digest": _digest(found), "leaves": leaves}
    make_folder(state, mode=0o700)
    files_at(state).write_bytes(_file(project), codec.dumps(record) + b"\n")
