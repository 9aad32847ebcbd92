"""What a session is begun or gone on with in, the first command and its content out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import attrs

from harness_core.kernel.commands import Migrate, Start
from harness_core.kernel.state import PLUGIN_KEY
from harness_hookspecs.errors import ConfigError, Drift
from harness_hookspecs.kit.canonical import canonical
from harness_hookspecs.kit.paths import encode_path

from .answering import recordable
from .perform_ask import OnAsk, attended

if TYPE_CHECKING:
    from harness_core.kernel.state import SessionState
    from harness_hookspecs.store import Store

    from .config.effective import EffectiveConfig
    from .opening import Opened

__all__ = [
    "RunRequest",
    "checked_budget",
    "checked_on_ask",
    "checked_request",
    "config_changes",
    "migration",
    "plugin_changes",
    "start_command",
]

_TITLE_CHARACTERS = 80
_MAX_LIMIT = 2**53  # what JSON keeps exactly


@attrs.frozen
class RunRequest:
    """What a person asked for, checked; ``by`` is who, as the system knows them."""

    text: str
    by: str
    on_ask: OnAsk = "deny"
    budget: Mapping[str, float] = {}
    yolo: str = "off"
    seed: int = 0


def checked_request(
    text: str, on_ask: str, budget: Mapping[str, Any] | None, yolo: str, seed: int, by: str
) -> RunRequest:
    """What a person asked for, as far as it can be had.

    Raises:
        ConfigError: ``run.empty_text``, ``run.text`` (no text, no Unicode), ``config.on_ask``, ``config.budget``,
            ``config.yolo`` or ``config.seed``.
    """
    if not recordable(text, "the text", code="run.text").strip():
        raise ConfigError("there is nothing to do: the text is empty", code="run.empty_text")
    if yolo not in ("off", "on", "destructive"):
        raise ConfigError(f"yolo is off, on or destructive, not {yolo!r}", code="config.yolo")
    if type(seed) is not int or not 0 <= seed < 2**32:  # true and false are integers too, and no seeds
        raise ConfigError(f"the seed is a whole number from 0 to {2**32 - 1}, not {seed!r}", code="config.seed")
    return RunRequest(text, by, checked_on_ask(on_ask), checked_budget(budget), yolo, seed)


def start_command(session_id: str, request: RunRequest, opened: Opened) -> Start:
    """The command that begins a session, with the text and the configuration as content."""
    text = opened.redactor.text(request.text)
    content = text.encode()
    config = canonical(opened.config.document())
    created: dict[str, Any] = {
        "title": " ".join(text.split())[:_TITLE_CHARACTERS],
        "text_ref": _sha256(content),
        "project": encode_path(opened.project),
        "config_digest": opened.config.digest,
        "config_ref": _sha256(config),
        "by": opened.redactor.text(request.by),
        "plugins": [
            {"id": row.record.id, "version": row.record.version, "status": row.status} for row in opened.catalogue.rows
        ],
        "on_ask": _begun_with(request.on_ask, terminal=opened.terminal is not None),
        "yolo": request.yolo,
        "seed": request.seed,
    }
    if request.budget:
        created["budget"] = dict(request.budget)
    return Start(session_id, created, {created["text_ref"]: content, created["config_ref"]: config})


def _begun_with(on_ask: OnAsk, *, terminal: bool) -> OnAsk:
    """What a resume goes on with: where a person could be asked a question waits for one, also with no terminal there.

    ``auto`` without a terminal stays ``auto``: it denies because of that, and not because somebody said so.
    """
    return attended(on_ask, terminal=True) if terminal else on_ask


def plugin_changes(state: SessionState, opened: Opened) -> list[dict[str, Any]]:
    """Every plugin that takes part in another version than the session knows, or takes part no more, or newly does."""
    now = {row.record.id: row.record.version for row in opened.catalogue.rows if row.status == "ok"}
    known = state.plugins
    return [
        {"key": f"{PLUGIN_KEY}{name}", "old": known.get(name), "new": now.get(name)}
        for name in sorted({*known, *now})
        if known.get(name) != now.get(name)
    ]


def migration(
    state: SessionState, opened: Opened, store: Store, plugins: Sequence[Mapping[str, Any]], *, accept_drift: bool
) -> Migrate | None:
    """The record of a changed configuration; ``None`` when it is still the session's own (I-19).

    What is accepted is recorded also when only ``plugins`` are other ones, which no configuration shows. Without any
    change nothing is recorded.

    Raises:
        Drift: It changed, and nobody accepted that; the facts name every key with both values.
    """
    config = opened.config
    if state.config_digest == config.digest and not (accept_drift and plugins):
        return None
    from .replaying import recorded_config

    old = recorded_config(store, state.session_id, list(store.read(f"session:{state.session_id}")))
    changes = config_changes(old, config)
    if not accept_drift:
        text = "; ".join(f"{c['key']}: {c['old']!r} -> {c['new']!r}" for c in changes[:5])
        raise Drift(
            f"the configuration is not the one the session was started with: {text}",
            code="config.drift",
            hint="undo the change, or resume with --accept-drift",
            changes=changes,
        )
    content = canonical(config.document())
    payload: dict[str, Any] = {
        "old_digest": state.config_digest,
        "new_digest": config.digest,
        "content_ref": _sha256(content),
        "changes": [*changes, *plugins],
    }
    return Migrate(payload, {_sha256(content): content})


def checked_budget(budget: Mapping[str, Any] | None) -> dict[str, float]:
    """A budget's limits, each positive and of a known dimension.

    Raises:
        ConfigError: ``config.budget``.
    """
    if budget is None:
        return {}
    if not isinstance(budget, Mapping):
        raise ConfigError(f"{budget!r} is no budget", code="config.budget", hint="a mapping of limits: {'tokens': N}")
    for name, limit in budget.items():
        number = limit if isinstance(limit, int | float) and not isinstance(limit, bool) else 0
        if name not in ("tokens", "seconds", "calls") or not 0 < number < _MAX_LIMIT:
            raise ConfigError(
                f"{name}={limit} is no budget", code="config.budget", hint="tokens=N, seconds=N or calls=N, above 0"
            )
    return dict(budget)


def checked_on_ask(said: str) -> OnAsk:
    """``auto`` (``ask`` on a terminal, else ``deny``), ``ask``, ``suspend`` or ``deny``.

    Raises:
        ConfigError: ``config.on_ask``.
    """
    found: OnAsk | None = next((known for known in get_args(OnAsk) if known == said), None)
    if found is not None:
        return found
    raise ConfigError(f"on_ask is auto, ask, suspend or deny, not {said!r}", code="config.on_ask")


def config_changes(old: EffectiveConfig, new: EffectiveConfig) -> list[dict[str, Any]]:
    """Every setting that is another one, by its key, with both values."""
    from harness_core.kernel.projections.differences import changed_leaves

    changed = changed_leaves(old.document()["settings"], new.document()["settings"])
    return [{"key": one.key, "old": one.a, "new": one.b} for one in changed]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
