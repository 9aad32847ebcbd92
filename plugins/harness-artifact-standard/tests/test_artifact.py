from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from harness_artifact_standard import (
    ImplementationArtifact,
    ReleaseNotes,
    Review,
    TextArtifact,
    harness_provide_artifacts,
)
from harness_artifact_standard.artifact import standard_type
from harness_hookspecs.artifact import ArtifactType, Narrows
from harness_hookspecs.contracts.artifact import ArtifactContract
from harness_hookspecs.errors import ValidationFailed
from harness_hookspecs.kit import codec

NOTES: dict[str, Any] = {"summary": "Faster start.", "highlights": ["Lazy imports"], "files": ["cli.py"], "risks": []}


def artifact(name: str) -> ArtifactType:
    offers = {offer.name: offer for offer in harness_provide_artifacts()}
    assert {offer.kind for offer in offers.values()} == {"artifact"}
    built: ArtifactType = offers[name].build(None, None)
    assert built.name == name
    return built


def findings(name: str, output: Any) -> list[tuple[str, str]]:
    with pytest.raises(ValidationFailed) as caught:
        artifact(name).parse(output)
    return [(finding["code"], finding["path"]) for finding in caught.value.facts["findings"]]


class TestImplementation(ArtifactContract):
    def subject(self) -> ArtifactType:
        return artifact("implementation")


class TestReleaseNotes(ArtifactContract):
    def subject(self) -> ArtifactType:
        return artifact("release_notes")


class TestReview(ArtifactContract):
    def subject(self) -> ArtifactType:
        return artifact("review")


class TestText(ArtifactContract):
    def subject(self) -> ArtifactType:
        return artifact("text")


@pytest.mark.parametrize("output", [None, "text", [1, {}], 0, {"a": [None]}])
def test_any_json_is_an_artifact_and_what_is_no_object_stands_in_one(output: Any) -> None:
    body, status, warnings = artifact("json").parse(output)
    assert body == (output if isinstance(output, dict) else {"value": output})
    assert (status, list(warnings), artifact("json").schema()) == ("success", [], {})


@pytest.mark.req("B-61")
def test_the_implementation_artifact_has_the_fields_of_the_seed() -> None:
    schema = artifact("implementation").schema()
    names = ["summary", "modified_files", "risks", "commands_executed", "next_recommendation"]
    assert list(schema["properties"]) == schema["required"] == names
    body = {"summary": "s", "modified_files": ["a"], "risks": [], "commands_executed": [], "next_recommendation": ""}
    assert artifact("implementation").parse(body) == (body, "success", ())


@pytest.mark.req("B-67")
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({**NOTES, "summary": 7}, ("payload.string_type", "/summary")),
        ({**NOTES, "summary": ""}, ("payload.string_too_short", "/summary")),
        ({**NOTES, "summary": "x" * 101}, ("payload.string_too_long", "/summary")),
        ({**NOTES, "summary": "Two lines.\nOf text."}, ("payload.string_pattern_mismatch", "/summary")),
        ({**NOTES, "highlights": ["Tests", None]}, ("payload.string_type", "/highlights/1")),
        ({**NOTES, "highlights": []}, ("payload.too_short", "/highlights")),
        ({**NOTES, "highlights": ["Some", "More", "Much"]}, ("payload.too_long", "/highlights")),
        ({**NOTES, "files": ["a", "b", "c", "d", "e"]}, ("payload.too_long", "/files")),
        ({**NOTES, "risks": "none"}, ("payload.tuple_type", "/risks")),
        ({**NOTES, "extra": 1}, ("payload.extra_forbidden", "/extra")),
        ({name: value for name, value in NOTES.items() if name != "risks"}, ("payload.missing", "/risks")),
        ("It is faster now.", ("payload.not_object", "")),
        (None, ("payload.not_object", "")),
    ],
)
def test_each_fault_is_located(output: Any, expected: tuple[str, str]) -> None:
    assert findings("release_notes", output) == [expected]


def test_all_faults_are_told_together() -> None:
    assert [path for _, path in findings("release_notes", {"summary": 1, "files": [2]})] == [
        "/summary",
        "/highlights",
        "/files/0",
        "/risks",
    ]


def test_a_file_that_stands_twice_counts_once_and_leaves_a_warning() -> None:
    parsed = artifact("release_notes").parse({**NOTES, "files": ["b", "a", "b", "a", "b", "a"]})
    assert parsed.body["files"] == ["b", "a"]
    [warning] = parsed.warnings
    assert (warning.code, warning.severity, warning.path) == ("artifact.duplicates_merged", "warning", "/files")
    assert "a, b" in warning.message
    assert artifact("release_notes").parse(parsed.body).warnings == ()


def test_the_files_are_narrowed_to_what_was_changed() -> None:
    notes = artifact("release_notes")
    assert isinstance(notes, Narrows)
    narrowed = notes.narrow(notes.schema(), {"changed_files": ["b.py", "a.py", "b.py", "x" * 256]})
    files = narrowed["properties"]["files"]
    wanted = {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a.py", "b.py"]}}
    assert files == wanted
    many = notes.narrow(notes.schema(), {"changed_files": [f"{number}.py" for number in range(201)]})
    assert "enum" not in many["properties"]["files"]["items"]
    none = notes.narrow(notes.schema(), {"changed_files": []})
    assert none["properties"]["files"]["maxItems"] == 0
    assert "minItems" not in none["properties"]["files"]


def test_other_types_are_not_narrowed() -> None:
    review = artifact("review")
    assert isinstance(review, Narrows)
    assert review.narrow(review.schema(), {"changed_files": ["a"]}) == review.schema()


def test_the_longest_release_notes_are_short() -> None:
    longest = {"summary": "X" * 100, "highlights": ["X" * 48] * 2, "files": ["docs/a.md"] * 3, "risks": ["X" * 40]}
    artifact("release_notes").parse(longest)
    assert len(codec.dumps(longest)) < 350  # 160 tokens with two characters a token in the texts, five elsewhere


def test_which_types_want_their_files_checked() -> None:
    wanted = {offer.name: list(offer.build(None, None).validators) for offer in harness_provide_artifacts()}
    files = ["changed_files"]
    assert wanted == {"implementation": files, "json": [], "release_notes": files, "review": [], "text": []}


def test_the_models_are_public_and_frozen() -> None:
    notes = ReleaseNotes(**NOTES)
    with pytest.raises(ValidationError):
        notes.summary = "other"  # that it fails is the test
    assert {Review, TextArtifact, ImplementationArtifact}
    with pytest.raises(ValidationError):
        Review(verdict="maybe", findings=(), summary="s")  # that it fails is the test


def test_listing_the_offers_imports_no_pydantic() -> None:
    code = (
        "import sys; import harness_artifact_standard as plugin; plugin.harness_provide_artifacts();"
        "assert 'pydantic' not in sys.modules, 'pydantic is imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_free_text_is_bounded_so_that_its_json_ends_before_the_reply_does() -> None:
    text = standard_type("text")
    bounded = text.narrow(text.schema(), {"reply_tokens": 100})
    assert bounded["properties"]["text"]["maxLength"] == 300
    assert text.narrow(text.schema(), {"reply_tokens": None}) == text.schema()
    assert text.narrow(text.schema(), {"reply_tokens": 100_000}) == text.schema()
