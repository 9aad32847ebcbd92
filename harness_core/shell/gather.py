"""A stage's sources in, the facts the world gave for them out; recorded, so that assembly is pure (B-101)."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from harness_hookspecs.errors import HarnessError
from harness_hookspecs.host import Ports

__all__ = ["GatherSite", "Gathered", "gather"]

_MAX_FILE_BYTES = 65_536
_MAX_TREE_ENTRIES = 500
_GIT_ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}
_GIT_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "--no-pager")


@attrs.frozen
class GatherSite:
    """Where facts come from."""

    ports: Ports
    workspace: Path
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


def gather(sources: Sequence[Any], site: GatherSite) -> list[Gathered]:
    """Ask the world, source by source, in the configured order.

    Args:
        sources: ``ContextSource`` entries of the stage.
        site: The doors.

    Raises:
        HarnessError: ``context.source``: a source that cannot be read, named by its place in the list.
    """
    found: list[Gathered] = []
    for index, source in enumerate(sources):
        try:
            found += _SOURCES[source.kind](source, site)
        except HarnessError as error:
            raise HarnessError(
                f"context source {index + 1} ({source.kind}): {error.message}", code="context.source", hint=error.hint
            ) from error
    return found


def _layer(source: Any, default: int) -> int:
    return int(source.layer[1:]) if source.layer else default


def _text(source: Any, site: GatherSite) -> list[Gathered]:
    return [Gathered("text", "", source.text or "", _layer(source, 1), {"config": "text"}, source.max_tokens)]


def _files(source: Any, site: GatherSite) -> list[Gathered]:
    files = site.ports.files(site.workspace)
    pattern = source.glob or "*"
    found = []
    for path, facts in files.walk():
        if facts.kind != "file" or not fnmatch.fnmatchcase(path, pattern) or path.startswith((".git/", ".harness/")):
            continue
        data = files.read_bytes(path, limit_bytes=_MAX_FILE_BYTES + 1)
        text = data[:_MAX_FILE_BYTES].decode(errors="replace")
        if len(data) > _MAX_FILE_BYTES:
            text += "\n[cut: the file is larger]"
        found.append(Gathered("file", path, text, _layer(source, 3), {"file": path}, source.max_tokens))
    return found


def _tree(source: Any, site: GatherSite) -> list[Gathered]:
    pattern = source.glob or "*"
    paths = [
        path
        for path, facts in site.ports.files(site.workspace).walk()
        if facts.kind == "file" and fnmatch.fnmatchcase(path, pattern) and not path.startswith((".git/", ".harness/"))
    ]
    text = "\n".join(paths[:_MAX_TREE_ENTRIES])
    if len(paths) > _MAX_TREE_ENTRIES:
        text += f"\n[cut: {len(paths) - _MAX_TREE_ENTRIES} more]"
    return [Gathered("tree", "Files", text, _layer(source, 3), {"tree": pattern}, source.max_tokens)]


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
    base, head = _commits(source, site)
    commits = f"{base}..{head}" if base else head
    text = _git(site, "log", "--no-color", "--no-decorate", "--format=- %s", commits)
    facts = _ends(site, base, head)
    return [Gathered("git_log", "Commits", text.strip(), _layer(source, 1), {"git": commits}, source.max_tokens, facts)]


def _git_diff(source: Any, site: GatherSite) -> list[Gathered]:
    """The changes between the two ends of the range: names as data, the patch as text."""
    base, head = _commits(source, site)
    commits, ends = f"{base}..{head}" if base else head, _ends(site, base, head)
    sides = (ends["base"], ends["head"])
    names = _git(site, "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", *sides).split("\0")
    patch = _git(site, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-U1", *sides)
    facts = {"changed_files": sorted(name for name in names if name), **ends}
    return [
        Gathered("git_diff", "Changes", _slim(patch), _layer(source, 2), {"git": commits}, source.max_tokens, facts)
    ]


def _ends(site: GatherSite, base: str, head: str) -> dict[str, str]:
    """Both sides of a range by their digests, so that a validator judges by the same ones as the model was told of."""
    if base:
        before = _git(site, "rev-parse", "--verify", f"{base}^{{commit}}")
    else:  # nothing was there before the first commit: the tree without files, which git knows without having it
        before = _git(site, "hash-object", "-t", "tree", "/dev/null")
    return {"base": before.strip(), "head": _git(site, "rev-parse", "--verify", f"{head}^{{commit}}").strip()}


def _slim(patch: str) -> str:
    """A patch without the lines that only git needs: a small model's budget is better spent on the changes."""
    noise = ("index ", "diff --git ", "--- a/", "--- /dev/null", "new file mode", "similarity index")
    return "\n".join(line for line in patch.splitlines() if not line.startswith(noise))


def _commits(source: Any, site: GatherSite) -> tuple[str, str]:
    """Base and head of the range; without one: everything since the last tag, or everything, whose base is empty."""
    if source.range:
        commits = str(source.range)
        if commits.startswith("-") or not all(commits.partition("..")):
            raise HarnessError(f"{commits!r} is not a range BASE..HEAD", hint="for example v1.0..HEAD")
        base, _, head = commits.partition("..")
        return base, head
    tag = _run_git(site, "describe", "--tags", "--abbrev=0", "HEAD^")
    return tag.stdout.decode().strip() if tag.returncode == 0 else "", "HEAD"


def _git(site: GatherSite, *args: str) -> str:
    done = _run_git(site, *args)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        raise HarnessError(
            f"git {args[0]}: {message[-1] if message else 'failed'}", hint="is the project a git repository?"
        )
    return str(done.stdout.decode(errors="replace"))


def _run_git(site: GatherSite, *args: str) -> Any:
    return site.ports.processes.run(
        ["git", *_GIT_SAFE, *args], cwd=str(site.workspace), env=_GIT_ENV, timeout_seconds=30.0
    )


_SOURCES: dict[str, Callable[[Any, GatherSite], list[Gathered]]] = {
    "text": _text,
    "files": _files,
    "tree": _tree,
    "artifact": _artifact,
    "tool": _tool,
    "git_log": _git_log,
    "git_diff": _git_diff,
}
