"""A comparator, a value and the value that holds without it in, whether the first is at least as strict out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["is_stricter"]

_MODES: Final = ("auto", "prompt", "deny")
_TIERS: Final = ("T0", "T1", "T2", "T3", "T4")


def is_stricter(comparator: str | None, value: Any, base: Any) -> bool:
    """Compare; an unknown comparator or a value of another kind is never stricter.

    Args:
        comparator: What the leaf is marked with.
        value: What the project that is not trusted says.
        base: What holds without it; None when there is no bound at all, or none that is known here.
    """
    compare = _COMPARE.get(comparator or "")
    try:
        return compare is not None and bool(compare(value, base))
    except (TypeError, ValueError, KeyError):
        return False


def _smaller(value: Any, base: Any) -> bool:
    return not isinstance(value, bool) and (base is None or value <= base)


def _mode(value: Any, base: Any) -> bool:
    return _MODES.index(value) >= _MODES.index(base)


def _tier(value: Any, base: Any) -> bool:
    # What the tool itself claims is not known here, so without a bound only the highest tier is surely no lower.
    return bool(_TIERS.index(value) >= _TIERS.index(base)) if base is not None else value == _TIERS[-1]


def _superset(value: Any, base: Any) -> bool:
    return set(value) >= set(base or ())


def _subset(value: Any, base: Any) -> bool:
    return base is None or set(value) <= set(base)


def _rules(value: Any, base: Any) -> bool:
    """The rules that hold stay as they are and at the end; what comes before them only denies."""
    ours, theirs = [_said(rule) for rule in base or ()], [_said(rule) for rule in value]
    added = theirs[: len(theirs) - len(ours)]
    return theirs[len(added) :] == ours and all(rule["mode"] == "deny" for rule in added)


def _said(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in rule.items() if item is not None}


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "smaller": _smaller,
    "mode": _mode,
    "tier": _tier,
    "superset": _superset,
    "subset": _subset,
    "rules": _rules,
    "false": lambda value, base: value is False or base is True,
    "true": lambda value, base: value is True or base is False,
    "explicit": lambda value, base: value in {"explicit", base},
}
