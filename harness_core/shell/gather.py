"""A stage's sources in, the facts the world gave for them out; recorded, so that assembly is pure (B-101)."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness_hookspecs.errors import Cancelled, HarnessError, NotFound
from harness_hookspecs.host import CancelToken, Files, Ports
from harness_hookspecs.kit.paths import encode_path

from .git import Repository

__all__ = ["GatherSite", "Gathered", "gather"]

_MAX_FILE_BYTES = 65_536
_MAX_TREE_ENTRIES = 500

@attrs.frozen
class GatherSite:
    """Where facts come from."""

    ports: Ports
    workspace: Path
    cancel: CancelToken
    artifact_of_stage: Callable[[str], tuple[str, str] | None]  # stage -> (reference, text)
    call_tool: Callable[[str, Mapping[str, Any]], Any]


@attrs.frozen
class Gathered:
    """One fact: text for the model and data for schema and validators."""

    kind: str
    title: str
    text: str
    layer: int
    source: Any
    max_tokens: int | None = None
    facts: Mapping[str, Any] = {}


def gather(sources: Sequence[tuple[str, Any]], site: GatherSite) -> list[Gathered]:
    """Ask the world, source by source, in the configured order.

    Args:
        sources: ``ContextSource`` entries of the stage, each after the place where it is written.
        site: The doors.

    Raises:
        HarnessError: ``context.source_missing``: what a source names is not there, and no further attempt finds it;
            ``context.source``: it cannot be read. Both are named by their place in the list and in the file.
        Cancelled: The token was set.
    """
    found: list[Gathered] = []
    for index, (place, source) in enumerate(sources):
        try:
            site.cancel.raise_if_cancelled()
            found += _SOURCES[source.kind](source, site)
        except Cancelled:
            raise
        except HarnessError as error:
            code = "context.source_missing" if isinstance(error, NotFound) else "context.source"
            message = f"context source {index + 1} ({source.kind}, {place}): {error.message}"
            raise HarnessError(message, code=code, hint=error.hint) from error
    return found


def _layer(source: Any, default: int) -> int:
    return int(source.layer[1:]) if source.layer else default


def _text(source: Any, site: GatherSite) -> list[Gathered]:
    return [Gathered("text", "", source.text or "", _layer(source, 1), {"config": "text"}, source.max_tokens)]


def _files(source: Any, site: GatherSite) -> list[Gathered]:
    files = site.ports.files(site.workspace)
    found = []
    for path in _paths(files, source.glob or "*", site.cancel):
        try:
            data = files.read_bytes(path, limit_bytes=_MAX_FILE_BYTES + 1)
        except NotFound:  # it went since it was listed
            continue
        text = data[:_MAX_FILE_BYTES].decode(errors="replace")
        if len(data) > _MAX_FILE_BYTES:
            text += "\n[cut: the file is larger]"
        name = encode_path(path)
        found.append(Gathered("file", name, text, _layer(source, 3), {"file": name}, source.max_tokens))
    return found


def _tree(source: Any, site: GatherSite) -> list[Gathered]:
    pattern = source.glob or "*"
    paths = [encode_path(path) for path in _paths(site.ports.files(site.workspace), pattern, site.cancel)]
    text = "\n".join(paths[:_MAX_TREE_ENTRIES])
    if len(paths) > _MAX_TREE_ENTRIES:
        text += f"\n[cut: {len(paths) - _MAX_TREE_ENTRIES} more]"
    return [Gathered("tree", "Files", text, _layer(source, 3), {"tree": pattern}, source.max_tokens)]


def _paths(files: Files, pattern: str, cancel: CancelToken) -> Iterator[str]:
    """The workspace's files that fit, as the file system names them."""
    for path, facts in files.walk():
        cancel.raise_if_cancelled()
        inside = facts.kind == "file" and not path.startswith((".git/", ".harness/"))
        if inside and fnmatch.fnmatchcase(path, pattern):
            yield path


def _artifact(source: Any, site: GatherSite) -> list[Gathered]:
    found = site.artifact_of_stage(source.stage or "")
    if found is None:
        return []
    reference, text = found
    title = f"Result of {source.stage}"
    return [Gathered("artifact", title, text, _layer(source, 1), {"artifact": reference}, source.max_tokens)]


def _tool(source: Any, site: GatherSite) -> list[Gathered]:
    from harness_hookspecs.kit.codec import dumps

    value = site.call_tool(source.tool, dict(source.args or {}))
    text = value if isinstance(value, str) else dumps(value).decode()
    return [Gathered("tool", source.tool, text, _layer(source, 3), {"tool": source.tool}, source.max_tokens)]


def _git_log(source: Any, site: GatherSite) -> list[Gathered]:
    git = _repository(site)
    base, head = _commits(source, git)
    commits = f"{base}..{head}" if base else head
    text, cut = git.text("log", "--no-color", "--no-decorate", "--format=- %s", commits)
    text = text.strip() + ("\n[cut: there are more commits]" if cut else "")
    named, facts = {"git": encode_path(commits)}, _ends(git, base, head)
    return [Gathered("git_log", "Commits", text, _layer(source, 1), named, source.max_tokens, facts)]


def _git_diff(source: Any, site: GatherSite) -> list[Gathered]:
    """The changes between the two ends of the range: names as data, the patch as text."""
    git = _repository(site)
    base, head = _commits(source, git)
    commits, ends = f"{base}..{head}" if base else head, _ends(git, base, head)
    sides = (ends["base"], ends["head"])
    names = git.names("diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", *sides)
    patch, cut = git.text("diff", "--no-color", "--no-ext-diff", "--no-textconv", "-U1", *sides)
    text = _slim(patch) + ("\n[cut: there are more changes]" if cut else "")
    named, facts = {"git": encode_path(commits)}, {"changed_files": sorted(map(encode_path, names)), **ends}
    return [Gathered("git_diff", "Changes", text, _layer(source, 2), named, source.max_tokens, facts)]


def _repository(site: GatherSite) -> Repository:
    return Repository(site.ports.processes, site.workspace, site.cancel)


def _ends(git: Repository, base: str, head: str) -> dict[str, str]:
    """Both sides of a range by their digests, so that a validator judges by the same ones as the model was told of."""
    if base:
        before = git.line("rev-parse", "--verify", f"{base}^{{commit}}")
    else:  # nothing was there before the first commit: the tree without files, which git knows without having it
        before = git.line("hash-object", "-t", "tree", "/dev/null")
    return {"base": before, "head": git.line("rev-parse", "--verify", f"{head}^{{commit}}")}


def _slim(patch: str) -> str:
    """A patch without the lines that only git needs: a small model's budget is better spent on the changes."""
    noise = ("index ", "diff --git ", "--- a/", "--- /dev/null", "new file mode", "similarity index")
    return "\n".join(line for line in patch.splitlines() if not line.startswith(noise))


def _commits(source: Any, git: Repository) -> tuple[str, str]:
    """Base and head of the range; without one: everything since the last tag, or everything, whose base is empty."""
    if source.range:
        commits = str(source.range)
        if commits.startswith("-") or not all(commits.partition("..")):
            raise NotFound(f"{commits!r} is not a range BASE..HEAD", hint="for example v1.0..HEAD")
        base, _, head = commits.partition("..")
        return base, head
    return git.tag_before_head() or "", "HEAD"


_SOURCES: dict[str, Callable[[Any, GatherSite], list[Gathered]]] = {
    "text": _text,
    "files": _files,
    "tree": _tree,
    "artifact": _artifact,
    "tool": _tool,
    "git_log": _git_log,
    "git_diff": _git_diff,
}
