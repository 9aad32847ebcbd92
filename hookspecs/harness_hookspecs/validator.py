"""Kind ``validator``: a subject in, an explicit verdict out; a missing verdict is no (invariant I-24)."""

from typing import Literal, Protocol

from .host import CancelToken
from .value import Json, Value

__all__ = ["LEVELS", "Finding", "Level", "Subject", "Validator", "Verdict"]

Level = Literal["routing", "payload", "semantic", "approval"]
LEVELS: tuple[Level, ...] = ("routing", "payload", "semantic", "approval")


class Finding(Value):
    """One thing that is wrong, or worth knowing: code, severity, where in the artifact, what, what next (B-74)."""

    code: str
    severity: Literal["error", "warning"]
    path: str = ""
    message: str
    hint: str | None = None


class Verdict(Value):
    """An explicit answer. ``passed`` has no default: what is missing did not pass.

    ``body`` is the normalised artifact; only a payload validator may set it.
    """

    passed: bool
    findings: tuple[Finding, ...] = ()
    body: Json = None


class Subject(Value):
    """What is judged, complete and as plain data.

    ``facts`` holds what was gathered for the visit's context (``changed_files`` and the like), and ``tool_log`` the
    visit's tool calls as recorded: name, args, ok (levels ``semantic`` and ``approval``). A validator looks at the
    world itself where it needs to.
    """

    level: Level
    session_id: str
    stage: str
    persona: str
    attempt: int
    model: Json = None
    requirements: tuple[str, ...] = ()
    artifact_type: str | None = None
    output: Json = None
    status: str | None = None
    facts: Json = None
    tool_log: tuple[Json, ...] = ()


class Validator(Protocol):
    """What an offer of kind ``validator`` builds; all of a level run, their results are merged (B-73).

    The levels come in their order, and the first that does not pass ends the attempt: ``routing`` before anything is
    gathered, ``payload`` and ``semantic`` on the result, ``approval`` last, after the person or policy that the stage
    asks has approved of it.
    """

    @property
    def level(self) -> Level:
        """The level it judges at; it may add to the kernel's own checks and never relaxes them."""

    def validate(self, subject: Subject, cancel: CancelToken) -> Verdict:
        """Judge. Whatever it raises is ``validation.errored``, apart from a rejection, and does not pass.

        ``cancel`` is set when its time (``run.validator_timeout_sec``) is over: a later verdict does not count, and
        soon nobody waits for one.
        """
