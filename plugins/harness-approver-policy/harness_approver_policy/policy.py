"""Rules and an approval request go in, the rule that decides it comes out, or none.

A glob is meant for people who write ``src/*`` and think of a folder, so an approving rule looks at a value only as long
as it is as plain as it looks: a text with a ``..``, a ``.`` or an empty part, or with control, format or odd blank
characters, is approved by no pattern but its own spelling. A denying rule looks at the cleaned path as well.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from harness_hookspecs.approver import ApprovalRequest
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.frozen import thaw

from .settings import PolicyRule

__all__ = ["deciding_rule"]

_ABSENT: Final = object()
_WILD: Final = frozenset("*?[")


def deciding_rule(rules: Sequence[PolicyRule], request: ApprovalRequest) -> tuple[int, PolicyRule] | None:
    """Find the first rule that fits, with its place in the list."""
    return next(((place, rule) for place, rule in enumerate(rules) if _fits(rule, request)), None)


def _fits(rule: PolicyRule, request: ApprovalRequest) -> bool:
    if rule.subject != request.subject or not _fits_tier(rule, request.tier):
        return False
    named = ((rule.tool, request.name), (rule.stage, request.stage), (rule.persona, request.persona))
    if any(glob is not None and not fnmatchcase(name, glob) for glob, name in named):
        return False
    return all(
        _fits_value(_at(request.args, pointer), glob, strictly=rule.decision == "approve")
        for pointer, glob in rule.args.items()
    )


def _fits_tier(rule: PolicyRule, tier: str) -> bool:
    if rule.tier is None:
        return rule.decision == "deny" or tier != "T4"  # what destroys is approved by name only
    return rule.tier == tier


def _at(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer, or ``_ABSENT``."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(name, _ABSENT)
        elif isinstance(value, Sequence) and not isinstance(value, str) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _ABSENT
    return value


def _fits_value(value: Any, glob: str, *, strictly: bool) -> bool:
    if value is _ABSENT or glob == "*":
        return value is not _ABSENT
    text = value if isinstance(value, str) else codec.dumps(thaw(value)).decode()
    if strictly:
        return fnmatchcase(text, glob) and (_is_plain(text) or not _WILD & set(glob))
    return fnmatchcase(text, glob) or fnmatchcase(posixpath.normpath(text), glob)


def _is_plain(text: str) -> bool:
    parts = text.split("/")
    odd = {"..", ".", ""} & set(parts[1:] if parts[0] == "" and len(parts) > 1 else parts)
    return not odd and all(c == " " or unicodedata.category(c)[0] not in "CZ" for c in text)
