"""The manifest: what is sound is read, each thing that is wrong has its code and says where, nothing is executed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_hookspecs import PluginError
from harness_hookspecs.contracts.distribution import manifest_text
from harness_hookspecs.kit.version_range import is_range, spec_allows
from harness_hookspecs.manifest import Capabilities, Provided, parse_manifest
from harness_hookspecs.manifest_flaws import manifest_flaws

GOOD = """
manifest = 1
id = "acme-tool"
summary = "Everything a manifest can say."
spec = ">=0.1,<0.2"
[[provides]]
kind = "tool"
name = "acme"
default = true
[provides.config]
type = "object"
properties.url = {type = "string", x-untrusted = "no"}
[[provides]]
kind = "role"
name = "acme.reviewer"
roles = ["planner", "worker.ai-generate"]
[capabilities]
network = ["api.acme.example"]
filesystem = ["read:${models_dir}", "write:${workspace}"]
threads = true
[conflicts]
other-tool = "both own the index lock"
"""


def test_a_sound_manifest_is_read() -> None:
    manifest = parse_manifest(GOOD.encode())
    assert (manifest.id, manifest.spec) == ("acme-tool", ">=0.1,<0.2")
    tool, role = manifest.provides
    assert tool.config == {"type": "object", "properties": {"url": {"type": "string", "x-untrusted": "no"}}}
    assert role == Provided("role", "acme.reviewer", ("planner", "worker.ai-generate"))
    assert manifest.capabilities == Capabilities(
        ("api.acme.example",), ("read:${models_dir}", "write:${workspace}"), threads=True
    )
    assert manifest.conflicts == {"other-tool": "both own the index lock"}


def test_no_capabilities_are_not_empty_capabilities() -> None:
    provides = [{"kind": "tool", "name": "a"}]
    assert parse_manifest(manifest_text("a", provides, capabilities=None).encode()).capabilities is None
    assert parse_manifest(manifest_text("a", provides).encode()).capabilities == Capabilities()


WRONG = {
    "no version": ('manifest = 1\nid = "acme-tool"', 'id = "acme-tool"', "HP003"),
    "another version": ("manifest = 1", "manifest = 2", "HP003"),
    "a version that is true": ("manifest = 1", "manifest = true", "HP003"),
    "an unknown key": ("summary =", "sumary =", "HP004"),
    "an unknown key of an offer": ("default = true", "defualt = true", "HP004"),
    "an unknown capability": ("threads = true", "thread = true", "HP004"),
    "an id that is no name": ('id = "acme-tool"', 'id = "acme tool"', "HP005"),
    "an empty summary": ("Everything a manifest can say.", " ", "HP005"),
    "an offer's name that is none": ('name = "acme"', 'name = "Acme:x"', "HP005"),
    "a default that is a word": ("default = true", 'default = "yes"', "HP005"),
    "a capability that is no list": ('network = ["api.acme.example"]', 'network = "api.acme.example"', "HP005"),
    "a root without read or write": ('"read:${models_dir}"', '"${models_dir}"', "HP005"),
    "conflicts without reasons": ('"both own the index lock"', "1", "HP005"),
    "an unknown kind": ('kind = "tool"', 'kind = "tol"', "HP006"),
    "a role that is none": ('"planner",', '"plannner",', "HP007"),
    "roles that are empty": ('["planner", "worker.ai-generate"]', "[]", "HP007"),
    "roles of a tool": ("default = true", 'roles = ["planner"]', "HP007"),
    "the same offer twice": ('kind = "role"\nname = "acme.reviewer"\nroles = ["planner", "worker.ai-generate"]',
                             'kind = "tool"\nname = "acme"', "HP008"),
    "a schema of something else": ('type = "object"', 'type = "string"', "HP009"),
    "an unknown mark of trust": ('x-untrusted = "no"', 'x-untrusted = "maybe"', "HP009"),
    "a range that is none": ('spec = ">=0.1,<0.2"', 'spec = "0.1"', "HP010"),
}  # fmt: skip


@pytest.mark.parametrize(("good", "bad", "code"), WRONG.values(), ids=WRONG)
def test_each_flaw_has_its_code(good: str, bad: str, code: str) -> None:
    assert good in GOOD
    with pytest.raises(PluginError) as caught:
        parse_manifest(GOOD.replace(good, bad).encode())
    assert code in [found for found, _ in caught.value.facts["flaws"]]
    assert caught.value.where == "harness-plugin.toml"


def test_a_misspelt_key_is_told_its_right_name() -> None:
    [flaw] = manifest_flaws(tomllib.loads(GOOD.replace("default = true", "defualt = true")))
    assert (flaw.message, flaw.hint) == ("unknown key provides[0].defualt", "did you mean 'default'?")


@pytest.mark.parametrize("data", [b"manifest = ", b"\xff\xfe", b"a = 1\na = 2"])
def test_what_is_not_toml_is_said_so(data: bytes) -> None:
    with pytest.raises(PluginError) as caught:
        parse_manifest(data)
    assert caught.value.code == "HP002"


def test_a_schema_may_stand_in_a_file_beside_it() -> None:
    text = manifest_text("a", [{"kind": "tool", "name": "a", "config_file": "a.json"}]).encode()
    manifest = parse_manifest(text, read={"a.json": b'{"type": "object"}'}.__getitem__)
    assert manifest.provides[0].config == {"type": "object"}

    def nothing(name: str) -> bytes:
        raise FileNotFoundError(name)

    for read in (None, nothing, lambda name: b"{"):
        with pytest.raises(PluginError) as caught:
            parse_manifest(text, read=read)
        assert caught.value.code == "HP009"


Words = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["id", "summary", "spec", "provides", "capabilities", "conflicts"]), Words))
def test_no_table_breaks_the_reader(table: dict[str, Any]) -> None:
    flaws = manifest_flaws({"manifest": 1, **table})
    assert all(flaw.code.startswith("HP0") and flaw.message for flaw in flaws)


RANGES = [
    (">=0.1,<0.2", "0.1.0", True),
    (">=0.1,<0.2", "0.2.0", False),
    (">=0.1,<0.2", "0.1.9.dev1", True),
    ("~=0.1", "0.9", True),
    ("~=0.1.0", "0.2", False),
    ("==0.1.*", "0.1.7", True),
    ("==0.1.*", "0.10", False),
    ("!=0.1.*", "0.2", True),
    ("==0.1", "0.1.0", True),
    ("!=0.1.0", "0.1", False),
    (" >0.1 , <=1 ", "1.0.0", True),
    (">0.1", "0.1.0", False),
]


@pytest.mark.parametrize(("spec", "version", "allowed"), RANGES)
def test_a_range_means_what_pep_440_says(spec: str, version: str, allowed: bool) -> None:
    assert spec_allows(spec, version) is allowed


@pytest.mark.parametrize("spec", ["", ",", "0.1", ">=", ">=0.1,oops", "~=1", ">=0.1.*", ">=1.0rc1"])
def test_what_is_no_range_is_refused(spec: str) -> None:
    assert not is_range(spec)
    with pytest.raises(PluginError) as caught:
        spec_allows(spec, "0.1.0")
    assert caught.value.code == "HP010"


def test_reading_a_manifest_needs_no_heavy_library() -> None:
    code = (
        "import sys; from harness_hookspecs.manifest import parse_manifest; parse_manifest(sys.stdin.buffer.read());"
        "print([name for name in ('pydantic', 'attr', 'attrs', 'jsonschema_rs', 'pluggy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], input=GOOD.encode(), capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
