"""The mechanism under every suite: a suite and a subject go in, the names of the rules that were broken come out.

A suite is a class whose tests take only ``self``, so that pytest and plain code can both run it. Each test bears the
name of the rule it checks; several tests may share one::

    class ToolContract(Contract):
        def subject(self) -> ToolSet: ...                 # overridden by whoever is checked

        @rule("tool.spec_is_stable")
        def test_specs_are_the_same_twice(self) -> None:
            subject = self.subject()
            assert subject.specs() == subject.specs()

A plugin is checked by subclassing the suite in its tests under a name that begins with ``Test``. That a suite can see
what it forbids is proved by a table of deliberately broken subjects, one for each rule::

    def test_each_rule_bites() -> None:
        assert complaints(ToolContract, good=Reference, broken={"tool.spec_is_stable": Shuffled, ...}) == []

No fixtures: what a test needs, ``setup_method`` makes and ``teardown_method`` removes; both run here as under pytest.
"""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from .host import FakeHost

__all__ = ["Contract", "complaints", "failing_rules", "raised_by", "rule", "rules_of"]

F = TypeVar("F", bound=Callable[..., None])

_MARK = "__contract_rule__"


class Contract:
    """Base of every suite: a fresh folder and a fresh host for each test.

    Attributes:
        folder: An empty folder, removed after the test.
        host: A :class:`~harness_hookspecs.contracts.host.FakeHost` over it, good for any kind.
    """

    folder: Path
    host: FakeHost

    def setup_method(self) -> None:
        """Make folder and host; a suite that overrides it calls it first."""
        self.folder = Path(tempfile.mkdtemp(prefix="contract-"))
        self.host = FakeHost(self.folder)

    def teardown_method(self) -> None:
        """Remove the folder; a suite that overrides it calls it last."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def subject(self) -> Any:
        """The thing under test, built anew at each call; the subclass that is run overrides it."""
        raise NotImplementedError("override subject()")


def rule(name: str) -> Callable[[F], F]:
    """Say which rule a test checks, ``KIND.words_with_underscores``."""

    def mark(test: F) -> F:
        setattr(test, _MARK, name)
        return test

    return mark


def raised_by(call: Callable[..., object], *arguments: Any) -> type[BaseException] | None:
    """The type of the exception that a call ends with; None when it ends without one."""
    try:
        call(*arguments)
    except Exception as problem:
        return type(problem)
    return None


def rules_of(suite: type[Contract]) -> dict[str, tuple[str, ...]]:
    """Every rule of a suite with the names of its tests, in order of definition.

    Raises:
        TypeError: A test bears no rule or asks for a fixture.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, test in _tests(suite):
        label = getattr(test, _MARK, None)
        if not isinstance(label, str) or len(inspect.signature(test).parameters) != 1:
            raise TypeError(f"{suite.__name__}.{name} must bear @rule(...) and take only self")
        found[label] = (*found.get(label, ()), name)
    return found


def _tests(suite: type[Contract]) -> Iterator[tuple[str, Callable[..., None]]]:
    seen: set[str] = set()
    for owner in reversed(suite.__mro__):
        for name in vars(owner):
            if name.startswith("test") and name not in seen:
                seen.add(name)
                yield name, getattr(suite, name)


def failing_rules(
    suite: type[Contract], subject: Callable[[Contract], Any], *, only: Iterable[str] | None = None
) -> set[str]:
    """Run a suite on a subject in this process and name the rules it breaks.

    Args:
        suite: The suite, as published.
        subject: Makes the thing under test; called with the running suite, whose ``folder`` and ``host`` it may use.
        only: Run only the tests of these rules.
    """
    bound = type(f"Bound{suite.__name__}", (suite,), {"subject": lambda self: subject(self)})  # noqa: PLW0108  # a class does not bind
    wanted = None if only is None else set(only)
    return {
        label
        for label, tests in rules_of(suite).items()
        if (wanted is None or label in wanted) and not all(_passes(bound, test) for test in tests)
    }


def _passes(bound: type[Contract], test: str) -> bool:
    running = bound()
    running.setup_method()
    try:
        getattr(running, test)()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # pytest's outcomes and Suspend are no Exceptions
        return type(problem).__name__ == "Skipped"
    finally:
        running.teardown_method()
    return True


def complaints(
    suite: type[Contract],
    *,
    good: Callable[[Contract], Any],
    broken: Mapping[str, Callable[[Contract], Any]],
    at_most: int = 3,
    overall: Collection[str] = (),
) -> list[str]:
    """Say in words why a suite does not yet prove its rules; an empty list is the proof.

    Args:
        suite: The suite, as published.
        good: Makes a subject that keeps every rule.
        broken: For each rule of the suite, makes a subject that breaks it.
        at_most: How many rules one broken subject may break; one that breaks everything proves nothing.
        overall: Rules that restate all others (a random walk, say); they are run only on the good subject and on the
            broken ones of their own.
    """
    rules = set(rules_of(suite))
    found = [f"good breaks {label}" for label in sorted(failing_rules(suite, good))]
    found += [f"no broken subject for {label}" for label in sorted(rules - set(broken))]
    found += [f"no such rule: {label}" for label in sorted(set(broken) - rules)]
    for label in sorted(rules & set(broken)):
        failed = failing_rules(suite, broken[label], only=(rules - set(overall)) | {label})
        if label not in failed:
            found.append(f"{label} is not noticed, only {sorted(failed)}")
        elif len(failed) > at_most:
            found.append(f"the subject for {label} breaks too much: {sorted(failed)}")
    return found
