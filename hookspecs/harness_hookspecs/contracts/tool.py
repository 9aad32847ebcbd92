"""What every tool set promises: a set and sample calls go in, the rules that it breaks come out."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness_hookspecs.errors import Cancelled, CodecError, Refused, ToolError
from harness_hookspecs.kit import codec
from harness_hookspecs.kit.json_schema import best_fault, compiled_schema
from harness_hookspecs.tool import TIERS, Previews, Probes, ToolContext, ToolResult, ToolSet, ToolSpec

from .rules import Contract, raised_by, rule

__all__ = ["ToolContract"]


class ToolContract(Contract):
    """The suite of kind ``tool``.

    Attributes:
        set_name: The name of the offer, with which every tool's name begins.
    """

    set_name = ""

    def subject(self) -> ToolSet:
        """The tool set, over ``self.host``; building it again is what happens after a crash."""
        raise NotImplementedError("override subject()")

    def prepare(self) -> None:
        """Make the world that the sample calls need, below ``self.host.project_dir`` for example."""

    def calls(self) -> Mapping[str, Mapping[str, Any]]:
        """For each tool the arguments of a call that succeeds in the prepared world; an effect must show in it."""
        raise NotImplementedError("override calls()")

    def impossible_calls(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """Calls with valid arguments that cannot be done."""
        return ()

    def world(self) -> Any:
        """A snapshot of what effects can change, comparable; by default every file of the workspace with its mode."""
        root = self.host.project_dir
        return {
            path.relative_to(root).as_posix(): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in root.rglob("*")
        }

    def setup_method(self) -> None:
        """Make the host and the world."""
        super().setup_method()
        self._surroundings = dict(os.environ), os.getcwd()
        self.prepare()

    def teardown_method(self) -> None:
        """Undo what a set did to this process."""
        environment, folder = self._surroundings
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        super().teardown_method()

    # ------------------------------------------------------------------------------------- specifications

    @rule("tool.specs_are_stable")
    def test_the_tools_are_the_same_for_the_life_of_the_set(self) -> None:
        subject = self.subject()
        first = tuple(subject.specs())
        assert first, "a set has at least one tool"
        for name, args in self.calls().items():
            self._execute(subject, name, args)
        assert tuple(subject.specs()) == first == tuple(self.subject().specs())

    @rule("tool.names_begin_with_the_set")
    def test_names_are_unique_and_begin_with_the_name_of_the_set(self) -> None:
        names = [spec.name for spec in self._specs()]
        assert len(names) == len(set(names))
        prefix = re.sub(r"[^a-z0-9]", "_", self.set_name)
        assert all(re.fullmatch(r"[a-z0-9_]{1,64}", name) and name.startswith(f"{prefix}_") for name in names)

    @rule("tool.says_how_far_it_reaches")
    def test_tier_and_effect_and_limit_are_given(self) -> None:
        for spec in self._specs():
            assert spec.tier in TIERS
            assert spec.effect in {"pure", "keyed", "unkeyed"}
            assert spec.effect != "pure" or spec.tier in {"T0", "T1", "T3"}, "what changes something is not pure"
            assert spec.timeout_seconds is None or 0 < spec.timeout_seconds <= 86_400

    @rule("tool.is_described")
    def test_a_model_is_told_what_a_tool_does(self) -> None:
        assert all(0 < len(spec.description.strip()) <= 1_024 for spec in self._specs())

    @rule("tool.input_is_a_closed_object")
    def test_unknown_arguments_are_refused_by_the_schema(self) -> None:
        for spec in self._specs():
            schema = dict(spec.input_schema)
            _check_schema(schema)
            assert schema.get("type") == "object"
            assert schema.get("additionalProperties") is False
            assert set(schema.get("required", ())) <= set(schema.get("properties", {}))

    @rule("tool.samples_cover_the_set")
    def test_there_is_a_valid_sample_call_of_each_tool(self) -> None:
        calls = self.calls()
        specs = {spec.name: spec for spec in self._specs()}
        assert set(calls) == set(specs)
        for name, args in [*calls.items(), *self.impossible_calls()]:
            codec.dumps(dict(args))
            assert best_fault(compiled_schema(specs[name].input_schema), dict(args)) is None

    # ---------------------------------------------------------------------------------------------- calls

    @rule("tool.results_are_strict_json")
    def test_results_are_strict_json(self) -> None:
        for result in self._results().values():
            assert isinstance(result, ToolResult)
            assert isinstance(result.truncated, bool)
            codec.loads(codec.dumps(result.value))

    @rule("tool.results_fit_their_schema")
    def test_results_satisfy_the_output_schema(self) -> None:
        results = self._results()
        for spec in self._specs():
            if spec.output_schema is not None:
                _check_schema(spec.output_schema)
                value = codec.loads_trusted(codec.dumps(results[spec.name].value))
                assert best_fault(compiled_schema(spec.output_schema), value) is None

    @rule("tool.pure_changes_nothing")
    def test_a_pure_tool_leaves_the_world_as_it_is(self) -> None:
        before = self.world()
        for name, args in self._of_effect("pure").items():
            self._execute(self.subject(), name, args)
            assert self.world() == before, name

    @rule("tool.keyed_happens_once")
    def test_a_call_repeated_with_its_key_changes_nothing_more(self) -> None:
        for name, args in self._of_effect("keyed").items():
            before = self.world()
            self._execute(self.subject(), name, args, key=f"key of {name}")
            once = self.world()
            assert once != before, f"the sample call of {name} has no effect"
            self._execute(self.subject(), name, args, key=f"key of {name}")
            assert self.world() == once, name

    @rule("tool.arguments_are_left_alone")
    def test_a_call_does_not_change_its_arguments(self) -> None:
        subject = self.subject()
        for name, args in self.calls().items():
            given = copy.deepcopy(dict(args))
            self._execute(subject, name, given)
            assert given == args, name

    @rule("tool.environment_is_left_alone")
    def test_a_call_changes_neither_environment_nor_working_folder(self) -> None:
        before = dict(os.environ), os.getcwd()
        self._results()
        assert (dict(os.environ), os.getcwd()) == before

    @rule("tool.cancel_is_respected")
    def test_a_cancelled_call_ends_as_cancelled_and_does_nothing(self) -> None:
        token = self.host.ports.wait.token()
        token.cancel("stop")
        before = self.world()
        for name, args in self.calls().items():
            assert raised_by(self._run, self.subject(), name, args, token) is Cancelled, name
        assert self.world() == before

    @rule("tool.errors_are_typed")
    def test_what_cannot_be_done_is_an_error_of_the_contract(self) -> None:
        for name, args in [("no_such_tool", {}), *self.impossible_calls()]:
            raised = raised_by(self._execute, self.subject(), name, args)
            assert raised is not None and issubclass(raised, ToolError | Refused), f"{name}: {raised}"

    # ------------------------------------------------------------------------------------------- optional

    @rule("tool.probe_is_truthful")
    def test_a_probe_tells_what_happened_and_changes_nothing(self) -> None:
        subject = self.subject()
        if not isinstance(subject, Probes):
            return
        for name, args in self._of_effect("keyed").items():
            assert subject.probe(name, args, "key").outcome != "happened", name
            self._execute(subject, name, args, key="key")
            after = self.world()
            assert self.subject().probe(name, args, "key").outcome != "never_happened", name  # type: ignore[attr-defined]
            assert subject.probe(name, args, "another key").outcome != "happened", name
            assert self.world() == after, name

    @rule("tool.preview_changes_nothing")
    def test_a_preview_is_text_and_changes_nothing(self) -> None:
        subject = self.subject()
        if not isinstance(subject, Previews):
            return
        before = self.world()
        for name, args in [*self.calls().items(), *self.impossible_calls()]:
            assert isinstance(subject.preview(name, args), str | None), name
        assert self.world() == before

    # -------------------------------------------------------------------------------------------- helpers

    def _specs(self) -> Sequence[ToolSpec]:
        return self.subject().specs()

    def _of_effect(self, effect: str) -> dict[str, Mapping[str, Any]]:
        calls = self.calls()
        return {spec.name: calls[spec.name] for spec in self._specs() if spec.effect == effect}

    def _results(self) -> dict[str, ToolResult]:
        subject = self.subject()
        return {name: self._execute(subject, name, args) for name, args in self.calls().items()}

    def _execute(self, subject: ToolSet, name: str, args: Mapping[str, Any], key: str = "") -> ToolResult:
        return self._run(subject, name, args, self.host.ports.wait.token(), key)

    def _run(self, subject: ToolSet, name: str, args: Mapping[str, Any], token: Any, key: str = "") -> ToolResult:
        ports = self.host.ports
        return subject.execute(name, args, ToolContext(token, ports, key or ports.ids.ulid("call"), 30.0))


def _check_schema(schema: Mapping[str, Any]) -> None:
    try:
        codec.dumps(dict(schema))
    except CodecError as error:
        raise AssertionError(f"a schema is not strict JSON: {error}") from error
    compiled_schema(schema)
