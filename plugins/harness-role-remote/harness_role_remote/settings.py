"""The keys of the role harness ``remote``: where it asks, how much and how long, and what it does not want."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator
from pydantic_core import PydanticCustomError

__all__ = ["RemoteRoleSettings", "StepType", "TaskKind", "is_loopback"]

TaskKind = Literal["plan", "orchestrate", "execute_step", "fix_step"]
StepType = Literal["ai.generate", "code.run", "tool.call", "decision"]

_SMALLER: Final[dict[str, Any]] = {"x-untrusted": "tighten", "x-tighten": "smaller"}
_OWN_HEADERS: Final = frozenset(
    "accept accept-encoding connection content-length content-type expect host te trailer transfer-encoding upgrade "
    "user-agent".split()
)
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_Bytes = Annotated[int, Field(ge=1_024, le=16_777_216)]
_Reference = Annotated[str, StringConstraints(pattern=r"^(env|file):.")]


class RemoteRoleSettings(BaseModel):
    """One service that answers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)

    url: Annotated[str, StringConstraints(min_length=1, max_length=2_048)] = Field(
        description="Where tasks are sent: https, or http to this machine itself. No credentials stand in it."
    )
    timeout_sec: Annotated[float, Field(gt=0, le=3_600)] = Field(
        60.0, description="How long one question may take in all.", json_schema_extra=_SMALLER
    )
    max_request_bytes: _Bytes = Field(
        1_048_576, description="A larger question is not sent.", json_schema_extra=_SMALLER
    )
    max_answer_bytes: _Bytes = Field(
        1_048_576, description="Of a larger answer no more is read.", json_schema_extra=_SMALLER
    )
    bearer: _Reference | None = Field(
        None, description="env:NAME or file:PATH of the token that is sent as Authorization: Bearer."
    )
    headers: dict[str, _Reference] = Field(
        {}, description="Further headers by name, each env:NAME or file:PATH of its whole value."
    )
    tasks: tuple[TaskKind, ...] = Field(
        ("plan", "orchestrate", "execute_step", "fix_step"),
        description="Kinds of task that are sent; the default role has the others.",
    )
    steps: tuple[StepType, ...] = Field(
        ("ai.generate", "code.run", "tool.call", "decision"),
        description="Of execute_step, the types of step that are sent; the default role has the others.",
    )

    @field_validator("url")
    @classmethod
    def _is_safe(cls, value: str) -> str:
        wrong = _flaw(value)
        if wrong is not None:
            raise PydanticCustomError("remote.url", "The url {wrong}", {"wrong": wrong})
        return value

    @field_validator("headers")
    @classmethod
    def _are_free(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not _HEADER.fullmatch(name):
                raise PydanticCustomError("remote.header", "A header's name has letters, digits and hyphens")
            if name.lower() in _OWN_HEADERS:
                raise PydanticCustomError("remote.header", "The header {name} is the role's own", {"name": name})
        return value

    @model_validator(mode="after")
    def _are_once(self) -> Self:
        names = [name.lower() for name in self.headers] + ["authorization"] * (self.bearer is not None)
        if len(set(names)) != len(names):
            raise PydanticCustomError("remote.header", "One of the headers is set twice; bearer is Authorization")
        return self

    @property
    def place(self) -> SplitResult:
        """The url, taken apart."""
        return urlsplit(self.url)

    @property
    def name(self) -> str:
        """Host and path, as events name who was asked; a query may hold what nobody else should read."""
        place = self.place
        host = f"[{place.hostname}]" if ":" in (place.hostname or "") else place.hostname
        return f"{host}:{place.port}{place.path}" if place.port else f"{host}{place.path}"


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _flaw(url: str) -> str | None:
    """Why a url is none to send tasks to; it is not repeated, since it may hold a secret."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "has characters that no url has; write them escaped"
    try:
        place = urlsplit(url)
        _ = place.port
    except ValueError:
        return "is none"
    if place.scheme not in ("https", "http") or not place.hostname:
        return "is neither https nor http with a host"
    if place.username is not None or place.password is not None:
        return "holds credentials; use bearer or headers"
    if place.fragment:
        return "has a fragment, which is never sent"
    if place.scheme == "http" and not is_loopback(place.hostname):
        return "is http and leads away from this machine; use https"
    return None
